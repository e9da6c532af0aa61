//! Packet loss models.

use crate::random::Random;

/// A probability of 1 in parts per million.
pub const PPM_MAX: u32 = 1_000_000;

/// The loss model. Probabilities are in parts per million of packets; values above a million mean always.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Loss {
    /// No loss.
    #[default]
    None,
    /// Independent loss with the same probability for each packet.
    Random {
        /// The loss probability.
        ppm: u32,
    },
    /// Bursts of loss (the Gilbert–Elliott model): the network is in a good or a bad state, and may change
    /// its state before each packet.
    ///
    /// A bad period lasts 1/`bad_to_good` packets on average. The share of packets sent in bad periods is
    /// `good_to_bad` ÷ (`good_to_bad` + `bad_to_good`).
    GilbertElliott {
        /// The probability of a change to the bad state.
        good_to_bad_ppm: u32,
        /// The probability of a change to the good state.
        bad_to_good_ppm: u32,
        /// The loss probability in the good state.
        loss_good_ppm: u32,
        /// The loss probability in the bad state.
        loss_bad_ppm: u32,
    },
}

/// Decides on the loss of successive packets.
#[derive(Clone, Debug)]
pub(super) struct Chooser {
    chance: Random,
    bad: bool,
}

impl Chooser {
    pub(super) const fn new(chance: Random) -> Self {
        Self { chance, bad: false }
    }

    /// Returns true if the next packet is lost.
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
