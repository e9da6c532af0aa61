//! Thinning of video: a lower rate by leaving out pictures that no other picture needs.

use super::places::{ALL, Places};
use paceline_media::h264;
use paceline_proto::video::{Thinned as Verdict, Thinner};
use paceline_proto::{DropReason, Kind, Rate, RawSample, TemporalScaler};
use paceline_sched::Duration;

/// The limits of stored units since the last IDR picture, for later decoding.
const UNITS_MAX: usize = 300;
const BYTES_MAX: usize = 16 << 20;

/// The result of a sample.
pub(super) enum Thinned {
    /// The sample was delivered, or left out.
    Done,
    /// Thinning cannot provide the rate from this sample on, and the decoder can: contains the units
    /// that it needs before, and the state of the rate.
    TooDense(Vec<RawSample>, Box<Due>),
}

/// The state of a rate after a sample.
pub(super) struct Due {
    /// Determines the next samples due.
    pub(super) scaler: TemporalScaler,
    /// The number of samples that were delivered before they were due.
    pub(super) ahead: u32,
}

/// Thins one video.
pub(super) struct Thin {
    thinner: Thinner,
    /// The key and reference units since the last IDR picture; `None` if there were too many, or if a
    /// decoder cannot start there.
    kept: Option<Vec<RawSample>>,
    bytes: usize,
    /// The video cannot be decoded here: too dense references are thinned as well as possible.
    only: bool,
}

impl Thin {
    pub(super) fn new(rate: Rate, period: Option<Duration>) -> Self {
        Self { thinner: Thinner::new(rate, period), kept: None, bytes: 0, only: false }
    }

    /// Creates a thinner for a video that cannot be decoded here.
    pub(super) fn only(rate: Rate, period: Option<Duration>) -> Self {
        Self { only: true, ..Self::new(rate, period) }
    }

    pub(super) fn serve(&mut self, sample: &RawSample, places: &mut Places) -> Thinned {
        match self.thinner.offer(sample.kind, sample.seq, sample.captured.nanos) {
            Verdict::Pass => places.give(ALL, sample),
            Verdict::Drop => {}
            Verdict::Undecodable => places.count(ALL, DropReason::Undecodable, 1),
            Verdict::TooDense => {
                if !self.only && h264::is_idr(&sample.payload) {
                    // The decoder starts here.
                    self.keep(sample);
                    self.kept.iter_mut().for_each(Vec::clear);
                }
                if let Some(kept) = self.kept.take() {
                    let (scaler, ahead) = (self.thinner.scaler(), self.thinner.ahead());
                    return Thinned::TooDense(kept, Box::new(Due { scaler, ahead }));
                }
            }
        }
        self.keep(sample);
        Thinned::Done
    }

    fn keep(&mut self, sample: &RawSample) {
        if self.only {
            return;
        }
        if sample.kind == Kind::VideoI && h264::is_idr(&sample.payload) {
            self.bytes = 0;
            self.kept = h264::unsupported(&sample.payload).is_none().then(Vec::new);
        }
        if !matches!(sample.kind, Kind::VideoI | Kind::VideoP) {
            return;
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
