//! The authentication code at the end of a packet (RFC 5905, section 7.3).

use super::keys::{CODE_BYTES, NtpKey, NtpKeys};
use super::packet::{NtpPacket, PACKET_BYTES};
use core::ops::Deref;

/// The length of a packet with the number of a key and an authentication code, in bytes.
pub const SEALED_BYTES: usize = PACKET_BYTES + 4 + CODE_BYTES;
/// The longest number of a key and authentication code of any method, in bytes: that of SHA-1.
const SEAL_BYTES_MAX: usize = 24;

/// The bytes after the header and the extension fields of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Seal<'b> {
    /// Nothing.
    None,
    /// The server does not accept the key of the request (crypto-NAK).
    Refused,
    /// An authentication code.
    Code {
        /// The number of the key.
        key: u32,
        /// The bytes that the code covers.
        signed: &'b [u8],
        /// The code.
        code: &'b [u8],
    },
    /// Bytes of no known format.
    Malformed,
}

impl<'b> Seal<'b> {
    /// Finds the seal of a packet. The last extension field before an authentication code has at least 28 bytes
    /// (RFC 7822), so shorter rests are codes.
    #[must_use]
    pub fn of(bytes: &'b [u8]) -> Self {
        let mut at = PACKET_BYTES;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            match rest.split_first_chunk::<4>() {
                None if rest.is_empty() => return Self::None,
                None => return Self::Malformed,
                Some((key, [])) if key == &[0; 4] => return Self::Refused,
                Some((key, code)) if rest.len() <= SEAL_BYTES_MAX => {
                    let signed = bytes.get(..at).unwrap_or_default();
                    return Self::Code { key: u32::from_be_bytes(*key), signed, code };
                }
                Some(([_, _, high, low], _)) => {
                    let length = usize::from(u16::from_be_bytes([*high, *low]));
                    if length < 16 || length % 4 != 0 || length > rest.len() {
                        return Self::Malformed;
                    }
                    at += length;
                }
            }
        }
    }

    /// Returns true if this is an authentication code by `own`.
    #[must_use]
    pub fn is_by(&self, own: &NtpKey) -> bool {
        match self {
            Self::Code { key, signed, code } => *key == own.id() && own.verifies(signed, code),
            Self::None | Self::Refused | Self::Malformed => false,
        }
    }

    /// Returns the key of `keys` by which this is an authentication code.
    pub(crate) fn key_in<'k>(&self, keys: &'k NtpKeys) -> Option<&'k NtpKey> {
        let Self::Code { key, .. } = self else { return None };
        keys.get(*key).filter(|key| self.is_by(key))
    }
}

/// The bytes of a packet, with or without a seal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NtpDatagram {
    bytes: [u8; SEALED_BYTES],
    length: usize,
}

impl NtpDatagram {
    /// Encodes `packet`, with the authentication code of `key` if there is one.
    #[must_use]
    pub fn new(packet: &NtpPacket, key: Option<&NtpKey>) -> Self {
        let head = packet.encode();
        let seal = key.map(|key| (key.id().to_be_bytes(), key.sign(&head)));
        let seal = seal.into_iter().flat_map(|(id, mac)| id.into_iter().chain(mac));
        Self::joined(head, seal)
    }

    /// Encodes the answer to a request whose key is not accepted (crypto-NAK).
    #[must_use]
    pub fn refusal(packet: &NtpPacket) -> Self {
        Self::joined(packet.encode(), [0; 4])
    }

    fn joined(head: [u8; PACKET_BYTES], seal: impl IntoIterator<Item = u8>) -> Self {
        let (mut bytes, mut length) = ([0; SEALED_BYTES], 0);
        for (to, from) in bytes.iter_mut().zip(head.into_iter().chain(seal)) {
            *to = from;
            length += 1;
        }
        Self { bytes, length }
    }
}

impl Deref for NtpDatagram {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}
