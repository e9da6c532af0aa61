//! Reading recordings.

use super::until;
use paceline_record::{Body, McapReader, Message, ReadError};
use serde_json::Value;
use std::path::Path;

/// Returns all messages of a file, and the error that ended reading, if any.
pub(crate) fn messages(bytes: &[u8]) -> (Vec<Message>, Option<ReadError>) {
    let mut all = Vec::new();
    let mut reader = McapReader::new(bytes).expect("a recording");
    loop {
        match reader.next_message() {
            Ok(Some(message)) => all.push(message),
            Ok(None) => return (all, None),
            Err(error) => return (all, Some(error)),
        }
    }
}

/// Returns the messages of a tag with their payloads.
pub(crate) fn payloads<'a>(all: &'a [Message], tag: &str) -> Vec<(&'a Message, Vec<u8>)> {
    let of_tag = all.iter().filter(|message| message.channel.topic == tag);
    let payload = |message: &'a Message| {
        let channel = &message.channel;
        let encoding = channel.metadata.get("encoding").map(String::as_str);
        let (body, _) =
            Body::read(&channel.message_encoding, &channel.schema, encoding, &message.data);
        (message, body.payload(&message.data).expect("what the schema says").to_vec())
    };
    of_tag.map(payload).collect()
}

/// Returns the events of qos/events.
pub(crate) fn events(all: &[Message]) -> Vec<Value> {
    let reported = all.iter().filter(|message| message.channel.is_events());
    reported.map(|message| serde_json::from_slice(&message.data).expect("JSON")).collect()
}

/// Waits until a file has at least this many bytes.
pub(crate) fn wait_for_bytes(file: &Path, bytes: u64) {
    until("the file grows", || std::fs::metadata(file).is_ok_and(|file| file.len() >= bytes));
}

/// Returns a WAV file with this many frames of 16-bit sound at 8 kHz.
pub(crate) fn wave(frames: u32) -> Vec<u8> {
    let bytes = frames * 2;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + bytes).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend([16, 0, 0, 0, 1, 0, 1, 0]);
    file.extend(8_000u32.to_le_bytes());
    file.extend(16_000u32.to_le_bytes());
    file.extend([2, 0, 16, 0]);
    file.extend(b"data");
    file.extend(bytes.to_le_bytes());
    for frame in 0..frames {
        file.extend(u16::try_from(frame % 65_521).expect("below").to_le_bytes());
    }
    file
}
