//! Splitting of a byte stream into temporal units.

use std::iter::FusedIterator;
use std::ops::Range;

use super::classify::no_frame;
use super::obu::{Kind, Obus};
use super::{AccessUnit, Av1Classifier};
use crate::error::MediaError;

/// Splits a stream of low-overhead OBUs into temporal units, in decoding order.
///
/// A temporal delimiter behind a frame begins the next unit. The units joined together are the stream. No
/// picture is decoded. The iterator ends after the first error.
///
/// The stream must be complete: an `.obu` file, or the output of a pipe up to its end. Other containers
/// (IVF, Matroska, MP4, and OBUs in the length-delimited form of annex B) are errors; ffmpeg converts them
/// with `-c copy -f obu`.
///
/// # Errors
/// Items are [`MediaError::VideoStream`]: an OBU that cannot be read, OBUs at the end without a frame, or a
/// unit above a bound. Offsets count from the start of `stream`.
#[must_use]
pub fn split(
    stream: &[u8],
) -> impl FusedIterator<Item = Result<AccessUnit<'_>, MediaError>> + Clone {
    Units { stream, at: 0, classifier: Av1Classifier::new() }
}

#[derive(Debug, Clone)]
struct Units<'a> {
    stream: &'a [u8],
    at: usize,
    classifier: Av1Classifier,
}

impl<'a> Units<'a> {
    fn unit(&mut self) -> Result<Option<AccessUnit<'a>>, MediaError> {
        let Some(unit) = find(self.stream, self.at)? else { return Ok(None) };
        let begin = unit.start;
        self.at = unit.end;
        let upto = self.stream.get(..unit.end).unwrap_or_default();
        let class = self.classifier.class_of(upto, begin)?;
        Ok(Some(AccessUnit { bytes: self.stream.get(unit).unwrap_or_default(), class }))
    }
}

/// Returns the position of the unit at offset `at`; `None` at the end of the stream.
fn find(stream: &[u8], at: usize) -> Result<Option<Range<usize>>, MediaError> {
    if at >= stream.len() {
        return Ok(None);
    }
    let mut begun = false;
    for obu in Obus::starting(stream, at) {
        let obu = obu?;
        if begun && obu.kind == Kind::Delimiter {
            return Ok(Some(at..obu.begin));
        }
        begun |= obu.kind == Kind::Frame;
    }
    if begun { Ok(Some(at..stream.len())) } else { Err(no_frame(stream, at)) }
}

/// Returns the end of the temporal unit at the beginning of `bytes`, which is the end of `bytes` unless another one
/// follows; `None` if bytes of it are missing.
pub(crate) fn first_unit(bytes: &[u8]) -> Result<Option<usize>, MediaError> {
    let mut obus = Obus::starting(bytes, 0);
    let mut begun = false;
    while !obus.is_at_end() {
        let obu = match obus.read() {
            Ok(obu) => obu,
            Err((_, true)) => return Ok(None),
            Err((error, false)) => return Err(error),
        };
        if begun && obu.kind == Kind::Delimiter {
            return Ok(Some(obu.begin));
        }
        begun |= obu.kind == Kind::Frame;
        obus.pass(&obu);
    }
    Ok(begun.then_some(bytes.len()))
}

impl<'a> Iterator for Units<'a> {
    type Item = Result<AccessUnit<'a>, MediaError>;

    fn next(&mut self) -> Option<Self::Item> {
        let unit = self.unit();
        if unit.is_err() {
            self.at = self.stream.len();
        }
        unit.transpose()
    }
}

impl FusedIterator for Units<'_> {}
