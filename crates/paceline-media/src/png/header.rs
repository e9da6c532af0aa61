//! The first 33 bytes of a PNG picture: signature and header chunk.

use crate::error::MediaError;
use crate::size::Size;

/// The first bytes of every PNG picture.
pub(crate) const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// The name of the chunk with Exif metadata.
pub(super) const EXIF: [u8; 4] = *b"eXIf";

/// The length of the signature, and of the header chunk's length, type and content, without its
/// checksum.
const HEADER_LEN: usize = 29;

/// The best compression ratio of DEFLATE, 1032 to 1.
const RATIO_MAX: u64 = 1032;

/// The content of the header chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// The checked size.
    pub(super) size: Size,
    /// The smallest size of the decompressed rows in bytes.
    row_bytes: u64,
    /// The largest number of bytes of a decoded pixel: a palette may have alpha, and so may a colour without.
    pixel_bytes_max: u64,
}

/// Returns the Exif metadata of a picture: a TIFF file.
pub(crate) fn exif(payload: &[u8]) -> Option<&[u8]> {
    let mut rest = payload.get(SIGNATURE.len()..)?;
    loop {
        let (len, chunk) = rest.split_first_chunk::<4>()?;
        let (name, chunk) = chunk.split_first_chunk::<4>()?;
        let len = usize::try_from(u32::from_be_bytes(*len)).ok()?;
        if *name == EXIF {
            return chunk.get(..len);
        }
        // The content and its checksum.
        rest = chunk.get(len.checked_add(4)?..)?;
    }
}

/// Returns false if a picture is valid and yet not decoded and so not scaled here, because its samples take more than
/// 256 MiB; `None` if its header cannot be read.
#[must_use]
pub fn is_decodable(payload: &[u8]) -> Option<bool> {
    let header = Header::read(payload).ok()?;
    Some(header.size.pixels() * header.pixel_bytes_max <= super::BYTES_MAX)
}

impl Header {
    /// Reads the header. The decoder checks its checksum and the rest of the payload.
    pub(super) fn read(payload: &[u8]) -> Result<Self, MediaError> {
        let begin = payload.get(..SIGNATURE.len()).unwrap_or(payload);
        if !SIGNATURE.starts_with(begin) || begin.is_empty() {
            let found = begin.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>();
            return Err(MediaError::NotPng { found: found.join(" ") });
        }
        let len = payload.len();
        let Some(header) = payload.first_chunk::<HEADER_LEN>() else {
            return Err(MediaError::PngTruncated { len });
        };
        let [_, _, _, _, _, _, _, _, chunk @ ..] = header;
        let [0, 0, 0, 13, b'I', b'H', b'D', b'R', w0, w1, w2, w3, h0, h1, h2, h3, bits, colour, ..] =
            *chunk
        else {
            return Err(corrupt("its first chunk is not an IHDR of 13 bytes"));
        };
        let size =
            Size::new(u32::from_be_bytes([w0, w1, w2, w3]), u32::from_be_bytes([h0, h1, h2, h3]))?;
        let channels: u64 = match (colour, bits) {
            (0, 1 | 2 | 4 | 8 | 16) | (3, 1 | 2 | 4 | 8) => 1,
            (2, 8 | 16) => 3,
            (4, 8 | 16) => 2,
            (6, 8 | 16) => 4,
            _ => {
                let what =
                    format!("colour type {colour} with {bits} bits per sample is not valid in png");
                return Err(corrupt(&what));
            }
        };
        let row_bytes = (size.pixels() * channels * u64::from(bits)).div_ceil(8);
        let with_alpha = match colour {
            0 | 4 => 2,
            _ => 4,
        };
        let pixel_bytes_max = with_alpha * if bits == 16 { 2 } else { 1 };
        Ok(Self { size, row_bytes, pixel_bytes_max })
    }

    /// Rejects a picture whose rows cannot fit into a payload of `len` bytes.
    pub(super) fn check_payload(&self, len: usize) -> Result<(), MediaError> {
        if (len as u64).saturating_mul(RATIO_MAX) < self.row_bytes {
            return Err(corrupt(&format!("{len} bytes cannot hold a picture of {}", self.size)));
        }
        Ok(())
    }
}

pub(super) fn corrupt(reason: &str) -> MediaError {
    MediaError::PngCorrupt { reason: crate::error::excerpt(reason) }
}
