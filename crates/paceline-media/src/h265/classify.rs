//! The class of each access unit of a stream.

use std::collections::BTreeMap;

use super::nal::{Header, Kind};
use super::order::PictureOrder;
use super::sps::Sps;
use super::{CODEC, Class, scan};
use crate::annexb::{Nal, Nals};
use crate::error::MediaError;
use crate::video::{check_bytes, check_parts};

/// Determines the classes of a stream's access units, in decoding order.
///
/// The types in the NAL unit headers give the class:
///
/// - Key units ([`Class::I`]) are IRAP pictures: IDR, CRA and BLA. A gradual refresh has none after its
///   first picture, so no decoder can start in it.
/// - RASL pictures are [`Class::Leading`].
/// - [`Class::B`] are pictures that their own temporal sub-layer does not reference (types with an even
///   number up to 14), if no sub-layer is above it. A higher sub-layer might need them.
/// - All others are [`Class::P`].
///
/// RADL pictures precede a key picture in presentation order but need none before it, so they count as
/// P or B and are received by a decoder that starts there.
///
/// If each picture is one field, a picture is P instead of B: without it, half of a frame would be missing.
/// Before the first SPS the number of sub-layers is not known, and nothing is B.
///
/// ```
/// use paceline_media::h265::H265Classifier;
///
/// let mut classifier = H265Classifier::new();
/// assert!(classifier.classify(b"no unit").is_err());
/// ```
#[derive(Debug, Clone, Default)]
pub struct H265Classifier {
    /// The highest `TemporalId` of each SPS by its id, or `None` if its pictures are fields.
    sets: BTreeMap<u32, Option<u32>>,
    order: PictureOrder,
    /// The order of the latest picture.
    latest: Option<i64>,
}

impl H265Classifier {
    /// Returns a classifier for the beginning of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the class of the next access unit.
    ///
    /// # Errors
    /// [`MediaError::VideoStream`] if `unit` has no first slice segment of a picture or is above a bound.
    pub fn classify(&mut self, unit: &[u8]) -> Result<Class, MediaError> {
        check_bytes(CODEC, 0, unit.len())?;
        let mut class = None;
        self.latest = None;
        for (count, nal) in Nals::new(unit).enumerate() {
            check_parts(CODEC, 0, count, scan::PARTS)?;
            let header = Header::of(&nal);
            self.note(header, &nal);
            class = match class {
                None if header.begins_picture(&nal) => {
                    self.latest = self.order.of(header, &nal);
                    Some(self.class(header))
                }
                Some(class) if header.kind == Kind::Slice => Some(class.and(self.class(header))),
                class => class,
            };
            // Only further slices, of any layer, can make a unit P.
            if matches!(class, Some(Class::I | Class::P)) {
                break;
            }
        }
        class.ok_or_else(|| scan::no_picture(unit, 0))
    }

    /// Returns the order of the latest unit; see [`crate::codec::Units::order`].
    pub(crate) const fn order(&self) -> Option<i64> {
        self.latest
    }

    /// Returns the class of a slice.
    fn class(&self, header: Header) -> Class {
        if header.is_key() {
            return Class::I;
        }
        if header.is_skipped_leading() {
            return Class::Leading;
        }
        let highest = |max: &Option<u32>| *max == Some(header.temporal);
        let highest = !self.sets.is_empty() && self.sets.values().all(highest);
        if highest && !header.is_reference() { Class::B } else { Class::P }
    }

    /// Records parameter sets. Ignores other NAL units, and sets that cannot be read.
    fn note(&mut self, header: Header, nal: &Nal<'_>) {
        self.order.note(header, nal);
        if header.kind != Kind::Sps {
            return;
        }
        if let Ok(sps) = Sps::read(nal) {
            let max = (!sps.vui.fields).then_some(sps.temporal_max);
            self.sets.insert(sps.id, max);
        }
    }
}
