//! JPEG as RTP (RFC 2435). The headers of the picture are not sent: a receiver writes them again, with the standard code tables.

use super::{PacketizeError, Parts};
use crate::depacketize::HUFFMAN;

/// The largest side in pixels: a packet states it in units of 8.
const SIDE_MAX: u16 = 2_040;
/// The largest offset of a packet within a picture.
const OFFSET_MAX: usize = 0xff_ffff;
/// The Q that states the quantization tables in each picture.
const Q_DYNAMIC: u8 = 255;
/// Most segments before the coded data.
const SEGMENTS_MAX: usize = 4_096;
/// The remedies of pictures that are coded in another way.
const CODED_AGAIN: &str =
    "request a smaller size or a quality, such as ?quality=80: the picture is then coded anew";
const SMALLER: &str = "request a smaller size, such as ?size=1920x1080";

/// The parts of a picture that its packets state.
#[derive(Default)]
struct JpegHead {
    tables: [Option<[u8; 64]>; 4],
    /// The quantization table of luma, and of both chroma components.
    uses: [u8; 2],
    /// 0 for chroma that is halved horizontally, 1 for both directions.
    kind: u8,
    size: Option<(u16, u16)>,
    interval: u16,
}

const fn unlike(what: &'static str) -> PacketizeError {
    PacketizeError::Jpeg { what, fix: CODED_AGAIN }
}

const CUT: PacketizeError = PacketizeError::NotJpeg("it is cut off");

/// Cuts a picture.
pub(super) fn cut(unit: &[u8], most: usize, parts: &mut Parts) -> Result<(), PacketizeError> {
    let (head, data) = read(unit)?;
    let (width, height) = head.size.ok_or(PacketizeError::NotJpeg("it has no frame header"))?;
    let blocks = |side: u16| u8::try_from(side.div_ceil(8)).unwrap_or_default();
    let table = |number: u8| head.tables.get(usize::from(number)).copied().flatten();
    let [luma, chroma] = head.uses;
    let lacking = PacketizeError::NotJpeg("a quantization table is missing");
    let (luma, chroma) = (table(luma).ok_or(lacking)?, table(chroma).ok_or(lacking)?);
    let mut tables = vec![0, 0, 0, 128];
    tables.extend_from_slice(&luma);
    tables.extend_from_slice(&chroma);
    let restarts = head.interval > 0;
    let kind = head.kind + if restarts { 64 } else { 0 };
    let [a, b] = head.interval.to_be_bytes();
    // Each packet begins and ends within the same interval of restarts, as far as it states.
    let restart = [a, b, 0xff, 0xff];
    let restart = restart.get(..if restarts { 4 } else { 0 }).unwrap_or_default();
    let (mut rest, mut offset) = (data, 0);
    while !rest.is_empty() {
        if offset > OFFSET_MAX {
            return Err(PacketizeError::Long);
        }
        let tables = if offset == 0 { tables.as_slice() } else { &[] };
        let room = most.saturating_sub(8 + restart.len() + tables.len()).max(1);
        let (piece, more) = rest.split_at(room.min(rest.len()));
        let [_, x, y, z] = u32::try_from(offset).unwrap_or_default().to_be_bytes();
        let header = [0, x, y, z, kind, Q_DYNAMIC, blocks(width), blocks(height)];
        parts.add(&[&header, restart, tables, piece], more.is_empty(), 0);
        (rest, offset) = (more, offset + piece.len());
    }
    Ok(())
}

/// Returns the head of a picture and its coded data, without the marker of its end.
fn read(unit: &[u8]) -> Result<(JpegHead, &[u8]), PacketizeError> {
    let mut rest = unit
        .strip_prefix(&[0xff, 0xd8])
        .ok_or(PacketizeError::NotJpeg("it does not begin with ff d8"))?;
    let mut head = JpegHead::default();
    for _ in 0..SEGMENTS_MAX {
        let (&[mark, code], more) = rest.split_first_chunk().ok_or(CUT)?;
        if mark != 0xff {
            return Err(PacketizeError::NotJpeg("there is no marker where one must be"));
        }
        if code == 0xff {
            // Any number of ff bytes may precede a marker.
            rest = rest.get(1..).ok_or(CUT)?;
            continue;
        }
        let (length, _) = more.split_first_chunk().ok_or(CUT)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (segment, more) = more.split_at_checked(length).ok_or(CUT)?;
        let body = segment.get(2..).ok_or(CUT)?;
        rest = more;
        match code {
            0xdb => head.quantization(body)?,
            0xc4 => huffman(body)?,
            0xc0 | 0xc1 => head.frame(body)?,
            0xc2 => return Err(unlike("it is progressive")),
            0xc3 | 0xc5..=0xc7 | 0xc9..=0xcf => {
                return Err(unlike("it is lossless, or coded arithmetically"));
            }
            0xdd => {
                let (interval, _) = body.split_first_chunk().ok_or(CUT)?;
                head.interval = u16::from_be_bytes(*interval);
            }
            0xda => {
                scan(body)?;
                let data = rest.strip_suffix(&[0xff, 0xd9]).unwrap_or(rest);
                if data.is_empty() {
                    return Err(CUT);
                }
                return Ok((head, data));
            }
            _ => {}
        }
    }
    Err(PacketizeError::NotJpeg("it has no coded data"))
}

impl JpegHead {
    fn quantization(&mut self, mut body: &[u8]) -> Result<(), PacketizeError> {
        while let Some((number, rest)) = body.split_first() {
            if number >> 4 != 0 {
                return Err(unlike("its quantization tables have 16 bits"));
            }
            let (table, rest) = rest.split_first_chunk().ok_or(CUT)?;
            let place = self.tables.get_mut(usize::from(*number));
            *place.ok_or(PacketizeError::NotJpeg("a quantization table has a number above 3"))? =
                Some(*table);
            body = rest;
        }
        Ok(())
    }

    fn frame(&mut self, body: &[u8]) -> Result<(), PacketizeError> {
        let (&[bits, h1, h0, w1, w0, components], table) = body.split_first_chunk().ok_or(CUT)?;
        let (width, height) = (u16::from_be_bytes([w1, w0]), u16::from_be_bytes([h1, h0]));
        if bits != 8 || components != 3 {
            return Err(unlike("it has other samples than YCbCr of 8 bits"));
        }
        if width == 0 || height == 0 {
            return Err(PacketizeError::NotJpeg("it has no size"));
        }
        if width.max(height) > SIDE_MAX {
            let what = "it has more than 2040 pixels a side";
            return Err(PacketizeError::Jpeg { what, fix: SMALLER });
        }
        let (&[_, luma, first, _, blue, second, _, red, third], _) =
            table.split_first_chunk().ok_or(CUT)?;
        self.kind = match (luma, blue, red) {
            (0x21, 0x11, 0x11) => 0,
            (0x22, 0x11, 0x11) => 1,
            _ => return Err(unlike("its chroma is neither 4:2:0 nor 4:2:2")),
        };
        if second != third {
            return Err(unlike("its chroma components have different quantization tables"));
        }
        (self.uses, self.size) = ([first, second], Some((width, height)));
        Ok(())
    }
}

/// Checks that the scan has all components, with the code tables that a receiver assumes.
fn scan(body: &[u8]) -> Result<(), PacketizeError> {
    let (&[components, _, luma, _, blue, _, red], _) = body.split_first_chunk().ok_or(CUT)?;
    match (components, luma, blue, red) {
        (3, 0, 0x11, 0x11) => Ok(()),
        _ => Err(unlike("its scans or their code tables are unusual")),
    }
}

/// Checks that code tables are the standard ones (ITU-T T.81, K.3), possibly without codes that are not used.
fn huffman(mut body: &[u8]) -> Result<(), PacketizeError> {
    let other = unlike("its code tables are its own, such as with -huffman optimal of ffmpeg");
    while let Some((number, rest)) = body.split_first() {
        let (counts, rest) = rest.split_first_chunk::<16>().ok_or(CUT)?;
        let length: usize = counts.iter().map(|count| usize::from(*count)).sum();
        let (symbols, rest) = rest.split_at_checked(length).ok_or(CUT)?;
        body = rest;
        let standard = HUFFMAN.iter().filter_map(|segment| segment.get(4..)?.split_first());
        let mut standard = standard.filter(|(standard, _)| *standard == number);
        let (_, standard) = standard.next().ok_or(other)?;
        let (all, known) = standard.split_first_chunk::<16>().ok_or(other)?;
        let known = codes(all, known);
        if !codes(counts, symbols).iter().all(|code| known.contains(code)) {
            return Err(other);
        }
    }
    Ok(())
}

/// Returns the length, the code and the symbol of each entry of a code table (ITU-T T.81, C.2).
fn codes(counts: &[u8; 16], symbols: &[u8]) -> Vec<(u8, u32, u8)> {
    let (mut code, mut found) = (0_u32, Vec::with_capacity(symbols.len()));
    let mut symbols = symbols.iter();
    for (length, count) in (1_u8..).zip(counts) {
        for symbol in symbols.by_ref().take(usize::from(*count)) {
            found.push((length, code, *symbol));
            code = code.wrapping_add(1);
        }
        code = code.wrapping_shl(1);
    }
    found
}
