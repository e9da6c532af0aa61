//! Decodes terminal input bytes into keys.

use std::time::{Duration, Instant};

/// A terminal sends the bytes of a key together. An escape byte without successors in this time is the Escape
/// key.
const ESCAPE_ALONE: Duration = Duration::from_millis(60);

/// A key with a function.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Key {
    Quit,
    Next,
    Before,
    Turn,
    Tab,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Hold,
    Help,
    /// Any other key; redraws the screen.
    Other,
}

/// The bytes of an incomplete key.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pending: Vec<u8>,
    since: Option<Instant>,
}

impl Keys {
    /// Adds a byte; returns the key that it completes.
    pub(super) fn take(&mut self, byte: u8) -> Option<Key> {
        if self.pending.is_empty() && byte != 0x1b {
            return Some(plain(byte));
        }
        if self.pending.is_empty() {
            self.since = Some(Instant::now());
        }
        self.pending.push(byte);
        let whole = match self.pending[..] {
            [0x1b] => false,
            [0x1b, b'[' | b'O'] => false,
            [0x1b, b'[' | b'O', .., last] => (0x40..=0x7e).contains(&last),
            _ => true,
        };
        // No key has this many bytes: discard an unknown sequence.
        if !whole && self.pending.len() < 8 {
            return None;
        }
        let key = sequence(&self.pending);
        self.pending.clear();
        Some(key)
    }

    /// Returns the Escape key once its time has passed.
    pub(super) fn settle(&mut self, now: Instant) -> Option<Key> {
        let alone = self.pending == [0x1b] && self.since.is_some_and(|at| now >= at + ESCAPE_ALONE);
        alone.then(|| {
            self.pending.clear();
            Key::Other
        })
    }
}

const fn plain(byte: u8) -> Key {
    match byte {
        // In raw mode Ctrl-C and Ctrl-D arrive as bytes, without a signal.
        b'q' | b'Q' | 0x03 | 0x04 => Key::Quit,
        b's' | b'>' => Key::Next,
        b'<' => Key::Before,
        b'r' => Key::Turn,
        b'\t' => Key::Tab,
        b'k' => Key::Up,
        b'j' => Key::Down,
        b' ' => Key::Hold,
        b'h' | b'?' => Key::Help,
        _ => Key::Other,
    }
}

fn sequence(bytes: &[u8]) -> Key {
    match bytes.get(2..).unwrap_or_default() {
        b"A" => Key::Up,
        b"B" => Key::Down,
        b"C" => Key::Next,
        b"D" => Key::Before,
        b"H" | b"1~" | b"7~" => Key::Home,
        b"F" | b"4~" | b"8~" => Key::End,
        b"5~" => Key::PageUp,
        b"6~" => Key::PageDown,
        _ => Key::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(bytes: &[u8]) -> Vec<Key> {
        let mut keys = Keys::default();
        bytes.iter().filter_map(|&byte| keys.take(byte)).collect()
    }

    #[test]
    fn bytes_become_keys() {
        assert_eq!(typed(b"s<r\tq"), [Key::Next, Key::Before, Key::Turn, Key::Tab, Key::Quit]);
        assert_eq!(typed(b"\x03"), [Key::Quit]);
        assert_eq!(typed(b"\x1b[A\x1b[B\x1bOC"), [Key::Up, Key::Down, Key::Next]);
        assert_eq!(typed(b"\x1b[5~\x1b[6~\x1b[1~"), [Key::PageUp, Key::PageDown, Key::Home]);
        assert_eq!(typed(b"\x1b[1;5Ax"), [Key::Other, Key::Other], "one with Ctrl, then x");
    }

    #[test]
    fn an_escape_alone_is_a_key_and_endless_sequences_are_cut() {
        let mut keys = Keys::default();
        assert_eq!(keys.take(0x1b), None);
        let now = Instant::now();
        assert_eq!(keys.settle(now + ESCAPE_ALONE), Some(Key::Other));
        assert_eq!(keys.settle(now + ESCAPE_ALONE), None);
        assert_eq!(keys.take(b'q'), Some(Key::Quit), "it does not belong to the escape");
        assert_eq!(
            typed(b"\x1b[11111111q"),
            [Key::Other, Key::Other, Key::Other, Key::Quit][..].to_vec()
        );
    }
}
