//! Scaling of sound to another rate and number of channels, in the same coding.

use super::format::AudioFormat;
use super::mix::mix;
use super::resample::Resampler;
use super::samples::{decode, encode};
use crate::error::MediaError;

/// The longest input or output block in bytes: 1 MiB, five seconds of stereo at 48 kHz.
pub const BLOCK_MAX: usize = 1024 * 1024;

/// Scales a stream of blocks to another rate and number of channels, in the same coding.
///
/// Each input block immediately returns one output block. After n input frames in total, exactly n ·
/// rate out / rate in frames, rounded down, have been returned. Blocks of 20 ms stay blocks of 20 ms if
/// both rates have whole frames in them, and the stream does not drift.
///
/// The rate is changed by a windowed-sinc filter of 64 frames of the lower rate, Blackman-Harris window,
/// pass band to 0.87 of the lower rate's half. It delays the sound by 32 to 38 frames of the lower rate
/// (at most 4.8 ms at 8 kHz, 0.8 ms at 48 kHz). The delay is constant for given rates. The stream begins
/// with that much silence, and the same amount of its end is never returned. There is no delay if the
/// rate does not change.
///
/// With fewer channels the channels are averaged, with more they are repeated. Output channel j of m is
/// the mean of the input channels j, j + m, j + 2m, …, or input channel j mod n of n. Intermediate
/// values are 32-bit floats, rounded once.
///
/// A scaler uses at most 4 MiB for its filter. Its four buffers take 4 bytes for each sample of the
/// longest block so far, input or output: at most 4 MiB each.
///
/// ```
/// use paceline_media::audio::{AudioFormat, AudioScaler};
///
/// let from: AudioFormat = "audio/pcm;format=s16le;rate=48000;channels=2".parse()?;
/// let mut scaler = AudioScaler::new(from, 16_000, 1)?;
/// let block = vec![0; 960 * from.frame_bytes()];
/// assert_eq!(scaler.push(&block)?.len(), 320 * scaler.output().frame_bytes());
/// # Ok::<(), paceline_media::MediaError>(())
/// ```
#[derive(Debug)]
pub struct AudioScaler {
    from: AudioFormat,
    to: AudioFormat,
    /// `None` if the rate does not change.
    resampler: Option<Resampler>,
    levels: Vec<f32>,
    spare: Vec<f32>,
}

impl AudioScaler {
    /// Returns a scaler for blocks of format `from`.
    ///
    /// # Errors
    /// [`MediaError::AudioRange`] for a rate or a number of channels out of range, also in `from`.
    pub fn new(from: AudioFormat, to_rate: u32, to_channels: u8) -> Result<Self, MediaError> {
        from.check()?;
        let to = AudioFormat::new(from.coding, to_rate, to_channels)?;
        let resampler = if from.rate == to.rate {
            None
        } else {
            let channels = usize::from(from.channels.min(to.channels));
            Some(Resampler::new(from.rate, to.rate, channels)?)
        };
        Ok(Self { from, to, resampler, levels: Vec::new(), spare: Vec::new() })
    }

    /// Returns the format of the output blocks.
    #[must_use]
    pub fn output(&self) -> AudioFormat {
        self.to
    }

    /// Takes the next block, of any number of whole frames, and returns its output.
    ///
    /// The output has the same duration, or is empty if it is too short for one frame.
    ///
    /// # Errors
    /// [`MediaError::AudioBlock`] for a block that ends inside a frame, or that is or would become
    /// longer than [`BLOCK_MAX`]; the scaler is then unchanged.
    pub fn push(&mut self, block: &[u8]) -> Result<Vec<u8>, MediaError> {
        self.check(block)?;
        if self.from == self.to {
            return Ok(block.to_vec());
        }
        let (source, target) = (usize::from(self.from.channels), usize::from(self.to.channels));
        decode(self.from.coding, block, &mut self.levels);
        if target < source {
            mix(&self.levels, source, target, &mut self.spare);
            std::mem::swap(&mut self.levels, &mut self.spare);
        }
        if let Some(resampler) = &mut self.resampler {
            resampler.push(&self.levels, &mut self.spare)?;
            std::mem::swap(&mut self.levels, &mut self.spare);
        }
        if target > source {
            mix(&self.levels, source, target, &mut self.spare);
            std::mem::swap(&mut self.levels, &mut self.spare);
        }
        Ok(encode(self.to.coding, &self.levels))
    }

    fn check(&self, block: &[u8]) -> Result<(), MediaError> {
        let frame = self.from.frame_bytes();
        let refuse =
            |what, bytes, must, fix| Err(MediaError::AudioBlock { what, bytes, must, fix });
        if !block.len().is_multiple_of(frame) {
            let must = format!("a multiple of {frame}, one frame of {}", self.from);
            return refuse("holds", block.len() as u64, must, "cut blocks between frames");
        }
        let must = || format!("at most {BLOCK_MAX}");
        let fix = "send shorter blocks, 20 ms are usual";
        if block.len() > BLOCK_MAX {
            return refuse("holds", block.len() as u64, must(), fix);
        }
        let frames = block.len() / frame;
        let frames = self.resampler.as_ref().map_or(frames as u64, |r| r.frames_out(frames));
        let bytes = frames.saturating_mul(self.to.frame_bytes() as u64);
        if bytes > BLOCK_MAX as u64 {
            return refuse("would become", bytes, must(), fix);
        }
        Ok(())
    }
}
