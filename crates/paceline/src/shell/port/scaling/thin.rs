//! Thinning of video: a lower rate by leaving out pictures that no other picture needs.

use super::places::{ALL, Places};
use paceline_proto::video::{Thinned as Verdict, Thinner};
use paceline_proto::{DropReason, Kind, Rate, RawSample};
use paceline_sched::Duration;

/// The limits of stored units since the last picture that can be decoded alone, for later decoding.
const UNITS_MAX: usize = 64;
const BYTES_MAX: usize = 16 << 20;

/// The result of a sample.
pub(super) enum Thinned {
    /// The sample was delivered, or left out.
    Done,
    /// Thinning cannot provide the rate. Contains the units since the last picture that can be
    /// decoded alone, or nothing if that is too long ago.
    TooDense(Vec<RawSample>),
}

/// Thins one video.
pub(super) struct Thin {
    thinner: Thinner,
    /// The units since a picture that can be decoded alone; `None` if there were too many.
    kept: Option<Vec<RawSample>>,
    bytes: usize,
}

impl Thin {
    pub(super) fn new(rate: Rate, period: Option<Duration>) -> Self {
        Self { thinner: Thinner::new(rate, period), kept: None, bytes: 0 }
    }

    pub(super) fn serve(&mut self, sample: &RawSample, places: &mut Places) -> Thinned {
        match self.thinner.offer(sample.kind, sample.seq, sample.captured.nanos) {
            Verdict::Pass => places.give(ALL, sample),
            Verdict::Drop => {}
            Verdict::Undecodable => places.count(ALL, DropReason::Undecodable, 1),
            Verdict::TooDense => {
                let kept = if sample.kind == Kind::VideoI { None } else { self.kept.take() };
                return Thinned::TooDense(kept.unwrap_or_default());
            }
        }
        self.keep(sample);
        Thinned::Done
    }

    fn keep(&mut self, sample: &RawSample) {
        if sample.kind == Kind::VideoI {
            self.bytes = 0;
            self.kept = Some(Vec::new());
        }
        self.bytes += sample.payload.len();
        let Some(kept) = &mut self.kept else { return };
        if kept.len() >= UNITS_MAX || self.bytes > BYTES_MAX {
            self.kept = None;
        } else {
            kept.push(sample.clone());
        }
    }
}
