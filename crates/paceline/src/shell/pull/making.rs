//! What is made of held samples before they are sent: pictures of another size, sound of another rate,
//! video coded anew.

use super::super::scaling::{Coder, Sound, Takers, scale_picture};
use super::HeldBuffer;
use paceline_media::{Format, Scaler};
use paceline_proto::pull::{Fetch, Making};
use paceline_proto::{DropReason, Kind, PublisherId, Sample, Size, Tag};
use paceline_sched::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Pulls are scaled one sample at a time in a process, so that live ones have the other cores.
static TURN: Mutex<()> = Mutex::new(());

/// The samples of one publisher in the buffers of this node.
pub(super) struct Units {
    pub(super) buffers: Vec<Arc<HeldBuffer>>,
    pub(super) tag: Tag,
    pub(super) publisher: PublisherId,
    /// What was held when it was asked for: it does not expire while it waits.
    pub(super) kept: BTreeMap<u64, Sample>,
}

impl Units {
    /// The sample numbered `seq`.
    pub(super) fn get(&self, seq: u64) -> Option<Sample> {
        let held = || self.buffers.iter().find_map(|b| b.fetch(&self.tag, self.publisher, seq));
        self.kept.get(&seq).cloned().or_else(held)
    }

    /// The first sample numbered `seq` or above.
    fn from(&self, seq: u64) -> Option<Sample> {
        let held = self.buffers.iter().filter_map(|b| b.from(&self.tag, self.publisher, seq));
        let kept = self.kept.range(seq..).next().map(|(_, sample)| sample.clone());
        held.chain(kept).min_by_key(|sample| sample.seq)
    }

    /// True if nothing numbered `seq` or below is held any more, but what was asked for.
    fn is_past(&self, seq: u64) -> bool {
        let held = self.buffers.iter().filter_map(|b| b.from(&self.tag, self.publisher, 0));
        held.map(|sample| sample.seq).min().is_none_or(|oldest| oldest > seq)
    }

    /// Where the decoding of the sample `seq` must begin, if that is held.
    fn start_of(&self, seq: u64) -> Option<u64> {
        self.buffers.iter().filter_map(|b| b.start_of(&self.tag, self.publisher, seq)).max()
    }
}

/// Why nothing was made of a sample.
pub(super) enum Missed {
    /// It, or what it needs, is not held any more.
    Gone,
    /// It cannot be made what was asked for.
    Failed(String),
}

/// Makes what one pull asks for of one publisher's samples.
pub(super) enum Maker {
    AsHeld,
    Pictures(Box<Scaler>, Size),
    Sound(Box<SoundMaker>),
    Video(Box<VideoMaker>),
}

impl Maker {
    /// The maker of `making` from samples of which `first` is one.
    pub(super) fn new(making: Making, first: Option<&Sample>) -> Self {
        let Making { size, audio, coded } = making;
        if coded {
            return Self::Video(Box::new(VideoMaker::new(size)));
        }
        match (size, audio) {
            (Some(size), _) if first.is_some_and(is_picture) => {
                Self::Pictures(Box::default(), size)
            }
            (_, Some(audio)) if first.is_some_and(is_sound) => {
                let made = BTreeMap::new();
                Self::Sound(Box::new(SoundMaker { sound: Sound::new(audio), made }))
            }
            _ => Self::AsHeld,
        }
    }

    /// The samples that are going to be made, and those behind them.
    pub(super) fn ask(&mut self, fetch: &Fetch, units: &Units) {
        let Fetch { seqs, next, fresh, .. } = fetch;
        match self {
            Self::AsHeld | Self::Pictures(..) => {}
            Self::Sound(sound) => sound.made.retain(|seq, _| seqs.contains(seq)),
            Self::Video(video) => {
                let wanted: BTreeSet<u64> = seqs.iter().chain(next).copied().collect();
                if *fresh {
                    video.coder = None;
                    video.made.clear();
                }
                video.made.retain(|seq, _| wanted.contains(seq));
                video.period = video.period.or_else(|| period(seqs, units));
                video.wanted = wanted;
            }
        }
    }

    /// Makes the next sample; again the same of one that was made since the last [`Self::ask`] but one.
    pub(super) fn make(&mut self, units: &Units, seq: u64) -> Result<Sample, Missed> {
        match self {
            Self::AsHeld => units.get(seq).ok_or(Missed::Gone),
            Self::Pictures(scaler, size) => {
                let sample = units.get(seq).ok_or(Missed::Gone)?;
                picture(scaler, sample, *size).map_err(Missed::Failed)
            }
            Self::Sound(sound) => sound.make(units, seq),
            Self::Video(video) => video.make(units, seq),
        }
    }
}

fn is_picture(sample: &Sample) -> bool {
    let encoding = sample.encoding.as_str();
    sample.kind == Kind::Picture || encoding.starts_with("image/") || encoding.starts_with("video/")
}

fn is_sound(sample: &Sample) -> bool {
    sample.kind == Kind::Audio || sample.encoding.as_str().starts_with("audio/")
}

fn picture(scaler: &mut Scaler, sample: Sample, size: Size) -> Result<Sample, String> {
    let format: Option<Format> = sample.encoding.as_str().parse().ok();
    let own = format.and_then(|format| format.picture_size(&sample.payload).ok());
    if own.is_some_and(|own| (own.width, own.height) == (size.width, size.height)) {
        return Ok(sample);
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    scale_picture(scaler, &sample, size)
}

/// The time from one of these samples to the next.
fn period(seqs: &[u64], units: &Units) -> Option<Duration> {
    let captured = |seq: Option<&u64>| Some(units.get(*seq?)?.captured.nanos);
    let whole = captured(seqs.last())?.checked_sub(captured(seqs.first())?)?;
    let steps = seqs.len().checked_sub(1).filter(|steps| *steps > 0)? as u64;
    Some(Duration::from_nanos(whole / steps)).filter(|period| *period > Duration::ZERO)
}

/// Each block begins where the one before ended: what was made is kept, in case it does not arrive.
pub(super) struct SoundMaker {
    sound: Sound,
    made: BTreeMap<u64, Result<Sample, String>>,
}

impl SoundMaker {
    fn make(&mut self, units: &Units, seq: u64) -> Result<Sample, Missed> {
        if !self.made.contains_key(&seq) {
            let block = units.get(seq).ok_or(Missed::Gone)?;
            let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
            self.made.insert(seq, self.sound.scale(&block));
        }
        self.made.get(&seq).cloned().ok_or(Missed::Gone)?.map_err(Missed::Failed)
    }
}

/// Decodes held video and codes what is wanted of it.
///
/// What is coded follows from what was coded before, so what was made of the samples that were asked for
/// is kept: who asks again gets the same.
pub(super) struct VideoMaker {
    size: Option<Size>,
    period: Option<Duration>,
    coder: Option<Coder>,
    /// The first number that the coder did not get yet.
    next: u64,
    wanted: BTreeSet<u64>,
    made: Made,
}

/// What was made, or why nothing was.
type Made = BTreeMap<u64, Result<Sample, String>>;

impl Takers for Made {
    fn waits_for_key(&mut self) -> bool {
        false
    }

    fn give(&mut self, sample: &Sample) {
        self.insert(sample.seq, Ok(sample.clone()));
    }

    fn fail(&mut self, seq: u64, _: DropReason, why: &str) {
        self.insert(seq, Err(why.to_owned()));
    }
}

impl VideoMaker {
    fn new(size: Option<Size>) -> Self {
        let (wanted, made) = (BTreeSet::new(), BTreeMap::new());
        Self { size, period: None, coder: None, next: 0, wanted, made }
    }

    fn make(&mut self, units: &Units, seq: u64) -> Result<Sample, Missed> {
        if !self.made.contains_key(&seq) {
            self.code(units, seq).ok_or(Missed::Gone)?;
        }
        self.made.get(&seq).cloned().ok_or(Missed::Gone)?.map_err(Missed::Failed)
    }

    /// Decodes up to the picture `seq`. Nothing if what it needs is gone.
    fn code(&mut self, units: &Units, seq: u64) -> Option<()> {
        let mut coder = self.ready(units, seq)?;
        coder.choose(self.wanted.clone());
        while !self.made.contains_key(&seq) && (self.next <= seq || coder.owes(seq)) {
            let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(unit) = units.from(self.next) else {
                // It goes on with a picture that stands alone only.
                coder.finish(&mut self.made);
                return Some(());
            };
            if unit.seq > self.next && units.is_past(self.next) {
                // What lay between was let go while this was coded: the rest cannot be decoded.
                return None;
            }
            self.next = unit.seq.saturating_add(1);
            coder.serve(&unit, &mut self.made);
            drop(turn);
        }
        self.coder = Some(coder);
        Some(())
    }

    /// A coder that has decoded what `seq` needs, up to [`Self::next`].
    fn ready(&mut self, units: &Units, seq: u64) -> Option<Coder> {
        let start = units.start_of(seq);
        match self.coder.take() {
            Some(coder) if coder.owes(seq) => return Some(coder),
            Some(coder) if self.next <= seq => {
                // From a group to one that does not follow it there is nothing to decode.
                if let Some(start) = start.filter(|start| *start >= self.next) {
                    self.next = start;
                    return Some(coder);
                }
                let last = self.next.checked_sub(1);
                if start.is_some() || last.is_some_and(|last| units.get(last).is_some()) {
                    return Some(coder);
                }
            }
            Some(_) | None => {}
        }
        self.next = start?;
        self.made.clear();
        Some(Coder::choosing(self.size, self.period))
    }
}
