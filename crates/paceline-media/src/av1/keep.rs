//! The sequence header, kept for decoders that join later.

use std::borrow::Cow;

use super::frame::Frame;
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
    kept: Option<(Sequence, Vec<u8>)>,
}

impl SequenceHeader {
    /// Returns an empty value: no sequence header was received.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the sequence header in `unit`, and returns the unit, completed if necessary.
    ///
    /// The header is inserted before a key frame, behind the temporal delimiter, if the unit
    /// ([`super::Class::I`]) lacks it. Other units, and units that cannot be read, are returned unchanged.
    /// Pass every unit, in decoding order.
    pub fn complete<'a>(&mut self, unit: &'a [u8]) -> Cow<'a, [u8]> {
        let (mut front, mut own) = (0, false);
        let mut key = false;
        for obu in Obus::starting(unit, 0).map_while(Result::ok) {
            match obu.kind {
                Kind::Delimiter if front == obu.begin => front = obu.end,
                Kind::Sequence => {
                    own = true;
                    let bytes = unit.get(obu.begin..obu.end).unwrap_or_default();
                    if bytes.len() <= HEADER_BYTES_MAX
                        && let Ok(sequence) = Sequence::read(&obu)
                    {
                        self.kept = Some((sequence, bytes.to_vec()));
                    }
                }
                Kind::Frame => {
                    let frame =
                        self.kept.as_ref().and_then(|(sequence, _)| Frame::read(&obu, sequence));
                    key = matches!(frame, Some(Frame::Coded { key: true, shown: true, .. }));
                    break;
                }
                Kind::Delimiter | Kind::Other => {}
            }
        }
        match (&self.kept, unit.split_at_checked(front)) {
            (Some((_, header)), Some((head, tail))) if key && !own => {
                Cow::Owned([head, header, tail].concat())
            }
            _ => Cow::Borrowed(unit),
        }
    }
}
