//! Samples and events in, the bytes of an MCAP file out, always up to a whole chunk.

use crate::body::{Body, JSON_SCHEMA};
use crate::chunk::{self, Compression};
use crate::event::{self, EVENTS_SCHEMA, EVENTS_TOPIC, Event};
use crate::format::{self, Content, MAGIC};
use std::collections::BTreeMap;

/// A chunk is closed when it has so many bytes, before they are compressed.
const CHUNK_BYTES: usize = 768 * 1024;
/// The most channels that one recording has.
const CHANNELS_MAX: usize = 4_096;

/// The media type of what is attached to a sample: bytes of which Paceline knows no more.
const ATTACHMENT: &str = "application/x-paceline-attachment";
/// What the metadata of a channel of attachments says that it is.
pub(crate) const ATTACHMENTS: &str = "attachments";

/// A sample to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Its tag.
    pub tag: &'a str,
    /// Who published it.
    pub publisher: &'a str,
    /// Its sequence number; a file keeps the lower 32 bits.
    pub seq: u64,
    /// Its media type.
    pub encoding: &'a str,
    /// When it was captured, nanoseconds since 1970.
    pub captured_ns: u64,
    /// When it came.
    pub came_ns: u64,
    /// The message.
    pub payload: &'a [u8],
    /// What a plain program attached to it.
    pub attachment: Option<&'a [u8]>,
}

/// What is written of a channel beside its messages.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// What samples are to the scheduler.
    pub kind: String,
    /// The publisher's node.
    pub node: String,
    /// The period that it declared.
    pub period_us: Option<u64>,
    /// What was asked for, in words.
    pub asked: String,
    /// What was granted, in words.
    pub granted: String,
}

/// What can't be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// One file has no place for so many.
    #[error(
        "more than {CHANNELS_MAX} channels (a tag, a publisher and a media type each); give a narrower pattern"
    )]
    Channels,
    /// An event that makes no JSON.
    #[error("cannot write an event: {0}")]
    Event(#[from] serde_json::Error),
}

/// What tells channels apart.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Key {
    publisher: String,
    encoding: String,
    body: Body,
}

/// A schema or a channel, as its record.
#[derive(Debug, Default)]
struct Declared(Vec<Content>);

impl Declared {
    /// The number of the next one; they count from 1.
    fn next(&self) -> u16 {
        u16::try_from(self.0.len() + 1).unwrap_or(u16::MAX)
    }
}

/// What the whole file holds.
#[derive(Debug, Default)]
struct Totals {
    messages: BTreeMap<u16, u64>,
    times: Option<(u64, u64)>,
    chunks: Vec<Content>,
}

/// An MCAP file being written. A tag is one topic; a publisher on it has a channel for each media type that its
/// samples have.
pub struct Recording {
    compression: Compression,
    ready: Vec<u8>,
    /// Bytes of the file before those that are ready.
    taken: u64,
    chunk: chunk::Open,
    schemas: Declared,
    known: BTreeMap<(String, Vec<u8>), u16>,
    channels: Declared,
    lanes: BTreeMap<String, Vec<(Key, u16)>>,
    /// The channels of attachments, by those of their samples.
    attached: BTreeMap<u16, u16>,
    totals: Totals,
    events: u16,
    told: u32,
    message: Vec<u8>,
}

impl Recording {
    /// A recording by a program of this name.
    #[must_use]
    pub fn new(compression: Compression, program: &str) -> Self {
        let mut ready = MAGIC.to_vec();
        Content::default().text("").text(program).append(format::HEADER, &mut ready);
        let mut recording = Self {
            compression,
            ready,
            taken: 0,
            chunk: chunk::Open::default(),
            schemas: Declared::default(),
            known: BTreeMap::new(),
            channels: Declared::default(),
            lanes: BTreeMap::new(),
            attached: BTreeMap::new(),
            totals: Totals::default(),
            events: 0,
            told: 0,
            message: Vec::new(),
        };
        let schema = recording.schema(EVENTS_SCHEMA, JSON_SCHEMA, &event::schema());
        let beside = BTreeMap::from([("paceline".to_owned(), "events".to_owned())]);
        recording.events = recording.channel(schema, EVENTS_TOPIC, "json", &beside);
        recording
    }

    /// Records a sample; `about` is asked when its channel is new.
    ///
    /// # Errors
    /// [`RecordError::Channels`].
    pub fn sample(
        &mut self,
        sample: &Sample<'_>,
        about: impl FnOnce() -> About,
    ) -> Result<(), RecordError> {
        let body = Body::of(sample.encoding, sample.payload);
        let is = |key: &Key| {
            key.body == body && key.encoding == sample.encoding && key.publisher == sample.publisher
        };
        let lanes = self.lanes.get(sample.tag);
        let known = lanes.and_then(|lanes| lanes.iter().find(|(key, _)| is(key)));
        let id = match known {
            Some((_, id)) => *id,
            None => self.open(sample, body, &about())?,
        };
        let sequence = u32::try_from(sample.seq & u64::from(u32::MAX)).unwrap_or_default();
        let times = (sample.came_ns, sample.captured_ns);
        // Before its sample: whoever reads has it when the sample comes.
        if let Some(attachment) = sample.attachment {
            let beside = self.attachments(id, sample)?;
            self.put(beside, sequence, times, attachment);
        }
        let mut message = std::mem::take(&mut self.message);
        message.clear();
        body.write(sample.tag, sample.captured_ns, sample.payload, &mut message);
        self.put(id, sequence, times, &message);
        self.message = message;
        Ok(())
    }

    fn open(&mut self, sample: &Sample<'_>, body: Body, about: &About) -> Result<u16, RecordError> {
        if self.channels.0.len() >= CHANNELS_MAX {
            return Err(RecordError::Channels);
        }
        let (name, kind, data) = body.describe(sample.tag, sample.encoding, sample.payload);
        let schema = self.schema(&name, kind, &data);
        let mut beside = BTreeMap::from([
            ("paceline", "samples".to_owned()),
            ("publisher", sample.publisher.to_owned()),
            ("node", about.node.clone()),
            ("kind", about.kind.clone()),
            ("encoding", sample.encoding.to_owned()),
            ("asked", about.asked.clone()),
            ("granted", about.granted.clone()),
        ]);
        if let Some(period) = about.period_us {
            beside.insert("period_us", period.to_string());
        }
        let beside = beside.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let encoding = body.message_encoding(sample.encoding);
        let id = self.channel(schema, sample.tag, encoding, &beside);
        let key = Key {
            publisher: sample.publisher.to_owned(),
            encoding: sample.encoding.to_owned(),
            body,
        };
        self.lanes.entry(sample.tag.to_owned()).or_default().push((key, id));
        Ok(id)
    }

    /// The channel of what is attached to the samples of another one.
    fn attachments(&mut self, of: u16, sample: &Sample<'_>) -> Result<u16, RecordError> {
        if let Some(id) = self.attached.get(&of) {
            return Ok(*id);
        }
        if self.channels.0.len() >= CHANNELS_MAX {
            return Err(RecordError::Channels);
        }
        let schema = self.schema(ATTACHMENT, "", &[]);
        let said = [
            ("paceline", ATTACHMENTS.to_owned()),
            ("of", of.to_string()),
            ("publisher", sample.publisher.to_owned()),
        ];
        let beside = said.map(|(name, value)| (name.to_owned(), value)).into();
        let topic = format!("{}/@attachment", sample.tag);
        let id = self.channel(schema, &topic, ATTACHMENT, &beside);
        self.attached.insert(of, id);
        Ok(id)
    }

    /// The number of a schema, which is declared if it is new.
    fn schema(&mut self, name: &str, encoding: &str, data: &[u8]) -> u16 {
        let key = (name.to_owned(), data.to_vec());
        if let Some(id) = self.known.get(&key) {
            return *id;
        }
        let id = self.schemas.next();
        let content = Content::default().u16(id).text(name).text(encoding).text(data);
        self.chunk.record(&content, format::SCHEMA);
        self.schemas.0.push(content);
        self.known.insert(key, id);
        id
    }

    fn channel(
        &mut self,
        schema: u16,
        topic: &str,
        encoding: &str,
        beside: &BTreeMap<String, String>,
    ) -> u16 {
        let id = self.channels.next();
        let content =
            Content::default().u16(id).u16(schema).text(topic).text(encoding).texts(beside);
        self.chunk.record(&content, format::CHANNEL);
        self.channels.0.push(content);
        id
    }

    fn put(&mut self, id: u16, sequence: u32, times: (u64, u64), data: &[u8]) {
        self.chunk.message(id, sequence, times, data);
        *self.totals.messages.entry(id).or_default() += 1;
        let (from, to) = self.totals.times.unwrap_or((times.0, times.0));
        self.totals.times = Some((from.min(times.0), to.max(times.0)));
        if self.chunk.len() >= CHUNK_BYTES {
            self.flush();
        }
    }

    /// Records an event.
    ///
    /// # Errors
    /// [`RecordError::Event`].
    pub fn event(&mut self, event: &Event, now_ns: u64) -> Result<(), RecordError> {
        let told = self.told;
        self.told = told.wrapping_add(1);
        self.put(self.events, told, (now_ns, now_ns), &serde_json::to_vec(event)?);
        Ok(())
    }

    /// Closes the chunk: what was recorded so far can be taken.
    pub fn flush(&mut self) {
        let at = self.taken + self.ready.len() as u64;
        self.totals.chunks.extend(self.chunk.close(self.compression, at, &mut self.ready));
    }

    /// The bytes of the file that are ready and were not taken yet: whole records only. A file that ends after
    /// any of these is whole up to there, and with [`ending`] it is one that every program reads.
    pub fn take(&mut self) -> Vec<u8> {
        self.taken += self.ready.len() as u64;
        std::mem::take(&mut self.ready)
    }

    /// The rest of the file, with its index.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.flush();
        // A checksum of the whole file, which is optional, would have to be kept on the way.
        Content::default().u32(0).append(format::DATA_END, &mut self.ready);
        let begin = self.ready.len();
        let start = self.taken + begin as u64;
        let mut offsets = Vec::new();
        let mut group = |kind: u8, contents: &[Content], ready: &mut Vec<u8>| {
            let from = ready.len();
            contents.iter().for_each(|content| content.append(kind, ready));
            let (at, length) = (start + (from - begin) as u64, (ready.len() - from) as u64);
            if length > 0 {
                offsets.push(Content::default().u8(kind).u64(at).u64(length));
            }
        };
        let statistics = self.statistics();
        group(format::SCHEMA, &self.schemas.0, &mut self.ready);
        group(format::CHANNEL, &self.channels.0, &mut self.ready);
        group(format::STATISTICS, &[statistics], &mut self.ready);
        group(chunk::INDEX, &self.totals.chunks, &mut self.ready);
        let offset_start = start + (self.ready.len() - begin) as u64;
        for offset in &offsets {
            offset.append(format::SUMMARY_OFFSET, &mut self.ready);
        }
        footer(start, offset_start, begin, &mut self.ready);
        self.ready
    }

    fn statistics(&self) -> Content {
        let Totals { messages, times, chunks } = &self.totals;
        let (from, to) = times.unwrap_or((0, 0));
        let each = messages
            .iter()
            .fold(Content::default(), |list, (channel, count)| list.u16(*channel).u64(*count));
        Content::default()
            .u64(messages.values().sum())
            .u16(u16::try_from(self.schemas.0.len()).unwrap_or(u16::MAX))
            .u32(u32::try_from(self.channels.0.len()).unwrap_or(u32::MAX))
            .u32(0)
            .u32(0)
            .u32(u32::try_from(chunks.len()).unwrap_or(u32::MAX))
            .u64(from)
            .u64(to)
            .text(each.0)
    }
}

/// Appends the footer, with a checksum of all from `begin` on, and the last bytes.
fn footer(start: u64, offset_start: u64, begin: usize, to: &mut Vec<u8>) {
    Content::default().u64(start).u64(offset_start).u32(0).append(format::FOOTER, to);
    let end = to.len() - 4;
    let checksum = crc32fast::hash(to.get(begin..end).unwrap_or_default());
    to.truncate(end);
    to.extend(checksum.to_le_bytes());
    to.extend(MAGIC);
}

/// What makes a file without an index of one that ends after whole records.
#[must_use]
pub fn ending() -> Vec<u8> {
    let mut bytes = Vec::new();
    Content::default().u32(0).append(format::DATA_END, &mut bytes);
    // No summary, and no checksum of it.
    Content::default().u64(0).u64(0).u32(0).append(format::FOOTER, &mut bytes);
    bytes.extend(MAGIC);
    bytes
}
