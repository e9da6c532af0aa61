//! The access units of a published video.

use crate::error::PublishError;
use bytes::Bytes;
use paceline_media::h264::{self, Class, Classifier, ParameterSets, Unsupported};
use paceline_proto::{Kind, Unscalable};
use std::borrow::Cow;

/// The state of a video between its units.
#[derive(Default)]
pub(super) struct VideoUnits {
    sets: ParameterSets,
    classifier: Classifier,
}

impl VideoUnits {
    /// Returns the kind of the next unit. Prepends missing parameter sets to a key unit.
    pub(super) fn take(&mut self, payload: &mut Bytes) -> Result<Kind, PublishError> {
        let class = self.classifier.classify(payload);
        let class = class.map_err(|error| PublishError::NoAccessUnit {
            bytes: payload.len(),
            what: error.to_string(),
        })?;
        if let Cow::Owned(complete) = self.sets.complete(payload) {
            *payload = complete.into();
        }
        Ok(match class {
            Class::I => Kind::VideoI,
            Class::P => Kind::VideoP,
            Class::B => Kind::VideoB,
            Class::Leading => Kind::VideoLeading,
        })
    }
}

/// Returns the reason why the video cannot be scaled, `Some(None)` if it can, and `None` if this unit does
/// not show it.
pub(super) fn unscalable(unit: &[u8]) -> Option<Option<Unscalable>> {
    h264::is_idr(unit).then(|| {
        h264::unsupported(unit).map(|feature| match feature {
            Unsupported::Interlaced => Unscalable::Interlaced,
            Unsupported::Chroma => Unscalable::Chroma,
            Unsupported::Depth => Unscalable::Depth,
            Unsupported::NoDecoder => Unscalable::Codec,
            Unsupported::Profile | _ => Unscalable::Profile,
        })
    })
}
