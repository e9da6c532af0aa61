//! A toy video scaler.

use crate::destination::Destination;
use paceline_proto::form::{Form, Size};
use paceline_proto::reason::DropReason;
use paceline_proto::sample::{Kind, RawSample};
use paceline_proto::temporal::TemporalScaler;
use paceline_proto::video::{Thinned, Thinner};
use paceline_sched::Duration;

/// Drops Bs to reduce the rate. If the references alone exceed it, transcodes the due pictures to pictures of
/// their own. A picture of w×h is the first w·h bytes of a larger one.
#[derive(Debug)]
pub(super) struct VideoScaler {
    destination: Destination,
    thinner: Thinner,
    due: TemporalScaler,
    coding: bool,
    size: Option<Size>,
}

impl VideoScaler {
    pub(super) fn new(scale: Form, period: Option<Duration>, destination: Destination) -> Self {
        let Form { rate, size, .. } = scale;
        let (thinner, due) = (Thinner::new(rate, period), TemporalScaler::new(rate, period));
        // A reduction in size always requires transcoding.
        Self { destination, thinner, due, coding: size.is_some(), size }
    }

    pub(super) const fn destination(&self) -> &Destination {
        &self.destination
    }

    pub(super) const fn destination_mut(&mut self) -> &mut Destination {
        &mut self.destination
    }

    /// Records that a sample passed on was dropped after all.
    pub(super) const fn broke(&mut self, kind: Kind) {
        self.thinner.broke(kind);
    }

    /// Returns the output for `sample`, or `None` if the reduced rate excludes it.
    pub(super) fn scale(&mut self, sample: &RawSample) -> Result<Option<RawSample>, DropReason> {
        let (seq, captured) = (sample.seq, sample.captured.nanos);
        let due = self.due.take(seq, captured);
        if !self.coding {
            match self.thinner.offer(sample.kind, seq, captured) {
                Thinned::Pass => return Ok(Some(sample.clone())),
                Thinned::Drop => return Ok(None),
                Thinned::Undecodable => return Err(DropReason::Undecodable),
                Thinned::TooDense => self.coding = true,
            }
        }
        if !due {
            return Ok(None);
        }
        let len = self.size.and_then(|size| usize::try_from(size.pixels()).ok());
        let len = len.unwrap_or(sample.payload.len());
        if sample.payload.len() < len {
            return Err(DropReason::CannotScale);
        }
        let payload = sample.payload.slice(..len);
        Ok(Some(RawSample { kind: Kind::VideoI, payload, ..sample.clone() }))
    }
}
