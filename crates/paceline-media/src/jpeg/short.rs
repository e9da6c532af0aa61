//! JPEG pictures without the unused end of their code tables.
//!
//! The tables of the standard have 324 code words, most of which a small picture does not use. The code words of a table
//! are in order of their lengths, so the ones behind the last used one can be left out, and the others stay.

use std::ops::Range;

/// The tables of code words: two classes (DC, AC) with four ids each.
const TABLES: usize = 8;
/// The coefficients of a block.
const BLOCK: usize = 64;

/// A table of code words, and its place in the picture.
#[derive(Clone, Debug, Default)]
struct Table {
    /// The number of code words of each length from 1 bit on.
    counts: [u8; 16],
    symbols: Vec<u8>,
    /// The counts and symbols in the picture.
    place: Range<usize>,
    /// The number of symbols up to the last used one.
    used: usize,
}

/// A component: its blocks of each unit in a scan, and its tables.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    id: u8,
    sides: (usize, usize),
    tables: (usize, usize),
}

/// A baseline picture with one scan, as `jpeg-encoder` writes it.
#[derive(Debug, Default)]
struct Parsed {
    size: (usize, usize),
    parts: Vec<Part>,
    tables: [Table; TABLES],
    scan: usize,
}

/// Leaves out the code words behind the last used one of each table. Returns the picture unchanged if it has another
/// structure than those of the encoder.
pub(super) fn shorten(picture: Vec<u8>) -> Vec<u8> {
    let Some(parsed) = Parsed::read(&picture).and_then(|parsed| parsed.count_used(&picture)) else {
        return picture;
    };
    let mut tables: Vec<_> =
        parsed.tables.iter().enumerate().filter(|(_, it)| !it.place.is_empty()).collect();
    tables.sort_by_key(|(_, table)| table.place.start);
    let (mut out, mut from) = (Vec::with_capacity(picture.len()), 0);
    for (_, table) in tables {
        // Each table has a segment: marker, length, class and id.
        let Some(begin) = table.place.start.checked_sub(3) else { return picture };
        let length = u16::try_from(19 + table.used).unwrap_or(u16::MAX);
        out.extend_from_slice(picture.get(from..begin).unwrap_or_default());
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(picture.get(begin + 2..table.place.start).unwrap_or_default());
        let mut left = table.used;
        for count in table.counts {
            let kept = usize::from(count).min(left);
            left -= kept;
            out.push(u8::try_from(kept).unwrap_or(count));
        }
        out.extend(table.symbols.iter().take(table.used));
        from = table.place.end;
    }
    out.extend_from_slice(picture.get(from..).unwrap_or_default());
    out
}

impl Parsed {
    fn read(picture: &[u8]) -> Option<Self> {
        let (mut parsed, mut at) = (Self::default(), 2);
        loop {
            let marker = *picture.get(at + 1).filter(|_| picture.get(at) == Some(&0xff))?;
            let length = u16::from_be_bytes(picture.get(at + 2..at + 4)?.try_into().ok()?);
            let (begin, end) = (at + 4, at + 2 + usize::from(length));
            let segment = picture.get(begin..end)?;
            match marker {
                0xc0 => parsed.frame(segment)?,
                0xc4 => parsed.table(segment, begin)?,
                0xda => {
                    parsed.scan(segment)?;
                    parsed.scan = end;
                    return Some(parsed);
                }
                // Other kinds of coding, and restarts.
                0xc1..=0xcf | 0xdd => return None,
                _ => {}
            }
            at = end;
        }
    }

    fn frame(&mut self, segment: &[u8]) -> Option<()> {
        let [8, height_high, height_low, width_high, width_low, _, parts @ ..] = segment else {
            return None;
        };
        let side = |high, low| usize::from(u16::from_be_bytes([high, low]));
        self.size = (side(*width_high, *width_low), side(*height_high, *height_low));
        self.parts = parts
            .chunks_exact(3)
            .filter_map(|part| {
                let [id, sides, _] = *part else { return None };
                let sides = (usize::from(sides >> 4), usize::from(sides & 15));
                Some(Part { id, sides, tables: (0, 0) })
            })
            .collect();
        Some(())
    }

    /// Reads a segment with one table.
    fn table(&mut self, segment: &[u8], begin: usize) -> Option<()> {
        let (counts, symbols) = segment.get(1..)?.split_first_chunk::<16>()?;
        let number: usize = counts.iter().copied().map(usize::from).sum();
        if symbols.len() != number {
            return None;
        }
        let place = begin + 1..begin + segment.len();
        let table = self.tables.get_mut(table_of(*segment.first()?)?)?;
        *table = Table { counts: *counts, symbols: symbols.to_vec(), place, used: 0 };
        Some(())
    }

    fn scan(&mut self, segment: &[u8]) -> Option<()> {
        let (number, rest) = segment.split_first()?;
        if usize::from(*number) != self.parts.len() {
            return None;
        }
        for (part, scanned) in self.parts.iter_mut().zip(rest.chunks_exact(2)) {
            let [id, tables] = *scanned else { return None };
            if id != part.id {
                return None;
            }
            part.tables = (table_of(tables >> 4)?, table_of(0x10 | tables & 15)?);
        }
        Some(())
    }

    /// Reads all code words of the scan.
    fn count_used(mut self, picture: &[u8]) -> Option<Self> {
        let mut bits = Bits { bytes: picture.get(self.scan..)?, at: 0, buffer: 0, left: 0 };
        let parts = std::mem::take(&mut self.parts);
        let alone = parts.len() == 1;
        let most = |side: fn(&Part) -> usize| parts.iter().map(side).max();
        // The blocks of a scan of one component are in rows, whatever its factors.
        let (wide, high) = match alone {
            true => (1, 1),
            false => (most(|it| it.sides.0)?, most(|it| it.sides.1)?),
        };
        let units = self.size.0.div_ceil(8 * wide) * self.size.1.div_ceil(8 * high);
        for _ in 0..units {
            for part in &parts {
                let blocks = if alone { 1 } else { part.sides.0 * part.sides.1 };
                for _ in 0..blocks {
                    self.block(part.tables, &mut bits)?;
                }
            }
        }
        Some(self)
    }

    fn block(&mut self, (dc, ac): (usize, usize), bits: &mut Bits<'_>) -> Option<()> {
        let size = self.tables.get_mut(dc)?.next(bits)?;
        bits.skip(size)?;
        let mut at = 1;
        while at < BLOCK {
            let symbol = self.tables.get_mut(ac)?.next(bits)?;
            let (run, size) = (usize::from(symbol >> 4), symbol & 15);
            match (run, size) {
                (15, 0) => at += 16,
                (_, 0) => return Some(()),
                _ => {
                    bits.skip(size)?;
                    at += run + 1;
                }
            }
        }
        Some(())
    }
}

/// Returns the place of the table with this class and id.
fn table_of(class_and_id: u8) -> Option<usize> {
    let (class, id) = (usize::from(class_and_id >> 4), usize::from(class_and_id & 15));
    (class < 2 && id < TABLES / 2).then_some(class * (TABLES / 2) + id)
}

impl Table {
    /// Reads a code word, and returns its symbol.
    fn next(&mut self, bits: &mut Bits<'_>) -> Option<u8> {
        let (mut code, mut first, mut before) = (0_usize, 0_usize, 0_usize);
        for count in self.counts.map(usize::from) {
            code = code << 1 | usize::from(bits.next()?);
            first <<= 1;
            if let Some(index) = code.checked_sub(first).filter(|index| *index < count) {
                self.used = self.used.max(before + index + 1);
                return self.symbols.get(before + index).copied();
            }
            (first, before) = (first + count, before + count);
        }
        None
    }
}

/// The bits of a scan, without its stuffed bytes.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    buffer: u8,
    left: u8,
}

impl Bits<'_> {
    fn next(&mut self) -> Option<bool> {
        if self.left == 0 {
            let (byte, after) = (*self.bytes.get(self.at)?, self.bytes.get(self.at + 1));
            if byte == 0xff && after != Some(&0) {
                return None;
            }
            self.at += if byte == 0xff { 2 } else { 1 };
            (self.buffer, self.left) = (byte, 8);
        }
        self.left -= 1;
        Some(self.buffer >> self.left & 1 == 1)
    }

    fn skip(&mut self, count: u8) -> Option<()> {
        (0..count).try_for_each(|_| self.next().map(drop))
    }
}
