//! Resampling and coding of sound. One worker processes all blocks, because each continues the previous one.

use super::places::Places;
use super::waiting::Job;
use paceline_media::MediaError;
use paceline_media::audio::{AudioFormat, AudioScaler, OpusEncoder, OpusFormat};
use paceline_proto::control::FormBudget;
use paceline_proto::form::Audio;
use paceline_proto::{DropReason, Encoding, Envelope, Form, RawSample};
use paceline_sched::police::{Conformance, Constraint, PolicedUnit, Policer};
use std::num::NonZeroU32;

/// The conversion of blocks of one format.
enum Converter {
    Same,
    Scale(Box<AudioScaler>),
    Code(Box<OpusEncoder>),
}

/// The reason why a block is not delivered.
type Failure = (DropReason, String);

/// Converts sound to one rate and number of channels, or codes it to a bit rate.
pub(in crate::shell) struct Sound {
    to: Option<Audio>,
    bits_per_s: Option<NonZeroU32>,
    converter: Option<(Encoding, Converter)>,
    /// The limit of coded bytes over longer times.
    police: Option<(Envelope, Policer)>,
    /// The last result, for outputs that request it slightly later than others.
    last: Option<(u64, Result<RawSample, Failure>)>,
}

impl Sound {
    /// Creates the conversion to the sound format and the bit rate of `form`.
    pub(in crate::shell) const fn new(form: &Form) -> Self {
        let Form { audio, bitrate, .. } = *form;
        Self { to: audio, bits_per_s: bitrate, converter: None, police: None, last: None }
    }

    /// Converts a block; a coded one fits `budget`. Returns the bytes of the result if the block was converted.
    pub(super) fn serve(
        &mut self,
        job: &Job,
        budget: Option<FormBudget>,
        places: &mut Places,
    ) -> Option<usize> {
        let seq = job.sample.seq;
        let mut bytes = None;
        if self.last.as_ref().is_none_or(|(last, _)| *last != seq) {
            let made = self.convert(&job.sample, budget);
            if let Err((reason, error)) = &made {
                tracing::debug!("block {seq}: {reason}: {error}");
            }
            bytes = made.as_ref().ok().map(|made| made.payload.len());
            self.last = Some((seq, made));
        }
        match &self.last {
            // The content of an empty block follows in the next one.
            Some((_, Ok(made))) if made.payload.is_empty() => {}
            Some((_, Ok(made))) => places.give(job.slots, made),
            Some((_, Err((reason, _)))) => places.count(job.slots, *reason, 1),
            None => {}
        }
        bytes
    }

    pub(super) fn reset(&mut self) {
        (self.converter, self.police, self.last) = (None, None, None);
    }

    /// Converts the next block without a budget. The result is empty if its content follows in the next block.
    pub(in crate::shell) fn scale(&mut self, block: &RawSample) -> Result<RawSample, String> {
        self.convert(block, None).map_err(|(_, error)| error)
    }

    fn convert(
        &mut self,
        block: &RawSample,
        budget: Option<FormBudget>,
    ) -> Result<RawSample, Failure> {
        let failed = |error: MediaError| (DropReason::CannotScale, error.to_string());
        if self.converter.as_ref().is_none_or(|(from, _)| *from != block.encoding) {
            let made = self.converter(&block.encoding);
            let made = made.inspect_err(|(_, error)| crate::warn_limited!("sound: {error}"))?;
            self.converter = Some((block.encoding.clone(), made));
        }
        let (payload, encoding) = match &mut self.converter {
            Some((_, Converter::Same)) | None => return Ok(block.clone()),
            Some((_, Converter::Scale(scaler))) => {
                let payload = scaler.push(&block.payload).map_err(failed)?;
                (payload, scaler.output().to_string())
            }
            Some((_, Converter::Code(encoder))) => {
                let payload = code(encoder, &mut self.police, (block, budget))?;
                (payload, encoder.output().to_string())
            }
        };
        let encoding = Encoding::new(&encoding);
        Ok(RawSample { encoding, payload: payload.into(), ..block.clone() })
    }

    fn converter(&self, encoding: &Encoding) -> Result<Converter, Failure> {
        let failed = |error: MediaError| (DropReason::CannotScale, format!("{encoding}: {error}"));
        let from: AudioFormat = encoding.as_str().parse().map_err(failed)?;
        if let Some(bits_per_s) = self.bits_per_s {
            let nearest = OpusFormat::nearest(from.rate, from.channels);
            let to = self.to.map(|Audio { rate, channels }| OpusFormat { rate, channels });
            let encoder = OpusEncoder::new(from, to.unwrap_or(nearest), bits_per_s.get());
            return Ok(Converter::Code(Box::new(encoder.map_err(failed)?)));
        }
        match self.to {
            Some(to) if (from.rate, from.channels) != (to.rate, to.channels) => {
                let scaler = AudioScaler::new(from, to.rate, to.channels).map_err(failed)?;
                Ok(Converter::Scale(Box::new(scaler)))
            }
            Some(_) | None => Ok(Converter::Same),
        }
    }
}

/// Codes a block so that it fits its budget.
fn code(
    encoder: &mut OpusEncoder,
    police: &mut Option<(Envelope, Policer)>,
    (block, budget): (&RawSample, Option<FormBudget>),
) -> Result<Vec<u8>, Failure> {
    let limit = budget.map(|budget| budget.bytes_max);
    encoder.set_limit(limit.and_then(|limit| usize::try_from(limit).ok()));
    let envelope = budget.and_then(|budget| budget.envelope);
    if police.as_ref().map(|(envelope, _)| *envelope) != envelope {
        *police = envelope.and_then(|it| Some((it, policer(it)?)));
    }
    let at = block.published_at;
    if let Some((_, policer)) = police {
        let most = encoder.bytes_for(&block.payload) as u64;
        match policer.check(at, most) {
            Conformance::Conforms => {}
            Conformance::At(_) | Conformance::Never => {
                let why = "the sound is published faster than it plays, and exceeds its bit rate";
                crate::warn_limited!("a block of sound is dropped: {why}");
                return Err((DropReason::OverBudget, why.to_owned()));
            }
        }
    }
    let packet = encoder.push(&block.payload).map_err(|error| {
        crate::warn_limited!("a block of sound is dropped: {error}");
        (DropReason::CannotScale, error.to_string())
    })?;
    if let Some((_, policer)) = police
        && !packet.is_empty()
    {
        policer.charge(at, packet.len() as u64);
    }
    Ok(packet)
}

fn policer(envelope: Envelope) -> Option<Policer> {
    let bits_per_s = envelope.bytes_per_s().saturating_mul(8);
    let constraint = Constraint::leaky(PolicedUnit::Bytes, envelope.burst(), bits_per_s).ok()?;
    Some(Policer::new(constraint))
}
