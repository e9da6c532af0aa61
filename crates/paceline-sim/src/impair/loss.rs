//! Which packets are lost.

use crate::random::Random;

/// All of a million: a chance that never fails.
pub const PPM_MAX: u32 = 1_000_000;

/// How packets are lost. Chances are in millionths of packets; beyond a million is always.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Loss {
    /// None is.
    #[default]
    None,
    /// Each one with the same chance, whatever happened to those before it.
    Random {
        /// The chance.
        ppm: u32,
    },
    /// In bursts: the network is good or bad, and changes before a packet with a chance.
    ///
    /// A bad time lasts 1/`bad_to_good` packets on average, and the share of packets sent in it is
    /// `good_to_bad` ÷ (`good_to_bad` + `bad_to_good`).
    GilbertElliott {
        /// The chance to turn bad.
        good_to_bad_ppm: u32,
        /// The chance to turn good again.
        bad_to_good_ppm: u32,
        /// The chance of a packet to be lost while it is good.
        loss_good_ppm: u32,
        /// The chance of a packet to be lost while it is bad.
        loss_bad_ppm: u32,
    },
}

/// Decides about one packet after another.
#[derive(Clone, Debug)]
pub(super) struct Chooser {
    chance: Random,
    bad: bool,
}

impl Chooser {
    pub(super) const fn new(chance: Random) -> Self {
        Self { chance, bad: false }
    }

    /// True if the next packet is lost.
    pub(super) const fn loses(&mut self, loss: Loss) -> bool {
        match loss {
            Loss::None => false,
            Loss::Random { ppm } => self.chance.ppm(ppm),
            Loss::GilbertElliott {
                good_to_bad_ppm,
                bad_to_good_ppm,
                loss_good_ppm,
                loss_bad_ppm,
            } => {
                let change = if self.bad { bad_to_good_ppm } else { good_to_bad_ppm };
                self.bad ^= self.chance.ppm(change);
                self.chance.ppm(if self.bad { loss_bad_ppm } else { loss_good_ppm })
            }
        }
    }
}
