//! A film from a pipe or a socket: its units are published as they arrive.

use super::reader::FilmReader;
use super::units::TrackSamples;
use super::{find, missing};
use crate::publish::input::{Input, Place};
use crate::publish::news::News;
use crate::publish::reading::Message;
use crate::publish::sound::Sound;
use crate::publish::source::Piece;
use paceline::Tag;
use paceline_edge::CaptureClock;
use paceline_media::Format;
use paceline_media::film::{FilmFormat, FilmKind};
use paceline_media::stream::Properties;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Ticks per second of the clock that estimates capture times.
const CLOCK_HZ: u32 = 90_000;
/// The longest part that a writer writes at once.
const BURST_MAX: Duration = Duration::from_secs(6);
/// Blocks of sound that wait while the first picture is awaited.
const SOUND_AHEAD: usize = 512;

/// The tracks of a live film.
struct Live {
    name: String,
    reader: FilmReader,
    clock: CaptureClock,
    began: Instant,
    pace: LivePace,
    pictures: LiveTrack,
    sound: Option<LiveTrack>,
}

/// The pace of a writer that writes a second at once: units depart at the distances of their times.
#[derive(Default)]
struct LivePace {
    /// The departure of a unit, and its time.
    first: Option<(Instant, i64)>,
}

impl LivePace {
    /// Waits until a unit is due, at most [`BURST_MAX`].
    fn wait(&mut self, time_ns: i64) {
        let now = Instant::now();
        let (begun, first_ns) = *self.first.get_or_insert((now, time_ns));
        let since = u64::try_from(time_ns.saturating_sub(first_ns)).unwrap_or(0);
        let left = begun
            .checked_add(Duration::from_nanos(since))
            .map(|due| due.saturating_duration_since(now));
        match left {
            Some(left) if left <= BURST_MAX => std::thread::sleep(left),
            // The times have jumped.
            Some(_) | None => self.first = Some((now, time_ns)),
        }
    }
}

/// A track, with the publisher that takes its samples.
struct LiveTrack {
    kind: FilmKind,
    to: SyncSender<Message>,
    news: Arc<News>,
    samples: TrackSamples,
    track: Option<usize>,
    begun: bool,
}

/// The sound of a live film on its way to a publisher.
pub(in crate::publish) struct LiveSound(LiveTrack);

impl LiveSound {
    /// Returns the sound that `--sound` names, its publisher, and a mark that is gone when that has ended.
    pub(in crate::publish) fn new(tag: Tag, name: &str) -> (Self, Sound, Weak<()>) {
        let (to, messages) = sync_channel(SOUND_AHEAD);
        let news = Arc::new(News::new(name.to_owned()));
        let alive = Arc::new(());
        let rest = Arc::downgrade(&alive);
        let sound = Sound::new(tag, messages, news.clone()).with_end(alive);
        (Self(LiveTrack::new(FilmKind::Sound, to, news)), sound, rest)
    }
}

/// Reads a film that begins with `start` to its end.
pub(in crate::publish) fn run(
    place: &Place,
    (input, start): (Input, &[u8]),
    format: FilmFormat,
    (to, news): (&SyncSender<Message>, Arc<News>),
    sound: Option<LiveSound>,
) -> anyhow::Result<()> {
    Live {
        name: place.name(),
        reader: FilmReader::pipe(place, input, format, start),
        clock: CaptureClock::new(&[CLOCK_HZ], 0),
        began: Instant::now(),
        pace: LivePace::default(),
        pictures: LiveTrack::new(FilmKind::Pictures, to.clone(), news),
        sound: sound.map(|sound| sound.0),
    }
    .run()
}

impl Live {
    fn run(mut self) -> anyhow::Result<()> {
        while let Some(unit) = self.reader.next()? {
            let tracks = self.reader.demuxer.tracks();
            for lane in std::iter::once(&mut self.pictures).chain(&mut self.sound) {
                lane.track = lane.track.or_else(|| find(tracks, lane.kind));
            }
            let lane = match Some(unit.track) {
                track if track == self.pictures.track => &mut self.pictures,
                track => match &mut self.sound {
                    Some(sound) if track == sound.track => sound,
                    Some(_) | None => continue,
                },
            };
            let Some(sample) = lane.samples.take(&unit, &mut self.reader, &self.name)? else {
                continue;
            };
            self.pace.wait(sample.decode_ns.unwrap_or(sample.shown_ns));
            let at = Instant::now();
            let since = u64::try_from(at.duration_since(self.began).as_nanos()).unwrap_or(u64::MAX);
            let ticks = i128::from(sample.shown_ns) * i128::from(CLOCK_HZ) / 1_000_000_000;
            // All tracks have one clock.
            let captured = self.clock.capture(0, i64::try_from(ticks).unwrap_or(0), since);
            let payload = sample.bytes.into();
            let piece = Piece { payload, arrived: Some(at), captured: Some(captured), room: None };
            lane.samples.report(&self.reader, &lane.news);
            if !lane.give(piece) {
                return Ok(());
            }
        }
        self.pictures.samples.report(&self.reader, &self.pictures.news);
        let tracks = self.reader.demuxer.tracks();
        if !self.pictures.begun {
            return Err(missing(&self.name, tracks, "pictures that can be decoded"));
        }
        match &self.sound {
            Some(sound) if !sound.begun => {
                let _ = sound.to.try_send(Message::Failed(missing(&self.name, tracks, "sound")));
            }
            Some(_) | None => {}
        }
        Ok(())
    }
}

impl LiveTrack {
    fn new(kind: FilmKind, to: SyncSender<Message>, news: Arc<News>) -> Self {
        Self { kind, to, news, samples: TrackSamples::default(), track: None, begun: false }
    }

    /// Gives a sample to the publisher. Returns false if it takes none any more. Sound does not delay pictures.
    fn give(&mut self, piece: Piece) -> bool {
        if !std::mem::replace(&mut self.begun, true) {
            let format = self.samples.encoding().parse::<Format>().ok();
            let size = format.and_then(|format| format.picture_size(&piece.payload).ok());
            let encoding = self.samples.encoding().to_owned();
            let hz = Format::codec_of(&encoding)
                .and_then(|codec| codec.info(&piece.payload).ok().flatten());
            let properties = Properties { encoding, size, hz: hz.and_then(|info| info.hz) };
            if self.to.send(Message::Head(Some(properties))).is_err() {
                return self.kind == FilmKind::Sound;
            }
        }
        let message = Message::Sample(piece);
        if self.kind == FilmKind::Pictures {
            return self.to.send(message).is_ok();
        }
        if let Err(TrySendError::Full(_)) = self.to.try_send(message) {
            self.news.stopped();
        }
        true
    }
}
