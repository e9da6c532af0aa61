//! The one-time code of an invitation.

use ring::digest::{SHA256, digest};
use std::fmt;
use std::str::FromStr;

/// The lengths of the two parts of a code. The secret cannot be guessed while an invitation is open.
pub(super) const SECRET_BYTES: usize = 10;
const HASH_BYTES: usize = 16;
/// RFC 4648 without letters that look like digits.
const LETTERS: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";

pub(super) type Hash = [u8; HASH_BYTES];

/// A one-time code: the hash of a certificate, and a secret.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct Code {
    pub(super) hash: Hash,
    pub(super) secret: [u8; SECRET_BYTES],
}

impl fmt::Debug for Code {
    /// Shows no secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code")
    }
}

/// Returns the hash of a certificate, as a code contains it.
pub(super) fn hash_of(certificate: &[u8]) -> Hash {
    let hash = digest(&SHA256, certificate);
    hash.as_ref().first_chunk().copied().unwrap_or_default()
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: Vec<u8> = self.hash.iter().chain(&self.secret).copied().collect();
        let bits = bytes.len() * 8;
        for (at, from) in (0..bits).step_by(5).enumerate() {
            let bit = |bit: usize| {
                bytes.get(bit / 8).map_or(0, |byte| usize::from(byte >> (7 - bit % 8) & 1))
            };
            let letter = (from..from + 5).fold(0, |letter, at| letter << 1 | bit(at));
            if at > 0 && at % 6 == 0 {
                f.write_str("-")?;
            }
            let letter = LETTERS.get(letter).copied().unwrap_or_default();
            write!(f, "{}", char::from(letter))?;
        }
        Ok(())
    }
}

impl FromStr for Code {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "must be the code that paceline trust invite has printed".to_owned();
        let mut bytes = Vec::new();
        let (mut word, mut bits) = (0u32, 0);
        for letter in text.bytes().filter(|byte| !matches!(byte, b'-' | b' ')) {
            let letter = letter.to_ascii_lowercase();
            let value = LETTERS.iter().position(|known| *known == letter).ok_or_else(wrong)?;
            word = word << 5 | u32::try_from(value).map_err(|_| wrong())?;
            bits += 5;
            if bits >= 8 {
                bits -= 8;
                bytes.push(u8::try_from(word >> bits & 0xff).map_err(|_| wrong())?);
            }
        }
        if bits > 2 || word & ((1 << bits) - 1) != 0 {
            return Err(wrong());
        }
        let (hash, secret) = bytes.split_at_checked(HASH_BYTES).ok_or_else(wrong)?;
        let hash = hash.try_into().map_err(|_| wrong())?;
        let secret = secret.try_into().map_err(|_| wrong())?;
        Ok(Self { hash, secret })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_they_are_written() {
        let code = Code { hash: *b"0123456789abcdef", secret: *b"\0\xff secret." };
        let text = code.to_string();
        assert_eq!(text.len(), 42 + 6, "{text}");
        assert_eq!(text.parse(), Ok(code.clone()));
        assert_eq!(text.to_uppercase().replace('-', " ").parse(), Ok(code));
        for wrong in ["", "abc", &text[1..], &format!("{text}a"), &text.replace('-', "1")] {
            assert!(wrong.parse::<Code>().is_err(), "{wrong}");
        }
    }
}
