//! A WAV file that grows block by block. Its header is correct after each block, even if the command is
//! killed.

use anyhow::{Context as _, anyhow, bail};
use paceline::Sample;
use paceline_media::audio::{AudioFormat, OpusDecoder, OpusFormat, wav_header};
use std::borrow::Cow;
use std::fmt::Display;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// A WAV file. Packets of Opus are decoded.
pub(crate) struct Wave {
    file: File,
    path: PathBuf,
    format: Option<AudioFormat>,
    decoder: Option<(OpusFormat, OpusDecoder)>,
    bytes: u32,
}

impl Wave {
    /// Creates the output; writes no header yet.
    pub(crate) const fn new(file: File, path: PathBuf) -> Self {
        Self { file, path, format: None, decoder: None, bytes: 0 }
    }

    /// Appends a block of sound.
    pub(crate) fn write(&mut self, delivery: &Sample) -> anyhow::Result<()> {
        let (format, block) = self.block(delivery)?;
        let bytes = u32::try_from(block.len()).ok();
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
        (&self.file).write_all(&block).map_err(failed)?;
        // The header in a pipe cannot be updated.
        let _ = self.file.write_all_at(&header, 0);
        if bytes % 2 == 1 {
            // Chunks have an even length; the next block overwrites this byte.
            let _ = self.file.write_all_at(&[0], header.len() as u64 + u64::from(bytes));
        }
        (self.format, self.bytes) = (Some(format), bytes);
        Ok(())
    }

    /// Returns the format and the bytes of a block, decoded if needed.
    fn block<'a>(&mut self, delivery: &'a Sample) -> anyhow::Result<(AudioFormat, Cow<'a, [u8]>)> {
        let Ok(coded) = delivery.encoding.as_str().parse::<OpusFormat>() else {
            return Ok((self.format_of(delivery)?, Cow::Borrowed(&delivery.payload)));
        };
        let here = || format!("--out {}: sample {}", self.path.display(), delivery.seq);
        let same = self.decoder.take().filter(|(format, _)| *format == coded);
        let decoder = same.map_or_else(|| OpusDecoder::new(coded), |(_, decoder)| Ok(decoder));
        let (_, decoder) = self.decoder.insert((coded, decoder.with_context(here)?));
        let (format, block) = (decoder.output(), decoder.decode(&delivery.payload));
        let block = block.with_context(here)?;
        Ok((self.same(delivery, format)?, Cow::Owned(block)))
    }

    fn format_of(&self, delivery: &Sample) -> anyhow::Result<AudioFormat> {
        let format: AudioFormat = delivery.encoding.as_str().parse().map_err(|_| {
            let what =
                "a .wav file contains audio/pcm, audio/pcmu, audio/pcma or decoded audio/opus";
            other_sound(&self.path, delivery, &format!("{what}; give another --out"))
        })?;
        self.same(delivery, format)
    }

    /// Refuses a format other than that of the file.
    fn same(&self, delivery: &Sample, format: AudioFormat) -> anyhow::Result<AudioFormat> {
        match self.format {
            Some(first) if first != format => Err(other_sound(&self.path, delivery, &only(&first))),
            _ => Ok(format),
        }
    }
}

/// Returns the error of a sample that a file of sound cannot contain.
pub(super) fn other_sound(path: &Path, delivery: &Sample, what: &str) -> anyhow::Error {
    let Sample { seq, tag, encoding, .. } = delivery;
    anyhow!("--out {}: sample {seq} of {tag} is {encoding}; {what}", path.display())
}

/// Returns the reason against a sample of another format than that of the file.
pub(super) fn only(format: &impl Display) -> String {
    format!("the file contains only {format}; request one kind of sound with --audio")
}
