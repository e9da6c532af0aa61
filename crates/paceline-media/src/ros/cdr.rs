//! Plain CDR: numbers in the byte order that the first bytes state, each aligned to its size.
//!
//! OMG DDSI-RTPS 2.5, 10.2 (encapsulation), and OMG DDS-XTypes 1.3, 7.4.1 (XCDR version 1).

use super::RosMessage;
use crate::error::MediaError;

/// The bytes before the message: two of encapsulation and two of options.
const PREFIX: usize = 4;
/// The alignment of the 4-byte numbers, which are the largest of these messages. The prefix has the same length,
/// so offsets in the payload are aligned as those in the message.
const ALIGNED: usize = 4;

/// The byte order of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Big,
    Little,
}

impl Order {
    pub(super) fn bytes(self, number: u32) -> [u8; 4] {
        match self {
            Self::Big => number.to_be_bytes(),
            Self::Little => number.to_le_bytes(),
        }
    }
}

/// Reads the fields of a message in order.
pub(super) struct Reader<'a> {
    message: RosMessage,
    payload: &'a [u8],
    at: usize,
    pub(super) order: Order,
}

impl<'a> Reader<'a> {
    pub(super) fn new(message: RosMessage, payload: &'a [u8]) -> Result<Self, MediaError> {
        let order = match payload.get(..PREFIX) {
            Some([0, 0, ..]) => Order::Big,
            Some([0, 1, ..]) => Order::Little,
            Some([high, low, ..]) => {
                let reason = format!("its encapsulation is 0x{high:02x}{low:02x}, not plain CDR");
                let fix = "publish with a CDR of version 1 (0x0000 or 0x0001), as rmw_zenoh does";
                return Err(MediaError::Ros { message: message.name(), at: 0, reason, fix });
            }
            _ => return Err(cut(message, payload.len(), "encapsulation")),
        };
        Ok(Self { message, payload, at: PREFIX, order })
    }

    /// Returns the offset of the next field, without its alignment.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    pub(super) fn number(&mut self, field: &'static str) -> Result<u32, MediaError> {
        let at = self.at.next_multiple_of(ALIGNED);
        let bytes = self.payload.get(at..).and_then(|rest| rest.first_chunk());
        let bytes = bytes.ok_or_else(|| cut(self.message, self.payload.len(), field))?;
        self.at = at + bytes.len();
        Ok(match self.order {
            Order::Big => u32::from_be_bytes(*bytes),
            Order::Little => u32::from_le_bytes(*bytes),
        })
    }

    pub(super) fn byte(&mut self, field: &'static str) -> Result<u8, MediaError> {
        match self.take(1, field)? {
            [byte] => Ok(*byte),
            _ => Err(cut(self.message, self.payload.len(), field)),
        }
    }

    /// Reads a text, whose length counts its final zero.
    pub(super) fn text(&mut self, field: &'static str) -> Result<&'a str, MediaError> {
        let bytes = self.sequence(field)?;
        let text = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        std::str::from_utf8(text).map_err(|_| MediaError::Ros {
            message: self.message.name(),
            at: self.at - bytes.len(),
            reason: format!("its {field} is not UTF-8"),
            fix: "have the publisher write text there",
        })
    }

    /// Reads a sequence of bytes with its length.
    pub(super) fn sequence(&mut self, field: &'static str) -> Result<&'a [u8], MediaError> {
        let bytes = self.number(field)? as usize;
        self.take(bytes, field)
    }

    /// Checks that the message ends here. Some programs pad it to a multiple of 4 bytes.
    pub(super) fn end(&self) -> Result<(), MediaError> {
        let extra = self.payload.len().saturating_sub(self.at);
        if extra < ALIGNED {
            return Ok(());
        }
        let reason = format!("{extra} bytes follow its last field");
        let fix = "check the type of the message";
        Err(MediaError::Ros { message: self.message.name(), at: self.at, reason, fix })
    }

    fn take(&mut self, bytes: usize, field: &'static str) -> Result<&'a [u8], MediaError> {
        let rest = self.payload.get(self.at..).unwrap_or_default();
        let taken = rest.get(..bytes);
        let taken = taken.ok_or_else(|| cut(self.message, self.payload.len(), field))?;
        self.at += bytes;
        Ok(taken)
    }
}

fn cut(message: RosMessage, at: usize, field: &'static str) -> MediaError {
    let reason = format!("it ends within its {field}");
    let fix = "pass the whole message, and check its type and lengths";
    MediaError::Ros { message: message.name(), at, reason, fix }
}

/// Writes the fields of a message in order, behind fields that are kept as they are.
pub(super) struct Writer {
    order: Order,
    out: Vec<u8>,
}

impl Writer {
    /// Starts with `head`, the beginning of another message. `more` is the number of bytes that will follow.
    pub(super) fn new(order: Order, head: &[u8], more: usize) -> Self {
        let mut out = Vec::with_capacity(head.len() + more);
        out.extend_from_slice(head);
        // The options may state the padding at the end of the other message.
        if let Some(options) = out.get_mut(2..PREFIX) {
            options.fill(0);
        }
        Self { order, out }
    }

    pub(super) fn number(&mut self, number: u32) {
        self.out.resize(self.out.len().next_multiple_of(ALIGNED), 0);
        self.out.extend_from_slice(&self.order.bytes(number));
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(u32::try_from(text.len() + 1).unwrap_or(u32::MAX));
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(0);
    }

    /// Writes the length of a sequence of bytes, and returns the message for appending them.
    pub(super) fn sequence(mut self, bytes: usize) -> Vec<u8> {
        self.number(u32::try_from(bytes).unwrap_or(u32::MAX));
        self.out
    }
}
