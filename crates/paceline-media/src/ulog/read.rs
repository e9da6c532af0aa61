//! Reading of the records of a log.

use std::collections::BTreeMap;

use super::layout::{Layouts, is_format_name};
use super::{Entry, ULogTopic};
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
    let appended = appended_offsets(bytes)?;
    let mut reader = Reader { bytes, ..Reader::default() };
    let mut begin = HEADER_LEN;
    for end in appended.into_iter().chain([bytes.len()]) {
        // Appended data begins at its offset, even if the preceding record is incomplete.
        if let Err((at, reason)) = reader.section(begin, end) {
            reader.warn(format!("ends at byte {at} of {}: {reason}", bytes.len()));
            break;
        }
        begin = end;
    }
    Ok(reader.finish())
}

/// Returns the offsets of data that was appended after the log was closed: ascending, within the file.
fn appended_offsets(bytes: &[u8]) -> Result<Vec<usize>, MediaError> {
    let Ok(Some((b'B', body))) = record(bytes, HEADER_LEN, bytes.len()) else {
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

/// Returns the kind and body of the record at `at`; `None` if it does not end before `end`.
fn record(bytes: &[u8], at: usize, end: usize) -> Result<Option<(u8, &[u8])>, String> {
    let rest = bytes.get(at..end).unwrap_or_default();
    let Some(([low, high, kind], rest)) = rest.split_first_chunk::<3>() else { return Ok(None) };
    match u16::from_le_bytes([*low, *high]) {
        0 => Err("a record has length 0".to_owned()),
        len => Ok(rest.get(..usize::from(len)).map(|body| (*kind, body))),
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
    index: Vec<Entry>,
    warnings: Vec<String>,
}

impl Reader<'_> {
    /// Reads the records from `begin` to `end`. Returns the position and the reason if it stops earlier.
    fn section(&mut self, begin: usize, end: usize) -> Result<(), (usize, String)> {
        let (bytes, mut at) = (self.bytes, begin);
        while at < end {
            let stop = |reason| (at, reason);
            let Some((kind, body)) = record(bytes, at, end).map_err(stop)? else {
                if end == bytes.len() {
                    return Err(stop("the record there is cut off".to_owned()));
                }
                return Ok(());
            };
            self.record(kind, body, at + 3).map_err(stop)?;
            at += 3 + body.len();
        }
        Ok(())
    }

    fn record(&mut self, kind: u8, body: &[u8], at: usize) -> Result<(), String> {
        match kind {
            b'F' => self.layouts.define(body),
            b'A' => self.subscribe(body),
            b'R' => self.unsubscribe(body),
            b'D' => self.data(body, at),
            b'I' | b'P' => keyed(body),
            b'M' | b'Q' => keyed(body.get(1..).unwrap_or_default()),
            b'S' if body != b"\x2f\x73\x13\x20\x25\x0c\xbb\x12" => {
                Err("a synchronisation mark is wrong".to_owned())
            }
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
        match self.numbers.insert(number, topic) {
            Some(other) if other != topic => {
                Err(format!("number {number} is assigned to a second topic, {name:?}"))
            }
            _ => Ok(()),
        }
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
            Some(_) => Ok(()),
            None => Err(format!("number {number} is not assigned to a topic")),
        }
    }

    fn data(&mut self, body: &[u8], at: usize) -> Result<(), String> {
        let Some(([low, high], payload)) = body.split_first_chunk::<2>() else {
            return Err("a message is too short".to_owned());
        };
        let number = u16::from_le_bytes([*low, *high]);
        let known = self.numbers.get(&number);
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
        Contents { topics: self.topics, layouts: self.layouts, index: self.index, warning }
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
