//! Reading of the records of a log.

use std::collections::{BTreeMap, VecDeque};

use super::layout::{Layouts, is_format_name};
use super::sure::{SYNC, is_sure};
use super::{Entry, ULogTopic};
use crate::Damage;
use crate::error::{MediaError, excerpt};

/// The first bytes of a log; a version and the time of its beginning follow.
const MAGIC: [u8; 7] = *b"ULog\x01\x12\x35";

const HEADER_LEN: usize = 16;

/// The largest number of warnings that are kept.
const WARNINGS_MAX: usize = 8;

/// The content of a log.
pub(super) struct Contents {
    pub(super) topics: Vec<ULogTopic>,
    pub(super) layouts: Layouts,
    pub(super) index: Vec<Entry>,
    pub(super) warning: Option<String>,
    pub(super) damage: Damage,
}

/// Reads a whole log.
pub(super) fn read(bytes: &[u8]) -> Result<Contents, MediaError> {
    let magic = bytes.get(..MAGIC.len()).unwrap_or(bytes);
    if magic != MAGIC {
        return Err(refuse(0, "it does not begin with a ulog header", "pass the bytes of a .ulg"));
    }
    if bytes.len() < HEADER_LEN {
        return Err(refuse(bytes.len(), "the header is cut off", "pass a whole file"));
    }
    let mut ends = appended_offsets(bytes)?;
    ends.push(bytes.len());
    let mut reader = Reader { bytes, ..Reader::default() };
    reader.read(ends.into());
    Ok(reader.finish())
}

/// Returns the offsets of data that was appended after the log was closed: ascending, within the file.
fn appended_offsets(bytes: &[u8]) -> Result<Vec<usize>, MediaError> {
    let Read::Whole(b'B', body) = record(bytes, HEADER_LEN, bytes.len()) else {
        return Ok(Vec::new());
    };
    let Some((_, rest)) = body.split_first_chunk::<8>() else { return Ok(Vec::new()) };
    let Some((incompatible, offsets)) = rest.split_first_chunk::<8>() else {
        return Ok(Vec::new());
    };
    let [first, others @ ..] = incompatible;
    if first & !1 != 0 || *others != [0; 7] {
        let fix = "read it with the program that wrote it";
        return Err(refuse(HEADER_LEN, "its flags require unknown features", fix));
    }
    if first & 1 == 0 {
        return Ok(Vec::new());
    }
    let mut last = HEADER_LEN;
    let offsets = offsets.as_chunks().0.iter().take(3).map_while(|offset| {
        let offset = usize::try_from(u64::from_le_bytes(*offset)).ok()?;
        let ascending = offset > last && offset < bytes.len();
        last = offset;
        ascending.then_some(offset)
    });
    Ok(offsets.collect())
}

/// The bytes at an offset, read as a record.
enum Read<'a> {
    /// A record with its kind and body.
    Whole(u8, &'a [u8]),
    /// No record has length 0.
    Empty,
    /// The bytes end before the record does.
    Cut,
}

/// Reads the record at `at`, which must end before `end`.
fn record(bytes: &[u8], at: usize, end: usize) -> Read<'_> {
    let rest = bytes.get(at..end).unwrap_or_default();
    let Some(([low, high, kind], rest)) = rest.split_first_chunk::<3>() else { return Read::Cut };
    match u16::from_le_bytes([*low, *high]) {
        0 => Read::Empty,
        len => rest.get(..usize::from(len)).map_or(Read::Cut, |body| Read::Whole(*kind, body)),
    }
}

/// The first and the last time of a topic.
type Span = Option<(u64, u64)>;

#[derive(Default)]
struct Reader<'a> {
    bytes: &'a [u8],
    topics: Vec<ULogTopic>,
    /// One for each topic.
    spans: Vec<Span>,
    layouts: Layouts,
    names: BTreeMap<(String, u8), u16>,
    /// Topics by the numbers that records use; `None` for one that is left out.
    numbers: BTreeMap<u16, Option<u16>>,
    /// The topics of numbers whose subscription has ended. A later message shows that the record of the end is damaged.
    ended: BTreeMap<u16, Option<u16>>,
    index: Vec<Entry>,
    warnings: Vec<String>,
    damage: Damage,
}

/// The result of reading at an offset.
enum Step {
    /// The offset of the next record.
    Next(usize),
    /// The offset of the first record behind a damaged place, and the problem.
    Resume(usize, String),
    /// The part of the file ends within a record.
    Cut,
}

impl Reader<'_> {
    /// Reads the parts of the log that end at `ends`: the log, and data that was appended after it was closed. Appended
    /// data begins at its offset, even if the preceding record is incomplete.
    fn read(&mut self, mut ends: VecDeque<usize>) {
        let len = self.bytes.len();
        let mut at = HEADER_LEN;
        while let Some(&end) = ends.front() {
            if at >= end {
                ends.pop_front();
                continue;
            }
            match self.step(at, end) {
                Step::Next(next) => at = next,
                Step::Resume(next, reason) => {
                    self.damage.add(at as u64, (next - at) as u64, || reason);
                    at = next;
                }
                Step::Cut if end == len => {
                    self.warn(format!("ends at byte {at} of {len}: the record there is cut off"));
                    return;
                }
                // Without a record there, the offset itself is damaged.
                Step::Cut => {
                    at = if self.is_record(end) { end } else { at };
                    ends.pop_front();
                }
            }
        }
    }

    /// Reads the record at `at`, within a part of the file that ends at `end`.
    fn step(&mut self, at: usize, end: usize) -> Step {
        let bytes = self.bytes;
        let (kind, body) = match record(bytes, at, end) {
            Read::Whole(kind, body) => (kind, body),
            Read::Empty => return self.resume(at, "a record has length 0".to_owned()),
            Read::Cut => {
                let found = self.find(at + 1, end);
                let reason = || "a record is longer than the file".to_owned();
                return found.map_or(Step::Cut, |next| Step::Resume(next, reason()));
            }
        };
        let next = at + 3 + body.len();
        // A record with a damaged length contains others.
        if !self.is_sure(kind, body)
            && let Some(inner) = self.find(at + 1, next)
        {
            return Step::Resume(inner, "a record contains others".to_owned());
        }
        match self.record(kind, body, at + 3) {
            Ok(()) => Step::Next(next),
            Err(reason) => self.resume(at, reason),
        }
    }

    /// Continues at the first record behind `at` that proves to be one.
    fn resume(&self, at: usize, reason: String) -> Step {
        let len = self.bytes.len();
        Step::Resume(self.find(at + 1, len).unwrap_or(len), reason)
    }

    /// Returns the offset of the first record that proves to be one and begins from `from` to `to`.
    fn find(&self, from: usize, to: usize) -> Option<usize> {
        (from..to).find(|at| self.is_record(*at))
    }

    /// Returns true if there is a record at `at` that proves to be one.
    fn is_record(&self, at: usize) -> bool {
        match record(self.bytes, at, self.bytes.len()) {
            Read::Whole(kind, body) => self.is_sure(kind, body),
            Read::Empty | Read::Cut => false,
        }
    }

    /// Returns true if a record can hardly be anything else: data of the size of its topic, a subscription of a known
    /// format, or one that [`is_sure`] recognises.
    fn is_sure(&self, kind: u8, body: &[u8]) -> bool {
        match (kind, body) {
            (b'D', [low, high, payload @ ..]) => {
                let topic = self.known(u16::from_le_bytes([*low, *high])).copied().flatten();
                let topic = topic.and_then(|topic| self.topics.get(usize::from(topic)));
                let layout = topic.and_then(|topic| self.layouts.get(topic.layout));
                layout.is_some_and(|layout| layout.fits(payload))
            }
            (b'A', [_, _, _, name @ ..]) => {
                str::from_utf8(name).is_ok_and(|name| self.layouts.has(name))
            }
            (kind, body) => is_sure(kind, body),
        }
    }

    /// Returns the topic of a number, also of one whose subscription has ended: `Some(None)` for one that is left out.
    fn known(&self, number: u16) -> Option<&Option<u16>> {
        self.numbers.get(&number).or_else(|| self.ended.get(&number))
    }

    fn record(&mut self, kind: u8, body: &[u8], at: usize) -> Result<(), String> {
        match kind {
            b'F' => self.layouts.define(body),
            b'A' => self.subscribe(body),
            b'R' => self.unsubscribe(body),
            b'D' => self.data(body, at),
            b'I' | b'P' => keyed(body),
            b'M' | b'Q' => keyed(body.get(1..).unwrap_or_default()),
            b'S' if body != SYNC => Err("a synchronisation mark is wrong".to_owned()),
            b'L' => at_least(body, 9, "a text"),
            b'C' => at_least(body, 11, "a tagged text"),
            b'O' => at_least(body, 2, "a dropout mark"),
            // Flags have been read, and unknown kinds must be skipped.
            _ => Ok(()),
        }
    }

    fn subscribe(&mut self, body: &[u8]) -> Result<(), String> {
        let Some(([multi_id, low, high], name)) = body.split_first_chunk::<3>() else {
            return Err("a subscription is too short".to_owned());
        };
        let number = u16::from_le_bytes([*low, *high]);
        let name = str::from_utf8(name).ok().filter(|name| is_format_name(name));
        let name = name.ok_or("a subscription names no format")?;
        let key = (name.to_owned(), *multi_id);
        let topic = match self.names.get(&key) {
            Some(known) => Some(*known),
            None => self.add_topic(key)?,
        };
        if *self.numbers.entry(number).or_insert(topic) == topic {
            return Ok(());
        }
        Err(format!("number {number} is assigned to a second topic, {name:?}"))
    }

    /// Adds a new topic. Returns `None` and adds a warning if its messages cannot be read.
    fn add_topic(&mut self, key: (String, u8)) -> Result<Option<u16>, String> {
        let (name, multi_id) = &key;
        let layout = self.layouts.resolve(name).and_then(|layout| {
            let timed = self.layouts.get(layout).is_some_and(|layout| layout.has_time());
            timed.then_some(layout).ok_or("it has no field uint64_t timestamp".to_owned())
        });
        let layout = match layout {
            Ok(layout) => layout,
            Err(reason) => {
                self.warn(format!("topic {name:?} is skipped: {reason}"));
                return Ok(None);
            }
        };
        let topic = u16::try_from(self.topics.len()).map_err(|_| "it has too many topics")?;
        self.topics.push(ULogTopic {
            name: name.clone(),
            multi_id: *multi_id,
            messages: 0,
            bytes_max: 0,
            hz: 0.0,
            suffix: String::new(),
            layout,
        });
        self.spans.push(None);
        self.names.insert(key, topic);
        Ok(Some(topic))
    }

    fn unsubscribe(&mut self, body: &[u8]) -> Result<(), String> {
        let [low, high] = *body else {
            return Err("the end of a subscription has a wrong length".to_owned());
        };
        let number = u16::from_le_bytes([low, high]);
        match self.numbers.remove(&number) {
            Some(topic) => {
                self.ended.insert(number, topic);
                Ok(())
            }
            None => Err(format!("number {number} is not assigned to a topic")),
        }
    }

    fn data(&mut self, body: &[u8], at: usize) -> Result<(), String> {
        let Some(([low, high], payload)) = body.split_first_chunk::<2>() else {
            return Err("a message is too short".to_owned());
        };
        let number = u16::from_le_bytes([*low, *high]);
        let known = self.known(number);
        let known = known.ok_or_else(|| format!("number {number} is not assigned to a topic"))?;
        let Some(topic) = *known else { return Ok(()) };
        let place = usize::from(topic);
        let (Some(topics), Some(span)) = (self.topics.get_mut(place), self.spans.get_mut(place))
        else {
            return Ok(());
        };
        let layout = self.layouts.get(topics.layout);
        let time = layout.filter(|layout| layout.fits(payload)).and_then(|l| l.time_us(payload));
        let Some(time) = time else {
            let (min, max) = layout.map(|layout| layout.sizes()).unwrap_or_default();
            let (name, len) = (&topics.name, payload.len());
            return Err(format!("a message of {name:?} has {len} bytes, must be {min} to {max}"));
        };
        topics.messages += 1;
        topics.bytes_max = topics.bytes_max.max(payload.len());
        *span = Some((span.map_or(time, |(first, _)| first), time));
        let len = u16::try_from(payload.len()).unwrap_or(u16::MAX);
        self.index.push(Entry { at: at + 2, len, topic });
        Ok(())
    }

    fn warn(&mut self, text: String) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(text);
        } else if let Some(last) = self.warnings.last_mut() {
            // The last warning states the end of the log, which is more important than a topic.
            *last = text;
        }
    }

    fn finish(mut self) -> Contents {
        self.drop_silent_topics();
        let mut instances = BTreeMap::new();
        for topic in &self.topics {
            *instances.entry(topic.name.clone()).or_insert(0_u32) += 1;
        }
        for (topic, span) in self.topics.iter_mut().zip(&self.spans) {
            topic.suffix = match instances.get(&topic.name) {
                Some(1) | None => topic.name.clone(),
                Some(_) => format!("{}/{}", topic.name, topic.multi_id),
            };
            if let Some((first, last)) = span.filter(|(first, last)| last > first) {
                let seconds = (last - first) as f64 / 1e6;
                topic.hz = topic.messages.saturating_sub(1) as f64 / seconds;
            }
        }
        let warning = (!self.warnings.is_empty()).then(|| self.warnings.join("; "));
        let Self { topics, layouts, index, damage, .. } = self;
        Contents { topics, layouts, index, warning, damage }
    }

    /// Leaves out topics without messages, and renumbers the others.
    ///
    /// Flight controllers subscribe to many more topics than they log.
    fn drop_silent_topics(&mut self) {
        let mut next = 0_u16;
        let places: Vec<u16> = self
            .spans
            .iter()
            .map(|span| {
                let place = next;
                // It wraps only after the last of 65,536 topics, where the value is not used.
                next = next.wrapping_add(u16::from(span.is_some()));
                place
            })
            .collect();
        self.topics.retain(|topic| topic.messages > 0);
        self.spans.retain(Option::is_some);
        for entry in &mut self.index {
            entry.topic = places.get(usize::from(entry.topic)).copied().unwrap_or(entry.topic);
        }
    }
}

/// Checks a record that has a key and a value.
fn keyed(body: &[u8]) -> Result<(), String> {
    match body.split_first() {
        Some((len, rest)) if usize::from(*len) <= rest.len() && *len > 0 => Ok(()),
        _ => Err("the key of an information or parameter is cut off".to_owned()),
    }
}

fn at_least(body: &[u8], len: usize, what: &str) -> Result<(), String> {
    if body.len() >= len { Ok(()) } else { Err(format!("{what} is too short")) }
}

fn refuse(at: usize, reason: &str, fix: &'static str) -> MediaError {
    MediaError::Ulog { at, reason: excerpt(reason), fix }
}
