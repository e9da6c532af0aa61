//! The access units of a published video.

use crate::error::PublishError;
use bytes::Bytes;
use paceline_media::codec::{Codec, Units};
use paceline_media::h264::{self, Unsupported};
use paceline_media::video::Class;
use paceline_proto::video::{Structure, StructureMeter};
use paceline_proto::{Kind, Unscalable};
use paceline_sched::{Duration, Instant};
use std::borrow::Cow;

/// The state of a video between its units.
pub(super) struct VideoUnits {
    codec: Codec,
    units: Units,
    meter: StructureMeter,
    /// The time of the last key picture.
    key_at: Option<Instant>,
    /// The longest time between two key pictures, rounded up.
    key_interval: Option<Duration>,
}

/// The precision of the announced time between key pictures.
const KEY_STEP: Duration = Duration::from_millis(100);

impl VideoUnits {
    pub(super) fn new(codec: Codec) -> Self {
        let (units, meter) = (Units::new(codec), StructureMeter::default());
        Self { codec, units, meter, key_at: None, key_interval: None }
    }

    /// Returns the kind of the next unit. Prepends missing parameter sets to a key unit.
    pub(super) fn take(&mut self, now: Instant, payload: &mut Bytes) -> Result<Kind, PublishError> {
        let class = self.units.classify(payload);
        let class = class.map_err(|error| PublishError::NoAccessUnit {
            bytes: payload.len(),
            what: error.to_string(),
        })?;
        if let Cow::Owned(complete) = self.units.complete(payload, class) {
            *payload = complete.into();
        }
        if class == Class::I {
            self.note_key(now);
        }
        let kind = match class {
            Class::I => Kind::VideoI,
            Class::P => Kind::VideoP,
            Class::B => Kind::VideoB,
            Class::Leading => Kind::VideoLeading,
        };
        let alone = class == Class::I && self.codec.is_start(payload);
        self.meter.note(now, kind, alone);
        Ok(kind)
    }

    /// Returns the structure of its pictures so far.
    pub(super) const fn structure(&self) -> Option<Structure> {
        self.meter.structure()
    }

    fn note_key(&mut self, now: Instant) {
        if let Some(before) = self.key_at.replace(now) {
            let steps = now.since(before).as_nanos().div_ceil(KEY_STEP.as_nanos());
            let interval = Duration::from_nanos(steps.saturating_mul(KEY_STEP.as_nanos()));
            self.key_interval = self.key_interval.max(Some(interval));
        }
    }

    /// Returns the longest time between two key pictures so far, rounded up to 100 ms.
    pub(super) const fn key_interval(&self) -> Option<Duration> {
        self.key_interval
    }
}

/// Returns the reason why the video cannot be scaled, `Some(None)` if it can, and `None` if this unit of this kind does
/// not show it.
pub(super) fn unscalable(kind: Kind, unit: &[u8]) -> Option<Option<Unscalable>> {
    // Key pictures have their parameter sets.
    (kind == Kind::VideoI).then(|| {
        h264::unsupported(unit).map(|feature| match feature {
            Unsupported::Interlaced => Unscalable::Interlaced,
            Unsupported::Chroma => Unscalable::Chroma,
            Unsupported::Depth => Unscalable::Depth,
            Unsupported::NoDecoder => Unscalable::Codec,
            Unsupported::Profile | _ => Unscalable::Profile,
        })
    })
}
