//! Conversion of the sample rate of a continuous stream.

use std::collections::VecDeque;

use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{
    Async, FixedAsync, Resampler as _, Resizable as _, SincInterpolationParameters, WindowFunction,
};

use crate::error::MediaError;

/// The length of the filter in frames of the lower rate; the delay is half of it.
const TAPS: usize = 64;

/// The points per frame of the lower rate at which the filter is tabulated; it is interpolated between
/// them.
const POINTS: usize = 128;

/// The largest number of frames that are filtered at once.
const PIECE: usize = 1024;

/// Changes the rate of interleaved levels.
#[derive(Debug)]
pub(super) struct Resampler {
    filter: Async<f32>,
    from: u32,
    to: u32,
    channels: usize,
    /// The input frames, in units of 1/`from` output frames, beyond the whole output frames; below
    /// `from`.
    remainder: u64,
    /// Filtered frames that are not yet returned. The queue begins with a little silence, so that each
    /// block gets its full output although the filter needs look-ahead.
    waiting: VecDeque<f32>,
    filtered: Vec<f32>,
}

impl Resampler {
    /// Returns a resampler for checked rates and channels.
    pub(super) fn new(from: u32, to: u32, channels: usize) -> Result<Self, MediaError> {
        let failed = |error: rubato::ResamplerConstructionError| MediaError::AudioResample {
            from,
            to,
            reason: error.to_string(),
        };
        // The filter's length is in frames of the source, but its duration depends on the lower of the
        // two rates.
        let (source, target) = (from as usize, to as usize);
        let stretch = |frames: usize| (frames * source).div_ceil(target);
        let (taps, points) = if from > to {
            (stretch(TAPS), (POINTS * target / source).max(8))
        } else {
            (TAPS, POINTS)
        };
        let parameters = SincInterpolationParameters::new(taps, WindowFunction::BlackmanHarris)
            .oversampling_factor(points);
        let ratio = f64::from(to) / f64::from(from);
        let filter = Async::new_sinc(ratio, 1.0, &parameters, PIECE, channels, FixedAsync::Input)
            .map_err(failed)?;
        // The filter's output lags by two frames of the source plus the rounding error.
        let silence = (2 * target).div_ceil(source) + 1;
        let waiting = VecDeque::from(vec![0.0; silence * channels]);
        Ok(Self { filter, from, to, channels, remainder: 0, waiting, filtered: Vec::new() })
    }

    /// Returns the number of output frames for the next block of `frames`.
    pub(super) fn frames_out(&self, frames: usize) -> u64 {
        self.worth(frames) / u64::from(self.from)
    }

    /// Takes a block of whole frames and replaces `out` by its output.
    pub(super) fn push(&mut self, block: &[f32], out: &mut Vec<f32>) -> Result<(), MediaError> {
        let total = self.worth(block.len() / self.channels);
        for piece in block.chunks(PIECE * self.channels) {
            self.filter_piece(piece).map_err(|reason| MediaError::AudioResample {
                from: self.from,
                to: self.to,
                reason,
            })?;
        }
        self.remainder = total % u64::from(self.from);
        let frames = usize::try_from(total / u64::from(self.from)).unwrap_or(usize::MAX);
        let len = frames.saturating_mul(self.channels).min(self.waiting.len());
        out.clear();
        out.extend(self.waiting.drain(..len));
        Ok(())
    }

    /// Returns the output frames, times `from`, that are due after `frames` more of the source.
    fn worth(&self, frames: usize) -> u64 {
        self.remainder + frames as u64 * u64::from(self.to)
    }

    fn filter_piece(&mut self, piece: &[f32]) -> Result<(), String> {
        let frames = piece.len() / self.channels;
        self.filter.set_chunk_size(frames).map_err(|error| error.to_string())?;
        let room = self.filter.output_frames_next();
        self.filtered.clear();
        self.filtered.resize(room * self.channels, 0.0);
        let source = InterleavedSlice::new(piece, self.channels, frames)
            .map_err(|error| error.to_string())?;
        let mut target = InterleavedSlice::new_mut(&mut self.filtered, self.channels, room)
            .map_err(|error| error.to_string())?;
        let (_, written) = self
            .filter
            .process_into_buffer(&source, &mut target, None)
            .map_err(|error| error.to_string())?;
        self.waiting.extend(self.filtered.iter().take(written * self.channels));
        Ok(())
    }
}
