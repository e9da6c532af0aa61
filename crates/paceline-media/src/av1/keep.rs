//! The sequence header, kept for decoders that join later.

use std::borrow::Cow;

use super::Class;
use super::obu::{Kind, Obus};
use super::sequence::Sequence;

/// The largest sequence header that is kept, in bytes. A usual one has a dozen.
const HEADER_BYTES_MAX: usize = 4096;

/// The latest sequence header of a stream.
///
/// Encoders may send it only once, at the start of the stream. If it precedes each I unit, a decoder can
/// begin there. Keeps at most 4096 bytes.
#[derive(Debug, Clone, Default)]
pub struct SequenceHeader {
    kept: Option<Vec<u8>>,
}

impl SequenceHeader {
    /// Returns an empty value: no sequence header was received.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the sequence header in `unit`, and returns the unit, completed if necessary.
    ///
    /// The header is inserted behind the temporal delimiter of a unit of class I that lacks it. Other units, and units
    /// that cannot be read, are returned unchanged. Pass every unit with its class, in decoding order.
    pub fn complete<'a>(&mut self, unit: &'a [u8], class: Class) -> Cow<'a, [u8]> {
        let (mut front, mut own) = (0, false);
        for obu in Obus::starting(unit, 0).map_while(Result::ok) {
            match obu.kind {
                Kind::Delimiter if front == obu.begin => front = obu.end,
                Kind::Sequence => {
                    own = true;
                    let bytes = unit.get(obu.begin..obu.end).unwrap_or_default();
                    if bytes.len() <= HEADER_BYTES_MAX && Sequence::read(&obu).is_ok() {
                        self.kept = Some(bytes.to_vec());
                    }
                }
                Kind::Frame => break,
                Kind::Delimiter | Kind::Other => {}
            }
        }
        match (&self.kept, unit.split_at_checked(front)) {
            (Some(header), Some((head, tail))) if class == Class::I && !own => {
                Cow::Owned([head, header, tail].concat())
            }
            _ => Cow::Borrowed(unit),
        }
    }
}
