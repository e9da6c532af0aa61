//! Recordings as files: the output file, and opening one to read it.

use crate::outfile;
use anyhow::{Context as _, anyhow, bail};
use paceline_record::ending;
use std::fs::File;
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};

/// Read buffer size in bytes.
const READ_BYTES: usize = 1 << 20;

/// A file that contains only whole records after each write.
pub(super) struct OutFile {
    file: File,
    path: PathBuf,
    bytes: u64,
}

/// Opens a regular file; the file is read twice, which a pipe does not support.
pub(crate) fn open(file: &Path) -> anyhow::Result<BufReader<File>> {
    let what = || format!("cannot read {}", file.display());
    let opened = File::open(file).map_err(|error| {
        let fix = if error.kind() == io::ErrorKind::NotFound {
            "; give a file of paceline record"
        } else {
            ""
        };
        anyhow!("{}: {error}{fix}", what())
    })?;
    if !opened.metadata().with_context(what)?.is_file() {
        bail!("cannot read {}: it is not a file; give an MCAP file", file.display());
    }
    Ok(BufReader::with_capacity(READ_BYTES, opened))
}

impl OutFile {
    /// Creates the file; replaces an existing file only if `force`.
    pub(super) fn create(path: &Path, force: bool) -> anyhow::Result<Self> {
        let file = outfile::create("--out", path, force)?;
        Ok(Self { file, path: path.to_owned(), bytes: 0 })
    }

    /// Returns the file's length in bytes.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends whole records; the file already contains `samples` samples. A partial write is truncated, and
    /// the file then gets a valid ending.
    pub(super) fn write(&mut self, records: &[u8], samples: u64) -> anyhow::Result<()> {
        let Err(error) = self.file.write_all(records) else {
            self.bytes += records.len() as u64;
            return Ok(());
        };
        let repaired = self.file.set_len(self.bytes).and_then(|()| self.end());
        let state = match repaired {
            Ok(()) => "the file is readable and",
            Err(_) => "the file has no end, which `paceline replay` does not need, and",
        };
        let is = |kind| error.kind() == kind;
        let fix = if is(io::ErrorKind::StorageFull) || is(io::ErrorKind::QuotaExceeded) {
            "free some space or give another --out"
        } else if is(io::ErrorKind::FileTooLarge) {
            "raise the limit of file sizes or give --max-bytes"
        } else {
            "give another --out"
        };
        Err(anyhow!(
            "--out {}: cannot write: {error}; {state} contains {samples} samples, {} bytes; {fix}",
            self.path.display(),
            self.bytes
        ))
    }

    /// Writes the ending of a file without an index, after the last whole record.
    fn end(&mut self) -> io::Result<()> {
        use std::io::{Seek as _, SeekFrom};
        self.file.seek(SeekFrom::Start(self.bytes))?;
        let end = ending();
        let written = self.file.write_all(&end);
        if written.is_err() {
            // A partial ending is worse than none.
            self.file.set_len(self.bytes)?;
        }
        written
    }

    /// Appends the last records and waits until the data is on the disk.
    pub(super) fn finish(mut self, records: &[u8], samples: u64) -> anyhow::Result<u64> {
        self.write(records, samples)?;
        let synced = self.file.sync_all();
        // Devices and pipes do not support syncing.
        match synced.err().filter(|error| error.kind() != io::ErrorKind::InvalidInput) {
            None => Ok(self.bytes),
            Some(error) => Err(anyhow!("--out {}: the disk reports: {error}", self.path.display())),
        }
    }
}
