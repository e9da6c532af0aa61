//! Thinning of video: a lower rate by leaving out pictures that no other picture needs.

use super::places::{ALL, Places};
use paceline_media::codec::Codec;
use paceline_media::h264;
use paceline_proto::video::{Thinned as Verdict, Thinner};
use paceline_proto::{DropReason, Kind, Rate, RawSample, TemporalScaler};
use paceline_sched::Duration;

/// The limits of stored units since the last key picture, for later decoding.
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

/// The part of a video that begins with a sample.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Begin {
    /// Nothing that a decoder can start with.
    None,
    /// A group of pictures that needs none before it.
    Group,
    /// A gradual refresh: a decoder can start there, but its first pictures are not correct.
    Gradual,
}

/// Thins one video.
pub(super) struct Thin {
    thinner: Thinner,
    /// The key and reference units since a key picture, at which a decoder can start; `None` before the first one, and if
    /// there were too many.
    kept: Option<Vec<RawSample>>,
    bytes: usize,
    /// The video cannot be decoded here.
    only: bool,
    /// The codec has a decoder, which may lack features that the video uses.
    decodes: bool,
}

impl Thin {
    /// Creates a thinner; `decodes` is true if there is a decoder for the codec.
    pub(super) fn new(rate: Rate, period: Option<Duration>, decodes: bool) -> Self {
        let mut thinner = Thinner::new(rate, period);
        thinner.set_alone(!decodes);
        Self { thinner, kept: None, bytes: 0, only: !decodes, decodes }
    }

    pub(super) fn serve(&mut self, sample: &RawSample, places: &mut Places) -> Thinned {
        let begin = self.begin(sample);
        let follows = self.thinner.follows();
        // After the begin of a gradual refresh, pictures are correct only with those before it.
        let kind = if begin == Begin::Gradual && follows { Kind::VideoP } else { sample.kind };
        let verdict = self.thinner.offer(kind, sample.seq, sample.captured.nanos);
        // A decoder leaves out the pictures that are not correct.
        let gradual = begin == Begin::Gradual && !follows;
        let takes_over = verdict == Verdict::TooDense || gradual;
        if takes_over && !self.only && (begin != Begin::None || self.kept.is_some()) {
            // The decoder starts with this unit if it needs none before.
            let starts = kind == Kind::VideoI;
            let kept = self.kept.take().filter(|_| !starts).unwrap_or_default();
            let (scaler, ahead) = (self.thinner.scaler(), self.thinner.ahead());
            return Thinned::TooDense(kept, Box::new(Due { scaler, ahead }));
        }
        match verdict {
            Verdict::Pass => places.give(ALL, sample),
            Verdict::Drop => {}
            Verdict::TooDense | Verdict::Undecodable => {
                places.count(ALL, DropReason::Undecodable, 1);
            }
        }
        self.keep(sample, kind);
        Thinned::Done
    }

    /// Returns the part that begins with a sample, and true if the decoder can start there.
    fn begin(&mut self, sample: &RawSample) -> Begin {
        if !self.decodes || sample.kind != Kind::VideoI {
            return Begin::None;
        }
        self.only = h264::unsupported(&sample.payload).is_some();
        self.thinner.set_alone(self.only);
        if Codec::H264.is_start(&sample.payload) { Begin::Group } else { Begin::Gradual }
    }

    /// Keeps a unit from which the decoder may have to start later. Without them, thinning must do alone.
    fn keep(&mut self, sample: &RawSample, kind: Kind) {
        if self.only {
            self.kept = None;
            return;
        }
        if kind == Kind::VideoI || sample.kind == Kind::VideoI && self.kept.is_none() {
            self.bytes = 0;
            self.kept = Some(Vec::new());
        }
        if !matches!(kind, Kind::VideoI | Kind::VideoP) {
            return;
        }
        self.bytes += sample.payload.len();
        let Some(kept) = &mut self.kept else { return };
        if kept.len() >= UNITS_MAX || self.bytes > BYTES_MAX {
            self.kept = None;
            self.thinner.set_alone(true);
        } else {
            kept.push(sample.clone());
        }
    }
}
