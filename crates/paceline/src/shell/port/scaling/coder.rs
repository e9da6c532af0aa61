//! Re-encoding of video, for another size or a rate that thinning cannot provide.

use super::bucket::Bucket;
use super::places::Takers;
use paceline_media::MediaError;
use paceline_media::h264::{Class, Event, Transcoder, Want};
use paceline_proto::control::FormBudget;
use paceline_proto::{
    DropReason, Encoding, Form, Kind, RawSample, Size, TemporalScaler, Timestamp,
};
use paceline_sched::{Duration, Instant};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};

/// The default rate of the encoder, in Hz.
const HERTZ: f64 = 30.0;
/// The range of the encoder's rate, in Hz.
const HERTZ_MIN: f64 = 0.001;
const HERTZ_MAX: f64 = 1_000.0;
/// From this period on, a picture may use all bytes that are left.
const ALONE: Duration = Duration::from_millis(500);
/// The limit of access units without a picture: more than any stream reorders.
const DUE_MAX: usize = 256;

/// The identity of an access unit, for a picture that has not been presented.
///
/// Units arrive in decode order, and pictures are presented in presentation order. Each picture
/// takes the sequence number and times of the oldest unused unit, so that both increase evenly.
struct Due {
    seq: u64,
    captured: Timestamp,
    shift: i32,
    published_at: Instant,
    doubt: Duration,
}

/// The selection of pictures to encode.
enum Choice {
    /// At a rate, without this number of due pictures.
    Rate(TemporalScaler, u32),
    /// By sequence number.
    These(BTreeSet<u64>),
}

/// Decodes one video and encodes it in another form.
pub(in crate::shell) struct Coder {
    size: Option<Size>,
    hertz: f64,
    /// The bit rate that the encoder aims at; `None` for its default.
    target: Option<u32>,
    transcoder: Option<Transcoder>,
    due: VecDeque<Due>,
    choice: Choice,
    /// The bytes that the pictures may use; `None` without a limit.
    bucket: RefCell<Option<Bucket>>,
    /// The bytes of coded pictures since they were last taken.
    bytes: Option<usize>,
    /// The key pictures since a picture was last decoded.
    fruitless: u32,
}

impl Coder {
    pub(super) fn new(form: Form, period: Option<Duration>) -> Self {
        let choice = Choice::Rate(TemporalScaler::new(form.rate, period), 0);
        let period = form.rate.period(period);
        // A part remains for pictures larger than expected. A picture that may use more than half a second alone has no
        // others to even it out.
        let alone = period.is_some_and(|period| period >= ALONE);
        let part = |bits: u32| if alone { bits / 8 * 5 } else { bits - bits / 10 };
        let target = form.bitrate.map(|bits| part(bits.get()));
        Self { target, ..Self::with(form.size, period, choice) }
    }

    fn with(size: Option<Size>, period: Option<Duration>, choice: Choice) -> Self {
        Self {
            size,
            hertz: hertz(period),
            target: None,
            transcoder: None,
            due: VecDeque::new(),
            choice,
            bucket: RefCell::new(None),
            bytes: None,
            fruitless: 0,
        }
    }

    /// Keeps the coded pictures within a budget.
    pub(super) fn keep(&mut self, budget: Option<FormBudget>) {
        let envelope = budget.and_then(|budget| budget.envelope);
        let bucket = self.bucket.get_mut();
        if bucket.map(|bucket| bucket.envelope()) != envelope {
            *bucket = envelope.map(Bucket::new);
        }
    }

    /// Returns the bytes of coded pictures since the last call; `None` without any.
    pub(super) const fn take_bytes(&mut self) -> Option<usize> {
        self.bytes.take()
    }

    /// Creates a coder of [chosen](Self::choose) pictures, one per `period`.
    pub(in crate::shell) fn choosing(size: Option<Size>, period: Option<Duration>) -> Self {
        Self::with(size, period, Choice::These(BTreeSet::new()))
    }

    /// Sets the sequence numbers of the pictures to encode from now on.
    pub(in crate::shell) fn choose(&mut self, seqs: BTreeSet<u64>) {
        self.choice = Choice::These(seqs);
    }

    /// Returns true if the coder has received the unit `seq` but not yet produced its result.
    pub(in crate::shell) fn owes(&self, seq: u64) -> bool {
        self.due.iter().any(|due| due.seq == seq)
    }

    /// Continues a rate: the next unit was already counted.
    pub(super) fn continue_rate(&mut self, due: super::thin::Due) {
        self.choice = Choice::Rate(due.scaler, due.ahead);
    }

    /// Decodes a unit only as a reference of later ones.
    pub(super) fn decode(&mut self, sample: &RawSample, takers: &mut impl Takers) {
        if self.transcoder.is_some() || self.begin().is_ok() {
            self.run(takers, |transcoder, wanted, event| {
                transcoder.catch_up(&sample.payload, class(sample.kind), wanted, event);
            });
        }
    }

    /// Returns true if no picture could be decoded in the last two groups of pictures.
    pub(super) const fn is_stuck(&self) -> bool {
        self.fruitless > 2
    }

    /// Decodes the next unit, and delivers the pictures that can be presented.
    pub(in crate::shell) fn serve(&mut self, sample: &RawSample, takers: &mut impl Takers) {
        if self.transcoder.is_none() {
            if sample.kind != Kind::VideoI {
                takers.fail(sample.seq, DropReason::Undecodable, "no I picture arrived before it");
                return;
            }
            if let Err(error) = self.begin() {
                takers.fail(sample.seq, DropReason::CannotScale, &error.to_string());
                return;
            }
        }
        if sample.kind == Kind::VideoI {
            self.fruitless = self.fruitless.saturating_add(1);
        }
        self.push(sample, takers);
    }

    /// Delivers the remaining pictures.
    pub(in crate::shell) fn finish(&mut self, takers: &mut impl Takers) {
        self.run(takers, |transcoder, wanted, event| transcoder.flush(wanted, event));
    }

    /// Runs the transcoder, and delivers the pictures that it presents.
    fn run(
        &mut self,
        takers: &mut impl Takers,
        step: impl FnOnce(&mut Transcoder, &mut dyn FnMut(u64) -> Want, &mut dyn FnMut(Event)),
    ) {
        let mut events = Vec::new();
        let Self { transcoder, due, choice, bucket, .. } = self;
        let Some(transcoder) = transcoder else { return };
        let at = Cell::new(0);
        let mut wants = |_| {
            let due = due.get(at.get());
            let Some(due) = due.filter(|due| choice.wants(due)) else { return Want::No };
            match &mut *bucket.borrow_mut() {
                Some(bucket) => Want::Within(bucket.limit(due.published_at)),
                None => Want::Yes,
            }
        };
        step(transcoder, &mut wants, &mut |event| {
            if let (Event::Coded { bytes, .. }, Some(bucket)) = (&event, &mut *bucket.borrow_mut())
            {
                bucket.take(bytes.len());
            }
            at.set(at.get() + 1);
            events.push(event);
        });
        events.into_iter().for_each(|event| self.present(event, takers));
    }

    fn begin(&mut self) -> Result<(), MediaError> {
        let to = self.size.map(|size| paceline_media::Size::new(size.width, size.height));
        let made = to.transpose().and_then(|to| Transcoder::new(to, self.hertz));
        self.due.clear();
        let mut made = made.inspect_err(|error| crate::warn_limited!("video: {error}"))?;
        made.set_bitrate(self.target);
        self.transcoder = Some(made);
        Ok(())
    }

    fn push(&mut self, sample: &RawSample, takers: &mut impl Takers) {
        if self.due.len() >= DUE_MAX
            && let Some(due) = self.due.pop_front()
        {
            takers.fail(due.seq, DropReason::CannotScale, "too many pictures wait for others");
        }
        let RawSample { seq, captured, shift, published_at, doubt, .. } = *sample;
        self.due.push_back(Due { seq, captured, shift, published_at, doubt });
        let wants_key = takers.waits_for_key();
        self.run(takers, |transcoder, wanted, event| {
            if wants_key {
                transcoder.request_key();
            }
            transcoder.push(&sample.payload, class(sample.kind), wanted, event);
        });
    }

    fn present(&mut self, event: Event, takers: &mut impl Takers) {
        let Some(due) = self.due.pop_front() else { return };
        match event {
            Event::Coded { class, bytes } => {
                self.fruitless = 0;
                self.bytes = Some(self.bytes.unwrap_or(0).max(bytes.len()));
                let Due { seq, captured, shift, published_at, doubt } = due;
                let (kind, payload) = (kind(class), bytes.into());
                let encoding = Encoding::new("video/h264");
                let attachment = None; // one encoded picture may replace several source pictures
                takers.give(&RawSample {
                    seq,
                    captured,
                    shift,
                    published_at,
                    doubt,
                    kind,
                    encoding,
                    payload,
                    attachment,
                });
            }
            Event::Passed => self.fruitless = 0,
            Event::OverLimit => {
                self.fruitless = 0;
                let why = "the bit rate is too low for any picture, or pictures come faster than declared";
                takers.fail(due.seq, DropReason::OverBudget, why);
            }
            Event::Failed(error) => {
                takers.fail(due.seq, DropReason::CannotScale, &error.to_string());
            }
        }
    }
}

impl Choice {
    /// Returns true if the picture that takes this identity is encoded.
    fn wants(&mut self, due: &Due) -> bool {
        match self {
            Self::Rate(temporal, skip) => {
                let due = temporal.take(due.seq, due.captured.nanos);
                let skips = due && *skip > 0;
                *skip -= u32::from(skips);
                due && !skips
            }
            Self::These(seqs) => seqs.contains(&due.seq),
        }
    }
}

/// Returns the rate of encoded pictures in Hz.
fn hertz(period: Option<Duration>) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a rate, to 53 bits")]
    let of = |period: Duration| 1e9 / period.as_nanos().max(1) as f64;
    period.map_or(HERTZ, of).clamp(HERTZ_MIN, HERTZ_MAX)
}

const fn class(kind: Kind) -> Class {
    match kind {
        Kind::VideoB => Class::B,
        Kind::VideoLeading => Class::Leading,
        Kind::VideoP => Class::P,
        Kind::VideoI | Kind::Data | Kind::State | Kind::Picture | Kind::Audio => Class::I,
    }
}

const fn kind(class: Class) -> Kind {
    match class {
        Class::I => Kind::VideoI,
        Class::P => Kind::VideoP,
        Class::B => Kind::VideoB,
        Class::Leading => Kind::VideoLeading,
    }
}
