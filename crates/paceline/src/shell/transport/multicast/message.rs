//! The messages about multicast groups between two ends of a connection, in records of its byte stream.

use super::datagram::KEY_BYTES;
use crate::multicast::MulticastRange;

const HELLO: u8 = 1;
const JOIN: u8 = 2;
const LEAVE: u8 = 3;
const JOINED: u8 = 4;
const HEARD: u8 = 5;

/// A message about multicast groups.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Message {
    /// The sender uses the groups of a range. The receiver has this number on its link, and the key for its parts of
    /// datagrams.
    Hello { range: MulticastRange, receiver: u16, key: [u8; KEY_BYTES] },
    /// Join a group: its identifier, its place in the range and its key.
    Join { id: u32, place: u16, key: [u8; KEY_BYTES] },
    /// Leave a group.
    Leave(u32),
    /// The group was joined.
    Joined(u32),
    /// A probe has arrived.
    Heard,
}

impl Message {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello { range, receiver, key } => {
                [&[HELLO][..], &range.to_bytes(), &receiver.to_be_bytes(), key].concat()
            }
            Self::Join { id, place, key } => {
                [&[JOIN][..], &id.to_be_bytes(), &place.to_be_bytes(), key].concat()
            }
            Self::Leave(id) => [&[LEAVE][..], &id.to_be_bytes()].concat(),
            Self::Joined(id) => [&[JOINED][..], &id.to_be_bytes()].concat(),
            Self::Heard => vec![HEARD],
        }
    }

    /// Returns `None` for bytes that are no message.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let id = |rest: &[u8]| Some(u32::from_be_bytes(rest.try_into().ok()?));
        Some(match *kind {
            HELLO => {
                let (range, rest) = rest.split_first_chunk()?;
                let (receiver, key) = rest.split_first_chunk()?;
                let range = MulticastRange::from_bytes(*range)?;
                let receiver = u16::from_be_bytes(*receiver);
                Self::Hello { range, receiver, key: key.try_into().ok()? }
            }
            JOIN => {
                let (id, rest) = rest.split_first_chunk()?;
                let (place, key) = rest.split_first_chunk()?;
                let (id, place) = (u32::from_be_bytes(*id), u16::from_be_bytes(*place));
                Self::Join { id, place, key: key.try_into().ok()? }
            }
            LEAVE => Self::Leave(id(rest)?),
            JOINED => Self::Joined(id(rest)?),
            HEARD if rest.is_empty() => Self::Heard,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip_and_garbage_is_none() {
        let (key, range) = ([7; KEY_BYTES], "239.77.0.0/24:7400".parse().unwrap());
        for message in [
            Message::Hello { range, receiver: 3, key },
            Message::Join { id: 9, place: 255, key },
            Message::Leave(1),
            Message::Joined(u32::MAX),
            Message::Heard,
        ] {
            let bytes = message.encode();
            assert_eq!(Message::decode(&bytes), Some(message));
            for cut in 0..bytes.len() {
                assert_eq!(Message::decode(&bytes[..cut]), None);
            }
            assert_eq!(Message::decode(&[&bytes[..], b"x"].concat()), None);
        }
        assert_eq!(Message::decode(b"\x06"), None);
    }
}
