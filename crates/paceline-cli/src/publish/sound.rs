//! WAV files: blocks of 20 ms at the sound's own rate.

use super::args::PubArgs;
use super::source::Opened;
use super::stored::{About, opened, read};
use anyhow::{Context as _, bail};
use bytes::Bytes;
use paceline_media::audio::{self, AudioFormat};
use std::borrow::Cow;
use std::path::Path;

/// Blocks per second, if a block then has a whole number of frames.
const BLOCKS_PER_S: u32 = 50;

/// Opens a WAV file.
pub(super) fn open(args: &PubArgs, file: &Path) -> anyhow::Result<Opened> {
    if args.hertz().is_some() {
        return Err(crate::exit::usage(format!(
            "--hz, --period: {} has a fixed pace, in blocks of 20 ms; leave them out",
            file.display()
        )));
    }
    let bytes = read(file)?;
    let wav = audio::read_wav(&bytes).with_context(|| file.display().to_string())?;
    if let Some(note) = &wav.note {
        crate::show::note(&format!("{}: {note}", file.display()));
    }
    let (frames, hz) = pace(&wav.format);
    let length = frames * wav.format.frame_bytes();
    let data = match wav.data {
        Cow::Borrowed(data) => bytes.slice_ref(data),
        Cow::Owned(data) => Bytes::from(data),
    };
    let block = |at: usize| data.slice(at..data.len().min(at + length));
    let blocks: Vec<_> = (0..data.len()).step_by(length).map(block).collect();
    if blocks.is_empty() {
        bail!("{} has no sound; give a file with at least one block", file.display());
    }
    let (name, encoding) = ("blocks", wav.format.to_string());
    let about = About { name, encoding, size: None, hz: Some(hz), keeps_time: false };
    opened(args, file, blocks, about)
}

/// Returns the frames per block and the blocks per second.
fn pace(format: &AudioFormat) -> (usize, f64) {
    let frames = (format.rate / BLOCKS_PER_S).max(1);
    (usize::try_from(frames).unwrap_or(1), f64::from(format.rate) / f64::from(frames))
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_media::audio::Coding;

    #[test]
    fn blocks_have_whole_frames_and_keep_the_pace() {
        let pace = |rate| pace(&AudioFormat::new(Coding::S16le, rate, 2).unwrap());
        assert_eq!(pace(48_000).0, 960);
        assert_eq!(pace(44_100).0, 882);
        let (frames, hz) = pace(11_025);
        assert_eq!(frames, 220);
        assert!((hz * 220.0 - 11_025.0).abs() < 1e-6, "{hz}");
    }
}
