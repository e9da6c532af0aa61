//! The damaged places that a reader skipped.

use std::fmt;

/// The damaged places of a file or stream. Its reader continued behind each of them.
///
/// ```
/// use paceline_media::Damage;
///
/// let mut damage = Damage::default();
/// damage.add(500, 512, || "a record has length 0".to_owned());
/// damage.add(2_000, 3, || "a message is too short".to_owned());
/// assert_eq!(
///     damage.to_string(),
///     "2 damaged places, 515 bytes, are skipped; the first is at byte 500: a record has length 0"
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Damage {
    /// The number of places.
    pub places: u64,
    /// The number of bytes that were skipped at these places.
    pub bytes: u64,
    /// The offset of the first place in bytes, and the problem there.
    pub first: Option<(u64, String)>,
    /// The offset behind the last place.
    end: u64,
}

impl Damage {
    /// Adds a place of `bytes` bytes at offset `at`. It extends the last place if it begins where that one ends.
    pub fn add(&mut self, at: u64, bytes: u64, what: impl FnOnce() -> String) {
        if self.first.is_none() || self.end != at {
            self.places += 1;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.end = at.saturating_add(bytes);
        self.first.get_or_insert_with(|| (at, what()));
    }

    /// Returns true if nothing was skipped.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.places == 0
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { places, bytes, first, .. } = self;
        match (places, first) {
            (1, Some((at, what))) => {
                write!(f, "a damaged place of {bytes} bytes at byte {at} is skipped: {what}")
            }
            (_, Some((at, what))) => write!(
                f,
                "{places} damaged places, {bytes} bytes, are skipped; the first is at byte {at}: {what}"
            ),
            (_, None) => f.write_str("no damage"),
        }
    }
}

impl std::error::Error for Damage {}
