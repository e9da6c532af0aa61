//! The class of each access unit of a stream.

use super::Class;
use super::nal::{Kind, Nals};
use super::params::Params;
use super::picture::{Picture, Place};
use super::scan;
use super::{CODEC, PARTS};
use crate::error::MediaError;
use crate::video::{check_bytes, check_parts};

/// The number of units without a key unit after which an intra picture without a recovery point counts as
/// one.
const PATIENCE: u32 = 300;
/// The number of intra pictures without a recovery point, and without another key unit between them, after
/// which further ones count as key units: encoders for broadcasting write no others.
const BARE_MAX: u32 = 2;
/// The number of consecutive intra pictures after which further ones count as key units, also if no other picture
/// refers to them: the stream has only such pictures.
const ALONE_MIN: u32 = 3;

/// Determines the classes of a stream's access units, in decoding order.
///
/// Besides IDR pictures, key units ([`Class::I`]) are intra pictures with a recovery point, as encoders
/// write them for open groups of pictures, and the first pictures of a gradual refresh: of those, the first
/// pictures are incomplete for a decoder that starts there. An intra picture without a recovery point is a
/// key unit only if the stream had no other one for 300 units, or for two such pictures; and if three pictures before
/// it are intra, as in a stream of nothing else. The pictures that
/// follow a key unit but precede it in presentation order are [`Class::Leading`].
///
/// ```
/// use paceline_media::h264::Classifier;
///
/// let mut classifier = Classifier::new();
/// assert!(classifier.classify(b"no unit").is_err());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Classifier {
    params: Params,
    keys: Keys,
}

impl Classifier {
    /// Returns a classifier for the beginning of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the class of the next access unit.
    ///
    /// # Errors
    /// [`MediaError::VideoStream`] if `unit` has no slice or is above a bound.
    pub fn classify(&mut self, unit: &[u8]) -> Result<Class, MediaError> {
        check_bytes(CODEC, 0, unit.len())?;
        let mut picture = Picture::default();
        for (count, nal) in Nals::new(unit).enumerate() {
            check_parts(CODEC, 0, count, PARTS)?;
            self.params.note(&nal);
            let slice = matches!(nal.kind(), Kind::Slice { .. });
            let place = if slice { picture.place(&nal, &self.params) } else { Place::Same };
            picture.add(&nal, place, &self.params);
            // The other slices of a frame can change nothing.
            if picture.idr || picture.begun && !picture.intra && !picture.is_first_field() {
                break;
            }
        }
        if !picture.begun {
            return Err(scan::no_slice(unit, 0));
        }
        Ok(self.keys.class(&picture))
    }

    /// Returns the order of the latest unit; see [`crate::codec::Units::order`].
    pub(crate) const fn order(&self) -> Option<i64> {
        self.keys.latest
    }
}

/// The key units of a stream so far, and the order of its pictures.
#[derive(Debug, Clone, Default)]
pub(super) struct Keys {
    order: PictureOrder,
    /// The order of the latest picture.
    latest: Option<i64>,
    /// The order of the last key unit, if pictures that precede it may follow.
    open: Option<i64>,
    /// The number of units since the last key unit; `None` before the first.
    since: Option<u32>,
    /// The number of intra pictures without a recovery point since the last other key unit.
    bare: u32,
    /// The number of consecutive intra pictures before the next one.
    alone: u32,
}

impl Keys {
    /// Returns the class of the next picture.
    pub(super) fn class(&mut self, picture: &Picture) -> Class {
        let order = self.order.of(picture);
        self.latest = order;
        let since = self.since.map(|units| units.saturating_add(1));
        let bare = picture.intra && picture.reference && picture.recovery.is_none();
        let key = self.is_key(picture, since);
        self.alone = if picture.intra { self.alone.saturating_add(1) } else { 0 };
        self.bare = match () {
            () if bare && !picture.idr => self.bare.saturating_add(1),
            () if key => 0,
            () => self.bare,
        };
        if key {
            self.open = if picture.idr { None } else { order };
            self.since = Some(0);
            return Class::I;
        }
        self.since = since;
        if self.open.zip(order).is_some_and(|(key, order)| order < key) {
            return Class::Leading;
        }
        // A field that is a unit by itself is needed by the other one.
        let needed = picture.reference || picture.is_first_field();
        if needed { Class::P } else { Class::B }
    }

    fn is_key(&self, picture: &Picture, since: Option<u32>) -> bool {
        match picture.recovery {
            _ if picture.idr => true,
            Some(0) => picture.intra,
            Some(_) => true,
            // Later pictures may refer to earlier ones, so a stream with key units does not start here.
            None => {
                let recent = since.is_some_and(|units| units < PATIENCE);
                let patient = picture.reference && (!recent || self.bare >= BARE_MAX);
                picture.intra && (patient || self.alone >= ALONE_MIN)
            }
        }
    }
}

/// The picture order count of type 0 (8.2.1.1). Other types have no leading pictures in practice.
#[derive(Debug, Clone, Default)]
pub(super) struct PictureOrder {
    /// The most significant part and `pic_order_cnt_lsb` of the last reference picture.
    last: (i64, u32),
}

impl PictureOrder {
    /// Returns the order of the next picture in decoding order.
    pub(super) fn of(&mut self, picture: &Picture) -> Option<i64> {
        let (lsb, bits, bottom) = picture.order?;
        if picture.idr {
            self.last = (0, 0);
        }
        let (high, low) = self.last;
        let (range, half) = (1_i64 << bits, 1_i64 << bits >> 1);
        let step = i64::from(lsb) - i64::from(low);
        let high = match () {
            () if step <= -half => high + range,
            () if step > half => high - range,
            () => high,
        };
        if picture.reference {
            self.last = (high, lsb);
        }
        let top = high + i64::from(lsb);
        Some(if picture.field { top } else { top.min(top + bottom) })
    }
}
