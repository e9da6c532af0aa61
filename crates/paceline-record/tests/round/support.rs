//! Helpers that build and read small recordings.

use paceline_media::Damage;
use paceline_record::{
    About, Attachments, Compression, McapReader, Message, Order, Ordered, RecordedSample,
    Recording, ReplayTimeline,
};

/// A sample that owns its data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Owned {
    pub(crate) tag: String,
    pub(crate) publisher: String,
    pub(crate) seq: u64,
    pub(crate) encoding: String,
    pub(crate) captured_ns: u64,
    pub(crate) came_ns: u64,
    pub(crate) payload: Vec<u8>,
    pub(crate) attachment: Option<Vec<u8>>,
}

impl Owned {
    pub(crate) fn sample(&self) -> RecordedSample<'_> {
        RecordedSample {
            tag: &self.tag,
            publisher: &self.publisher,
            seq: self.seq,
            encoding: &self.encoding,
            captured_ns: self.captured_ns,
            came_ns: self.came_ns,
            payload: &self.payload,
            attachment: self.attachment.as_deref(),
        }
    }
}

/// A picture every 2 ms, and a JSON text 1 ms after each.
pub(crate) fn some(count: u64) -> Vec<Owned> {
    let one = |number: u64| {
        let picture = number.is_multiple_of(2);
        Owned {
            tag: if picture { "robot/camera" } else { "robot/pose" }.to_owned(),
            publisher: "0000000000000001.0".to_owned(),
            seq: number / 2,
            encoding: if picture { "image/jpeg" } else { "application/json" }.to_owned(),
            captured_ns: 1_700_000_000_000_000_000 + number * 1_000_000,
            came_ns: 1_700_000_000_000_500_000 + number * 1_000_000,
            payload: match picture {
                true => vec![u8::try_from(number % 251).unwrap_or_default(); 300],
                false => format!("{{\"x\":{number}}}").into_bytes(),
            },
            attachment: None,
        }
    };
    (0..count).map(one).collect()
}

/// Returns the file of these samples, with a chunk for each `every` of them.
pub(crate) fn file(samples: &[Owned], every: usize, compression: Compression) -> Vec<u8> {
    let mut recording = Recording::new(compression, "test");
    let mut bytes = Vec::new();
    for (number, sample) in samples.iter().enumerate() {
        recording.sample(&sample.sample(), About::default).expect("few channels");
        if (number + 1).is_multiple_of(every) {
            recording.flush();
            bytes.extend(recording.take());
        }
    }
    bytes.extend(recording.finish());
    bytes
}

/// Returns the messages of a file in order, and the error that ended reading.
pub(crate) fn read(bytes: &[u8]) -> (Vec<Message>, Option<paceline_record::ReadError>) {
    let mut messages = Vec::new();
    let mut reader = match McapReader::new(bytes) {
        Ok(reader) => reader,
        Err(error) => return (messages, Some(error)),
    };
    loop {
        match reader.next_message() {
            Ok(Some(message)) => messages.push(message),
            Ok(None) => return (messages, None),
            Err(error) => return (messages, Some(error)),
        }
    }
}

/// Returns the messages of a file in order, and its damaged places. Reads it again if the first pass found channels
/// behind their messages.
pub(crate) fn read_damaged(bytes: &[u8]) -> (Vec<Message>, Damage) {
    let mut reader = McapReader::new(bytes).expect("a file");
    while let Ok(Some(_)) = reader.next_message() {}
    let known = reader.declarations().clone();
    let mut reader = McapReader::knowing(bytes, known).expect("a file");
    let mut messages = Vec::new();
    while let Ok(Some(message)) = reader.next_message() {
        messages.push(message);
    }
    (messages, reader.damage().clone())
}

/// Returns the samples of a file, ordered by time.
pub(crate) fn samples(bytes: &[u8]) -> Vec<Owned> {
    let reader = McapReader::new(bytes).expect("a file");
    let mut ordered = Ordered::new(reader, ReplayTimeline::new(Order::Published));
    let mut samples = Vec::new();
    let mut attachments = Attachments::default();
    while let Some((_, message)) = ordered.next_message().expect("a whole file") {
        let Some((message, attachment)) = attachments.join(message) else { continue };
        let of = |name: &str| message.channel.metadata.get(name).cloned().unwrap_or_default();
        let (body, encoding) = paceline_record::Body::read(
            &message.channel.message_encoding,
            &message.channel.schema,
            Some(&of("encoding")),
            &message.data,
        );
        samples.push(Owned {
            tag: message.channel.topic.clone(),
            publisher: of("publisher"),
            seq: u64::from(message.sequence),
            encoding,
            captured_ns: message.publish_time,
            came_ns: message.log_time,
            payload: body.payload(&message.data).expect("a message").to_vec(),
            attachment,
        });
    }
    samples
}
