//! The bytes of a film that a demuxer has, and the bytes that it needs.

/// The access to the bytes of a film.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilmAccess {
    /// Any place can be read: units are returned in the order of their decoding times.
    Seek,
    /// Bytes arrive once, in their order: units are returned in the order of their places.
    Pipe,
}

/// The bytes that a demuxer needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilmWant {
    /// Their offset in the film.
    pub at: u64,
    /// Their number, at least 1. Fewer or more may be pushed.
    pub bytes: usize,
}

/// The bytes behind the current place from which on the buffer is moved to its beginning.
const MOVE_MIN: usize = 64 * 1024;

/// A part of a film, at any place of it.
#[derive(Debug)]
pub(super) struct Window {
    access: FilmAccess,
    /// The offset of the first byte.
    at: u64,
    bytes: Vec<u8>,
    want: FilmWant,
    /// The length of the film, once it is known.
    end: Option<u64>,
}

/// The result of a look at a place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look<'a> {
    /// The bytes there.
    Bytes(&'a [u8]),
    /// They have not arrived.
    More,
    /// The film ends before them, after this part of them.
    Ended(&'a [u8]),
    /// They have passed.
    Passed,
}

impl Window {
    pub(super) const fn new(access: FilmAccess) -> Self {
        Self { access, at: 0, bytes: Vec::new(), want: FilmWant { at: 0, bytes: 1 }, end: None }
    }

    pub(super) const fn access(&self) -> FilmAccess {
        self.access
    }

    /// Returns the bytes that the last look did not find.
    pub(super) const fn want(&self) -> FilmWant {
        self.want
    }

    fn until(&self) -> u64 {
        self.at.saturating_add(self.bytes.len() as u64)
    }

    /// Appends the bytes at the wanted place.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.want = FilmWant { at: self.until(), bytes: 1 };
    }

    /// Notes that there are no bytes at the wanted place.
    pub(super) fn end(&mut self) {
        let end = self.want.at;
        self.end = Some(self.end.map_or(end, |before| before.min(end)));
    }

    /// Returns the length of the film, once it is known.
    pub(super) const fn len(&self) -> Option<u64> {
        self.end
    }

    /// Returns `len` bytes at offset `at`. Bytes before that are dropped.
    pub(super) fn look(&mut self, at: u64, len: usize) -> Look<'_> {
        if at < self.at {
            if self.access == FilmAccess::Pipe {
                return Look::Passed;
            }
            (self.at, self.bytes) = (at, Vec::new());
        }
        let until = self.until();
        if at > until {
            // A pipe must be read up to there.
            self.at = if self.access == FilmAccess::Pipe { until } else { at };
            self.bytes.clear();
        }
        let mut skip = usize::try_from(at.saturating_sub(self.at)).unwrap_or(usize::MAX);
        if skip >= MOVE_MIN || skip >= self.bytes.len() {
            let gone = skip.min(self.bytes.len());
            self.bytes.drain(..gone);
            self.at += gone as u64;
            skip -= gone;
        }
        let behind = at.saturating_add(len as u64);
        let have = self.until();
        if behind <= have {
            return Look::Bytes(self.bytes.get(skip..skip.saturating_add(len)).unwrap_or_default());
        }
        if self.end.is_some_and(|end| behind > end && (have >= end || at >= end)) {
            return Look::Ended(self.bytes.get(skip..).unwrap_or_default());
        }
        let missing = usize::try_from(behind.saturating_sub(have)).unwrap_or(usize::MAX);
        self.want = FilmWant { at: have, bytes: missing.max(1) };
        Look::More
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_at_any_place() {
        let mut window = Window::new(FilmAccess::Seek);
        assert_eq!(window.look(1_000, 4), Look::More);
        assert_eq!(window.want(), FilmWant { at: 1_000, bytes: 4 });
        window.push(b"abcdef");
        assert_eq!(window.look(1_001, 4), Look::Bytes(b"bcde"));
        assert_eq!(window.look(1_004, 4), Look::More);
        assert_eq!(window.want(), FilmWant { at: 1_006, bytes: 2 });
        assert_eq!(window.look(10, 1), Look::More);
        assert_eq!(window.want().at, 10);
        window.push(b"x");
        assert_eq!(window.look(10, 2), Look::More);
        window.end();
        assert_eq!(window.look(10, 2), Look::Ended(b"x"));
        assert_eq!(window.len(), Some(11));
        assert_eq!(window.look(5_000, 2), Look::Ended(b""));
    }

    #[test]
    fn a_pipe_is_read_once() {
        let mut window = Window::new(FilmAccess::Pipe);
        window.push(b"abc");
        assert_eq!(window.look(5, 2), Look::More);
        assert_eq!(window.want(), FilmWant { at: 3, bytes: 4 });
        window.push(b"defg");
        assert_eq!(window.look(5, 2), Look::Bytes(b"fg"));
        assert_eq!(window.look(7, 1), Look::More);
        assert_eq!(window.look(2, 1), Look::Passed);
    }
}
