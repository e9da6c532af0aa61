//! The background of a test card: moving colour bars, with enough grain to cost as many bytes as a real
//! scene.

use super::{BLACK, WHITE, part_row};
use crate::picture::area;
use crate::size::Size;

/// Luma, Cb and Cr of the bars: 75 % white, yellow, cyan, green, magenta, red, blue, dark grey.
const BARS: [[u8; 3]; 8] = [
    [180, 128, 128],
    [162, 44, 142],
    [131, 156, 44],
    [112, 72, 58],
    [84, 184, 198],
    [65, 100, 212],
    [50, 190, 116],
    [48, 128, 128],
];

/// The brightness behind the digits.
const BAND: u8 = 44;

/// The grain: cell size in pixels and strength in steps of brightness.
const GRAIN: [(u32, i32); 3] = [(19, 26), (7, 18), (3, 14)];

/// The picture without digits and blocks.
#[derive(Debug, Clone)]
pub(super) struct Scenery {
    size: Size,
    luma: Vec<u8>,
    cb: Vec<u8>,
    cr: Vec<u8>,
}

impl Scenery {
    pub(super) fn new(size: Size) -> Self {
        let bars_end = part_row(size, 10);
        let band_end = part_row(size, 14);
        let (width, _) = size.usizes();
        let mut luma = vec![BLACK; band_end * width];
        for (y, row) in (0..).zip(luma.chunks_exact_mut(width)) {
            for (x, out) in (0..size.width).zip(row) {
                let grain = grain(x, y);
                let (base, grain) = if (y as usize) < bars_end {
                    (bar(x, size.width)[0], grain)
                } else {
                    (BAND, grain / 3)
                };
                let value = (i32::from(base) + grain).clamp(BLACK.into(), WHITE.into());
                *out = u8::try_from(value).unwrap_or(BLACK);
            }
        }
        let chroma = size.chroma();
        let (mut cb, mut cr) = (vec![128; area(chroma)], vec![128; area(chroma)]);
        let (chroma_width, _) = chroma.usizes();
        let rows = cb.chunks_exact_mut(chroma_width).zip(cr.chunks_exact_mut(chroma_width));
        for (cb, cr) in rows.take(bars_end / 2) {
            for (x, (cb, cr)) in (0..size.width).step_by(2).zip(cb.iter_mut().zip(cr)) {
                [_, *cb, *cr] = bar(x, size.width);
            }
        }
        Self { size, luma, cb, cr }
    }

    /// Draws the moved bars and the band behind the digits.
    pub(super) fn draw(&self, frame: u64, [luma, cb, cr]: [&mut [u8]; 3]) {
        let (width, _) = self.size.usizes();
        let (chroma_width, _) = self.size.chroma().usizes();
        let bars_end = part_row(self.size, 10);
        let shift = self.shift(frame);
        let (bars, band) = self.luma.split_at(bars_end * width);
        let (moving, still) = luma.split_at_mut(bars.len());
        rotate(bars, moving, width, shift);
        if let Some(still) = still.get_mut(..band.len()) {
            still.copy_from_slice(band);
        }
        let moving = bars_end / 2 * chroma_width;
        for (from, to) in [(&self.cb, cb), (&self.cr, cr)] {
            let from = from.get(..moving).unwrap_or_default();
            let to = to.get_mut(..moving).unwrap_or_default();
            rotate(from, to, chroma_width, shift / 2);
        }
    }

    /// Returns the shift of the bars in pixels: about 1/80 of the width for each picture.
    ///
    /// It is even, so that chroma moves by whole samples.
    fn shift(&self, frame: u64) -> usize {
        let width = u64::from(self.size.width & !1);
        let step = (width / 160).max(1) * 2;
        usize::try_from(frame % width * step % width).unwrap_or(0)
    }
}

/// Copies rows of `width`, each rotated left by `shift`.
fn rotate(from: &[u8], to: &mut [u8], width: usize, shift: usize) {
    for (from, to) in from.chunks_exact(width).zip(to.chunks_exact_mut(width)) {
        let (tail, head) = from.split_at(shift.min(width));
        let (left, right) = to.split_at_mut(head.len());
        left.copy_from_slice(head);
        right.copy_from_slice(tail);
    }
}

fn bar(x: u32, width: u32) -> [u8; 3] {
    BARS.get((x * 8 / width) as usize).copied().unwrap_or([BLACK, 128, 128])
}

/// Returns value noise: smooth bumps of several sizes, the same on every call.
fn grain(x: u32, y: u32) -> i32 {
    let bumps = GRAIN.iter().map(|&(cell, strength)| {
        let (column, row) = (x / cell, y / cell);
        let weight = |part: u32| i32::try_from(part % cell).unwrap_or(0);
        let (right, down, cell) = (weight(x), weight(y), i32::try_from(cell).unwrap_or(1));
        let upper = lattice(column, row) * (cell - right) + lattice(column + 1, row) * right;
        let lower =
            lattice(column, row + 1) * (cell - right) + lattice(column + 1, row + 1) * right;
        (upper * (cell - down) + lower * down) * strength / (cell * cell * 128)
    });
    bumps.sum()
}

/// Returns a fixed pseudo-random value from -128 to 127 for a lattice point.
fn lattice(x: u32, y: u32) -> i32 {
    let mut bits = x.wrapping_mul(0x9e37_79b1) ^ y.wrapping_mul(0x85eb_ca77);
    bits = (bits ^ (bits >> 15)).wrapping_mul(0x2c1b_3c6d);
    bits ^= bits >> 13;
    i32::try_from(bits & 255).unwrap_or(0) - 128
}
