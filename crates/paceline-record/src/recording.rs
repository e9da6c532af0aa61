//! Writes samples and events to an MCAP file, chunk by chunk.

use crate::body::{Body, JSON_SCHEMA};
use crate::chunk::{self, Compression};
use crate::declared::Declared;
use crate::event::{self, EVENTS_SCHEMA, EVENTS_TOPIC, RecordedEvent};
use crate::format::{self, Content, MAGIC};
use std::collections::BTreeMap;

/// A chunk is closed at this uncompressed length in bytes.
const CHUNK_BYTES: usize = 768 * 1024;
/// The maximum number of channels of a recording.
const CHANNELS_MAX: usize = 4_096;

/// The media type of attachments, which are opaque bytes.
const ATTACHMENT: &str = "application/x-paceline-attachment";
/// The metadata value that marks a channel of attachments.
pub(crate) const ATTACHMENTS: &str = "attachments";
/// The metadata that describes the clock of the arrival times.
pub(crate) const ARRIVAL: &str = "arrival";
/// The clock of arrival times that continue although the clock of the host is set.
pub(crate) const STEADY: &str = "steady";

/// A sample to record.
#[derive(Clone, Copy, Debug)]
pub struct RecordedSample<'a> {
    /// The tag.
    pub tag: &'a str,
    /// The id of the publisher.
    pub publisher: &'a str,
    /// The sequence number. The file stores the lower 32 bits.
    pub seq: u64,
    /// The media type.
    pub encoding: &'a str,
    /// The capture time, in nanoseconds since 1970.
    pub captured_ns: u64,
    /// The arrival time, in nanoseconds since 1970, by a clock that no clock step of the host changes.
    pub came_ns: u64,
    /// The payload.
    pub payload: &'a [u8],
    /// The attachment of a plain program.
    pub attachment: Option<&'a [u8]>,
}

/// The metadata of a channel.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The kind of the samples.
    pub kind: String,
    /// The publisher's node.
    pub node: String,
    /// The declared period in microseconds.
    pub period_us: Option<u64>,
    /// The request, as text.
    pub asked: String,
    /// The granted contract, as text.
    pub granted: String,
    /// The publisher's declaration.
    pub declared: Declared,
}

/// Why a sample or event could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file has the maximum number of channels.
    #[error(
        "more than {CHANNELS_MAX} channels (a tag, a publisher and a media type each); use a narrower pattern"
    )]
    Channels,
    /// The event could not be serialized.
    #[error("cannot write an event: {0}")]
    Event(#[from] serde_json::Error),
}

/// The key of a channel.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Key {
    publisher: String,
    encoding: String,
    body: Body,
}

/// The records of the declared schemas or channels.
#[derive(Debug, Default)]
struct Numbered(Vec<Content>);

impl Numbered {
    /// Returns the next number. Numbers start at 1.
    fn next(&self) -> u16 {
        u16::try_from(self.0.len() + 1).unwrap_or(u16::MAX)
    }
}

/// Totals of the whole file, for its index.
#[derive(Debug, Default)]
struct Totals {
    messages: BTreeMap<u16, u64>,
    times: Option<(u64, u64)>,
    chunks: Vec<Content>,
}

/// An MCAP file being written. A tag is one topic. Each publisher has a channel for each media type
/// of its samples.
pub struct Recording {
    compression: Compression,
    ready: Vec<u8>,
    /// The number of bytes already taken by the caller.
    taken: u64,
    chunk: chunk::Open,
    schemas: Numbered,
    known: BTreeMap<(String, Vec<u8>), u16>,
    channels: Numbered,
    lanes: BTreeMap<String, Vec<(Key, u16)>>,
    /// The channels of attachments, by the channel of their samples.
    attached: BTreeMap<u16, u16>,
    totals: Totals,
    events: u16,
    told: u32,
    message: Vec<u8>,
}

impl Recording {
    /// Starts a recording. `program` is the name of the writing program.
    #[must_use]
    pub fn new(compression: Compression, program: &str) -> Self {
        let mut ready = MAGIC.to_vec();
        Content::default().text("").text(program).append(format::HEADER, &mut ready);
        let mut recording = Self {
            compression,
            ready,
            taken: 0,
            chunk: chunk::Open::default(),
            schemas: Numbered::default(),
            known: BTreeMap::new(),
            channels: Numbered::default(),
            lanes: BTreeMap::new(),
            attached: BTreeMap::new(),
            totals: Totals::default(),
            events: 0,
            told: 0,
            message: Vec::new(),
        };
        let schema = recording.schema(EVENTS_SCHEMA, JSON_SCHEMA, &event::schema());
        let said = [("paceline", "events"), (ARRIVAL, STEADY)];
        let beside = said.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        recording.events = recording.channel(schema, EVENTS_TOPIC, "json", &beside);
        recording
    }

    /// Records a sample. `about` is called if its channel is new.
    ///
    /// # Errors
    /// [`RecordError::Channels`].
    pub fn sample(
        &mut self,
        sample: &RecordedSample<'_>,
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
        // The attachment precedes its sample, so that a reader has it when it reads the sample.
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

    fn open(
        &mut self,
        sample: &RecordedSample<'_>,
        body: Body,
        about: &About,
    ) -> Result<u16, RecordError> {
        if self.channels.0.len() >= CHANNELS_MAX {
            return Err(RecordError::Channels);
        }
        let (name, kind, data) = body.describe(sample.tag, sample.encoding, sample.payload);
        let schema = self.schema(&name, kind, &data);
        let mut beside = BTreeMap::from([
            ("paceline", "samples".to_owned()),
            (ARRIVAL, STEADY.to_owned()),
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
        beside.extend(about.declared.to_metadata());
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

    /// Returns the channel of the attachments of another channel.
    fn attachments(&mut self, of: u16, sample: &RecordedSample<'_>) -> Result<u16, RecordError> {
        if let Some(id) = self.attached.get(&of) {
            return Ok(*id);
        }
        if self.channels.0.len() >= CHANNELS_MAX {
            return Err(RecordError::Channels);
        }
        let schema = self.schema(ATTACHMENT, "", &[]);
        let said = [
            ("paceline", ATTACHMENTS.to_owned()),
            (ARRIVAL, STEADY.to_owned()),
            ("of", of.to_string()),
            ("publisher", sample.publisher.to_owned()),
        ];
        let beside = said.map(|(name, value)| (name.to_owned(), value)).into();
        let topic = format!("{}/@attachment", sample.tag);
        let id = self.channel(schema, &topic, ATTACHMENT, &beside);
        self.attached.insert(of, id);
        Ok(id)
    }

    /// Returns the number of a schema. A new schema is declared first.
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
    pub fn event(&mut self, event: &RecordedEvent, now_ns: u64) -> Result<(), RecordError> {
        let told = self.told;
        self.told = told.wrapping_add(1);
        self.put(self.events, told, (now_ns, now_ns), &serde_json::to_vec(event)?);
        Ok(())
    }

    /// Closes the current chunk, so that everything recorded so far can be taken.
    pub fn flush(&mut self) {
        let at = self.taken + self.ready.len() as u64;
        self.totals.chunks.extend(self.chunk.close(self.compression, at, &mut self.ready));
    }

    /// Takes the finished bytes of the file, which are complete records. A file that ends after any
    /// of these is complete up to there. Append [`ending`] to make it readable by every program.
    pub fn take(&mut self) -> Vec<u8> {
        self.taken += self.ready.len() as u64;
        std::mem::take(&mut self.ready)
    }

    /// Returns the rest of the file, with its index.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.flush();
        // 0 omits the optional checksum of the data section, which would have to be computed along
        // the way.
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

/// Appends the footer with a checksum of the bytes from `begin` on, and the closing magic.
fn footer(start: u64, offset_start: u64, begin: usize, to: &mut Vec<u8>) {
    Content::default().u64(start).u64(offset_start).u32(0).append(format::FOOTER, to);
    let end = to.len() - 4;
    let checksum = crc32fast::hash(to.get(begin..end).unwrap_or_default());
    to.truncate(end);
    to.extend(checksum.to_le_bytes());
    to.extend(MAGIC);
}

/// Returns the bytes that complete a file that ends after a complete record. The file then has no
/// index.
#[must_use]
pub fn ending() -> Vec<u8> {
    let mut bytes = Vec::new();
    Content::default().u32(0).append(format::DATA_END, &mut bytes);
    // No summary and no summary checksum.
    Content::default().u64(0).u64(0).u32(0).append(format::FOOTER, &mut bytes);
    bytes.extend(MAGIC);
    bytes
}
