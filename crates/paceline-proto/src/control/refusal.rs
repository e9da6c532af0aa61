//! The answer no, with the number that did not fit and what would.

use crate::form::Size;
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use core::fmt;
use paceline_sched::{Capacity, Duration, LossTolerance};

/// One publisher's stream that a subscription can't have.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    /// Who asked.
    pub subscription: SubscriptionId,
    /// For whose samples.
    pub publisher: PublisherId,
    /// The request that is refused ([`SubscriptionSpec::revision`](super::SubscriptionSpec::revision)).
    pub revision: u64,
    /// The node that says so: the first of the path whose link can't carry it.
    pub node: NodeId,
    /// What people call it, a label only.
    pub node_name: String,
    /// The link of that node that can't carry it; empty where no link is the reason.
    pub link: String,
    /// What the stream needs on the link besides what is promised already; with
    /// [`RefusalReason::Deadlines`] what all of them would need while the most is due.
    pub needed_bytes_per_s: u64,
    /// What the streams admitted before leave of the link, or what it carries.
    pub available_bytes_per_s: u64,
    /// Why.
    pub reason: RefusalReason,
    /// What would be promised instead, when it was refused.
    pub offer: Offer,
}

/// What would be promised in place of what was refused, each alone; `None` where no value of it would help.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Offer {
    /// The same samples, so many a second at most, in thousandths.
    pub max_millihertz: Option<u64>,
    /// As many samples, each of at most so many bytes.
    pub bytes: Option<u64>,
    /// The same samples within this delay bound.
    pub within: Option<Duration>,
    /// The same samples, this part of which may miss it.
    pub loss: Option<LossTolerance>,
}

/// Why a stream was refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RefusalReason {
    /// The link has no room for it beside the streams that were there before.
    Capacity,
    /// The link carries it, but not in time: its samples and those of the streams that were there before
    /// may be due together.
    Deadlines {
        /// In this time after a beginning that all may have in common
        within: Duration,
        /// so many bytes would be due, with the one frame that may be on the link already, and
        due: u64,
        /// so many are carried.
        carried: u64,
    },
    /// The link's discipline would let a sample wait for longer than a part of a delay bound: this one's,
    /// or that of a stream that was there before.
    Delay {
        /// How long it would take.
        takes: Duration,
        /// How long it may.
        within: Duration,
    },
    /// The node's processor would spend more on what is promised than it may: in nanoseconds per second, this
    /// stream and those that were there before.
    Processor {
        /// What it would take,
        needed: u64,
        /// and what it may.
        available: u64,
    },
    /// The path was asked again and again, and the node gives no answer, or not one that can be relied on.
    NoAnswer,
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
        let on = format!("link '{}' of '{}'", self.link, self.node_name);
        match self.reason {
            RefusalReason::Capacity => write!(
                f,
                "{on} can't carry it: it needs {} and {} are left; {}",
                BitRate(self.needed_bytes_per_s),
                BitRate(self.available_bytes_per_s),
                self.offer,
            ),
            RefusalReason::Deadlines { within, due, carried } => write!(
                f,
                "{on} can't carry it in time: up to {due} bytes would be due within {within}, and it \
                 carries {carried}; {}",
                self.offer,
            ),
            RefusalReason::Delay { takes, within } => write!(
                f,
                "{on} can't carry it in time: a sample could take {takes} there, and may take {within}; {}",
                self.offer,
            ),
            RefusalReason::Processor { needed, available } => write!(
                f,
                "the processor of '{}' can't carry it: with what is promised it would take {} of each second, \
                 and may take {}; {}",
                self.node_name,
                Duration::from_nanos(needed),
                Duration::from_nanos(available),
                self.offer,
            ),
            RefusalReason::NoAnswer => write!(
                f,
                "'{}' gives no answer to what is asked of the path: it is asked again",
                self.node_name
            ),
            RefusalReason::SizeAboveSource { asked, source } => write!(
                f,
                "size {asked} is above the publisher's {source}: ask for {source} or a smaller size"
            ),
        }
    }
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hertz = self.max_millihertz.map(|rate| {
            // Rounded down: what is offered was tested.
            let (whole, tenths) = (rate / 1_000, rate % 1_000 / 100);
            format!("at most {whole}.{tenths} Hz")
        });
        let bytes = self.bytes.map(|bytes| format!("samples of at most {bytes} bytes"));
        let within = self.within.map(|within| format!("a delay bound of at least {within}"));
        let loss = self.loss.map(|loss| format!("a loss tolerance of at least {loss}"));
        let parts: Vec<String> = [hertz, bytes, within, loss].into_iter().flatten().collect();
        match parts.is_empty() {
            true => f.write_str("nothing of it fits now: ask without a contract, or later"),
            false => write!(f, "ask for {}", parts.join(", or ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_number_that_did_not_fit_and_the_mend() {
        let mut refusal = Refusal {
            subscription: SubscriptionId { node: NodeId(1), index: 0 },
            publisher: PublisherId { node: NodeId(2), index: 0 },
            revision: 0,
            node: NodeId(3),
            node_name: "ship".into(),
            link: "radio0".into(),
            needed_bytes_per_s: 400_000,
            available_bytes_per_s: 0,
            reason: RefusalReason::Capacity,
            offer: Offer::default(),
        };
        assert_eq!(
            refusal.to_string(),
            "link 'radio0' of 'ship' can't carry it: it needs 3.20 Mbit/s and 0 bit/s are left; nothing of it \
             fits now: ask without a contract, or later"
        );
        let within = Duration::from_millis(40);
        refusal.reason = RefusalReason::Deadlines { within, due: 12_000, carried: 9_500 };
        refusal.offer.max_millihertz = Some(12_590);
        refusal.offer.within = Some(Duration::from_millis(210));
        assert_eq!(
            refusal.to_string(),
            "link 'radio0' of 'ship' can't carry it in time: up to 12000 bytes would be due within 40 ms, and it \
             carries 9500; ask for at most 12.5 Hz, or a delay bound of at least 210 ms"
        );
        let takes = Duration::from_millis(55);
        refusal.reason = RefusalReason::Delay { takes, within };
        refusal.offer = Offer { loss: LossTolerance::new(1, 5).ok(), ..Offer::default() };
        assert_eq!(
            refusal.to_string(),
            "link 'radio0' of 'ship' can't carry it in time: a sample could take 55 ms there, and may take 40 \
             ms; ask for a loss tolerance of at least 1/5"
        );
        refusal.reason = RefusalReason::Processor { needed: 520_000_000, available: 500_000_000 };
        assert_eq!(
            refusal.to_string(),
            "the processor of 'ship' can't carry it: with what is promised it would take 520 ms of each \
             second, and may take 500 ms; ask for a loss tolerance of at least 1/5"
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
