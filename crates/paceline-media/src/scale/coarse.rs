//! Pictures with less detail, for limits that no quality reaches.

use crate::size::Size;

/// Replaces each square of `cell` by `cell` pixels by its mean, in rows of `size.width * channels` samples. `channel`
/// is the one to change.
///
/// Squares at the right and lower edge may be smaller. Every pixel of a square gets the same value.
pub(super) fn flatten<T: Sample>(
    samples: &mut [T],
    size: Size,
    (channel, channels): (usize, usize),
    cell: usize,
) {
    let (width, _) = size.usizes();
    let stride = width * channels;
    let cell = cell.max(1);
    if stride == 0 {
        return;
    }
    for rows in samples.chunks_mut(stride * cell) {
        for left in (0..width).step_by(cell) {
            let columns = left..(left + cell).min(width);
            let at = |x: usize| x * channels + channel;
            let (mut sum, mut count) = (0_u64, 0_u64);
            for row in rows.chunks(stride) {
                for sample in columns.clone().filter_map(|x| row.get(at(x))) {
                    sum += sample.wide();
                    count += 1;
                }
            }
            let mean = T::narrow((sum + count / 2) / count.max(1));
            for row in rows.chunks_mut(stride) {
                for x in columns.clone() {
                    if let Some(sample) = row.get_mut(at(x)) {
                        *sample = mean;
                    }
                }
            }
        }
    }
}

/// A sample of 8 or 16 bits.
pub(super) trait Sample: Copy {
    /// Returns the value.
    fn wide(self) -> u64;
    /// Returns the sample of a value in its range.
    fn narrow(value: u64) -> Self;
}

impl Sample for u8 {
    fn wide(self) -> u64 {
        self.into()
    }

    fn narrow(value: u64) -> Self {
        Self::try_from(value).unwrap_or(Self::MAX)
    }
}

/// A sample of 16 bits in network byte order.
impl Sample for [u8; 2] {
    fn wide(self) -> u64 {
        u16::from_be_bytes(self).into()
    }

    fn narrow(value: u64) -> Self {
        u16::try_from(value).unwrap_or(u16::MAX).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_become_their_means() {
        let size = Size::new(3, 3).unwrap();
        let mut grey = [0, 4, 9, 8, 4, 1, 6, 2, 7];
        flatten(&mut grey, size, (0, 1), 2);
        assert_eq!(grey, [4, 4, 5, 4, 4, 5, 4, 4, 7]);
        let mut pairs = [0_u8, 50, 2, 50, 4, 50, 6, 50];
        flatten(&mut pairs, Size::new(2, 2).unwrap(), (0, 2), 8);
        assert_eq!(pairs, [3, 50, 3, 50, 3, 50, 3, 50]);
        let mut wide = [[1, 0], [1, 2]];
        flatten(&mut wide, Size::new(2, 1).unwrap(), (0, 1), 2);
        assert_eq!(wide, [[1, 1], [1, 1]]);
    }
}
