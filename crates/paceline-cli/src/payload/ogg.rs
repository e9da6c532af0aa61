//! An Ogg file of coded sound that grows packet by packet. Players accept it after each packet, even if the command is
//! killed.

use super::wave::{only, other_sound};
use anyhow::{Context as _, anyhow};
use paceline::Sample;
use paceline_media::audio::{OggOpus, OpusFormat};
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

/// An Ogg file.
pub(crate) struct Ogg {
    file: File,
    path: PathBuf,
    writer: Option<(OpusFormat, OggOpus)>,
    bytes: u64,
}

impl Ogg {
    /// Creates the output; writes no header yet.
    pub(crate) const fn new(file: File, path: PathBuf) -> Self {
        Self { file, path, writer: None, bytes: 0 }
    }

    /// Appends a packet.
    pub(crate) fn write(&mut self, delivery: &Sample) -> anyhow::Result<()> {
        let refuse = |what: &str| other_sound(&self.path, delivery, what);
        let format: OpusFormat = delivery.encoding.as_str().parse().map_err(|_| {
            refuse("a .opus file contains audio/opus; add --bitrate 32kbit, or write .wav")
        })?;
        let here = || format!("--out {}: sample {}", self.path.display(), delivery.seq);
        if self.writer.is_none() {
            self.writer = Some((format, OggOpus::new(format).with_context(here)?));
        }
        let Some((first, writer)) = &mut self.writer else { return Ok(()) };
        if *first != format {
            return Err(refuse(&only(first)));
        }
        writer.append(&delivery.payload).with_context(here)?;
        let pages = writer.take();
        if let Err(error) = self.file.write_all(&pages) {
            // Truncates a partial page; pipes do not support it.
            let _ = self.file.set_len(self.bytes);
            return Err(anyhow!(
                "--out {}: cannot write: {error}; the file contains {} bytes; free some space or give another --out",
                self.path.display(),
                self.bytes
            ));
        }
        self.bytes += pages.len() as u64;
        Ok(())
    }
}
