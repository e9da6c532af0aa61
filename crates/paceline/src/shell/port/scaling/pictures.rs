//! Scaling of independent pictures.

use super::places::Places;
use super::waiting::Job;
use paceline_media::{Format, Scaler};
use paceline_proto::{DropReason, Encoding, RawSample, Size};

/// Scales pictures to one size.
pub(super) struct Pictures {
    to: Option<Size>,
    scaler: Scaler,
    /// The last result, for outputs that request it slightly later than others.
    last: Option<(u64, Result<RawSample, String>)>,
}

impl Pictures {
    pub(super) fn new(to: Option<Size>) -> Self {
        Self { to, scaler: Scaler::new(), last: None }
    }

    pub(super) fn serve(&mut self, job: &Job, places: &mut Places) {
        let seq = job.sample.seq;
        if self.last.as_ref().is_none_or(|(last, _)| *last != seq) {
            let scaled = match self.to {
                Some(to) => scale(&mut self.scaler, &job.sample, to),
                None => Ok(job.sample.clone()),
            };
            if let Err(error) = &scaled {
                tracing::debug!("picture {seq}: {error}");
            }
            self.last = Some((seq, scaled));
        }
        match &self.last {
            Some((_, Ok(scaled))) => places.give(job.slots, scaled),
            Some((_, Err(_))) => places.count(job.slots, DropReason::CannotScale, 1),
            None => {}
        }
    }
}

/// Returns the sample with its picture scaled to another size, in the same format.
pub(in crate::shell) fn scale(
    scaler: &mut Scaler,
    sample: &RawSample,
    to: Size,
) -> Result<RawSample, String> {
    let to = paceline_media::Size::new(to.width, to.height).map_err(|error| error.to_string())?;
    let format: Format = sample
        .encoding
        .as_str()
        .parse()
        .map_err(|error| format!("{}: {error}", sample.encoding))?;
    let payload = scaler.scale(&format, &sample.payload, to).map_err(|error| error.to_string())?;
    let encoding = Encoding::new(&format.with_size(to).to_string());
    Ok(RawSample { encoding, payload: payload.into(), ..sample.clone() })
}
