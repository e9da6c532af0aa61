//! The one error type of the crate.

use crate::picture::PixelFormat;
use crate::size::{PIXELS_MAX, SIDE_MAX, Size};

/// Why a picture, an encoding or a file was refused.
///
/// Each message names the thing, its value, the allowed range and what to do about it.
/// Text taken from input is cut to 60 characters. Byte offsets count from 0 at the start of
/// the slice that was passed in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MediaError {
    /// A size was not written as `WIDTHxHEIGHT`.
    #[error(
        "size {text:?} is not WIDTHxHEIGHT; write two whole numbers joined by x, such as 640x480"
    )]
    SizeText {
        /// What was written.
        text: String,
    },
    /// A width or height is zero, too large or not a number.
    #[error(
        "{field} is {value}, allowed are whole numbers from 1 to {SIDE_MAX} (pixels); choose a {field} in that range"
    )]
    Side {
        /// `width` or `height`.
        field: &'static str,
        /// The value as given.
        value: String,
    },
    /// Both sides are allowed but the picture has too many pixels.
    #[error("size {size} has {} pixels, allowed are at most {PIXELS_MAX}; choose a smaller width or height", .size.pixels())]
    Pixels {
        /// The refused size.
        size: Size,
    },
    /// An encoding string is not one this crate knows.
    #[error(
        "encoding {text:?}: {reason}; write image/jpeg or video/raw;format=i420;width=640;height=480 (format i420 or rgb)"
    )]
    Encoding {
        /// What was written.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An uncompressed picture does not have the length its size asks for.
    #[error(
        "{format} picture of {size} holds {found} bytes, must hold exactly {expected}; check the width, height and format of the encoding"
    )]
    Length {
        /// The layout of the samples.
        format: PixelFormat,
        /// The size it should have.
        size: Size,
        /// Bytes it must have.
        expected: u64,
        /// Bytes it has.
        found: u64,
    },
    /// The asked size is larger than the picture: Paceline never invents detail.
    #[error("size {asked} is above the source size {source_size}; ask for at most {} wide and {} high", .source_size.width, .source_size.height)]
    SizeAboveSource {
        /// The size asked for.
        asked: Size,
        /// The size of the picture at hand.
        source_size: Size,
    },
    /// A JPEG quality is outside its range.
    #[error(
        "quality is {quality}, allowed are 1 to 100; choose a quality in that range (80 is usual)"
    )]
    Quality {
        /// The refused quality.
        quality: u8,
    },
    /// The bytes do not begin with a JPEG picture.
    #[error(
        "no jpeg picture at byte {at}: found {found}, must begin with ff d8; pass bytes that begin with a whole jpeg picture"
    )]
    NotJpeg {
        /// Offset at which a picture should begin.
        at: usize,
        /// The bytes found there, in hexadecimal.
        found: String,
    },
    /// A JPEG picture ends before its end marker.
    #[error(
        "jpeg picture that begins at byte {begin} is cut off at byte {at} of {len}; pass the whole picture, up to and including ff d9"
    )]
    JpegTruncated {
        /// Offset of the picture's first byte.
        begin: usize,
        /// Offset at which bytes were missing.
        at: usize,
        /// Bytes available.
        len: usize,
    },
    /// A JPEG picture has bytes that no JPEG picture may have.
    #[error(
        "corrupt jpeg picture at byte {at}: {reason}; have the sender encode the picture again"
    )]
    JpegCorrupt {
        /// Offset of the offending bytes, or of the picture if the decoder named none.
        at: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A JPEG picture is of a kind that is not decoded here.
    #[error(
        "jpeg picture {what}; encode it as 8-bit baseline or progressive jpeg, grey or YCbCr 4:2:0"
    )]
    JpegUnsupported {
        /// The unsupported property, with its verb.
        what: String,
    },
    /// The JPEG encoder refused its input.
    #[error(
        "jpeg encoder refused a picture of {size}: {reason}; report this, since the picture was checked before"
    )]
    JpegEncode {
        /// Size of the picture.
        size: Size,
        /// The encoder's words.
        reason: String,
    },
    /// A plane could not be resized.
    #[error(
        "resize from {from} to {to} failed: {reason}; report this, since both sizes were checked before"
    )]
    Resize {
        /// Size of the source.
        from: Size,
        /// Size asked for.
        to: Size,
        /// The resizer's words.
        reason: String,
    },
    /// A Y4M header cannot be used.
    #[error("y4m header: {reason}; {mend}")]
    Y4mHeader {
        /// What is wrong.
        reason: String,
        /// What to do about it.
        mend: &'static str,
    },
    /// A Y4M frame cannot be read.
    #[error("y4m frame {frame} at byte {at}: {reason}; {mend}")]
    Y4mFrame {
        /// Number of the frame, from 0.
        frame: u64,
        /// Offset of the frame's first byte.
        at: usize,
        /// What is wrong.
        reason: String,
        /// What to do about it.
        mend: &'static str,
    },
    /// A picture to be written to a Y4M file differs from the file's format.
    #[error(
        "y4m frame is {found_format} of {found}, must be i420 of {expected}; scale or convert the picture first"
    )]
    Y4mPicture {
        /// Size in the file's header.
        expected: Size,
        /// Size of the picture.
        found: Size,
        /// Layout of the picture.
        found_format: PixelFormat,
    },
    /// A test card was asked for in a size that cannot carry its code.
    #[error("test card size {size} is below {min}; choose at least {} wide and {} high", .min.width, .min.height)]
    CardSize {
        /// The refused size.
        size: Size,
        /// The smallest size.
        min: Size,
    },
}

/// Text from input, cut so that an error stays one line.
pub(crate) fn excerpt(text: &str) -> String {
    let mut out: String = text.chars().take(60).collect();
    if out.len() < text.len() {
        out.push_str("...");
    }
    out
}
