//! Splitting of a byte stream into access units.

use std::iter::FusedIterator;
use std::ops::Range;

use super::AccessUnit;
use super::classify::Keys;
use super::params::Params;
use super::scan::{Scan, scan};
use crate::error::MediaError;

/// Splits an Annex B byte stream into access units, in decoding order.
///
/// Delimiters, parameter sets and SEI belong to the unit that follows. All slices of a picture, and both
/// fields of a frame, belong to one unit. The units joined together are the stream from its first start code on. No picture is
/// decoded. The iterator ends after the first error.
///
/// The stream must be complete: a file, or the output of a pipe up to its end.
///
/// # Errors
/// Items are [`MediaError::VideoStream`]: bytes without a start code, NAL units at the end without a
/// picture, or a unit above a bound. Offsets count from the start of `stream`.
#[must_use]
pub fn split(stream: &[u8]) -> Split<'_> {
    Split { stream, at: 0, params: Params::default(), keys: Keys::default() }
}

/// The access units of a byte stream; see [`split`].
#[derive(Debug, Clone)]
pub struct Split<'a> {
    stream: &'a [u8],
    at: usize,
    params: Params,
    keys: Keys,
}

impl<'a> Iterator for Split<'a> {
    type Item = Result<AccessUnit<'a>, MediaError>;

    fn next(&mut self) -> Option<Self::Item> {
        match scan(self.stream, self.at, &mut self.params) {
            Ok(None) => None,
            Ok(Some(Scan { begin, end, picture, .. })) => {
                self.at = end;
                let class = self.keys.class(&picture);
                Some(Ok(AccessUnit { bytes: self.stream.get(begin..end)?, class }))
            }
            Err(error) => {
                self.at = self.stream.len();
                Some(Err(error))
            }
        }
    }
}

impl FusedIterator for Split<'_> {}

/// Finds the ends of access units in a stream that arrives in parts.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    params: Params,
}

impl Cutter {
    /// Returns the position of the first unit of `bytes`, which may have been passed before. The end of the unit is the
    /// end of `bytes` unless another one follows it. `whole` states that the unit ends there then.
    pub(crate) fn first(
        &mut self,
        bytes: &[u8],
        whole: bool,
    ) -> Result<Option<Range<usize>>, MediaError> {
        let mut params = self.params.clone();
        let unit = scan(bytes, 0, &mut params)?;
        let end = |unit: &Scan| if whole || unit.closed { unit.end } else { bytes.len() };
        let unit = unit.map(|unit| unit.begin..end(&unit));
        if unit.as_ref().is_some_and(|unit| whole || unit.end < bytes.len()) {
            self.params = params;
        }
        Ok(unit)
    }
}
