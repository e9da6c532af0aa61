//! Transformation of stored samples before they are sent: scaled pictures, resampled sound, and
//! re-encoded video.

use super::super::held::HeldBuffer;
use super::super::port::scaling::{Coder, Sound, Takers, scale_picture};
use paceline_media::codec::Codec;
use paceline_media::{Format, Scaler};
use paceline_proto::pull::{Fetch, Making};
use paceline_proto::{DropReason, Form, Kind, PublisherId, RawSample, Size, Tag};
use paceline_sched::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Serializes the scaling of all pulls in a process, so that live streams have the other cores.
static TURN: Mutex<()> = Mutex::new(());

/// The samples of one publisher in the buffers of this node.
pub(super) struct Units {
    pub(super) buffers: Vec<Arc<HeldBuffer>>,
    pub(super) tag: Tag,
    pub(super) publisher: PublisherId,
    /// The samples stored when the request arrived. They do not expire while it is queued.
    pub(super) kept: BTreeMap<u64, RawSample>,
}

impl Units {
    /// Returns the sample numbered `seq`.
    pub(super) fn get(&self, seq: u64) -> Option<RawSample> {
        let held = || self.buffers.iter().find_map(|b| b.fetch(&self.tag, self.publisher, seq));
        self.kept.get(&seq).cloned().or_else(held)
    }

    /// Returns the first sample numbered `seq` or higher.
    fn from(&self, seq: u64) -> Option<RawSample> {
        let held = self.buffers.iter().filter_map(|b| b.from(&self.tag, self.publisher, seq));
        let kept = self.kept.range(seq..).next().map(|(_, sample)| sample.clone());
        held.chain(kept).min_by_key(|sample| sample.seq)
    }

    /// Returns true if the buffers store nothing numbered `seq` or lower, apart from `kept`.
    fn is_past(&self, seq: u64) -> bool {
        let held = self.buffers.iter().filter_map(|b| b.from(&self.tag, self.publisher, 0));
        held.map(|sample| sample.seq).min().is_none_or(|oldest| oldest > seq)
    }

    /// Returns the first sample that decoding `seq` needs, if it is stored.
    fn start_of(&self, seq: u64) -> Option<u64> {
        self.buffers.iter().filter_map(|b| b.start_of(&self.tag, self.publisher, seq)).max()
    }
}

/// The reason why a sample could not be made.
pub(super) enum Missed {
    /// The sample, or one that it depends on, is no longer stored.
    Gone,
    /// The transformation failed.
    Failed(String),
}

/// Transforms one publisher's samples for one pull.
pub(super) enum Maker {
    AsHeld,
    Pictures(Box<Scaler>, Size),
    Sound(Box<SoundMaker>),
    Video(Box<VideoMaker>),
    /// There is no decoder for the video.
    NoDecoder(Codec),
}

impl Maker {
    /// Creates the maker for `making`. `first` is one of the samples.
    pub(super) fn new(making: Making, first: Option<&RawSample>) -> Self {
        let Making { size, audio, coded } = making;
        let codec = first.and_then(|first| Format::codec_of(first.encoding.as_str()));
        if let Some(codec) = codec.filter(|codec| coded && !codec.has_transcoder()) {
            return Self::NoDecoder(codec);
        }
        if coded {
            return Self::Video(Box::new(VideoMaker::new(size)));
        }
        match (size, audio) {
            (Some(size), _) if first.is_some_and(is_picture) => {
                Self::Pictures(Box::default(), size)
            }
            (_, Some(audio)) if first.is_some_and(is_sound) => {
                let made = BTreeMap::new();
                let form = Form { audio: Some(audio), ..Form::FULL };
                Self::Sound(Box::new(SoundMaker { sound: Sound::new(&form), made }))
            }
            _ => Self::AsHeld,
        }
    }

    /// Announces the requested samples and those after them.
    pub(super) fn ask(&mut self, fetch: &Fetch, units: &Units) {
        let Fetch { seqs, next, fresh, .. } = fetch;
        match self {
            Self::AsHeld | Self::Pictures(..) | Self::NoDecoder(_) => {}
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

    /// Makes the next sample. Repeats an earlier result that is still kept for the current or
    /// previous [`Self::ask`].
    pub(super) fn make(&mut self, units: &Units, seq: u64) -> Result<RawSample, Missed> {
        match self {
            Self::AsHeld => units.get(seq).ok_or(Missed::Gone),
            Self::Pictures(scaler, size) => {
                let sample = units.get(seq).ok_or(Missed::Gone)?;
                picture(scaler, sample, *size).map_err(Missed::Failed)
            }
            Self::Sound(sound) => sound.make(units, seq),
            Self::Video(video) => video.make(units, seq),
            Self::NoDecoder(codec) => {
                Err(Missed::Failed(format!("there is no decoder for {}", codec.name())))
            }
        }
    }
}

fn is_picture(sample: &RawSample) -> bool {
    let encoding = sample.encoding.as_str();
    sample.kind == Kind::Picture || encoding.starts_with("image/") || encoding.starts_with("video/")
}

fn is_sound(sample: &RawSample) -> bool {
    sample.kind == Kind::Audio || sample.encoding.as_str().starts_with("audio/")
}

fn picture(scaler: &mut Scaler, sample: RawSample, size: Size) -> Result<RawSample, String> {
    let format: Option<Format> = sample.encoding.as_str().parse().ok();
    let own = format.and_then(|format| format.picture_size(&sample.payload).ok());
    if own.is_some_and(|own| (own.width, own.height) == (size.width, size.height)) {
        return Ok(sample);
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    scale_picture(scaler, &sample, Some(size))
}

/// Returns the mean time between these samples.
fn period(seqs: &[u64], units: &Units) -> Option<Duration> {
    let captured = |seq: Option<&u64>| Some(units.get(*seq?)?.captured.nanos);
    let whole = captured(seqs.last())?.checked_sub(captured(seqs.first())?)?;
    let steps = seqs.len().checked_sub(1).filter(|steps| *steps > 0)? as u64;
    Some(Duration::from_nanos(whole / steps)).filter(|period| *period > Duration::ZERO)
}

/// Resamples sound. Each block continues the previous one, so results are kept for repeated
/// requests.
pub(super) struct SoundMaker {
    sound: Sound,
    made: BTreeMap<u64, Result<RawSample, String>>,
}

impl SoundMaker {
    fn make(&mut self, units: &Units, seq: u64) -> Result<RawSample, Missed> {
        if !self.made.contains_key(&seq) {
            let block = units.get(seq).ok_or(Missed::Gone)?;
            let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
            self.made.insert(seq, self.sound.scale(&block));
        }
        self.made.get(&seq).cloned().ok_or(Missed::Gone)?.map_err(Missed::Failed)
    }
}

/// Decodes stored video and encodes the requested pictures.
///
/// Each encoded picture depends on earlier ones. Results of requested samples are kept, so that a
/// repeated request returns the same picture.
pub(super) struct VideoMaker {
    size: Option<Size>,
    period: Option<Duration>,
    coder: Option<Coder>,
    /// The first sequence number that the coder has not received.
    next: u64,
    wanted: BTreeSet<u64>,
    made: Made,
}

/// The results, or the reasons of failures.
type Made = BTreeMap<u64, Result<RawSample, String>>;

impl Takers for Made {
    fn waits_for_key(&mut self) -> bool {
        false
    }

    fn give(&mut self, sample: &RawSample) {
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

    fn make(&mut self, units: &Units, seq: u64) -> Result<RawSample, Missed> {
        if !self.made.contains_key(&seq) {
            self.code(units, seq).ok_or(Missed::Gone)?;
        }
        self.made.get(&seq).cloned().ok_or(Missed::Gone)?.map_err(Missed::Failed)
    }

    /// Decodes up to the picture `seq`; returns `None` if a picture that it needs is no longer
    /// stored.
    fn code(&mut self, units: &Units, seq: u64) -> Option<()> {
        let mut coder = self.ready(units, seq)?;
        coder.choose(self.wanted.clone());
        while !self.made.contains_key(&seq) && (self.next <= seq || coder.owes(seq)) {
            let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(unit) = units.from(self.next) else {
                // Decoding can only continue with a picture that needs no other.
                coder.finish(&mut self.made);
                return Some(());
            };
            if unit.seq > self.next && units.is_past(self.next) {
                // Pictures in between were dropped during encoding, so the rest cannot be decoded.
                return None;
            }
            self.next = unit.seq.saturating_add(1);
            coder.serve(&unit, &mut self.made);
            drop(turn);
        }
        self.coder = Some(coder);
        Some(())
    }

    /// Returns a coder that has decoded the references of `seq`, up to [`Self::next`].
    fn ready(&mut self, units: &Units, seq: u64) -> Option<Coder> {
        let start = units.start_of(seq);
        match self.coder.take() {
            Some(coder) if coder.owes(seq) => return Some(coder),
            Some(coder) if self.next <= seq => {
                // Skip to the group of `seq` if it does not follow directly.
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
