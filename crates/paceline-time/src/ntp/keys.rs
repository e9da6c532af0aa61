//! Symmetric keys that clients and servers share: AES-CMAC (RFC 8573), in the format of chrony's key file.
//!
//! MD5 and SHA-1 are not supported: RFC 8573 deprecates the first, and both are digests that were never designed as
//! authentication codes.

use aes::{Aes128, Aes256};
use cmac::{Cmac, Mac};
use core::fmt;
use std::collections::BTreeMap;

/// The length of an authentication code in bytes.
pub(super) const CODE_BYTES: usize = 16;
/// The largest number of keys in a file.
pub const KEYS_MAX: usize = 4_096;
/// Lines that begin with one of these are comments, as in chrony.
const COMMENTS: [char; 4] = ['#', '%', ';', '!'];
/// The types of chrony's key files that are not supported; a line without a type is an MD5 key.
const OTHER_TYPES: [&str; 11] = [
    "MD5",
    "SHA1",
    "SHA256",
    "SHA384",
    "SHA512",
    "SHA3-224",
    "SHA3-256",
    "SHA3-384",
    "SHA3-512",
    "TIGER",
    "WHIRLPOOL",
];

#[derive(Clone)]
enum Cipher {
    Aes128(Box<Cmac<Aes128>>),
    Aes256(Box<Cmac<Aes256>>),
}

/// A symmetric key. Its `Debug` output does not contain the key.
#[derive(Clone)]
pub struct NtpKey {
    id: u32,
    cipher: Cipher,
}

impl fmt::Debug for NtpKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NtpKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl NtpKey {
    /// Creates key number `id` of 16 bytes (AES-128) or 32 bytes (AES-256); `None` for any other length.
    ///
    /// ```
    /// use paceline_time::ntp::keys::NtpKey;
    ///
    /// assert!(NtpKey::new(1, &[7; 16]).is_some());
    /// assert!(NtpKey::new(1, &[7; 20]).is_none());
    /// ```
    #[must_use]
    pub fn new(id: u32, bytes: &[u8]) -> Option<Self> {
        let cipher = match bytes.len() {
            16 => Cipher::Aes128(Box::new(Cmac::new_from_slice(bytes).ok()?)),
            32 => Cipher::Aes256(Box::new(Cmac::new_from_slice(bytes).ok()?)),
            _ => return None,
        };
        Some(Self { id, cipher })
    }

    /// Returns the number of the key.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Returns the authentication code of `bytes`.
    pub(super) fn sign(&self, bytes: &[u8]) -> [u8; CODE_BYTES] {
        let mut code = [0; CODE_BYTES];
        let mut fill = |from: &[u8]| code.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        match &self.cipher {
            Cipher::Aes128(own) => {
                fill(&own.as_ref().clone().chain_update(bytes).finalize().into_bytes())
            }
            Cipher::Aes256(own) => {
                fill(&own.as_ref().clone().chain_update(bytes).finalize().into_bytes())
            }
        }
        code
    }

    /// Returns true if `code` is this key's authentication code of `bytes`. The comparison takes the same time for all
    /// codes of the right length.
    pub(super) fn verifies(&self, bytes: &[u8], code: &[u8]) -> bool {
        let is_right = match &self.cipher {
            Cipher::Aes128(own) => own.as_ref().clone().chain_update(bytes).verify_slice(code),
            Cipher::Aes256(own) => own.as_ref().clone().chain_update(bytes).verify_slice(code),
        };
        is_right.is_ok()
    }
}

/// A key of a file, or the type of one that cannot be used.
#[derive(Clone, Debug)]
enum Entry {
    Usable(NtpKey),
    Other(&'static str),
}

/// The keys of a file.
#[derive(Clone, Debug, Default)]
pub struct NtpKeys {
    /// By number; with the line of each.
    entries: BTreeMap<u32, (usize, Entry)>,
}

impl NtpKeys {
    /// Reads the keys of a file in the format of chrony: one per line, as number, type and key. Keys of other types than
    /// `AES128` and `AES256` are skipped until [`Self::find`] needs them.
    ///
    /// ```
    /// use paceline_time::ntp::keys::NtpKeys;
    ///
    /// let keys = NtpKeys::parse("# ours\n7 AES128 HEX:000102030405060708090A0B0C0D0E0F\n").unwrap();
    /// assert_eq!(keys.find(7).unwrap().id(), 7);
    /// assert!(NtpKeys::parse("0 AES128 x").is_err_and(|error| error.contains("line 1: number '0'")));
    /// ```
    ///
    /// # Errors
    /// Returns the first wrong line, with its field, the permitted values and a fix.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut keys = Self::default();
        for (line, words) in (1..).zip(text.lines().map(str::trim)) {
            if words.is_empty() || words.starts_with(COMMENTS) {
                continue;
            }
            let at_line = |what: String| format!("line {line}: {what}");
            let (id, entry) = entry(words).map_err(at_line)?;
            if let Some((before, _)) = keys.entries.insert(id, (line, entry)) {
                return Err(at_line(format!(
                    "number '{id}' is that of line {before} too: give each key its own number"
                )));
            }
            if keys.entries.len() > KEYS_MAX {
                return Err(at_line(format!(
                    "at most {KEYS_MAX} keys fit into a file: remove some"
                )));
            }
        }
        Ok(keys)
    }

    /// Returns the usable key with this number.
    pub(super) fn get(&self, id: u32) -> Option<&NtpKey> {
        match self.entries.get(&id) {
            Some((_, Entry::Usable(key))) => Some(key),
            Some((_, Entry::Other(_))) | None => None,
        }
    }

    /// Returns key number `id`.
    ///
    /// # Errors
    /// Returns a message with the permitted values and a fix if there is no such key, or if it is of another type.
    pub fn find(&self, id: u32) -> Result<&NtpKey, String> {
        match self.entries.get(&id) {
            Some((_, Entry::Usable(key))) => Ok(key),
            Some((line, Entry::Other(kind))) => Err(format!(
                "line {line}: key {id} is of type {kind}: must be AES128 or AES256; the command `chronyc keygen {id} \
                 AES128` makes one for both sides"
            )),
            None if self.entries.is_empty() => Err(format!(
                "key {id} is missing: the file has no keys; add a line `{id} AES128 HEX:...`"
            )),
            None => {
                let few: Vec<_> = self.entries.keys().take(10).map(u32::to_string).collect();
                Err(format!(
                    "key {id} is missing: must be one of {}; or add a line `{id} AES128 HEX:...`",
                    few.join(", ")
                ))
            }
        }
    }
}

/// Reads a line.
fn entry(line: &str) -> Result<(u32, Entry), String> {
    let mut words = line.split_ascii_whitespace();
    let number = words.next().unwrap_or_default();
    let id = number.parse().ok().filter(|id| *id > 0);
    let id = id.ok_or_else(|| {
        format!("number '{number}': must be from 1 to {}, followed by a type and a key", u32::MAX)
    })?;
    let rest: Vec<_> = words.collect();
    let (kind, text) = match *rest {
        [kind, text] => (kind, text),
        // Without a type, it is a key of MD5.
        [_] => return Ok((id, Entry::Other("MD5"))),
        _ => {
            return Err(format!(
                "key {id} has {} fields after its number: must be a type and a key, such as `{id} AES128 HEX:...`",
                rest.len()
            ));
        }
    };
    let length = match kind {
        "AES128" => 16,
        "AES256" => 32,
        _ => {
            let other = OTHER_TYPES.into_iter().find(|other| *other == kind);
            let other = other
                .ok_or_else(|| format!("type '{kind}' of key {id}: must be AES128 or AES256"))?;
            return Ok((id, Entry::Other(other)));
        }
    };
    let wrong = |what: &str| {
        format!(
            "key {id}: {what}: must be HEX: and {} hexadecimal digits, or ASCII: and {length} characters; `chronyc \
             keygen {id} {kind}` makes one",
            2 * length
        )
    };
    let bytes = match text.strip_prefix("HEX:") {
        Some(digits) => hexadecimal(digits).ok_or_else(|| wrong("wrong hexadecimal digits"))?,
        None => text.strip_prefix("ASCII:").unwrap_or(text).as_bytes().to_vec(),
    };
    let key = NtpKey::new(id, &bytes).filter(|_| bytes.len() == length);
    let key = key.ok_or_else(|| wrong(&format!("{} bytes", bytes.len())))?;
    Ok((id, Entry::Usable(key)))
}

fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<_>> = digits.chars().map(|digit| digit.to_digit(16)).collect();
    let (pairs, rest) = digits.as_deref()?.as_chunks::<2>();
    let byte = |[high, low]: &[u32; 2]| u8::try_from(high << 4 | low).ok();
    rest.is_empty().then(|| pairs.iter().map(byte).collect())?
}
