//! Other traffic and delay bounds that a survey tests on every node of a path.

use super::codec::{put_envelope, read_envelope};
use super::spec::{PublisherSpec, SubscriptionSpec};
use crate::envelope::Envelope;
use crate::wire::{Reader, WireError, Writer};
use paceline_sched::Duration;

/// Other traffic of a publisher and another delay bound, which a survey tests instead of the declared traffic and the
/// requested bound.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TrafficTrial {
    /// The time between two samples.
    pub period: Duration,
    /// The largest sample in bytes.
    pub bytes_max: u64,
    /// The traffic over longer times.
    pub envelope: Envelope,
    /// The delay bound.
    pub within: Duration,
}

impl TrafficTrial {
    /// The greatest number of trials of a survey.
    pub const TRIALS_MAX: usize = 64;

    /// Returns the declaration and the request with the values of this trial.
    pub(in crate::control) fn apply(
        &self,
        spec: &PublisherSpec,
        request: &SubscriptionSpec,
    ) -> (PublisherSpec, SubscriptionSpec) {
        let spec = PublisherSpec {
            period: Some(self.period),
            bytes_max: Some(self.bytes_max),
            envelope: Some(self.envelope),
            ..spec.clone()
        };
        (spec, SubscriptionSpec { within: Some(self.within), ..request.clone() })
    }

    pub(in crate::control) fn write(&self, out: &mut Vec<u8>) {
        out.put_varint(self.period.as_nanos());
        out.put_varint(self.bytes_max);
        put_envelope(out, self.envelope);
        out.put_varint(self.within.as_nanos());
    }

    pub(in crate::control) fn read(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self {
            period: Duration::from_nanos(reader.varint("trial")?),
            bytes_max: reader.varint("trial")?,
            envelope: read_envelope(reader, false)?,
            within: Duration::from_nanos(reader.varint("trial")?),
        })
    }
}
