//! Matroska and WebM (RFC 9559), also while they are written: segments and clusters may have no size.

mod block;
mod element;
mod entry;

use super::log::{Log, Progress};
use super::window::{Look, Window};
use super::{FilmUnit, TRACKS_MAX, UNIT_MAX, refuse};
use crate::error::MediaError;
use block::Block;
use element::{Children, Element, HEADER_MAX, id};
use entry::Entry;
use std::collections::VecDeque;

/// The largest description of tracks in bytes.
const TRACKS_BYTES_MAX: u64 = 16 * 1024 * 1024;
const MARK: &[u8] = b"\x1f\x43\xb6\x75";
/// The bytes of one search for a cluster.
const STEP: usize = 4_096;
const FIX: &str = "pass the film from its beginning, or write it again with ffmpeg: -c copy";

/// Reads elements. Segments and clusters are entered, so that their sizes do not matter.
#[derive(Debug)]
pub(super) struct Matroska {
    /// The offset of the next element.
    next: u64,
    /// Nanoseconds per tick.
    scale: u32,
    /// The time of the cluster, in ticks.
    cluster: Option<i64>,
    entries: Vec<Entry>,
    /// The frames of the last block.
    ready: VecDeque<FilmUnit>,
    begun: bool,
}

impl Default for Matroska {
    fn default() -> Self {
        Self {
            next: 0,
            scale: 1_000_000,
            cluster: None,
            entries: Vec::new(),
            ready: VecDeque::new(),
            begun: false,
        }
    }
}

impl Matroska {
    pub(super) fn step(
        &mut self,
        window: &mut Window,
        log: &mut Log,
    ) -> Result<Progress, MediaError> {
        if let Some(unit) = self.ready.pop_front() {
            return Ok(Progress::Unit(unit));
        }
        let header = match window.look(self.next, HEADER_MAX) {
            Look::More => return Ok(Progress::More),
            Look::Passed => return Ok(Progress::Ended),
            Look::Bytes(bytes) => Element::read(bytes),
            Look::Ended([]) => return self.ended(),
            Look::Ended(rest) => match Element::read(rest) {
                Some(element) => Some(element),
                None => {
                    let rest = rest.len() as u64;
                    log.damage.add(self.next, rest, || "the last element is cut off".to_owned());
                    return self.ended();
                }
            },
        };
        match header {
            Some(element) if self.begun || element.id == id::EBML => {
                self.element(element, window, log)
            }
            None if self.begun => Ok(self.resume(window, log)),
            Some(_) | None => {
                Err(refuse("matroska", 0, "it does not begin with a header of EBML", FIX))
            }
        }
    }

    fn ended(&self) -> Result<Progress, MediaError> {
        if self.entries.is_empty() {
            return Err(refuse("matroska", self.next, "it ends before its tracks", FIX));
        }
        Ok(Progress::Ended)
    }

    fn element(
        &mut self,
        element: Element,
        window: &mut Window,
        log: &mut Log,
    ) -> Result<Progress, MediaError> {
        let body = self.next + element.header as u64;
        match (element.id, element.size) {
            (id::SEGMENT, _) => self.next = body,
            (id::CLUSTER, _) => (self.next, self.cluster) = (body, None),
            (id::EBML, Some(size)) => {
                self.begun = true;
                self.next = body.saturating_add(size);
            }
            (id::INFO | id::TRACKS, Some(size)) if size <= TRACKS_BYTES_MAX => {
                return self.content(element.id, body, size, window, log);
            }
            (id::TIMESTAMP | id::SIMPLE_BLOCK | id::BLOCK_GROUP, Some(size))
                if size <= UNIT_MAX as u64 =>
            {
                return self.content(element.id, body, size, window, log);
            }
            (
                id::CUES | id::TAGS | id::ATTACHMENTS | id::VOID | id::CHAPTERS | id::SEEK_HEAD,
                Some(size),
            ) => {
                self.next = body.saturating_add(size);
            }
            (_, Some(size)) if size <= UNIT_MAX as u64 && !element.is_long() => {
                self.next = body.saturating_add(size);
            }
            _ => return Ok(self.resume(window, log)),
        }
        Ok(Progress::Again)
    }

    /// Reads an element with its content.
    fn content(
        &mut self,
        id: u32,
        body: u64,
        size: u64,
        window: &mut Window,
        log: &mut Log,
    ) -> Result<Progress, MediaError> {
        let header = usize::try_from(body - self.next).unwrap_or(HEADER_MAX);
        let length = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(header);
        let bytes = match window.look(self.next, length) {
            Look::Bytes(bytes) => bytes.get(header..).unwrap_or_default(),
            Look::More | Look::Passed => return Ok(Progress::More),
            Look::Ended(rest) => {
                let cut = rest.len() as u64;
                log.damage.add(self.next, cut, || "the last element is cut off".to_owned());
                return self.ended();
            }
        };
        self.next = body.saturating_add(size);
        match id {
            id::INFO => {
                let scale = Children(bytes).find(|(id, _)| *id == id::TIMESTAMP_SCALE);
                let scale = scale.map_or(1_000_000, |(_, value)| element::unsigned(value));
                self.scale = u32::try_from(scale).unwrap_or(u32::MAX).max(1);
            }
            id::TRACKS if self.entries.is_empty() => {
                let tracks =
                    Children(bytes).filter(|(id, _)| *id == id::TRACK_ENTRY).take(TRACKS_MAX);
                for (entry, track) in tracks.map(|(_, entry)| entry::read(entry, self.scale)) {
                    self.entries.push(entry);
                    log.tracks.push(track);
                }
            }
            id::TIMESTAMP => {
                self.cluster = Some(i64::try_from(element::unsigned(bytes)).unwrap_or(i64::MAX));
            }
            id::SIMPLE_BLOCK | id::BLOCK_GROUP => {
                let at = body;
                let block = if id == id::SIMPLE_BLOCK {
                    Block::simple(bytes)
                } else {
                    Block::of_group(bytes)
                };
                match block {
                    Some(block) => self.block(&block, (at, size), log),
                    None => log.damage.add(at, size, || "a block without frames".to_owned()),
                }
            }
            _ => {}
        }
        Ok(Progress::Again)
    }

    /// Lists the frames of a block.
    fn block(&mut self, block: &Block<'_>, (at, size): (u64, u64), log: &mut Log) {
        let known = self.entries.iter().enumerate().find(|(_, entry)| entry.number == block.track);
        let Some((track, entry)) = known else {
            return log.damage.add(at, size, || {
                format!("a block of track {}, which is not described", block.track)
            });
        };
        if !log.wants(track) {
            return;
        }
        let Some(cluster) = self.cluster else {
            return log
                .damage
                .add(at, size, || "a block before the time of its cluster".to_owned());
        };
        let Some(frames) = block.frames() else {
            return log
                .damage
                .add(at, size, || "a block whose frames are longer than it".to_owned());
        };
        let first = cluster.saturating_add(block.time.into()).saturating_sub(entry.delay);
        let count = u64::try_from(frames.len()).unwrap_or(1).max(1);
        for (number, frame) in (0_i64..).zip(frames) {
            // Frames of one block have the same length in time.
            let step = match block.duration {
                Some(duration) => duration / count,
                None => entry.duration_ns / u64::from(self.scale),
            };
            let step = i64::try_from(step).unwrap_or(i64::MAX);
            let bytes = [&entry.stripped[..], frame].concat();
            self.ready.push_back(FilmUnit {
                track,
                entry: 0,
                decode: None,
                shown: first.saturating_add(step.saturating_mul(number)),
                key: block.key,
                outside: false,
                bytes,
            });
        }
    }

    /// Skips to the next cluster.
    fn resume(&mut self, window: &mut Window, log: &mut Log) -> Progress {
        let at = self.next;
        let (found, skip) = match window.look(at, STEP) {
            Look::More | Look::Passed => return Progress::More,
            Look::Bytes(bytes) => (position(bytes), bytes.len() - MARK.len()),
            Look::Ended(rest) => (position(rest), rest.len()),
        };
        let skip = found.unwrap_or(skip.max(1)) as u64;
        log.damage.add(at, skip, || "no element of Matroska".to_owned());
        self.next = at + skip;
        Progress::Again
    }
}

/// Returns the position of the next cluster behind the first byte.
fn position(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MARK.len()).skip(1).position(|part| part == MARK).map(|at| at + 1)
}
