//! The class of each temporal unit of a stream.

use super::frame::Frame;
use super::obu::{Kind, Obus};
use super::sequence::Sequence;
use super::{CODEC, Class};
use crate::error::MediaError;
use crate::video::{check_bytes, check_parts};

/// The parts of a unit, in error messages.
const PARTS: &str = "OBUs";

/// Determines the classes of a stream's temporal units, in decoding order.
///
/// A unit has the class of its most needed frame:
///
/// - [`Class::I`]: its first frame is a shown key frame. It replaces all frames that later ones may need.
/// - [`Class::B`]: none of its frames is kept for later ones (`refresh_frame_flags` is 0). This includes a
///   unit that only shows a frame decoded before, unless that is a key frame.
/// - [`Class::P`]: all others: inter frames that are kept, intra-only and switch frames, and key frames that
///   are decoded in one unit and shown in a later one (forward key frames).
///
/// No unit is [`Class::Leading`]. Before the first sequence header, frame headers cannot be read, and all
/// units are P.
///
/// ```
/// use paceline_media::av1::Av1Classifier;
///
/// let mut classifier = Av1Classifier::new();
/// assert!(classifier.classify(b"no unit").is_err());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Av1Classifier {
    sequence: Option<Sequence>,
    /// The slots whose frame is known not to be a key frame, one bit each.
    other: u8,
}

impl Av1Classifier {
    /// Returns a classifier for the beginning of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the class of the next temporal unit.
    ///
    /// # Errors
    /// [`MediaError::VideoStream`] if `unit` has no frame, contains an OBU or a header that cannot be read,
    /// or is above a bound.
    pub fn classify(&mut self, unit: &[u8]) -> Result<Class, MediaError> {
        self.class_of(unit, 0)
    }

    /// Returns the class of the unit in `stream` from offset `at` to the end.
    pub(super) fn class_of(&mut self, stream: &[u8], at: usize) -> Result<Class, MediaError> {
        check_bytes(CODEC, at, stream.len().saturating_sub(at))?;
        let mut class: Option<Class> = None;
        for (count, obu) in Obus::starting(stream, at).enumerate() {
            check_parts(CODEC, at, count, PARTS)?;
            let obu = obu?;
            match obu.kind {
                Kind::Sequence => self.sequence = Some(Sequence::read(&obu)?),
                Kind::Frame => {
                    let frame = self.sequence.as_ref().map(|sequence| {
                        Frame::read(&obu, sequence).ok_or_else(|| MediaError::VideoStream {
                            codec: CODEC,
                            at: obu.begin,
                            reason: format!(
                                "frame header of {} bytes ends before refresh_frame_flags",
                                obu.payload.len()
                            ),
                            fix: "pass whole temporal units, as the encoder wrote them",
                        })
                    });
                    let next = self.class_of_frame(frame.transpose()?);
                    class = Some(class.map_or(next, |class| class.and(next)));
                }
                Kind::Delimiter | Kind::Other => {}
            }
        }
        class.ok_or_else(|| no_frame(stream, at))
    }

    /// Returns the class of a unit with this frame only.
    fn class_of_frame(&mut self, frame: Option<Frame>) -> Class {
        match frame {
            None => {
                self.other = 0;
                Class::P
            }
            Some(Frame::Existing { slot }) if self.other >> slot & 1 == 1 => Class::B,
            // A key frame that is shown later replaces all slots then.
            Some(Frame::Existing { .. }) => {
                self.other = 0;
                Class::P
            }
            Some(Frame::Coded { key, shown, refresh }) => {
                self.other = if key { self.other & !refresh } else { self.other | refresh };
                match () {
                    () if key && shown => Class::I,
                    () if refresh == 0 => Class::B,
                    () => Class::P,
                }
            }
        }
    }
}

/// Returns the error for bytes at `at` without a frame.
pub(super) fn no_frame(stream: &[u8], at: usize) -> MediaError {
    let (reason, fix) = match stream.len().saturating_sub(at) {
        0 => ("no bytes at all".to_owned(), "pass the bytes of a temporal unit"),
        bytes => (
            format!("{bytes} bytes of OBUs without a frame"),
            "pass whole temporal units, up to and including the shown frame",
        ),
    };
    MediaError::VideoStream { codec: CODEC, at, reason, fix }
}
