//! The first line of a Y4M file.

use std::fmt;

use crate::check::{checked_len, parse_side};
use crate::error::{MediaError, excerpt};
use crate::pixel::{ColourRange, PixelFormat};
use crate::size::Size;

/// The first word of a Y4M file.
pub(super) const MAGIC: &str = "YUV4MPEG2";

/// The comments of a header that state the range of the samples, as ffmpeg writes them.
pub(super) const FULL: &str = "COLORRANGE=FULL";
pub(super) const LIMITED: &str = "COLORRANGE=LIMITED";

/// A header or frame line must end within this many bytes.
pub(crate) const LINE_MAX: usize = 1024;

/// The pictures per second as a ratio, for example 30000:1001.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameRate {
    /// The pictures per `den` seconds, at least 1.
    pub num: u32,
    /// The seconds per `num` pictures, at least 1.
    pub den: u32,
}

impl FrameRate {
    /// Returns a checked rate of `num` pictures per `den` seconds.
    ///
    /// # Errors
    /// [`MediaError::Y4mHeader`] if either is 0.
    pub fn new(num: u32, den: u32) -> Result<Self, MediaError> {
        if num == 0 || den == 0 {
            let reason = format!("frame rate is {num}:{den}, both numbers must be at least 1");
            return Err(header_error(reason, "write a rate such as F25:1 or F30000:1001"));
        }
        Ok(Self { num, den })
    }

    /// Returns the pictures per second.
    #[must_use]
    pub fn hertz(self) -> f64 {
        f64::from(self.num) / f64::from(self.den.max(1))
    }

    /// Returns the microseconds from picture 0 to picture `frame`, rounded down; saturates.
    #[must_use]
    pub fn micros_at(self, frame: u64) -> u64 {
        let micros = u128::from(frame) * u128::from(self.den) * 1_000_000;
        u64::try_from(micros / u128::from(self.num.max(1))).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for FrameRate {
    /// Formats the rate as `30000:1001`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.num, self.den)
    }
}

pub(super) fn header_error(reason: String, fix: &'static str) -> MediaError {
    MediaError::Y4mHeader { reason, fix }
}

/// The content of the first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// The size of every picture.
    pub(crate) size: Size,
    pub(crate) rate: FrameRate,
    /// The range of the samples, if the file states it.
    pub(crate) range: Option<ColourRange>,
}

impl Header {
    /// Reads the first line of a file; returns it with its length, including its end.
    pub(crate) fn read(bytes: &[u8]) -> Result<(Self, usize), MediaError> {
        let line = first_line(bytes).and_then(|line| line.strip_prefix(MAGIC.as_bytes()));
        let Some(line) = line.filter(|line| matches!(line.first(), None | Some(b' '))) else {
            let reason = format!("no line of at most {LINE_MAX} bytes that begins with {MAGIC}");
            return Err(header_error(reason, "pass the bytes of a .y4m file from its start"));
        };
        let Ok(text) = std::str::from_utf8(line) else {
            let reason = "not text".to_owned();
            return Err(header_error(reason, "pass the bytes of a .y4m file from its start"));
        };
        Ok((parse(text)?, MAGIC.len() + line.len() + 1))
    }

    /// Returns the length of a picture in bytes.
    pub(crate) fn picture_bytes(&self) -> Result<usize, MediaError> {
        checked_len(PixelFormat::I420, self.size)
    }
}

/// Returns the first line, without its end; `None` if it has no end within [`LINE_MAX`] bytes.
pub(crate) fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    let head = bytes.get(..LINE_MAX).unwrap_or(bytes);
    head.iter().position(|&byte| byte == b'\n').and_then(|end| head.get(..end))
}

/// Parses the words behind [`MAGIC`].
fn parse(line: &str) -> Result<Header, MediaError> {
    let (mut width, mut height, mut rate, mut range) = (None, None, None, None);
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let mut letters = word.chars();
        let tag = letters.next();
        let value = letters.as_str();
        match tag {
            Some('W') => width = Some(parse_side("width", value)?),
            Some('H') => height = Some(parse_side("height", value)?),
            Some('F') => rate = Some(parse_rate(value)?),
            Some('C') => check_chroma(value)?,
            Some('I') => check_interlace(value)?,
            Some('X') if value == FULL => range = Some(ColourRange::Full),
            Some('X') if value == LIMITED => range = Some(ColourRange::Limited),
            // Pixel aspect ratio and comments are ignored.
            Some('A' | 'X') => {}
            _ => {
                let reason = format!("parameter {:?} is not known", excerpt(word));
                return Err(header_error(reason, "use only W, H, F, C, I, A and X"));
            }
        }
    }
    let (Some(width), Some(height), Some(rate)) = (width, height, rate) else {
        let reason = "width (W), height (H) or frame rate (F) is missing".to_owned();
        return Err(header_error(reason, "begin with YUV4MPEG2 W640 H480 F25:1"));
    };
    Ok(Header { size: Size::new(width, height)?, rate, range })
}

fn parse_rate(text: &str) -> Result<FrameRate, MediaError> {
    let parts = text.split_once(':');
    match parts.map(|(num, den)| (num.parse(), den.parse())) {
        Some((Ok(num), Ok(den))) => FrameRate::new(num, den),
        Some(_) | None => {
            let reason = format!("frame rate is {:?}, must be NUM:DEN", excerpt(text));
            Err(header_error(reason, "write a rate such as F25:1 or F30000:1001"))
        }
    }
}

fn check_chroma(text: &str) -> Result<(), MediaError> {
    if matches!(text, "420" | "420jpeg" | "420mpeg2" | "420paldv") {
        return Ok(());
    }
    let reason =
        format!("chroma format is {:?}, must be 420, 420jpeg, 420mpeg2 or 420paldv", excerpt(text));
    Err(header_error(reason, "convert the file first, with ffmpeg: -pix_fmt yuv420p"))
}

fn check_interlace(text: &str) -> Result<(), MediaError> {
    if matches!(text, "p" | "?") {
        return Ok(());
    }
    let reason = format!("interlacing is {:?}, must be p (progressive)", excerpt(text));
    Err(header_error(reason, "deinterlace the file first, with ffmpeg: -vf yadif"))
}
