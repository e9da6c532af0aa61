//! The jumps and pauses of a file.

/// A jump is listed if it is longer than this in nanoseconds.
const LISTED_MIN: u128 = 1_000_000_000;
/// The number of listed jumps.
const LISTED_MAX: usize = 8;

/// A jump of a clock that is not followed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Jump {
    /// The number of the message's channel.
    pub channel: u16,
    /// The release time of the message in nanoseconds.
    pub at: u64,
    /// The length of the jump in nanoseconds; negative for a jump back.
    pub by: i128,
}

/// The jumps of a file that are cut, and its long pauses that are kept.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Jumps {
    /// The number of jumps of more than 1 s.
    pub count: u64,
    /// The first of them, at most 8.
    pub first: Vec<Jump>,
    /// The number of pauses of more than 10 s that are kept.
    pub pauses: u64,
    /// The longest of them in nanoseconds.
    pub longest_pause: u64,
}

impl Jumps {
    pub(super) fn cut(&mut self, jump: Jump) {
        if jump.by.unsigned_abs() <= LISTED_MIN {
            return;
        }
        self.count += 1;
        if self.first.len() < LISTED_MAX {
            self.first.push(jump);
        }
    }

    pub(super) fn keep(&mut self, pause: i128) {
        self.pauses += 1;
        self.longest_pause = self.longest_pause.max(u64::try_from(pause).unwrap_or_default());
    }
}
