//! Resampling of sound. One scaler processes all blocks, because each continues the previous one.

use super::places::Places;
use super::waiting::Job;
use paceline_media::audio::{AudioFormat, AudioScaler};
use paceline_proto::form::Audio;
use paceline_proto::{DropReason, Encoding, RawSample};

/// Converts sound to one rate and number of channels.
pub(in crate::shell) struct Sound {
    to: Audio,
    scaler: Option<(Encoding, AudioScaler)>,
    /// The last result, for outputs that request it slightly later than others.
    last: Option<(u64, Result<RawSample, String>)>,
}

impl Sound {
    pub(in crate::shell) const fn new(to: Audio) -> Self {
        Self { to, scaler: None, last: None }
    }

    /// Returns the bytes of the result if the block was converted.
    pub(super) fn serve(&mut self, job: &Job, places: &mut Places) -> Option<usize> {
        let seq = job.sample.seq;
        let mut bytes = None;
        if self.last.as_ref().is_none_or(|(last, _)| *last != seq) {
            let scaled = self.scale(&job.sample);
            if let Err(error) = &scaled {
                tracing::debug!("block {seq}: {error}");
            }
            bytes = scaled.as_ref().ok().map(|scaled| scaled.payload.len());
            self.last = Some((seq, scaled));
        }
        match &self.last {
            // The content of an empty block follows in the next one.
            Some((_, Ok(scaled))) if scaled.payload.is_empty() => {}
            Some((_, Ok(scaled))) => places.give(job.slots, scaled),
            Some((_, Err(_))) => places.count(job.slots, DropReason::CannotScale, 1),
            None => {}
        }
        bytes
    }

    pub(super) fn reset(&mut self) {
        (self.scaler, self.last) = (None, None);
    }

    /// Converts the next block. The result is empty if its content follows in the next block.
    pub(in crate::shell) fn scale(&mut self, block: &RawSample) -> Result<RawSample, String> {
        let encoding = &block.encoding;
        let format: AudioFormat =
            encoding.as_str().parse().map_err(|error| format!("{encoding}: {error}"))?;
        if (format.rate, format.channels) == (self.to.rate, self.to.channels) {
            return Ok(block.clone());
        }
        if self.scaler.as_ref().is_none_or(|(from, _)| from != encoding) {
            let scaler = AudioScaler::new(format, self.to.rate, self.to.channels)
                .map_err(|error| error.to_string())?;
            self.scaler = Some((encoding.clone(), scaler));
        }
        let Some((_, scaler)) = &mut self.scaler else { return Ok(block.clone()) };
        let payload = scaler.push(&block.payload).map_err(|error| error.to_string())?;
        let encoding = Encoding::new(&scaler.output().to_string());
        Ok(RawSample { encoding, payload: payload.into(), ..block.clone() })
    }
}
