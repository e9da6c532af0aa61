//! The publishers of a node, and reports of their use.

use super::port::NodePort;
use bytes::Bytes;
use paceline_proto::PublisherId;
use paceline_proto::control::PublisherSpec;
use paceline_proto::ingress::{Ingress, Stamper};
use paceline_proto::sample::{Encoding, Kind, Timestamp};
use paceline_sched::{Duration, Instant};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The interval of reports of published samples.
const REPORT_EVERY: Duration = Duration::from_millis(250);

/// A sample to publish.
#[derive(Clone, Debug)]
pub struct NewSample {
    /// The capture time in UTC.
    pub captured: Timestamp,
    /// The kind; for video, whether the picture depends on others.
    pub kind: Kind,
    /// The message.
    pub payload: Bytes,
    /// The time since it was published elsewhere, for a program that publishes for another one; usually zero.
    pub age: Duration,
    /// The true age exceeds `age` by at most this.
    pub doubt: Duration,
}

impl NewSample {
    /// Returns a message without a capture time.
    #[must_use]
    pub fn data(payload: impl Into<Bytes>) -> Self {
        let captured = Timestamp { nanos: 0, error: Timestamp::UNKNOWN_ERROR };
        let (age, doubt) = (Duration::ZERO, Duration::ZERO);
        Self { captured, kind: Kind::Data, payload: payload.into(), age, doubt }
    }
}

/// A publisher of the node, with its outputs.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) ingress: Ingress<NodePort>,
    pub(super) publisher: Arc<PublisherSpec>,
    /// Numbers the samples, until it is withdrawn.
    pub(super) stamper: Option<Stamper>,
}

impl Source {
    pub(super) fn new(publisher: Arc<PublisherSpec>) -> Self {
        let stamper = Some(Stamper::new(publisher.period));
        Self { ingress: Ingress::new(publisher.period), publisher, stamper }
    }

    pub(super) fn encoding(&self) -> Encoding {
        self.publisher.encoding.clone()
    }
}

/// Reports of published samples, which keep reservations with an idle time in use.
#[derive(Debug)]
pub(super) struct UseReports {
    is_enabled: bool,
    /// The publishers with samples since the last report.
    publishers: BTreeSet<PublisherId>,
    /// The instant of the next report.
    pub(super) next_at: Instant,
}

impl Default for UseReports {
    fn default() -> Self {
        Self { is_enabled: true, publishers: BTreeSet::new(), next_at: Instant::ZERO }
    }
}

impl UseReports {
    pub(super) fn set(&mut self, is_enabled: bool) {
        if self.is_enabled != is_enabled {
            let next_at = if is_enabled { Instant::ZERO } else { Instant::FAR };
            *self = Self { is_enabled, publishers: BTreeSet::new(), next_at };
        }
    }

    /// Records a sample.
    pub(super) fn note(&mut self, publisher: PublisherId) {
        if self.is_enabled {
            self.publishers.insert(publisher);
        }
    }

    /// Returns the publishers to report, if a report is due.
    pub(super) fn take(&mut self, now: Instant) -> Option<BTreeSet<PublisherId>> {
        if now < self.next_at {
            return None;
        }
        self.next_at = now + REPORT_EVERY;
        Some(std::mem::take(&mut self.publishers))
    }
}
