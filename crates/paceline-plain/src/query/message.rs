//! The messages between two nodes about a query, each the payload of a sample. See docs/reference/zenoh.md
//! for the layout.

use bytes::Bytes;

/// The media type of these samples.
pub(super) const ENCODING: &str = "application/x-paceline-query";
/// The first byte. Another layout uses another value.
const VERSION: u8 = 1;

const ASK: u8 = 0;
const SAMPLE: u8 = 1;
const DELETION: u8 = 2;
const ERROR: u8 = 3;
const END: u8 = 4;

/// A payload with its encoding.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Value {
    /// Zenoh's name of the encoding, with its schema.
    pub(super) encoding: String,
    pub(super) payload: Bytes,
}

/// A Zenoh timestamp with the id of its clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Stamp {
    pub(super) ntp64: u64,
    pub(super) id: [u8; 16],
}

/// A message about one query.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Message {
    /// The asking node's number of the query.
    pub(super) query: u64,
    pub(super) body: Body,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Body {
    /// The query.
    Ask(Ask),
    /// An answer.
    Sample(Sample),
    /// An answer that reports a deletion.
    Deletion(Sample),
    /// An answer that reports an error.
    Error(Value),
    /// The end of the answers, with their number.
    End(u64),
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Ask {
    pub(super) key: String,
    /// The text after the `?`.
    pub(super) parameters: String,
    /// The time limit for answers, in milliseconds.
    pub(super) patience_ms: u32,
    pub(super) value: Option<Value>,
    pub(super) attachment: Option<Bytes>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Sample {
    pub(super) key: String,
    pub(super) stamp: Option<Stamp>,
    pub(super) attachment: Option<Bytes>,
    /// Unused for a deletion.
    pub(super) value: Value,
}

impl Message {
    /// Encodes the message. Integers are little-endian; a length precedes each field of variable
    /// size.
    pub(super) fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(64);
        let kind = match &self.body {
            Body::Ask(_) => ASK,
            Body::Sample(_) => SAMPLE,
            Body::Deletion(_) => DELETION,
            Body::Error(_) => ERROR,
            Body::End(_) => END,
        };
        out.extend([VERSION, kind]);
        out.extend(self.query.to_le_bytes());
        match &self.body {
            Body::Ask(ask) => {
                out.extend(ask.patience_ms.to_le_bytes());
                put(&mut out, ask.key.as_bytes());
                put(&mut out, ask.parameters.as_bytes());
                put_optional(&mut out, ask.attachment.as_ref());
                out.push(u8::from(ask.value.is_some()));
                if let Some(value) = &ask.value {
                    put_value(&mut out, value);
                }
            }
            Body::Sample(sample) | Body::Deletion(sample) => {
                put(&mut out, sample.key.as_bytes());
                out.push(u8::from(sample.stamp.is_some()));
                if let Some(stamp) = &sample.stamp {
                    out.extend(stamp.ntp64.to_le_bytes());
                    out.extend(stamp.id);
                }
                put_optional(&mut out, sample.attachment.as_ref());
                put_value(&mut out, &sample.value);
            }
            Body::Error(value) => put_value(&mut out, value),
            Body::End(answers) => out.extend(answers.to_le_bytes()),
        }
        out.into()
    }

    /// Decodes a message. Returns `None` for malformed bytes.
    pub(super) fn decode(bytes: &Bytes) -> Option<Self> {
        let mut rest = Reader(bytes.clone());
        let [VERSION, kind] = rest.array()? else { return None };
        let query = u64::from_le_bytes(rest.array()?);
        let body = match kind {
            ASK => {
                let patience_ms = u32::from_le_bytes(rest.array()?);
                let (key, parameters) = (rest.text()?, rest.text()?);
                let attachment = rest.optional()?;
                let value = if rest.flag()? { Some(rest.value()?) } else { None };
                Body::Ask(Ask { key, parameters, patience_ms, value, attachment })
            }
            SAMPLE => Body::Sample(rest.sample()?),
            DELETION => Body::Deletion(rest.sample()?),
            ERROR => Body::Error(rest.value()?),
            END => Body::End(u64::from_le_bytes(rest.array()?)),
            _ => return None,
        };
        Some(Self { query, body })
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend(bytes);
}

fn put_optional(out: &mut Vec<u8>, bytes: Option<&Bytes>) {
    out.push(u8::from(bytes.is_some()));
    if let Some(bytes) = bytes {
        put(out, bytes);
    }
}

/// The payload is the last field, so it needs no length.
fn put_value(out: &mut Vec<u8>, value: &Value) {
    put(out, value.encoding.as_bytes());
    out.extend(&value.payload);
}

struct Reader(Bytes);

impl Reader {
    fn take(&mut self, bytes: usize) -> Option<Bytes> {
        (bytes <= self.0.len()).then(|| self.0.split_to(bytes))
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.as_ref().try_into().ok()
    }

    fn flag(&mut self) -> Option<bool> {
        match self.array()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn bytes(&mut self) -> Option<Bytes> {
        let length = usize::try_from(u32::from_le_bytes(self.array()?)).ok()?;
        self.take(length)
    }

    fn optional(&mut self) -> Option<Option<Bytes>> {
        if self.flag()? { self.bytes().map(Some) } else { Some(None) }
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn value(&mut self) -> Option<Value> {
        let encoding = self.text()?;
        Some(Value { encoding, payload: std::mem::take(&mut self.0) })
    }

    fn sample(&mut self) -> Option<Sample> {
        let key = self.text()?;
        let stamp = if self.flag()? {
            Some(Stamp { ntp64: u64::from_le_bytes(self.array()?), id: self.array()? })
        } else {
            None
        };
        let attachment = self.optional()?;
        Some(Sample { key, stamp, attachment, value: self.value()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value() -> Value {
        Value { encoding: "application/cdr;x".to_owned(), payload: Bytes::from_static(b"xyz") }
    }

    fn messages() -> Vec<Message> {
        let attachment = Some(Bytes::from_static(&[7; 33]));
        let ask = Ask {
            key: "a/**".to_owned(),
            parameters: "x=1".to_owned(),
            patience_ms: 10_000,
            value: Some(value()),
            attachment: attachment.clone(),
        };
        let bare = Ask { value: None, attachment: None, ..ask.clone() };
        let stamp = Some(Stamp { ntp64: 5 << 32, id: [9; 16] });
        let sample = Sample { key: "a/b".to_owned(), stamp, attachment, value: value() };
        let plain = Sample { stamp: None, attachment: None, ..sample.clone() };
        let bodies = [
            Body::Ask(ask),
            Body::Ask(bare),
            Body::Sample(sample.clone()),
            Body::Deletion(sample),
            Body::Sample(plain),
            Body::Error(value()),
            Body::End(3),
        ];
        (40..).zip(bodies).map(|(query, body)| Message { query, body }).collect()
    }

    #[test]
    fn messages_round_trip_and_truncated_ones_are_refused() {
        for message in messages() {
            let bytes = message.encode();
            assert_eq!(Message::decode(&bytes).as_ref(), Some(&message));
            for cut in 0..bytes.len() {
                // A message cut within its payload decodes to a shorter payload; other cuts do not decode.
                assert_ne!(Message::decode(&bytes.slice(..cut)).as_ref(), Some(&message));
            }
            for at in 0..bytes.len() {
                let mut other = bytes.to_vec();
                other[at] ^= 0xff;
                assert_ne!(Message::decode(&other.into()), Some(message.clone()), "byte {at}");
            }
        }
        assert_eq!(Message::decode(&Bytes::from_static(&[2, END, 0, 0, 0, 0, 0, 0, 0, 0])), None);
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let ask = Ask {
            key: "a".to_owned(),
            parameters: String::new(),
            patience_ms: 258,
            value: Some(Value { encoding: "t".to_owned(), payload: Bytes::from_static(b"p") }),
            attachment: None,
        };
        let bytes = Message { query: 3, body: Body::Ask(ask) }.encode();
        let golden = [
            &[1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 1, 0, 0, 0, b'a'][..],
            &[0, 0, 0, 0, 0, 1, 1, 0, 0, 0, b't', b'p'],
        ];
        assert_eq!(bytes.as_ref(), golden.concat());
        let end = Message { query: 3, body: Body::End(2) }.encode();
        assert_eq!(end.as_ref(), [1, 4, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    }
}
