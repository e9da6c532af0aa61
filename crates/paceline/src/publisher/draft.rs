//! The settings of a publisher, checked as they are made.

use super::traffic::{Declared, check_traffic};
use crate::error::{Contradiction, PublishError};
use crate::history::History;
use crate::limits::HERTZ_MAX;
use paceline_media::Format;
use paceline_media::audio::{AudioFormat, OpusFormat};
use paceline_proto::control::PublisherSpec;
use paceline_proto::{Encoding, Kind, Size, Tag, Unscalable};
use paceline_sched::ContractError;
use std::time::Duration;

/// The settings of a publisher.
pub(super) struct Draft {
    pub(super) spec: PublisherSpec,
    pub(super) kind: Option<Kind>,
    pub(super) history: Option<History>,
    /// The option that set the rate.
    rate_by: Option<&'static str>,
    /// The option that set the traffic.
    pub(super) traffic_by: Option<&'static str>,
    pub(super) traffic: Option<Declared>,
}

impl Draft {
    pub(super) const fn new(tag: Tag) -> Self {
        let spec = PublisherSpec::new(tag);
        Self { spec, kind: None, history: None, rate_by: None, traffic_by: None, traffic: None }
    }

    /// Completes the declaration: its traffic and its kind.
    pub(super) fn finish(&mut self) -> Result<(), PublishError> {
        check_traffic(&mut self.spec, self.traffic.take())?;
        let spec = &mut self.spec;
        let encoding = spec.encoding.as_str();
        let format: Option<Format> = encoding.parse().ok();
        let codec = format.and_then(|format| format.codec());
        spec.kind = self.kind.unwrap_or(match format {
            _ if codec.is_some() => Kind::VideoI,
            Some(_) => Kind::Picture,
            None if is_sound(encoding) => Kind::Audio,
            None if spec.latch => Kind::State,
            None => Kind::Data,
        });
        let codec = codec.filter(|_| spec.kind.is_video());
        if codec.is_some_and(|codec| !codec.has_transcoder()) {
            spec.unscalable = Some(Unscalable::Codec);
        }
        Ok(())
    }

    pub(super) fn period(
        &mut self,
        by: &'static str,
        period: Duration,
    ) -> Result<(), PublishError> {
        Contradiction::refuse(&mut self.rate_by, by)?;
        if period.is_zero() {
            return Err(ContractError::ZeroPeriod.into());
        }
        self.spec.period = Some(period.into());
        Ok(())
    }

    pub(super) fn hertz(&mut self, hertz: f64) -> Result<(), PublishError> {
        let refuse = PublishError::Rate(hertz);
        if !(hertz > 0.0 && hertz <= HERTZ_MAX) {
            return Err(refuse);
        }
        match Duration::try_from_secs_f64(1.0 / hertz) {
            Ok(period) => self.period("hz", period),
            Err(_) => Err(refuse),
        }
    }

    pub(super) fn picture_size(&mut self, size: Size) -> Result<(), PublishError> {
        if size.pixels() == 0 {
            return Err(PublishError::Size(size));
        }
        self.spec.size = Some(size);
        Ok(())
    }

    pub(super) fn within(&mut self, bound: Duration) -> Result<(), PublishError> {
        if bound.is_zero() {
            return Err(PublishError::ZeroWithin);
        }
        self.spec.within = Some(bound.into());
        Ok(())
    }

    pub(super) fn encoding(&mut self, encoding: Encoding) -> Result<(), PublishError> {
        check_encoding(&encoding)?;
        self.spec.encoding = encoding;
        Ok(())
    }
}

/// Refuses a media type with control characters: other nodes print it to terminals and logs.
pub(super) fn check_encoding(encoding: &Encoding) -> Result<(), PublishError> {
    if encoding.is_plain() {
        return Ok(());
    }
    Err(PublishError::Encoding(encoding.to_string()))
}

/// Refuses an invalid tag, and one of the system's.
pub(super) fn public_tag(tag: &str) -> Result<Tag, PublishError> {
    let tag = Tag::new(tag)?;
    if tag.is_private() {
        return Err(PublishError::Private(tag.to_string()));
    }
    Ok(tag)
}

fn is_sound(encoding: &str) -> bool {
    encoding.parse::<AudioFormat>().is_ok() || encoding.parse::<OpusFormat>().is_ok()
}
