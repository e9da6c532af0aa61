//! Splitting of a byte stream into access units.

use std::iter::FusedIterator;

use super::scan::scan;
use super::{AccessUnit, H265Classifier};
use crate::error::MediaError;

/// Splits an Annex B byte stream into access units, in decoding order.
///
/// Delimiters, parameter sets and prefix SEI belong to the unit that follows; suffix SEI and the end of a
/// sequence belong to the unit before. The units joined together are the stream from its first start code
/// on. No picture is decoded. The iterator ends after the first error.
///
/// The stream must be complete: a file, or the output of a pipe up to its end.
///
/// # Errors
/// Items are [`MediaError::VideoStream`]: bytes without a start code, NAL units at the end without a
/// picture, or a unit above a bound. Offsets count from the start of `stream`.
#[must_use]
pub fn split(
    stream: &[u8],
) -> impl FusedIterator<Item = Result<AccessUnit<'_>, MediaError>> + Clone {
    Units { stream, at: 0, classifier: H265Classifier::new() }
}

#[derive(Debug, Clone)]
struct Units<'a> {
    stream: &'a [u8],
    at: usize,
    classifier: H265Classifier,
}

impl<'a> Units<'a> {
    fn unit(&mut self) -> Result<Option<AccessUnit<'a>>, MediaError> {
        let Some(unit) = scan(self.stream, self.at)? else { return Ok(None) };
        self.at = unit.end;
        let bytes = self.stream.get(unit).unwrap_or_default();
        Ok(Some(AccessUnit { bytes, class: self.classifier.classify(bytes)? }))
    }
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
