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
        "encoding {text:?}: {reason}; write image/jpeg, image/png, video/h264 or video/raw;format=i420;width=640;height=480 (format i420 or rgb)"
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
    /// An H.264 byte stream, a unit of one or a parameter set cannot be used.
    #[error("h264 stream at byte {at}: {reason}; {mend}")]
    H264Stream {
        /// Offset of the offending bytes.
        at: usize,
        /// What is wrong there.
        reason: String,
        /// What to do about it.
        mend: &'static str,
    },
    /// An H.264 stream is of a kind that is not decoded here.
    #[error(
        "h264 stream is coded as {what}, decoded is only Baseline, Main or High profile, 4:2:0, 8 bits, progressive; have the sender encode it so, or take it in full size"
    )]
    H264Unsupported {
        /// Profile, chroma format, bits per sample and scan of the stream.
        what: String,
    },
    /// An access unit could not be decoded.
    #[error("h264 unit cannot be decoded: {reason}; {mend}")]
    H264Decode {
        /// What is wrong.
        reason: String,
        /// What to do about it.
        mend: &'static str,
    },
    /// A picture could not be coded as H.264.
    #[error("h264 picture of {size} cannot be coded: {reason}; {mend}")]
    H264Encode {
        /// Size to be coded.
        size: Size,
        /// What is wrong.
        reason: String,
        /// What to do about it.
        mend: &'static str,
    },
    /// The rate of the pictures to be coded is out of range.
    #[error(
        "rate is {hz} pictures per second, allowed are numbers above 0 and at most {max}; choose a rate in that range"
    )]
    H264Rate {
        /// The refused rate.
        hz: String,
        /// The highest rate.
        max: u32,
    },
    /// An H.264 unit has no size of its own.
    #[error(
        "h264 unit of {bytes} bytes has no SPS, so its size is not known; look at an I unit, which h264::ParameterSets completes"
    )]
    H264NoSize {
        /// Length of the unit.
        bytes: usize,
    },
    /// One H.264 unit was to be scaled.
    #[error(
        "h264 unit cannot be scaled alone, since it needs the pictures before it; pass the stream through h264::Transcoder"
    )]
    H264Scale,
    /// A test card was asked for in a size that cannot carry its code.
    #[error("test card size {size} is below {min}; choose at least {} wide and {} high", .min.width, .min.height)]
    CardSize {
        /// The refused size.
        size: Size,
        /// The smallest size.
        min: Size,
    },
    /// The bytes do not begin with a PNG picture.
    #[error(
        "no png picture: found {found:?}, must begin with 89 50 4e 47 0d 0a 1a 0a; pass bytes that begin with a whole png picture"
    )]
    NotPng {
        /// The bytes found there, in hexadecimal.
        found: String,
    },
    /// A PNG picture ends before its end chunk.
    #[error(
        "png picture is cut off at byte {len}; pass the whole picture, up to and including its IEND chunk"
    )]
    PngTruncated {
        /// Bytes available.
        len: usize,
    },
    /// A PNG picture has bytes that no PNG picture may have.
    #[error("corrupt png picture: {reason}; have the sender encode the picture again")]
    PngCorrupt {
        /// What is wrong.
        reason: String,
    },
    /// A PNG picture takes too much memory.
    #[error(
        "png picture of {size} takes {bytes} bytes when decoded, allowed are at most {max}; encode it with 8 bits per sample, without alpha or smaller"
    )]
    PngBytes {
        /// Size of the picture.
        size: Size,
        /// Bytes of its samples.
        bytes: u64,
        /// Bytes allowed.
        max: u64,
    },
    /// The PNG encoder refused its input.
    #[error(
        "png encoder refused a picture of {size}: {reason}; report this, since the picture was checked before"
    )]
    PngEncode {
        /// Size of the picture.
        size: Size,
        /// The encoder's words.
        reason: String,
    },
    /// An encoding string of sound is not one this crate knows.
    #[error(
        "encoding {text:?}: {reason}; write audio/pcm;format=s16le;rate=48000;channels=2, audio/pcmu;rate=8000;channels=1 or audio/pcma;rate=8000;channels=1"
    )]
    AudioEncoding {
        /// What was written.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A sample rate or a number of channels is out of range or not a number.
    #[error(
        "{field} is {value}, allowed are whole numbers from {min} to {max}; choose a {field} in that range"
    )]
    AudioRange {
        /// `rate` or `channels`.
        field: &'static str,
        /// The value as given.
        value: String,
        /// Smallest allowed value.
        min: u32,
        /// Largest allowed value.
        max: u32,
    },
    /// A block of sound has a length that it must not have.
    #[error("block of sound {what} {bytes} bytes, must be {must}; {mend}")]
    AudioBlock {
        /// `holds` for what came in, `would become` for what would go out.
        what: &'static str,
        /// Its length.
        bytes: u64,
        /// The lengths allowed.
        must: String,
        /// What to do about it.
        mend: &'static str,
    },
    /// The resampler refused its input.
    #[error(
        "resampler from {from} Hz to {to} Hz failed: {reason}; report this, since both rates were checked before"
    )]
    AudioResample {
        /// Rate of the source, in Hz.
        from: u32,
        /// Rate asked for, in Hz.
        to: u32,
        /// The resampler's words.
        reason: String,
    },
    /// A WAV file cannot be used.
    #[error("wav file at byte {at}: {reason}; {mend}")]
    Wav {
        /// Offset of the offending bytes.
        at: usize,
        /// What is wrong there.
        reason: String,
        /// What to do about it.
        mend: &'static str,
    },
    /// A ULog file cannot be used.
    #[error("ulog file at byte {at}: {reason}; {mend}")]
    Ulog {
        /// Offset of the offending bytes.
        at: usize,
        /// What is wrong there.
        reason: String,
        /// What to do about it.
        mend: &'static str,
    },
    /// A message of a ULog file cannot be written as JSON.
    #[error("ulog message of topic {topic:?}: {reason}; pass a message as the same file gave it")]
    UlogMessage {
        /// Name of the topic, or its number where there is none of that number.
        topic: String,
        /// What is wrong with the message.
        reason: String,
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
