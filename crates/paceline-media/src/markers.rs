//! The markers of a JPEG picture (ITU-T T.81, annex B): the positions of its header and its end.
//!
//! Segments are skipped by their length, so markers inside one (an embedded thumbnail) are ignored.
//! Entropy-coded data is searched for the next marker, past stuffed zeros and restart markers.

use crate::error::MediaError;
use crate::size::Size;

/// A frame header must begin within this many bytes: enough for any metadata, but bounded.
const HEADER_MAX: usize = 1024 * 1024;

const SOI: u8 = 0xd8;
const EOI: u8 = 0xd9;
const SOS: u8 = 0xda;
/// The longest scan header, with four components, in bytes without its length.
const SCAN_HEADER_MAX: usize = 12;
pub(crate) const APP1: u8 = 0xe1;

/// The name of Exif metadata in an APP1 segment.
pub(crate) const EXIF: &[u8] = b"Exif\0\0";

/// The content of a picture's frame header (SOF).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// The checked size.
    pub(crate) size: Size,
    /// The number of colour components: 1, 3 or 4 unless there is an obstacle.
    pub(crate) components: u8,
    /// The smallest number of 8x8 blocks in the entropy-coded data.
    pub(crate) blocks: u64,
    /// The property, with its verb, for which the picture cannot be decoded here.
    pub(crate) obstacle: Option<String>,
    /// The picture is coded in several scans.
    pub(crate) progressive: bool,
}

/// One marker with its segment.
struct Segment<'a> {
    marker: u8,
    /// The offset of the marker's code byte.
    at: usize,
    /// The bytes after the length; empty for a marker without a length.
    body: &'a [u8],
}

struct Walker<'a> {
    bytes: &'a [u8],
    begin: usize,
    at: usize,
}

impl<'a> Walker<'a> {
    /// Returns a walker behind the start-of-image marker that must be at `begin`.
    fn new(bytes: &'a [u8], begin: usize) -> Result<Self, MediaError> {
        match bytes.get(begin..).unwrap_or_default() {
            [0xff, SOI, ..] => Ok(Self { bytes, begin, at: begin + 2 }),
            [] | [0xff] => {
                Err(MediaError::JpegTruncated { begin, at: bytes.len(), len: bytes.len() })
            }
            [a, b, ..] => Err(MediaError::NotJpeg { at: begin, found: format!("{a:02x} {b:02x}") }),
            [a] => Err(MediaError::NotJpeg { at: begin, found: format!("{a:02x}") }),
        }
    }

    fn truncated(&self) -> MediaError {
        let len = self.bytes.len();
        MediaError::JpegTruncated { begin: self.begin, at: len, len }
    }

    fn corrupt(&self, at: usize, reason: impl Into<String>) -> MediaError {
        MediaError::JpegCorrupt { at, reason: reason.into() }
    }

    fn byte(&self, at: usize) -> Result<u8, MediaError> {
        self.bytes.get(at).copied().ok_or_else(|| self.truncated())
    }

    /// Returns the next marker and moves behind its segment.
    fn next_segment(&mut self) -> Result<Segment<'a>, MediaError> {
        let first = self.byte(self.at)?;
        if first != 0xff {
            return Err(self.corrupt(self.at, format!("found {first:02x} where a marker must be")));
        }
        // Any number of ff bytes may precede a marker's code.
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let fill = rest.iter().position(|&byte| byte != 0xff).ok_or_else(|| self.truncated())?;
        let at = self.at + fill;
        let marker = self.byte(at)?;
        if marker == EOI {
            self.at = at + 1;
            return Ok(Segment { marker, at, body: &[] });
        }
        // These have no length: stuffing, TEM, restarts and a nested start of image.
        if matches!(marker, 0x00 | 0x01 | 0xd0..=SOI) {
            return Err(self.corrupt(at, format!("marker ff {marker:02x} where a segment must be")));
        }
        let length = usize::from(u16::from_be_bytes([self.byte(at + 1)?, self.byte(at + 2)?]));
        if length < 2 {
            return Err(self.corrupt(at, format!("segment length is {length}, must be at least 2")));
        }
        let end = at + 1 + length;
        let body = self.bytes.get(at + 3..end).ok_or_else(|| self.truncated())?;
        self.at = end;
        Ok(Segment { marker, at, body })
    }

    /// Moves to the marker that ends the current entropy-coded data.
    fn skip_entropy(&mut self) -> Result<(), MediaError> {
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let ff = rest.iter().position(|&byte| byte == 0xff).ok_or_else(|| self.truncated())?;
            self.at += ff;
            match self.byte(self.at + 1)? {
                0x00 | 0xd0..=0xd7 => self.at += 2,
                0xff => self.at += 1,
                _ => return Ok(()),
            }
        }
    }
}

/// Reads the frame header of the picture at offset `begin`, and nothing behind it.
pub(crate) fn frame_header(bytes: &[u8], begin: usize) -> Result<FrameHeader, MediaError> {
    let mut walker = Walker::new(bytes, begin)?;
    while walker.at - begin < HEADER_MAX {
        let segment = walker.next_segment()?;
        match segment.marker {
            // All but the tables DHT, JPG and DAC.
            0xc0..=0xcf if !matches!(segment.marker, 0xc4 | 0xc8 | 0xcc) => {
                return parse_frame_header(&walker, &segment);
            }
            SOS | EOI => return Err(walker.corrupt(segment.at, "no frame header before this")),
            _ => {}
        }
    }
    let what = format!("has no frame header in its first {HEADER_MAX} bytes");
    Err(MediaError::JpegUnsupported { what })
}

fn parse_frame_header(
    walker: &Walker<'_>,
    segment: &Segment<'_>,
) -> Result<FrameHeader, MediaError> {
    let [precision, h1, h0, w1, w0, components, table @ ..] = segment.body else {
        return Err(walker.corrupt(segment.at, "frame header is too short"));
    };
    let width = u32::from(u16::from_be_bytes([*w1, *w0]));
    let height = u32::from(u16::from_be_bytes([*h1, *h0]));
    let size = Size::new(width, height)?;
    if table.len() != usize::from(*components) * 3 {
        return Err(walker.corrupt(segment.at, "frame header length does not match components"));
    }
    let obstacle = match (segment.marker, *precision, *components) {
        // Baseline, extended sequential and progressive, all Huffman coded.
        (0xc0..=0xc2, 8, 1 | 3 | 4) => check_sampling(table).err(),
        (0xc0..=0xc2, 8, _) => Some(format!("has {components} components")),
        (0xc0..=0xc2, ..) => Some(format!("has {precision} bits per sample")),
        (marker, ..) => {
            Some(format!("is of type SOF{} (lossless or arithmetic)", marker.wrapping_sub(0xc0)))
        }
    };
    // Chroma adds at most two samples per pixel; ignoring it makes the check lenient.
    let blocks = size.pixels() * if *components == 4 { 4 } else { 1 } / 64;
    let progressive = segment.marker == 0xc2;
    Ok(FrameHeader { size, components: *components, blocks, obstacle, progressive })
}

/// Checks for the sampling that the decoder supports.
///
/// The first component may be finer than the others, by 1, 2 or 4 in each direction. With four
/// components all are alike. ffmpeg doubles the vertical factors of 4:2:2 and 4:4:4. The decoder is not robust against
/// other sampling factors.
fn check_sampling(table: &[u8]) -> Result<(), String> {
    let factors: Vec<u8> =
        table.chunks_exact(3).filter_map(|entry| entry.get(1).copied()).collect();
    let known = match *factors.as_slice() {
        [0x22, 0x12, 0x12] | [0x12, 0x12, 0x12] => true,
        [first] | [first, 0x11, 0x11] => {
            matches!(first >> 4, 1 | 2 | 4) && matches!(first & 15, 1 | 2 | 4)
        }
        [0x11, 0x11, 0x11, 0x11] => true,
        _ => false,
    };
    if known {
        return Ok(());
    }
    Err(format!("has sampling factors {factors:02x?}, not 4:4:4, 4:2:2, 4:2:0 or similar"))
}

/// Returns the number of scans of the picture at the beginning of `bytes`, at most `most`.
pub(crate) fn scans(bytes: &[u8], most: usize) -> Result<usize, MediaError> {
    let mut walker = Walker::new(bytes, 0)?;
    let mut scans = 0;
    while scans < most {
        match walker.next_segment()?.marker {
            EOI => break,
            SOS => {
                scans += 1;
                walker.skip_entropy()?;
            }
            _ => {}
        }
    }
    Ok(scans)
}

/// Returns the Exif metadata of the picture at the beginning of `bytes`: the content behind its name, in the form of a
/// TIFF file.
pub(crate) fn exif(bytes: &[u8]) -> Option<&[u8]> {
    let mut walker = Walker::new(bytes, 0).ok()?;
    while walker.at < HEADER_MAX {
        let segment = walker.next_segment().ok()?;
        match segment.marker {
            APP1 => match segment.body.strip_prefix(EXIF) {
                None => {}
                found => return found,
            },
            SOS | EOI => return None,
            _ => {}
        }
    }
    None
}

/// Returns the offset just behind the end marker of the picture at offset `begin`.
pub(crate) fn picture_end(bytes: &[u8], begin: usize) -> Result<usize, MediaError> {
    let mut walker = Walker::new(bytes, begin)?;
    let mut scanned = false;
    loop {
        let Segment { marker, at, body } = walker.next_segment()?;
        match marker {
            EOI => return Ok(walker.at),
            // With a damaged length it would hide the pictures behind it.
            SOS if body.len() > SCAN_HEADER_MAX => {
                return Err(walker.corrupt(at, "scan header is too long"));
            }
            SOS => {
                walker.skip_entropy()?;
                scanned = true;
            }
            // Thumbnails are in front of the first scan. Behind it, damaged coded data looks like a segment.
            _ if scanned && body.windows(3).any(|part| part == [0xff, SOI, 0xff]) => {
                return Err(walker.corrupt(at, "a picture begins in a segment behind a scan"));
            }
            _ => {}
        }
    }
}
