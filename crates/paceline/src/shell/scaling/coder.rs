//! Video decoded and coded again, for another size or a rate that leaving out pictures does not give.

use super::places::{Places, Takers};
use paceline_media::MediaError;
use paceline_media::h264::{Class, Event, Transcoder};
use paceline_proto::{DropReason, Encoding, Form, Kind, Sample, Size, TemporalScaler, Timestamp};
use paceline_sched::{Duration, Instant};
use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};

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

/// Which pictures are coded.
enum Choice {
    /// Those of a rate.
    Rate(TemporalScaler),
    /// Those of these numbers.
    These(BTreeSet<u64>),
}

/// Decodes one video and codes it in another form.
pub(in crate::shell) struct Coder {
    size: Option<Size>,
    hertz: f64,
    transcoder: Option<Transcoder>,
    due: VecDeque<Due>,
    choice: Choice,
}

impl Coder {
    pub(super) fn new(form: Form, period: Option<Duration>) -> Self {
        let choice = Choice::Rate(TemporalScaler::new(form.rate, period));
        let hertz = hertz(form.rate.period(period));
        Self { size: form.size, hertz, transcoder: None, due: VecDeque::new(), choice }
    }

    /// A coder of [chosen](Self::choose) pictures, one of which is coded each `period`.
    pub(in crate::shell) fn choosing(size: Option<Size>, period: Option<Duration>) -> Self {
        let (hertz, choice) = (hertz(period), Choice::These(BTreeSet::new()));
        Self { size, hertz, transcoder: None, due: VecDeque::new(), choice }
    }

    /// From here on the pictures of these numbers are coded.
    pub(in crate::shell) fn choose(&mut self, seqs: BTreeSet<u64>) {
        self.choice = Choice::These(seqs);
    }

    /// True if it has the unit `seq`, and still owes what becomes of it.
    pub(in crate::shell) fn owes(&self, seq: u64) -> bool {
        self.due.iter().any(|due| due.seq == seq)
    }

    /// Decodes units that went out as they were, so that the next one can be decoded too.
    pub(super) fn catch_up(&mut self, shown: Vec<Sample>) {
        if shown.is_empty() || self.begin().is_err() {
            return;
        }
        let mut nobody = Places::default();
        for sample in &shown {
            self.push(sample, true, &mut nobody);
        }
    }

    /// Takes the next unit; hands on the pictures that can be presented.
    pub(in crate::shell) fn serve(&mut self, sample: &Sample, takers: &mut impl Takers) {
        if self.transcoder.is_none() {
            if sample.kind != Kind::VideoI {
                takers.fail(sample.seq, DropReason::Undecodable, "no I picture came before it");
                return;
            }
            if let Err(error) = self.begin() {
                takers.fail(sample.seq, DropReason::CannotScale, &error.to_string());
                return;
            }
        }
        self.push(sample, false, takers);
    }

    /// Hands on what is still to be presented.
    pub(in crate::shell) fn finish(&mut self, takers: &mut impl Takers) {
        let mut events = Vec::new();
        let Self { transcoder, due, choice, .. } = self;
        let Some(transcoder) = transcoder else { return };
        let at = Cell::new(0);
        transcoder.flush(&mut |_| choice.wants(due, at.get()), &mut |event| {
            at.set(at.get() + 1);
            events.push(event);
        });
        events.into_iter().for_each(|event| self.present(event, takers));
    }

    fn begin(&mut self) -> Result<(), MediaError> {
        let to = self.size.map(|size| paceline_media::Size::new(size.width, size.height));
        let made = to.transpose().and_then(|to| Transcoder::new(to, self.hertz));
        self.due.clear();
        self.transcoder = Some(made.inspect_err(|error| crate::warn_limited!("video: {error}"))?);
        Ok(())
    }

    fn push(&mut self, sample: &Sample, shown: bool, takers: &mut impl Takers) {
        if self.due.len() >= DUE_MAX
            && let Some(due) = self.due.pop_front()
        {
            takers.fail(due.seq, DropReason::CannotScale, "too many pictures wait for others");
        }
        let (seq, captured, born) = (sample.seq, sample.captured, sample.born);
        self.due.push_back(Due { seq, captured, born, shown });
        let mut events = Vec::new();
        let Self { transcoder, due, choice, .. } = self;
        let Some(transcoder) = transcoder else { return };
        if takers.waits_for_key() {
            transcoder.request_key();
        }
        let at = Cell::new(0);
        transcoder.push(
            &sample.payload,
            class(sample.kind),
            &mut |_| choice.wants(due, at.get()),
            &mut |event| {
                at.set(at.get() + 1);
                events.push(event);
            },
        );
        events.into_iter().for_each(|event| self.present(event, takers));
    }

    fn present(&mut self, event: Event, takers: &mut impl Takers) {
        let Some(due) = self.due.pop_front() else { return };
        match event {
            Event::Coded { class, bytes } => {
                let (seq, captured, born) = (due.seq, due.captured, due.born);
                let (kind, payload) = (kind(class), bytes.into());
                let encoding = Encoding::new("video/h264");
                let attachment = None; // what was coded again may show several of the pictures that came
                takers.give(&Sample { seq, captured, born, kind, encoding, payload, attachment });
            }
            Event::Passed => {}
            Event::Failed(error) => {
                if !due.shown {
                    takers.fail(due.seq, DropReason::CannotScale, &error.to_string());
                }
            }
        }
    }
}

impl Choice {
    /// Whether the picture that takes the place `at` of those that are due is coded.
    fn wants(&mut self, due: &VecDeque<Due>, at: usize) -> bool {
        due.get(at).is_some_and(|due| match self {
            Self::Rate(temporal) => temporal.take(due.seq, due.captured.nanos) && !due.shown,
            Self::These(seqs) => seqs.contains(&due.seq),
        })
    }
}

/// Pictures per second that will be coded.
fn hertz(period: Option<Duration>) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a rate, to 53 bits")]
    let of = |period: Duration| 1e9 / period.as_nanos().max(1) as f64;
    period.map_or(HERTZ, of).clamp(HERTZ_MIN, HERTZ_MAX)
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
