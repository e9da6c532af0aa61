//! A part of a file in memory, which grows and moves forward.

use super::ReadError;
use std::io::Read;

/// Consumed bytes are removed from memory when there are as many.
const CONSUMED_MAX: usize = 1 << 20;

/// The bytes of a file from an offset on.
pub(super) struct Window<R> {
    from: R,
    /// The offset of the first byte.
    at: u64,
    bytes: Vec<u8>,
    /// The number of bytes before the first one.
    consumed: usize,
    ended: bool,
}

impl<R: Read> Window<R> {
    pub(super) const fn new(from: R) -> Self {
        Self { from, at: 0, bytes: Vec::new(), consumed: 0, ended: false }
    }

    /// Returns the offset of the first byte.
    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    /// Returns the first `bytes` bytes, or fewer at the end of the file.
    pub(super) fn see(&mut self, bytes: u64) -> Result<&[u8], ReadError> {
        let there = (self.bytes.len() - self.consumed) as u64;
        if there < bytes && !self.ended {
            let missing = bytes - there;
            let read = self.from.by_ref().take(missing).read_to_end(&mut self.bytes);
            let read = read.map_err(|what| ReadError::Io { at: self.at + there, what })?;
            self.ended = (read as u64) < missing;
        }
        let seen = self.bytes.get(self.consumed..).unwrap_or_default();
        let end = usize::try_from(bytes).map_or(seen.len(), |bytes| bytes.min(seen.len()));
        Ok(seen.get(..end).unwrap_or_default())
    }

    /// Returns true if the file has `bytes` more bytes.
    pub(super) fn has(&mut self, bytes: u64) -> Result<bool, ReadError> {
        Ok(self.see(bytes)?.len() as u64 == bytes)
    }

    /// Moves forward by `bytes` bytes that were seen.
    pub(super) fn skip(&mut self, bytes: u64) {
        let there = self.bytes.len() - self.consumed;
        let bytes = usize::try_from(bytes).map_or(there, |bytes| bytes.min(there));
        self.at += bytes as u64;
        self.consumed += bytes;
        if self.consumed == self.bytes.len() {
            self.bytes.clear();
            self.consumed = 0;
        } else if self.consumed >= CONSUMED_MAX {
            self.bytes.drain(..self.consumed);
            self.consumed = 0;
        }
    }
}
