//! The blocks of a test card: 64 bits of picture number, 64 of time, 16 of checksum.

use super::{BLACK, WHITE};
use crate::error::MediaError;
use crate::jpeg;
use crate::picture::Picture;
use crate::pixel::PixelFormat;
use crate::size::Size;

const COLUMNS: u32 = 24;
const ROWS: u32 = 6;
/// The first row of blocks, in twentieths of the height; each row is one twentieth.
const TOP: u32 = 14;
const BYTES: usize = 18;

/// The brightness that separates black blocks from white ones.
const MIDDLE: u32 = 126;
/// The smallest difference of a block from [`MIDDLE`]. Otherwise the picture is not a card.
const CONTRAST_MIN: u32 = 24;

/// The data in a test card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CardReading {
    /// The number of the picture.
    pub frame: u64,
    /// The time of the picture, in microseconds of the drawer's clock.
    pub micros: u64,
}

impl CardReading {
    fn to_bytes(self) -> [u8; BYTES] {
        let mut out = [0; BYTES];
        let [frame, micros] = [self.frame.to_be_bytes(), self.micros.to_be_bytes()];
        let data = frame.into_iter().chain(micros);
        let sum = checksum(data.clone()).to_be_bytes();
        for (out, byte) in out.iter_mut().zip(data.chain(sum)) {
            *out = byte;
        }
        out
    }

    fn from_bytes(bytes: [u8; BYTES]) -> Option<Self> {
        let (frame, rest) = bytes.split_first_chunk::<8>()?;
        let (micros, _) = rest.split_first_chunk::<8>()?;
        let reading =
            Self { frame: u64::from_be_bytes(*frame), micros: u64::from_be_bytes(*micros) };
        (reading.to_bytes() == bytes).then_some(reading)
    }
}

/// Returns the CRC-16/CCITT-FALSE, which rejects all-black and all-white blocks.
fn checksum(bytes: impl Iterator<Item = u8>) -> u16 {
    bytes.fold(0xffff, |sum, byte| {
        (0..8).fold(sum ^ (u16::from(byte) << 8), |sum: u16, _| {
            if sum & 0x8000 == 0 { sum << 1 } else { (sum << 1) ^ 0x1021 }
        })
    })
}

/// Draws the blocks into a luma plane.
pub(super) fn draw(size: Size, luma: &mut [u8], reading: CardReading) {
    let (width, _) = size.usizes();
    let bytes = reading.to_bytes();
    let mut line = vec![BLACK; width];
    for (row, bytes) in (TOP..).zip(bytes.chunks_exact(3)) {
        let bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
        for (column, bit) in (0..COLUMNS).zip(bits) {
            let edge = |column: u32| (column * size.width).div_ceil(COLUMNS) as usize;
            if let Some(block) = line.get_mut(edge(column)..edge(column + 1)) {
                block.fill(if bit == 1 { WHITE } else { BLACK });
            }
        }
        let edges = super::part_row(size, row) * width..super::part_row(size, row + 1) * width;
        for row in luma.get_mut(edges).unwrap_or_default().chunks_exact_mut(width) {
            row.copy_from_slice(&line);
        }
    }
}

/// Reads the blocks of a test card at any size.
///
/// Returns `None` if the picture is not a test card, is damaged, or is too small. Cards drawn at 320x240
/// or larger can be read down to 80x60.
#[must_use]
pub fn read_card(picture: &Picture<'_>) -> Option<CardReading> {
    let Size { width, height } = picture.size();
    let mut bytes = [0; BYTES];
    for (index, byte) in (0..).zip(bytes.iter_mut()) {
        for bit in index * 8..index * 8 + 8 {
            let xs = middle(bit % COLUMNS, COLUMNS, width);
            let ys = middle(TOP + bit / COLUMNS, 20, height);
            let value = mean(picture, xs, ys)?;
            if value.abs_diff(MIDDLE) < CONTRAST_MIN {
                return None;
            }
            *byte = *byte << 1 | u8::from(value > MIDDLE);
        }
    }
    const { assert!(COLUMNS * ROWS == 8 * 18, "every bit has a block") };
    CardReading::from_bytes(bytes)
}

/// Reads the blocks of a test card in a JPEG picture, like [`read_card`].
///
/// # Errors
/// The errors of [`jpeg::decode`]. A valid picture that is not a test card is `Ok(None)`.
pub fn read_card_jpeg(payload: &[u8]) -> Result<Option<CardReading>, MediaError> {
    // The decoder produces RGB fastest; only a few of the pixels are read.
    let picture = jpeg::decode(payload, PixelFormat::Rgb8)?;
    Ok(read_card(&picture.as_picture()))
}

/// Returns the pixels in the middle half of interval `index` of `count` over `length` pixels; at least
/// the one in its centre.
fn middle(index: u32, count: u32, length: u32) -> std::ops::Range<u32> {
    let quarter = |quarters: u32| (4 * index + quarters) * length;
    let (begin, end) = (quarter(1).div_ceil(4 * count), quarter(3) / (4 * count));
    if begin < end {
        return begin..end;
    }
    let centre = quarter(2) / (4 * count);
    centre..centre + 1
}

/// Returns the mean brightness of a rectangle; reads at most 16 by 16 of its pixels.
fn mean(picture: &Picture<'_>, xs: std::ops::Range<u32>, ys: std::ops::Range<u32>) -> Option<u32> {
    let step =
        |range: &std::ops::Range<u32>| (range.end - range.start).div_ceil(16).max(1) as usize;
    let (mut sum, mut count) = (0, 0);
    for y in ys.clone().step_by(step(&ys)) {
        for x in xs.clone().step_by(step(&xs)) {
            sum += u32::from(picture.luma(x, y)?);
            count += 1;
        }
    }
    u32::checked_div(sum, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_published_one() {
        assert_eq!(checksum(b"123456789".iter().copied()), 0x29b1);
    }

    #[test]
    fn a_flipped_bit_is_noticed() {
        let good = CardReading { frame: 5, micros: u64::MAX }.to_bytes();
        assert!(CardReading::from_bytes(good).is_some());
        for bit in 0..BYTES * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(CardReading::from_bytes(bad), None);
        }
        assert_eq!(CardReading::from_bytes([0; BYTES]), None);
        assert_eq!(CardReading::from_bytes([255; BYTES]), None);
    }
}
