//! Reads of lists by index. The planner's indices are valid by construction; an invalid one reads
//! as the default instead of a panic.

/// The proxy of each subscriber of each tag.
pub(crate) type Assignment = Vec<Vec<usize>>;

/// Differences of costs below this part are rounding.
pub(crate) const TOLERANCE: f64 = 1e-6;

/// Returns an item of a list, or the default beyond its end.
pub(crate) fn at<T: Copy + Default>(list: &[T], index: usize) -> T {
    list.get(index).copied().unwrap_or_default()
}

/// Returns the index of the smallest value that is less than infinity, the first of equal ones.
pub(crate) fn least(values: impl Iterator<Item = f64>) -> Option<(usize, f64)> {
    let mut best: Option<(usize, f64)> = None;
    for (index, value) in values.enumerate() {
        if value < best.map_or(f64::INFINITY, |(_, least)| least) {
            best = Some((index, value));
        }
    }
    best
}

/// Converts a count for arithmetic on costs.
pub(crate) fn float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
