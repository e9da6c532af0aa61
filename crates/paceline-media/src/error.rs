//! The error type of the crate.

use crate::pixel::PixelFormat;
use crate::size::{PIXELS_MAX, SIDE_MAX, Size};

/// The reasons for rejecting a picture, an encoding or a file.
///
/// Each message names the value, the permitted range and a remedy. Text from input is cut to 60
/// characters. Byte offsets count from 0 at the start of the slice that was passed in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MediaError {
    /// A size is not of the form `WIDTHxHEIGHT`.
    #[error(
        "size {text:?} is not WIDTHxHEIGHT; write two whole numbers joined by x, such as 640x480"
    )]
    SizeText {
        /// The rejected text.
        text: String,
    },
    /// A width or height is zero, too large or not a number.
    #[error(
        "{field} is {value}, must be a whole number from 1 to {SIDE_MAX} (pixels); choose a {field} in that range"
    )]
    Side {
        /// `width` or `height`.
        field: &'static str,
        /// The rejected value.
        value: String,
    },
    /// Both sides are in range but the picture has too many pixels.
    #[error("size {size} has {} pixels, must be at most {PIXELS_MAX}; choose a smaller width or height", .size.pixels())]
    Pixels {
        /// The rejected size.
        size: Size,
    },
    /// An encoding string is unknown.
    #[error(
        "encoding {text:?}: {reason}; write image/jpeg, image/png, video/h264, video/h265, video/av1 or video/raw;format=i420;width=640;height=480 (format i420 or rgb)"
    )]
    Encoding {
        /// The rejected text.
        text: String,
        /// The reason.
        reason: String,
    },
    /// An uncompressed picture does not have the length that its size requires.
    #[error(
        "{format} picture of {size} holds {found} bytes, must hold exactly {expected}; check the width, height and format of the encoding"
    )]
    Length {
        /// The layout of the samples.
        format: PixelFormat,
        /// The expected size.
        size: Size,
        /// The expected length in bytes.
        expected: u64,
        /// The length found, in bytes.
        found: u64,
    },
    /// The requested size is larger than the picture. Pictures are never scaled up.
    #[error("size {asked} is above the source size {source_size}; ask for at most {} wide and {} high", .source_size.width, .source_size.height)]
    SizeAboveSource {
        /// The requested size.
        asked: Size,
        /// The size of the source picture.
        source_size: Size,
    },
    /// A JPEG quality is outside its range.
    #[error("quality is {quality}, must be 1 to 100; choose a quality in that range (80 is usual)")]
    Quality {
        /// The rejected quality.
        quality: u8,
    },
    /// The bytes do not begin with a JPEG picture.
    #[error(
        "no jpeg picture at byte {at}: found {found}, must begin with ff d8; pass bytes that begin with a whole jpeg picture"
    )]
    NotJpeg {
        /// The offset at which a picture should begin.
        at: usize,
        /// The bytes found there, in hexadecimal.
        found: String,
    },
    /// A JPEG picture ends before its end marker.
    #[error(
        "jpeg picture that begins at byte {begin} is cut off at byte {at} of {len}; pass the whole picture, up to and including ff d9"
    )]
    JpegTruncated {
        /// The offset of the picture's first byte.
        begin: usize,
        /// The offset at which bytes are missing.
        at: usize,
        /// The number of bytes available.
        len: usize,
    },
    /// A JPEG picture contains invalid bytes.
    #[error(
        "corrupt jpeg picture at byte {at}: {reason}; have the sender encode the picture again"
    )]
    JpegCorrupt {
        /// The offset of the invalid bytes, or of the picture if the decoder reports none.
        at: usize,
        /// The reason.
        reason: String,
    },
    /// A JPEG picture is of an unsupported kind.
    #[error(
        "jpeg picture {what}; encode it as 8-bit baseline or progressive jpeg, grey or YCbCr 4:2:0"
    )]
    JpegUnsupported {
        /// The unsupported property, with its verb.
        what: String,
    },
    /// The JPEG encoder rejected its input.
    #[error(
        "jpeg encoder refused a picture of {size}: {reason}; report this, since the picture was checked before"
    )]
    JpegEncode {
        /// The size of the picture.
        size: Size,
        /// The encoder's message.
        reason: String,
    },
    /// A plane could not be resized.
    #[error(
        "resize from {from} to {to} failed: {reason}; report this, since both sizes were checked before"
    )]
    Resize {
        /// The size of the source.
        from: Size,
        /// The requested size.
        to: Size,
        /// The resizer's message.
        reason: String,
    },
    /// A Y4M header is invalid or unsupported.
    #[error("y4m header: {reason}; {fix}")]
    Y4mHeader {
        /// The reason.
        reason: String,
        /// The remedy.
        fix: &'static str,
    },
    /// A Y4M frame cannot be read.
    #[error("y4m frame {frame} at byte {at}: {reason}; {fix}")]
    Y4mFrame {
        /// The number of the frame, from 0.
        frame: u64,
        /// The offset of the frame's first byte.
        at: usize,
        /// The reason.
        reason: String,
        /// The remedy.
        fix: &'static str,
    },
    /// A picture to be written to a Y4M file does not match the file's format.
    #[error(
        "y4m frame is {found_format} of {found}, must be i420 of {expected}; scale or convert the picture first"
    )]
    Y4mPicture {
        /// The size in the file's header.
        expected: Size,
        /// The size of the picture.
        found: Size,
        /// The layout of the picture.
        found_format: PixelFormat,
    },
    /// An H.264 stream is of an unsupported kind.
    #[error(
        "h264 stream is coded as {what}, but must be Baseline, Main or High profile, 4:2:0, 8 bits, progressive; have the sender encode it so, or request the full size"
    )]
    H264Unsupported {
        /// The profile, chroma format, bits per sample and scan of the stream.
        what: String,
    },
    /// An access unit cannot be decoded.
    #[error("h264 unit cannot be decoded: {reason}; {fix}")]
    H264Decode {
        /// The reason.
        reason: String,
        /// The remedy.
        fix: &'static str,
    },
    /// A picture cannot be encoded as H.264.
    #[error("h264 picture of {size} cannot be coded: {reason}; {fix}")]
    H264Encode {
        /// The requested size.
        size: Size,
        /// The reason.
        reason: String,
        /// The remedy.
        fix: &'static str,
    },
    /// The picture rate for encoding is out of range.
    #[error(
        "rate is {hz} pictures per second, must be a number above 0 and at most {max}; choose a rate in that range"
    )]
    H264Rate {
        /// The rejected rate.
        hz: String,
        /// The highest rate.
        max: u32,
    },
    /// A single H.264 unit cannot be scaled.
    #[error(
        "h264 unit cannot be scaled alone, since it needs the pictures before it; pass the stream through h264::Transcoder"
    )]
    H264Scale,
    /// A stream of coded video, one of its units or a header is invalid.
    #[error("{codec} stream at byte {at}: {reason}; {fix}")]
    VideoStream {
        /// `h264`, `h265` or `av1`.
        codec: &'static str,
        /// The offset of the invalid bytes.
        at: usize,
        /// The reason.
        reason: String,
        /// The remedy.
        fix: &'static str,
    },
    /// A unit of coded video does not contain its size.
    #[error(
        "{codec} unit of {bytes} bytes has no {header}, so its size is not known; inspect an I unit, which {completed_by} completes"
    )]
    VideoNoSize {
        /// `h264`, `h265` or `av1`.
        codec: &'static str,
        /// The length of the unit in bytes.
        bytes: usize,
        /// The missing header.
        header: &'static str,
        /// The type that adds the header to units that lack it.
        completed_by: &'static str,
    },
    /// H.265 and AV1 are not scaled.
    #[error(
        "{codec} video cannot be scaled, since there is no decoder for it here; request the full size, or have the sender encode h264"
    )]
    VideoScale {
        /// `h265` or `av1`.
        codec: &'static str,
    },
    /// A test card's size is too small for its code.
    #[error("test card size {size} is below {min}; choose at least {} wide and {} high", .min.width, .min.height)]
    CardSize {
        /// The rejected size.
        size: Size,
        /// The smallest size.
        min: Size,
    },
    /// The bytes do not begin with a PNG picture.
    #[error(
        "no png picture: found {found:?}, must begin with 89 50 4e 47 0d 0a 1a 0a; pass bytes that begin with a whole png picture"
    )]
    NotPng {
        /// The bytes found, in hexadecimal.
        found: String,
    },
    /// A PNG picture ends before its end chunk.
    #[error(
        "png picture is cut off at byte {len}; pass the whole picture, up to and including its IEND chunk"
    )]
    PngTruncated {
        /// The number of bytes available.
        len: usize,
    },
    /// A PNG picture contains invalid bytes.
    #[error("corrupt png picture: {reason}; have the sender encode the picture again")]
    PngCorrupt {
        /// The reason.
        reason: String,
    },
    /// A PNG picture needs too much memory.
    #[error(
        "png picture of {size} takes {bytes} bytes when decoded, must be at most {max}; encode it with 8 bits per sample, without alpha or smaller"
    )]
    PngBytes {
        /// The size of the picture.
        size: Size,
        /// The size of its samples in bytes.
        bytes: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// The PNG encoder rejected its input.
    #[error(
        "png encoder refused a picture of {size}: {reason}; report this, since the picture was checked before"
    )]
    PngEncode {
        /// The size of the picture.
        size: Size,
        /// The encoder's message.
        reason: String,
    },
    /// A message of ROS 2 is invalid, or its picture is of a kind that is not scaled.
    #[error("{message} at byte {at}: {reason}; {fix}")]
    Ros {
        /// The type of the message.
        message: &'static str,
        /// The offset of the invalid bytes.
        at: usize,
        /// The reason.
        reason: String,
        /// The remedy.
        fix: &'static str,
    },
    /// An encoding string of sound is unknown.
    #[error(
        "encoding {text:?}: {reason}; write audio/pcm;format=s16le;rate=48000;channels=2, audio/pcmu;rate=8000;channels=1 or audio/pcma;rate=8000;channels=1"
    )]
    AudioEncoding {
        /// The rejected text.
        text: String,
        /// The reason.
        reason: String,
    },
    /// A sample rate or a number of channels is out of range or not a number.
    #[error(
        "{field} is {value}, must be a whole number from {min} to {max}; choose a {field} in that range"
    )]
    AudioRange {
        /// `rate` or `channels`.
        field: &'static str,
        /// The rejected value.
        value: String,
        /// The smallest permitted value.
        min: u32,
        /// The largest permitted value.
        max: u32,
    },
    /// A block of sound has an invalid length.
    #[error("block of sound {what} {bytes} bytes, must be {must}; {fix}")]
    AudioBlock {
        /// `holds` for input, `would become` for output.
        what: &'static str,
        /// The length in bytes.
        bytes: u64,
        /// The permitted lengths.
        must: String,
        /// The remedy.
        fix: &'static str,
    },
    /// The resampler rejected its input.
    #[error(
        "resampler from {from} Hz to {to} Hz failed: {reason}; report this, since both rates were checked before"
    )]
    AudioResample {
        /// The source rate in Hz.
        from: u32,
        /// The requested rate in Hz.
        to: u32,
        /// The resampler's message.
        reason: String,
    },
    /// An encoding string of coded sound is unknown.
    #[error("encoding {text:?}: {reason}; write audio/opus;rate=48000;channels=1")]
    OpusEncoding {
        /// The rejected text.
        text: String,
        /// The reason.
        reason: String,
    },
    /// A sample rate, a number of channels or a bit rate that Opus does not have.
    #[error("{field} of Opus is {value}, must be {must}; {fix}")]
    OpusRange {
        /// `rate`, `channels` or `bit rate`.
        field: &'static str,
        /// The rejected value.
        value: u32,
        /// The permitted values.
        must: &'static str,
        /// The remedy.
        fix: &'static str,
    },
    /// A payload is not a packet of Opus.
    #[error(
        "Opus packet of {bytes} bytes: {reason}; each payload must be one packet (RFC 6716) of at most 120 ms"
    )]
    OpusPacket {
        /// The length in bytes.
        bytes: usize,
        /// The reason.
        reason: String,
    },
    /// The Opus codec rejected its input.
    #[error("Opus codec failed: {reason}; report this, since all values were checked before")]
    OpusCodec {
        /// The codec's message.
        reason: String,
    },
    /// The build has no Opus codec.
    #[error("this build has no Opus codec; build with the feature opus")]
    OpusMissing,
    /// A WAV file is invalid or unsupported.
    #[error("wav file at byte {at}: {reason}; {fix}")]
    Wav {
        /// The offset of the invalid bytes.
        at: usize,
        /// The reason.
        reason: String,
        /// The remedy.
        fix: &'static str,
    },
    /// A stream of another format is invalid or unsupported.
    #[error("{format} stream at byte {at}: {reason}; {fix}")]
    Stream {
        /// `ivf`, `ogg`, `raw`, or the format of a film.
        format: &'static str,
        /// The offset of the invalid bytes.
        at: usize,
        /// The reason.
        reason: String,
        /// The remedy.
        fix: &'static str,
    },
    /// A track of a film has a codec that cannot be published.
    #[error("track {track} is {codec}, which cannot be published; {fix}")]
    FilmCodec {
        /// The number of the track.
        track: u64,
        /// The codec.
        codec: String,
        /// The remedy.
        fix: &'static str,
    },
    /// A ULog file is invalid or unsupported.
    #[error("ulog file at byte {at}: {reason}; {fix}")]
    Ulog {
        /// The offset of the invalid bytes.
        at: usize,
        /// The reason.
        reason: String,
        /// The remedy.
        fix: &'static str,
    },
    /// A message of a ULog file cannot be written as JSON.
    #[error("ulog message of topic {topic:?}: {reason}; pass a message as the same file gave it")]
    UlogMessage {
        /// The name of the topic, or its number if there is no such topic.
        topic: String,
        /// The reason.
        reason: String,
    },
}

impl MediaError {
    /// Moves the offsets of a format's error, for bytes that begin at `base` of their stream.
    pub(crate) fn moved(mut self, base: usize) -> Self {
        if let Self::JpegTruncated { begin, at, len } = &mut self {
            (*begin, *at, *len) = (*begin + base, *at + base, *len + base);
        }
        if let Self::NotJpeg { at, .. }
        | Self::JpegCorrupt { at, .. }
        | Self::VideoStream { at, .. }
        | Self::Wav { at, .. }
        | Self::Stream { at, .. } = &mut self
        {
            *at += base;
        }
        self
    }
}

/// Returns the first 60 characters of text from input, so that an error stays one line.
pub(crate) fn excerpt(text: &str) -> String {
    let mut out: String = text.chars().take(60).collect();
    if out.len() < text.len() {
        out.push_str("...");
    }
    out
}
