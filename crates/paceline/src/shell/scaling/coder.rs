//! Video decoded and coded again, for another size or a rate that leaving out pictures does not give.

use super::places::{ALL, Places};
use paceline_media::h264::{Class, Event, Transcoder};
use paceline_proto::{DropReason, Encoding, Form, Kind, Sample, TemporalScaler, Timestamp};
use paceline_sched::{Duration, Instant};
use std::cell::Cell;
use std::collections::VecDeque;

/// The rate to code for where nobody says one.
const HERTZ: f64 = 30.0;
/// What can be coded for.
const HERTZ_MIN: f64 = 0.001;
const HERTZ_MAX: f64 = 1_000.0;
/// Units that may wait for their picture: more than any stream reorders.
const DUE_MAX: usize = 256;

/// What a picture that is still to be presented takes over from a unit.
///
/// Units come in decode order and pictures go in presentation order. Each picture takes the number
/// and times of the oldest unit that none has taken yet, so that both go up evenly.
struct Due {
    seq: u64,
    captured: Timestamp,
    born: Instant,
    /// A picture for it went out before decoding began.
    shown: bool,
}

/// Decodes one video and codes it in another form.
pub(super) struct Coder {
    form: Form,
    hertz: f64,
    transcoder: Option<Transcoder>,
    due: VecDeque<Due>,
    temporal: TemporalScaler,
}

impl Coder {
    pub(super) fn new(form: Form, period: Option<Duration>) -> Self {
        Self {
            form,
            hertz: hertz(form, period),
            transcoder: None,
            due: VecDeque::new(),
            temporal: TemporalScaler::new(form.rate, period),
        }
    }

    /// Decodes units that went out as they were, so that the next one can be decoded too.
    pub(super) fn catch_up(&mut self, shown: Vec<Sample>) {
        if shown.is_empty() || !self.begin() {
            return;
        }
        let mut nobody = Places::default();
        for sample in &shown {
            self.push(sample, true, &mut nobody);
        }
    }

    /// Takes the next unit; hands on the pictures that can be presented.
    pub(super) fn serve(&mut self, sample: &Sample, places: &mut Places) {
        if self.transcoder.is_none() {
            if sample.kind != Kind::VideoI {
                places.count(ALL, DropReason::Undecodable, 1);
                return;
            }
            if !self.begin() {
                places.count(ALL, DropReason::CannotScale, 1);
                return;
            }
        }
        self.push(sample, false, places);
    }

    /// Hands on what is still to be presented.
    pub(super) fn finish(&mut self, places: &mut Places) {
        let mut events = Vec::new();
        let Self { transcoder, due, temporal, .. } = self;
        let Some(transcoder) = transcoder else { return };
        let at = Cell::new(0);
        transcoder.flush(&mut |_| wanted(due, temporal, at.get()), &mut |event| {
            at.set(at.get() + 1);
            events.push(event);
        });
        events.into_iter().for_each(|event| self.present(event, places));
    }

    fn begin(&mut self) -> bool {
        let to = self.form.size.map(|size| paceline_media::Size::new(size.width, size.height));
        let made = to.transpose().and_then(|to| Transcoder::new(to, self.hertz));
        self.due.clear();
        self.transcoder = made.inspect_err(|error| tracing::warn!("video: {error}")).ok();
        self.transcoder.is_some()
    }

    fn push(&mut self, sample: &Sample, shown: bool, places: &mut Places) {
        if self.due.len() >= DUE_MAX {
            self.due.pop_front();
            places.count(ALL, DropReason::CannotScale, 1);
        }
        let (seq, captured, born) = (sample.seq, sample.captured, sample.born);
        self.due.push_back(Due { seq, captured, born, shown });
        let mut events = Vec::new();
        let Self { transcoder, due, temporal, .. } = self;
        let Some(transcoder) = transcoder else { return };
        if places.waits_for_key() {
            transcoder.request_key();
        }
        let at = Cell::new(0);
        transcoder.push(
            &sample.payload,
            class(sample.kind),
            &mut |_| wanted(due, temporal, at.get()),
            &mut |event| {
                at.set(at.get() + 1);
                events.push(event);
            },
        );
        events.into_iter().for_each(|event| self.present(event, places));
    }

    fn present(&mut self, event: Event, places: &mut Places) {
        let Some(due) = self.due.pop_front() else { return };
        match event {
            Event::Coded { class, bytes } => {
                let (seq, captured, born) = (due.seq, due.captured, due.born);
                let (kind, payload) = (kind(class), bytes.into());
                let encoding = Encoding::new("video/h264");
                places.give(ALL, &Sample { seq, captured, born, kind, encoding, payload });
            }
            Event::Passed => {}
            Event::Failed(error) => {
                tracing::debug!("video {}: {error}", due.seq);
                if !due.shown {
                    places.count(ALL, DropReason::CannotScale, 1);
                }
            }
        }
    }
}

/// Whether the picture that takes the place `at` of those that are due belongs to the rate.
fn wanted(due: &VecDeque<Due>, temporal: &mut TemporalScaler, at: usize) -> bool {
    due.get(at).is_some_and(|due| temporal.take(due.seq, due.captured.nanos) && !due.shown)
}

/// Pictures per second that will be coded.
fn hertz(form: Form, period: Option<Duration>) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a rate, to 53 bits")]
    let of = |period: Duration| 1e9 / period.as_nanos().max(1) as f64;
    form.rate.period(period).map_or(HERTZ, of).clamp(HERTZ_MIN, HERTZ_MAX)
}

const fn class(kind: Kind) -> Class {
    match kind {
        Kind::VideoB => Class::B,
        Kind::VideoP => Class::P,
        Kind::VideoI | Kind::Data | Kind::State | Kind::Picture | Kind::Audio => Class::I,
    }
}

const fn kind(class: Class) -> Kind {
    match class {
        Class::I => Kind::VideoI,
        Class::P => Kind::VideoP,
        Class::B => Kind::VideoB,
    }
}
