//! Flash video: a tag per unit.

use super::log::{Log, Progress};
use super::window::{Look, Window};
use super::{FilmCodec, FilmKind, FilmTrack, FilmUnit, TimeBase, refuse};
use crate::audio::AacFormat;
use crate::error::MediaError;
use crate::film::FilmTurn;
use mp4_atom::{Atom as _, Avcc};

/// The bytes of a tag's header, and of the length behind each tag.
const HEADER: usize = 11;
const BEHIND: u64 = 4;
const SOUND: u8 = 8;
const PICTURES: u8 = 9;

/// Reads tags.
#[derive(Debug, Default)]
pub(super) struct Flv {
    /// The offset of the next tag; 0 before the header.
    next: u64,
    /// The positions of the tracks.
    pictures: Option<usize>,
    sound: Option<usize>,
}

/// The content of a tag.
enum Content {
    Unit { offset: i32, key: bool, skip: usize },
    Config(Option<FilmCodec>),
    Nothing,
}

impl Flv {
    pub(super) fn step(
        &mut self,
        window: &mut Window,
        log: &mut Log,
    ) -> Result<Progress, MediaError> {
        if self.next == 0 {
            return self.begin(window);
        }
        let (kind, size, time) = match window.look(self.next, HEADER) {
            Look::More => return Ok(Progress::More),
            Look::Bytes(&[kind, s0, s1, s2, t0, t1, t2, t3, ..]) => {
                let size = u32::from_be_bytes([0, s0, s1, s2]);
                (kind, size, i32::from_be_bytes([t3, t0, t1, t2]))
            }
            Look::Ended(rest) => {
                let rest = rest.len() as u64;
                if rest > 0 {
                    log.damage.add(self.next, rest, || "the last tag is cut off".to_owned());
                }
                return Ok(Progress::Ended);
            }
            Look::Bytes(_) | Look::Passed => return Ok(Progress::Ended),
        };
        if kind & 0x1f != SOUND && kind & 0x1f != PICTURES && kind & 0x1f != 18 {
            return Ok(self.resume(window, log));
        }
        let body = self.next + HEADER as u64;
        let length = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(HEADER);
        let bytes = match window.look(self.next, length) {
            Look::Bytes(bytes) => bytes.get(HEADER..).unwrap_or_default().to_vec(),
            Look::Ended(rest) => {
                let cut = rest.len() as u64;
                log.damage.add(self.next, cut, || "the last tag is cut off".to_owned());
                return Ok(Progress::Ended);
            }
            Look::More | Look::Passed => return Ok(Progress::More),
        };
        self.next = body + u64::from(size) + BEHIND;
        // Bit 5 marks encryption.
        let unit = match kind {
            SOUND => self.unit(FilmKind::Sound, time, bytes, log),
            PICTURES => self.unit(FilmKind::Pictures, time, bytes, log),
            _ => None,
        };
        Ok(unit.map_or(Progress::Again, Progress::Unit))
    }

    fn begin(&mut self, window: &mut Window) -> Result<Progress, MediaError> {
        match window.look(0, 9) {
            Look::More | Look::Passed => Ok(Progress::More),
            Look::Bytes(&[b'F', b'L', b'V', _, _, o0, o1, o2, o3]) => {
                let offset = u32::from_be_bytes([o0, o1, o2, o3]);
                self.next = u64::from(offset).max(9) + BEHIND;
                Ok(Progress::Again)
            }
            Look::Bytes(_) | Look::Ended(_) => Err(refuse(
                "flv",
                0,
                "it does not begin with a header of FLV",
                "pass a film from its beginning",
            )),
        }
    }

    /// Skips to the next place that looks like a tag.
    fn resume(&mut self, window: &mut Window, log: &mut Log) -> Progress {
        const STEP: usize = 4_096;
        let at = self.next;
        let (found, skip) = match window.look(at, STEP) {
            Look::More | Look::Passed => return Progress::More,
            Look::Bytes(bytes) => (position(bytes), bytes.len() - HEADER),
            Look::Ended(rest) => (position(rest), rest.len()),
        };
        let skip = found.unwrap_or(skip.max(1)) as u64;
        log.damage.add(at, skip, || "no tag of FLV".to_owned());
        self.next = at + skip;
        Progress::Again
    }

    fn unit(
        &mut self,
        kind: FilmKind,
        time: i32,
        mut bytes: Vec<u8>,
        log: &mut Log,
    ) -> Option<FilmUnit> {
        let first = *bytes.first()?;
        let content =
            if kind == FilmKind::Sound { sound(first, &bytes) } else { pictures(first, &bytes) };
        let place = if kind == FilmKind::Sound { &mut self.sound } else { &mut self.pictures };
        let codec = match &content {
            Content::Nothing => return None,
            Content::Config(codec) => codec.clone(),
            Content::Unit { .. } => None,
        };
        let track = *place.get_or_insert_with(|| {
            log.tracks.push(FilmTrack {
                id: u64::from(kind == FilmKind::Sound) + 1,
                codecs: Vec::new(),
                tick: TimeBase::MILLIS,
                size: None,
                turn: FilmTurn::default(),
            });
            log.tracks.len() - 1
        });
        let known = log.tracks.get_mut(track)?;
        let codec = codec.or_else(|| known.codecs.is_empty().then(|| unconfigured(first, kind)));
        if let Some(codec) = codec.filter(|codec| known.codecs.last() != Some(codec)) {
            known.codecs.push(codec);
        }
        let entry = known.codecs.len().saturating_sub(1);
        let Content::Unit { offset, key, skip } = content else { return None };
        if !log.wants(track) {
            return None;
        }
        bytes.drain(..skip.min(bytes.len()));
        let (decode, shown) = (i64::from(time), i64::from(time) + i64::from(offset));
        Some(FilmUnit { track, entry, decode: Some(decode), shown, key, outside: false, bytes })
    }
}

/// Returns the position of the first plausible tag behind the first byte.
fn position(bytes: &[u8]) -> Option<usize> {
    let plausible = |tag: &[u8]| matches!(tag, [8 | 9 | 18, size, .., 0, 0, 0] if *size < 16);
    bytes.windows(HEADER).skip(1).position(plausible).map(|at| at + 1)
}

fn sound(first: u8, bytes: &[u8]) -> Content {
    match (first >> 4, bytes.get(1)) {
        (10, Some(0)) => {
            let config = AacFormat::read(bytes.get(2..).unwrap_or_default());
            Content::Config(Some(match config {
                Ok(format) => FilmCodec::Aac(Some(format)),
                Err(other) => FilmCodec::other(other, FilmKind::Sound),
            }))
        }
        (10, Some(_)) if bytes.len() > 2 => Content::Unit { offset: 0, key: true, skip: 2 },
        (10, _) => Content::Nothing,
        _ if bytes.len() > 1 => Content::Unit { offset: 0, key: true, skip: 1 },
        _ => Content::Nothing,
    }
}

fn pictures(first: u8, bytes: &[u8]) -> Content {
    let (frame, codec) = (first >> 4, first & 0xf);
    // 5 is a command to the player.
    if frame == 5 || first & 0x80 != 0 {
        return if first & 0x80 != 0 { Content::Config(None) } else { Content::Nothing };
    }
    let key = frame == 1;
    if codec != 7 {
        return if bytes.len() > 1 {
            Content::Unit { offset: 0, key, skip: 1 }
        } else {
            Content::Nothing
        };
    }
    match *bytes {
        [_, 0, _, _, _, ..] => {
            let mut config = bytes.get(5..).unwrap_or_default();
            Content::Config(
                Avcc::decode_body(&mut config).ok().map(|avcc| super::mp4::entry::h264(&avcc)),
            )
        }
        [_, 1, c0, c1, c2, _, ..] => {
            // 24 bits with a sign.
            let offset = i32::from_be_bytes([c0, c1, c2, 0]) >> 8;
            Content::Unit { offset, key, skip: 5 }
        }
        _ => Content::Nothing,
    }
}

/// Returns the codec of a track without a configuration.
fn unconfigured(first: u8, kind: FilmKind) -> FilmCodec {
    let name = match (kind, first >> 4, first & 0xf) {
        (FilmKind::Sound, 0 | 3, _) => "uncompressed sound in FLV",
        (FilmKind::Sound, 2 | 14, _) => "MP3",
        (FilmKind::Sound, 4..=6, _) => "Nellymoser",
        (FilmKind::Sound, 7 | 8, _) => "G.711 in FLV",
        (FilmKind::Sound, 10, _) => "AAC without a configuration",
        (FilmKind::Sound, 11, _) => "Speex",
        (FilmKind::Pictures, _, 2) => "FLV1 (Sorenson H.263)",
        (FilmKind::Pictures, _, 3 | 6) => "Screen Video",
        (FilmKind::Pictures, _, 4 | 5) => "VP6",
        (FilmKind::Pictures, _, 7) => "H.264 without a configuration",
        (FilmKind::Pictures, 8.., _) => "a codec of enhanced FLV",
        _ => "of an unknown type",
    };
    FilmCodec::other(name, kind)
}
