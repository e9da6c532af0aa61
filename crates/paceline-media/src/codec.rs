//! The codecs of coded video, behind one interface.

use crate::error::MediaError;
use crate::video::{AccessUnit, Class, StreamInfo};
use crate::{av1, h264, h265};
use std::borrow::Cow;

/// A codec whose pictures depend on others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Codec {
    /// ITU-T H.264 in Annex B byte streams. It can also be scaled.
    H264,
    /// ITU-T H.265 in Annex B byte streams.
    H265,
    /// AV1 in low-overhead OBUs.
    Av1,
}

impl Codec {
    /// Returns the name that users know.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::H264 => "H.264",
            Self::H265 => "H.265",
            Self::Av1 => "AV1",
        }
    }

    /// Returns true if pictures of this codec can be decoded and encoded here.
    #[must_use]
    pub const fn has_transcoder(self) -> bool {
        matches!(self, Self::H264) && h264::HAS_TRANSCODER
    }

    /// Returns true if a decoder that starts at this unit of class I shows correct pictures from the first one on. In a
    /// gradual refresh of H.264 it does not.
    #[must_use]
    pub fn is_start(self, unit: &[u8]) -> bool {
        match self {
            Self::H264 => h264::is_idr(unit) || h264::refresh_frames(unit) == 0,
            Self::H265 | Self::Av1 => true,
        }
    }

    /// Splits a complete stream into access units, in decoding order.
    ///
    /// # Errors
    /// Items are the errors of [`h264::split`], [`h265::split`] and [`av1::split`].
    pub fn split(
        self,
        stream: &[u8],
    ) -> Box<dyn Iterator<Item = Result<AccessUnit<'_>, MediaError>> + '_> {
        match self {
            Self::H264 => Box::new(h264::split(stream)),
            Self::H265 => Box::new(h265::split(stream)),
            Self::Av1 => Box::new(av1::split(stream)),
        }
    }

    /// Returns the properties of a stream from the headers in `bytes`; `None` if there are none.
    ///
    /// # Errors
    /// The errors of [`h264::info`], [`h265::info`] and [`av1::info`].
    pub fn info(self, bytes: &[u8]) -> Result<Option<StreamInfo>, MediaError> {
        match self {
            Self::H264 => h264::info(bytes),
            Self::H265 => h265::info(bytes),
            Self::Av1 => av1::info(bytes),
        }
    }
}

/// The classes of a stream's units, and its headers for decoders that join later.
///
/// ```
/// use paceline_media::codec::{Codec, Units};
///
/// let mut units = Units::new(Codec::H265);
/// assert!(units.classify(b"no unit").is_err());
/// ```
#[derive(Debug, Clone)]
pub struct Units(State);

#[derive(Debug, Clone)]
enum State {
    H264(Box<(h264::Classifier, h264::ParameterSets)>),
    H265(Box<(h265::H265Classifier, h265::H265ParameterSets)>),
    Av1(Box<(av1::Av1Classifier, av1::SequenceHeader)>),
}

impl Units {
    /// Returns the state at the beginning of a stream.
    #[must_use]
    pub fn new(codec: Codec) -> Self {
        Self(match codec {
            Codec::H264 => State::H264(Box::default()),
            Codec::H265 => State::H265(Box::default()),
            Codec::Av1 => State::Av1(Box::default()),
        })
    }

    /// Returns the class of the next access unit, in decoding order.
    ///
    /// # Errors
    /// The errors of the codec's classifier, if `unit` is no access unit.
    pub fn classify(&mut self, unit: &[u8]) -> Result<Class, MediaError> {
        match &mut self.0 {
            State::H264(state) => state.0.classify(unit),
            State::H265(state) => state.0.classify(unit),
            State::Av1(state) => state.0.classify(unit),
        }
    }

    /// Returns the place of the unit that was classified last in presentation order, since the last IDR picture: the picture
    /// order count. `None` for AV1, whose units are in presentation order, and for streams that do not state it.
    #[must_use]
    pub fn order(&self) -> Option<i64> {
        match &self.0 {
            State::H264(state) => state.0.order(),
            State::H265(state) => state.0.order(),
            State::Av1(_) => None,
        }
    }

    /// Records the headers in `unit`, and returns the unit. A unit of class I without headers receives them, and headers
    /// that a unit repeats between its slices are left out.
    ///
    /// Pass every unit with its class, in decoding order.
    pub fn complete<'a>(&mut self, unit: &'a [u8], class: Class) -> Cow<'a, [u8]> {
        match &mut self.0 {
            State::H264(state) => state.1.complete(unit, class),
            State::H265(state) => state.1.complete(unit, class),
            State::Av1(state) => state.1.complete(unit, class),
        }
    }
}
