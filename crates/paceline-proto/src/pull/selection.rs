//! Selections of a pull: the newest samples, one before them, or a range of sequence numbers or times.

use crate::sample::Kind;
use core::fmt;
use core::ops::Range;

/// The most samples per pull.
pub const ITEMS_MAX: usize = 65_536;
#[expect(clippy::cast_possible_truncation, reason = "65,536")]
const NEWEST_MAX: u32 = ITEMS_MAX as u32;

/// The samples to pull, selected separately for each publisher.
///
/// A selection of video starts at the I picture at or before its first sample, so that it can be decoded. It
/// is one contiguous run in decoding order.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Selection {
    /// The newest n samples, from 1 to [`ITEMS_MAX`].
    Newest(u32),
    /// The n-th newest sample alone, from 1 (the newest) to [`ITEMS_MAX`].
    Nth(u32),
    /// The sequence numbers from `first` to `last`, inclusive.
    Seq {
        /// The lowest sequence number.
        first: u64,
        /// The highest sequence number.
        last: u64,
    },
    /// The samples captured from `from_ns` to `to_ns`, inclusive, in UTC nanoseconds since 1970.
    Time {
        /// The earliest time.
        from_ns: u64,
        /// The latest time.
        to_ns: u64,
    },
}

/// The error for an invalid selection.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// The number of samples is 0 or above [`ITEMS_MAX`].
    #[error("newest {0}: must be from 1 to {ITEMS_MAX}; pull older samples by sequence numbers")]
    Newest(u32),
    /// The position is 0 or above [`ITEMS_MAX`].
    #[error(
        "place {0}, counted from the newest: must be from 1, which is the newest, to {ITEMS_MAX}; \
         pull older samples by sequence numbers"
    )]
    Nth(u32),
    /// The range of sequence numbers ends before it begins.
    #[error("sequence numbers {first} to {last}: the first must not be above the last; swap them")]
    Seq {
        /// The first sequence number.
        first: u64,
        /// The last sequence number.
        last: u64,
    },
    /// The range of times ends before it begins.
    #[error(
        "times {from_ns} ns to {to_ns} ns: the start must not be after the end; swap them (UTC, \
         since 1970)"
    )]
    Time {
        /// The start.
        from_ns: u64,
        /// The end.
        to_ns: u64,
    },
}

impl Selection {
    /// Selects the newest `n` samples.
    ///
    /// # Errors
    /// Returns [`SelectionError::Newest`] unless `n` is from 1 to [`ITEMS_MAX`].
    pub const fn newest(n: u32) -> Result<Self, SelectionError> {
        if n == 0 || n > NEWEST_MAX {
            return Err(SelectionError::Newest(n));
        }
        Ok(Self::Newest(n))
    }

    /// Selects the `n`-th newest sample alone; 1 is the newest.
    ///
    /// # Errors
    /// Returns [`SelectionError::Nth`] unless `n` is from 1 to [`ITEMS_MAX`].
    pub const fn nth(n: u32) -> Result<Self, SelectionError> {
        if n == 0 || n > NEWEST_MAX {
            return Err(SelectionError::Nth(n));
        }
        Ok(Self::Nth(n))
    }

    /// Selects the sequence numbers from `first` to `last`, inclusive.
    ///
    /// # Errors
    /// Returns [`SelectionError::Seq`] if `first` is above `last`.
    pub const fn seq(first: u64, last: u64) -> Result<Self, SelectionError> {
        if first > last {
            return Err(SelectionError::Seq { first, last });
        }
        Ok(Self::Seq { first, last })
    }

    /// Selects the samples captured from `from_ns` to `to_ns`, inclusive, in UTC nanoseconds since 1970.
    ///
    /// # Errors
    /// Returns [`SelectionError::Time`] if `from_ns` is after `to_ns`.
    pub const fn time(from_ns: u64, to_ns: u64) -> Result<Self, SelectionError> {
        if from_ns > to_ns {
            return Err(SelectionError::Time { from_ns, to_ns });
        }
        Ok(Self::Time { from_ns, to_ns })
    }

    /// Returns true if the selection is a range, whose meaning does not depend on other holders, unlike a
    /// position.
    #[must_use]
    pub const fn is_range(&self) -> bool {
        matches!(self, Self::Seq { .. } | Self::Time { .. })
    }

    /// Returns the selection for one of several holders: everything up to a position, because the position
    /// depends on the samples of other holders.
    pub(super) const fn widened(self) -> Self {
        match self {
            Self::Nth(n) => Self::Newest(n),
            Self::Newest(_) | Self::Seq { .. } | Self::Time { .. } => self,
        }
    }

    /// Returns the index range that contains the selected samples of a series; [`Self::wants`] filters it.
    pub(super) fn choose(&self, series: &impl Series) -> Range<usize> {
        let chosen = self.run(series);
        if chosen.is_empty() {
            return 0..0;
        }
        lead_in(series, chosen.start)..chosen.end
    }

    /// Returns the index range for one of several holders.
    ///
    /// A range of video also includes pictures that another holder's first picture may depend on. It does so
    /// even if the range here starts with a later I picture or is empty.
    pub(super) fn choose_for_others(&self, series: &impl Series) -> Range<usize> {
        let upto = match *self {
            Self::Newest(_) | Self::Nth(_) => return self.choose(series),
            Self::Seq { first, .. } => below(series, |mark| mark.seq <= first),
            Self::Time { from_ns, .. } if series.is_in_time_order() => {
                below(series, |mark| mark.captured_ns <= from_ns)
            }
            Self::Time { .. } => return self.choose(series),
        };
        let chosen = self.run(series);
        match upto.checked_sub(1) {
            Some(last) if is_video(series, last) => lead_in(series, last)..chosen.end.max(upto),
            Some(_) | None => self.choose(series),
        }
    }

    /// Returns the selected range without the pictures needed to decode it.
    fn run(&self, series: &impl Series) -> Range<usize> {
        let count = series.count();
        match *self {
            Self::Newest(n) => count.saturating_sub(n as usize)..count,
            Self::Nth(n) => match count.checked_sub(n as usize) {
                Some(place) if n > 0 => place..place + 1,
                Some(_) | None => 0..0,
            },
            Self::Seq { first, last } => {
                below(series, |mark| mark.seq < first)..below(series, |mark| mark.seq <= last)
            }
            Self::Time { from_ns, to_ns } if series.is_in_time_order() => {
                below(series, |mark| mark.captured_ns < from_ns)..below(series, |mark| {
                    mark.captured_ns <= to_ns
                })
            }
            Self::Time { .. } => {
                let inside = |&place: &usize| series.mark(place).is_some_and(|m| self.spans(&m));
                let first = (0..count).find(inside).unwrap_or(count);
                first..(first..count).rev().find(inside).map_or(first, |last| last + 1)
            }
        }
    }

    /// Returns true if a sample of the chosen range is selected. All are, unless capture times run backward.
    /// Video is always selected, because the rest could not be decoded.
    pub(super) fn wants(&self, mark: &Mark) -> bool {
        mark.kind.is_video() || self.spans(mark)
    }

    /// Returns false if this is a range of times that excludes the sample.
    fn spans(&self, mark: &Mark) -> bool {
        match *self {
            Self::Time { from_ns, to_ns } => (from_ns..=to_ns).contains(&mark.captured_ns),
            Self::Newest(_) | Self::Nth(_) | Self::Seq { .. } => true,
        }
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newest(1) | Self::Nth(1) => f.write_str("the newest sample"),
            Self::Newest(n) => write!(f, "the newest {n} samples"),
            Self::Nth(n) => write!(f, "sample {n} counted from the newest"),
            Self::Seq { first, last } if first == last => write!(f, "sequence number {first}"),
            Self::Seq { first, last } => write!(f, "sequence numbers {first} to {last}"),
            Self::Time { from_ns, to_ns } => {
                write!(f, "samples captured from {} to {}", Seconds(*from_ns), Seconds(*to_ns))
            }
        }
    }
}

/// Formats a time as seconds since 1970 with three decimals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seconds(pub(super) u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} s", self.0 / 1_000_000_000, self.0 / 1_000_000 % 1_000)
    }
}

/// The properties of a sample that a selection examines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) seq: u64,
    pub(super) captured_ns: u64,
    pub(super) kind: Kind,
}

/// One publisher's samples, ordered by sequence number.
pub(super) trait Series {
    fn count(&self) -> usize;
    fn mark(&self, place: usize) -> Option<Mark>;
    /// Returns true if no sample was captured before its predecessor.
    fn is_in_time_order(&self) -> bool;
}

/// Returns the length of the prefix for which `is` is true; `is` must be false for all later samples.
pub(super) fn below(series: &impl Series, is: impl Fn(&Mark) -> bool) -> usize {
    let (mut low, mut high) = (0, series.count());
    while low < high {
        let middle = low + (high - low) / 2;
        if series.mark(middle).is_some_and(|mark| is(&mark)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

fn is_video(series: &impl Series, place: usize) -> bool {
    series.mark(place).is_some_and(|mark| mark.kind.is_video())
}

/// Returns the index at which decoding of a selection from `first` must start: that of an I picture. If there
/// is none, returns the oldest sample, because another holder may have the earlier ones.
fn lead_in(series: &impl Series, first: usize) -> usize {
    if !is_video(series, first) {
        return first;
    }
    let is_start =
        |&place: &usize| series.mark(place).is_some_and(|mark| mark.kind == Kind::VideoI);
    (0..=first).rev().find(is_start).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_selection_error_suggests_valid_input() {
        for (error, words) in [
            (Selection::newest(0), ["newest 0", "from 1 to 65536"]),
            (Selection::newest(65_537), ["newest 65537", "sequence numbers"]),
            (Selection::nth(0), ["place 0", "from 1"]),
            (Selection::nth(65_537), ["place 65537", "to 65536"]),
            (Selection::seq(5, 4), ["5 to 4", "swap"]),
            (Selection::time(2, 1), ["2 ns to 1 ns", "swap"]),
        ] {
            let text = error.unwrap_err().to_string();
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        }
        assert_eq!(Selection::newest(65_536), Ok(Selection::Newest(65_536)));
        assert_eq!(Selection::nth(65_536), Ok(Selection::Nth(65_536)));
        assert_eq!(Selection::seq(4, 4).map(|s| s.to_string()), Ok("sequence number 4".into()));
        assert_eq!(Selection::time(7, 7), Ok(Selection::Time { from_ns: 7, to_ns: 7 }));
    }
}
