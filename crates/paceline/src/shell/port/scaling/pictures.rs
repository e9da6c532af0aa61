//! Scaling of independent pictures.

use super::places::Places;
use super::waiting::Job;
use paceline_media::{Format, Scaler};
use paceline_proto::control::FormBudget;
use paceline_proto::{DropReason, Encoding, Form, RawSample, Size};

/// Scales pictures to one form.
pub(super) struct Pictures {
    form: Form,
    scaler: Scaler,
    /// The bytes of earlier pictures beyond their budget. Later pictures are left out for them. A contract has a budget that
    /// every picture fits, so this concerns bit rates that were requested without one.
    debt: u64,
    /// The last result, for outputs that request it slightly later than others.
    last: Option<(u64, Result<RawSample, String>)>,
}

impl Pictures {
    pub(super) fn new(form: Form) -> Self {
        let mut scaler = Scaler::new();
        if let Some(quality) = form.quality {
            // From 1 to 100, so it is never refused.
            let _ = scaler.set_quality(quality.get());
        }
        Self { form, scaler, debt: 0, last: None }
    }

    /// Scales a picture so that it fits `budget`. Returns the bytes of the result; for formats without a quality, those that
    /// it would have had without a budget, so that the budget grows.
    pub(super) fn serve(
        &mut self,
        job: &Job,
        budget: Option<FormBudget>,
        places: &mut Places,
    ) -> Option<usize> {
        let seq = job.sample.seq;
        let mut bytes = None;
        if self.last.as_ref().is_none_or(|(last, _)| *last != seq) {
            if self.owes(budget) {
                places.count(job.slots, DropReason::OverBudget, 1);
                return None;
            }
            let scaled = self.convert(&job.sample, budget);
            if let Err(error) = &scaled {
                crate::warn_limited!("picture {seq} cannot be scaled to {}: {error}", self.form);
                places.set_problem(error);
            }
            let saved = self.scaler.saved();
            bytes = scaled.as_ref().ok().map(|scaled| scaled.payload.len() + saved);
            self.last = Some((seq, scaled));
        }
        match &self.last {
            Some((_, Ok(scaled))) => places.give(job.slots, scaled),
            Some((_, Err(_))) => places.count(job.slots, DropReason::CannotScale, 1),
            None => {}
        }
        bytes
    }

    /// Returns true if a picture must be left out because an earlier one was larger than its budget. It pays for the
    /// debt with its own budget.
    fn owes(&mut self, budget: Option<FormBudget>) -> bool {
        let owes = self.debt > 0;
        self.debt = self.debt.saturating_sub(budget.map_or(u64::MAX, |budget| budget.bytes_max));
        owes
    }

    fn convert(
        &mut self,
        sample: &RawSample,
        budget: Option<FormBudget>,
    ) -> Result<RawSample, String> {
        let limit = budget.map(|budget| budget.bytes_max);
        self.scaler.set_limit(limit.and_then(|limit| usize::try_from(limit).ok()));
        let scaled = scale(&mut self.scaler, sample, self.form.size)?;
        let excess = limit.map_or(0, |limit| (scaled.payload.len() as u64).saturating_sub(limit));
        // The bytes of other formats are not chosen here.
        let format = scaled.encoding.as_str().parse::<Format>();
        if self.scaler.saved() > 0 {
            crate::warn_limited!(
                "a picture of {} bytes exceeds the {} bytes of {}: it has less detail until the contract is changed",
                scaled.payload.len() + self.scaler.saved(),
                limit.unwrap_or(0),
                self.form
            );
        }
        if excess > 0 && format.is_ok_and(|format| format.has_quality()) {
            crate::warn_limited!(
                "a picture of {} bytes exceeds the {} bytes of {} even with the least detail: its rate is reduced",
                scaled.payload.len(),
                limit.unwrap_or(0),
                self.form
            );
            self.debt = excess;
        }
        Ok(scaled)
    }
}

/// Returns the sample with its picture scaled to another size, in the same format; to its own size if `None`.
pub(in crate::shell) fn scale(
    scaler: &mut Scaler,
    sample: &RawSample,
    to: Option<Size>,
) -> Result<RawSample, String> {
    let format: Format = sample
        .encoding
        .as_str()
        .parse()
        .map_err(|error| format!("{}: {error}", sample.encoding))?;
    let to = match to {
        Some(to) => paceline_media::Size::new(to.width, to.height),
        None => format.picture_size(&sample.payload),
    };
    let to = to.map_err(|error| error.to_string())?;
    let payload = scaler.scale(&format, &sample.payload, to).map_err(|error| error.to_string())?;
    let encoding = Encoding::new(&format.with_size(to).to_string());
    Ok(RawSample { encoding, payload: payload.into(), ..sample.clone() })
}
