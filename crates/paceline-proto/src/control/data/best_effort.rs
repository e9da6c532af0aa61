//! Streams that are carried without the requested promise, and the reasons.

use core::fmt;

/// The reason why a stream is carried with best effort although a promise was requested.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum BestEffort {
    /// No link of its path has a capacity: nothing limits the stream, and nothing can be reserved.
    NoCapacity,
    /// Its publisher declares no rate, so the required reservation is unknown. This does not change by
    /// itself.
    RateUnknown,
    /// The size of its samples is unknown. After the first sample, a reservation is requested.
    SizeUnknown,
    /// Its reservation was released because the publisher sent nothing for the idle time. The next sample requests
    /// it again.
    Idle,
    /// The publisher requested a contract for it, and the path refused it.
    Refused,
}

impl BestEffort {
    /// Returns true if a link of the path may lack capacity without any means to find out. For a subscription
    /// that requires a promise, this is a refusal.
    #[must_use]
    pub const fn is_no(self) -> bool {
        matches!(self, Self::RateUnknown | Self::Refused)
    }
}

impl fmt::Display for BestEffort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCapacity => "no link of its path has a capacity",
            Self::RateUnknown => {
                "its publishing rate is unknown; declare it at the publisher (pub --hz, or a period)"
            }
            Self::SizeUnknown => {
                "its sample size is unknown before the first sample; its path is asked after that"
            }
            Self::Idle => {
                "idle: nothing was published for the idle time, so its reservation was released; the next \
                 sample requests it again"
            }
            Self::Refused => {
                "its publisher requested a contract, which its path refused; request one with other values for \
                 the reason and an offer"
            }
        })
    }
}
