//! A WAV file that grows block by block. Its header is correct after each block, even if the command is
//! killed.

use anyhow::{anyhow, bail};
use paceline::Sample;
use paceline_media::audio::{AudioFormat, wav_header};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

/// A WAV file.
pub(crate) struct Wave {
    file: File,
    path: PathBuf,
    format: Option<AudioFormat>,
    bytes: u32,
}

impl Wave {
    /// Creates the output; writes no header yet.
    pub(crate) const fn new(file: File, path: PathBuf) -> Self {
        Self { file, path, format: None, bytes: 0 }
    }

    /// Appends a block of sound.
    pub(crate) fn write(&mut self, delivery: &Sample) -> anyhow::Result<()> {
        let format = self.format_of(delivery)?;
        let bytes = u32::try_from(delivery.payload.len()).ok();
        let bytes = bytes.and_then(|bytes| self.bytes.checked_add(bytes));
        let Some(bytes) = bytes.filter(|bytes| *bytes < u32::MAX - 1_024) else {
            bail!(
                "--out {}: a .wav file has at most 4 GB, and this one has {} bytes; give another \
                 --out",
                self.path.display(),
                self.bytes
            );
        };
        let header = wav_header(&format, bytes);
        let whole = header.len() as u64 + u64::from(self.bytes);
        let failed = |error: std::io::Error| {
            // Truncates a partial block; pipes do not support it.
            let _ = self.file.set_len(whole);
            anyhow!(
                "--out {}: cannot write: {error}; the file contains {} bytes of sound; free some \
                 space or give another --out",
                self.path.display(),
                self.bytes
            )
        };
        if self.format.is_none() {
            (&self.file).write_all(&wav_header(&format, 0)).map_err(failed)?;
        }
        (&self.file).write_all(&delivery.payload).map_err(failed)?;
        // The header in a pipe cannot be updated.
        let _ = self.file.write_all_at(&header, 0);
        if bytes % 2 == 1 {
            // Chunks have an even length; the next block overwrites this byte.
            let _ = self.file.write_all_at(&[0], header.len() as u64 + u64::from(bytes));
        }
        (self.format, self.bytes) = (Some(format), bytes);
        Ok(())
    }

    fn format_of(&self, delivery: &Sample) -> anyhow::Result<AudioFormat> {
        let refuse = |what: String| {
            anyhow!(
                "--out {}: sample {} of {} is {}; {what}",
                self.path.display(),
                delivery.seq,
                delivery.tag,
                delivery.encoding
            )
        };
        let format: AudioFormat = delivery.encoding.as_str().parse().map_err(|_| {
            refuse(
                "a .wav file contains audio/pcm, audio/pcmu or audio/pcma; give another --out"
                    .into(),
            )
        })?;
        match self.format {
            Some(first) if first != format => Err(refuse(format!(
                "the file contains only {first}; request one kind of sound with --audio"
            ))),
            _ => Ok(format),
        }
    }
}
