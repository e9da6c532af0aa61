//! A toy video scaler.

use paceline_node::InlineScaler;
use paceline_proto::control::PublisherSpec;
use paceline_proto::form::{Form, Size};
use paceline_proto::plan::OutputPlan;
use paceline_proto::reason::DropReason;
use paceline_proto::sample::{Kind, RawSample};
use paceline_proto::temporal::TemporalScaler;
use paceline_proto::video::{Thinned, Thinner};

/// Drops Bs to reduce the rate. If the references alone exceed it, transcodes the due pictures to pictures of
/// their own. A picture of w×h is the first w·h bytes of a larger one.
#[derive(Debug)]
pub(super) struct ToyVideoScaler {
    thinner: Thinner,
    due: TemporalScaler,
    coding: bool,
    size: Option<Size>,
}

impl ToyVideoScaler {
    /// Returns the scaler of an output of video.
    pub(super) fn make(
        plan: &OutputPlan,
        publisher: &PublisherSpec,
    ) -> Option<Box<dyn InlineScaler>> {
        if !plan.kind.is_video() {
            return None;
        }
        let Form { rate, size, .. } = plan.at_port();
        let period = publisher.period;
        let (thinner, due) = (Thinner::new(rate, period), TemporalScaler::new(rate, period));
        // A reduction in size always requires transcoding.
        Some(Box::new(Self { thinner, due, coding: size.is_some(), size }))
    }
}

impl InlineScaler for ToyVideoScaler {
    fn handle_dropped(&mut self, kind: Kind) {
        self.thinner.broke(kind);
    }

    fn scale(&mut self, sample: &RawSample) -> Result<Option<RawSample>, DropReason> {
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
