//! The answer no, with the number that did not fit and what would.

use crate::form::Size;
use crate::ids::{PublisherId, SubscriptionId};
use core::fmt;
use paceline_sched::Capacity;

/// One publisher's stream that a subscription can't have.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    /// Who asked.
    pub subscription: SubscriptionId,
    /// For whose samples.
    pub publisher: PublisherId,
    /// The link that can't carry it; empty where no link is the reason.
    pub link: String,
    /// What the stream needs on the link besides what is there already; more than the whole link if one
    /// sample alone takes longer than its part of the delay bound.
    pub needed_bytes_per_s: u64,
    /// What the streams admitted before leave of the link.
    pub available_bytes_per_s: u64,
    /// Why.
    pub reason: RefusalReason,
}

/// Why a stream was refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RefusalReason {
    /// The link has no room for it beside the streams that were there before.
    Capacity,
    /// Pictures can be made smaller, not larger.
    SizeAboveSource {
        /// The size asked for.
        asked: Size,
        /// The size of the publisher's pictures.
        source: Size,
    },
}

/// Bytes per second in the unit that a reader expects.
struct BitRate(u64);

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Capacity::from_bytes_per_s(self.0) {
            Ok(capacity) => capacity.fmt(f),
            Err(_) => f.write_str("0 bit/s"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            RefusalReason::Capacity => write!(
                f,
                "link '{}' can't carry it: it needs {} and {} are left; ask for a lower rate, a \
                 smaller size, a longer delay bound or a higher loss tolerance",
                self.link,
                BitRate(self.needed_bytes_per_s),
                BitRate(self.available_bytes_per_s),
            ),
            RefusalReason::SizeAboveSource { asked, source } => write!(
                f,
                "size {asked} is above the publisher's {source}: ask for {source} or a smaller size"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;

    #[test]
    fn a_refusal_names_the_number_that_did_not_fit_and_the_mend() {
        let mut refusal = Refusal {
            subscription: SubscriptionId { node: NodeId(1), index: 0 },
            publisher: PublisherId { node: NodeId(2), index: 0 },
            link: "radio0".into(),
            needed_bytes_per_s: 400_000,
            available_bytes_per_s: 0,
            reason: RefusalReason::Capacity,
        };
        assert_eq!(
            refusal.to_string(),
            "link 'radio0' can't carry it: it needs 3.20 Mbit/s and 0 bit/s are left; ask for a \
             lower rate, a smaller size, a longer delay bound or a higher loss tolerance"
        );
        refusal.reason = RefusalReason::SizeAboveSource {
            asked: Size { width: 640, height: 480 },
            source: Size { width: 320, height: 240 },
        };
        assert_eq!(
            refusal.to_string(),
            "size 640x480 is above the publisher's 320x240: ask for 320x240 or a smaller size"
        );
    }
}
