//! Readable digits of five by seven cells, scaled with the picture.

use super::{WHITE, part_row};
use crate::size::Size;

/// The characters in the order of [`GLYPHS`].
const CHARS: &str = "0123456789:.#";

/// Seven rows each; bit 4 is the leftmost cell.
const GLYPHS: [[u8; 7]; 13] = [
    [0x0e, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0e],
    [0x04, 0x0c, 0x04, 0x04, 0x04, 0x04, 0x0e],
    [0x0e, 0x11, 0x01, 0x02, 0x04, 0x08, 0x1f],
    [0x1f, 0x02, 0x04, 0x02, 0x01, 0x11, 0x0e],
    [0x02, 0x06, 0x0a, 0x12, 0x1f, 0x02, 0x02],
    [0x1f, 0x10, 0x1e, 0x01, 0x01, 0x11, 0x0e],
    [0x06, 0x08, 0x10, 0x1e, 0x11, 0x11, 0x0e],
    [0x1f, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08],
    [0x0e, 0x11, 0x11, 0x0e, 0x11, 0x11, 0x0e],
    [0x0e, 0x11, 0x11, 0x0f, 0x01, 0x02, 0x0c],
    [0x00, 0x0c, 0x0c, 0x00, 0x0c, 0x0c, 0x00],
    [0x00, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x0c],
    [0x0a, 0x0a, 0x1f, 0x0a, 0x1f, 0x0a, 0x0a],
];

/// Draws lines of digits into the band between the bars and the blocks, as large as fits.
pub(super) fn draw_lines(size: Size, luma: &mut [u8], lines: &[String; 2]) {
    let (width, _) = size.usizes();
    let (top, bottom) = (part_row(size, 10), part_row(size, 14));
    let longest = lines.iter().map(String::len).max().unwrap_or(0);
    // Two lines of seven cells with a cell above, two between and a cell below.
    let cell = ((bottom - top) / 18).min(width / (6 * longest + 2)).max(1);
    for (line, row) in lines.iter().zip([top + cell, top + 10 * cell]) {
        for (at, glyph) in line.chars().filter_map(glyph).enumerate() {
            let left = (6 * at + 2) * cell;
            for (y, bits) in glyph.iter().enumerate() {
                let cells = (0..5).filter(|x| bits >> (4 - x) & 1 == 1);
                for x in cells {
                    fill(luma, width, [left + x * cell, row + y * cell], cell);
                }
            }
        }
    }
}

fn glyph(character: char) -> Option<&'static [u8; 7]> {
    GLYPHS.get(CHARS.find(character)?)
}

/// Fills a square of `side` pixels with its top left corner at `at`.
fn fill(luma: &mut [u8], width: usize, [x, y]: [usize; 2], side: usize) {
    for row in luma.chunks_exact_mut(width).skip(y).take(side) {
        if let Some(pixels) = row.get_mut(x..x + side) {
            pixels.fill(WHITE);
        }
    }
}
