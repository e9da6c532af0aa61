//! Edit lists: the parts of a track's media that are presented, and when.

use super::cursor::{Cursor, Listed};
use super::tables::Tables;
use mp4_atom::Elst;

/// The most parts of an edit list that are used.
const PARTS_MAX: usize = 256;
/// The most samples that are passed over in search of the begins of parts.
const PASSED_MAX: u32 = 16_000_000;

/// A part of the media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// The presentation time of its first moment, in ticks of the track.
    pub(super) begin: i64,
    /// The same moment in the time of the media.
    pub(super) media: i64,
    /// Its length; `None` if it extends to the end.
    pub(super) length: Option<i64>,
}

impl Part {
    /// All of the media.
    const ALL: Self = Self { begin: 0, media: 0, length: None };

    fn end(&self) -> Option<i64> {
        self.length.map(|length| self.media.saturating_add(length))
    }

    /// Returns the presentation time of a moment of the media.
    pub(super) fn shown(&self, media: i64) -> i64 {
        media.saturating_sub(self.media).saturating_add(self.begin)
    }

    fn holds(&self, shown: i64) -> bool {
        shown >= self.media && self.end().is_none_or(|end| shown < end)
    }
}

/// Returns the parts of an edit list. `film` and `track` are ticks per second.
pub(super) fn parts(list: Option<Elst>, film: u32, track: u32) -> Vec<Part> {
    let entries = list.map(|list| list.entries).unwrap_or_default();
    let ticks = |time: u64| {
        let film = u128::from(film.max(1));
        let ticks = (u128::from(time) * u128::from(track) + film / 2) / film;
        i64::try_from(ticks).unwrap_or(i64::MAX)
    };
    let (mut parts, mut begin) = (Vec::new(), 0_i64);
    for entry in entries.into_iter().take(PARTS_MAX) {
        let length = ticks(entry.segment_duration);
        if let Some(media) = entry.media_time {
            // A film without an end, such as one in fragments, has a length of 0.
            let length = Some(length).filter(|length| *length > 0);
            parts.push(Part { begin, media: i64::try_from(media).unwrap_or(i64::MAX), length });
        }
        begin = begin.saturating_add(length);
    }
    if parts.is_empty() {
        parts.push(Part { begin, ..Part::ALL });
    }
    parts
}

/// The samples of a track's tables in the order of its presentation.
#[derive(Debug)]
pub(super) struct Edited {
    tables: Tables,
    parts: Vec<Part>,
    is_sound: bool,
    /// The media that is decoded before a part: a second of sound, in ticks.
    before: i64,
    /// The time by which decoding times precede the tables' times.
    shift: i64,
    /// The samples that may still be passed over.
    budget: u32,
    /// The current part, and the next sample of it.
    part: usize,
    cursor: Option<Cursor>,
    /// Key samples at or behind the end of the part.
    behind: u32,
    /// The next sample, once it was read.
    next: Option<Timed>,
}

/// A sample in presentation time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timed {
    pub(super) listed: Listed,
    pub(super) decode: i64,
    pub(super) shown: i64,
    pub(super) outside: bool,
}

impl Edited {
    /// Returns the samples; `scale` are ticks per second.
    pub(super) fn new(tables: Tables, parts: Vec<Part>, is_sound: bool, scale: u32) -> Self {
        Self {
            shift: tables.shift(),
            before: if is_sound { scale.into() } else { 0 },
            tables,
            parts,
            is_sound,
            budget: PASSED_MAX,
            part: 0,
            cursor: None,
            behind: 0,
            next: None,
        }
    }

    /// Returns the next sample without taking it.
    pub(super) fn peek(&mut self) -> Option<Timed> {
        if self.next.is_none() {
            self.next = self.read();
        }
        self.next
    }

    /// Takes the sample of the last [`Self::peek`].
    pub(super) fn take(&mut self) {
        self.next = None;
    }

    /// Returns no more samples.
    pub(super) fn end(&mut self) {
        (self.part, self.next) = (self.parts.len(), None);
    }

    fn read(&mut self) -> Option<Timed> {
        loop {
            let part = *self.parts.get(self.part)?;
            if self.cursor.is_none() {
                self.cursor = Some(self.begin(&part));
            }
            let listed = self.cursor.as_mut()?.next(&self.tables);
            let ended = match &listed {
                Some(listed) => self.is_behind(&part, listed),
                None => true,
            };
            if ended {
                (self.part, self.cursor, self.behind) = (self.part + 1, None, 0);
            }
            let Some(listed) = listed else { continue };
            return Some(Timed {
                listed,
                decode: part.shown(listed.decode).saturating_sub(self.shift),
                shown: part.shown(listed.shown),
                outside: !part.holds(listed.shown),
            });
        }
    }

    /// Returns the place at which decoding of a part begins: the last key sample before it, or one second of sound.
    fn begin(&mut self, part: &Part) -> Cursor {
        let from = part.media.saturating_sub(self.before);
        let (mut found, mut cursor) = (Cursor::default(), Cursor::default());
        if part.media == 0 {
            return found;
        }
        loop {
            let here = cursor;
            let Some(budget) = self.budget.checked_sub(1) else { return found };
            self.budget = budget;
            match cursor.next(&self.tables) {
                Some(listed) if listed.decode > part.media => return found,
                Some(listed) if listed.key && listed.shown <= from => found = here,
                Some(_) => {}
                None => return found,
            }
        }
    }

    /// Returns true if this sample is the last one that is needed for a part.
    fn is_behind(&mut self, part: &Part, listed: &Listed) -> bool {
        let Some(end) = part.end() else { return false };
        if listed.shown.saturating_add(listed.duration) < end || !listed.key && !self.is_sound {
            return false;
        }
        // Pictures that follow a key picture may precede it in presentation order.
        self.behind += 1;
        self.is_sound || self.tables.offsets.is_empty() || self.behind > 1
    }
}
