//! The reader of a stream.

use super::ivf::IvfCutter;
use super::jpeg::JpegCutter;
use super::ogg::OggCutter;
use super::units::UnitCutter;
use super::wav::{WavCutter, pace};
use super::y4m::Y4mCutter;
use super::{Container, End, Step, blocks, png};
use crate::audio::AudioFormat;
use crate::audio::opus_micros;
use crate::codec::{Codec, Units};
use crate::damage::Damage;
use crate::error::MediaError;
use crate::format::Format;
use crate::size::Size;
use crate::video::Class;

/// The bytes behind the current sample from which on the buffer is moved to its beginning.
const MOVE_MIN: usize = 64 * 1024;

/// The parts of a stream that were not returned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skipped {
    /// The bytes that were no whole sample.
    pub damage: Damage,
    /// The number of video pictures before the first one that can be decoded.
    pub early: u64,
}

/// The properties of a stream's samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Properties {
    /// The media type, such as `video/h264`.
    pub encoding: String,
    /// The size of the pictures.
    pub size: Option<Size>,
    /// The samples per second that the stream states; `None` if it states none.
    pub hz: Option<f64>,
}

/// Cuts a stream into samples; see [the module](super).
#[derive(Debug)]
pub struct StreamReader {
    cutter: Cutter,
    video: Option<Video>,
    buffer: Vec<u8>,
    /// The offset of the next byte in the buffer.
    at: usize,
    /// The offset of the buffer in the stream.
    base: usize,
    end: End,
    skipped: Skipped,
}

#[derive(Debug)]
enum Cutter {
    Jpeg(JpegCutter),
    Png,
    Y4m(Y4mCutter),
    Units(Box<UnitCutter>),
    Ivf(IvfCutter),
    Wav(WavCutter),
    Ogg(Box<OggCutter>),
    Picture(Format, usize),
    Sound(AudioFormat),
}

/// The pictures of a coded video up to the first one that can be decoded.
#[derive(Debug)]
struct Video {
    codec: Codec,
    units: Units,
    begun: bool,
}

impl StreamReader {
    /// Returns the reader of a stream from its beginning, or from any place in it if the stream has no header: Y4M, IVF,
    /// WAV and Ogg have one.
    #[must_use]
    pub fn new(container: Container) -> Self {
        let (cutter, codec) = match container {
            Container::Jpeg => (Cutter::Jpeg(JpegCutter::default()), None),
            Container::Png => (Cutter::Png, None),
            Container::Y4m => (Cutter::Y4m(Y4mCutter::default()), None),
            Container::Video(codec) => {
                (Cutter::Units(Box::new(UnitCutter::new(codec))), Some(codec))
            }
            Container::Ivf => (Cutter::Ivf(IvfCutter::default()), Some(Codec::Av1)),
            Container::Wav => (Cutter::Wav(WavCutter::default()), None),
            Container::Ogg => (Cutter::Ogg(Box::default()), None),
        };
        Self::with(cutter, codec)
    }

    /// Returns the reader of a stream without headers, of raw pictures or blocks of sound of this media type; `None` for
    /// other types.
    #[must_use]
    pub fn raw(encoding: &str) -> Option<Self> {
        if let Ok(sound) = encoding.parse::<AudioFormat>() {
            return Some(Self::with(Cutter::Sound(sound), None));
        }
        let format = encoding.parse::<Format>().ok()?;
        let bytes = usize::try_from(format.raw_bytes()?).ok()?;
        Some(Self::with(Cutter::Picture(format, bytes), None))
    }

    fn with(cutter: Cutter, codec: Option<Codec>) -> Self {
        let video = codec.map(|codec| Video { codec, units: Units::new(codec), begun: false });
        Self {
            cutter,
            video,
            buffer: Vec::new(),
            at: 0,
            base: 0,
            end: End::Open,
            skipped: Skipped::default(),
        }
    }

    /// Takes the next bytes of the stream. Call [`Self::poll`] until it returns `None` before the next call, so that
    /// memory stays bounded.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.at >= MOVE_MIN.min(self.buffer.len()) {
            self.buffer.drain(..self.at);
            self.base += self.at;
            self.at = 0;
        }
        self.buffer.extend_from_slice(bytes);
        self.end = End::Open;
    }

    /// Notes that no bytes arrived for a while, so that the buffered unit of a video is whole.
    pub fn pause(&mut self) {
        if self.end == End::Open {
            self.end = End::Pause;
        }
    }

    /// Notes that the stream has ended.
    pub fn end(&mut self) {
        self.end = End::Ended;
    }

    /// Returns true after [`Self::end`].
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.end == End::Ended
    }

    /// Returns true if [`Self::pause`] may complete a sample.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(&self.cutter, Cutter::Units(units) if units.is_open())
    }

    /// Returns the next sample whose end is known.
    ///
    /// # Errors
    /// The errors of the stream's header: [`MediaError::Y4mHeader`], [`MediaError::Wav`] or [`MediaError::Stream`]. Other
    /// damage is skipped.
    pub fn poll(&mut self) -> Result<Option<Vec<u8>>, MediaError> {
        loop {
            let at = self.base + self.at;
            let bytes = self.buffer.get(self.at..).unwrap_or_default();
            match self.cutter.step(bytes, self.end, at).map_err(|error| error.moved(at))? {
                Step::Sample(bytes, sample) => {
                    self.at += bytes;
                    if let Some(sample) = self.take(sample) {
                        return Ok(Some(sample));
                    }
                }
                Step::Used(bytes) => self.at += bytes,
                Step::Damaged(bytes, error) => {
                    self.at += bytes;
                    self.skip(at, bytes, &error.moved(at));
                }
                Step::More => return Ok(None),
            }
        }
    }

    /// Returns the sample unless it is a picture that cannot be decoded.
    fn take(&mut self, sample: Vec<u8>) -> Option<Vec<u8>> {
        let Some(video) = self.video.as_mut().filter(|video| !video.begun) else {
            return Some(sample);
        };
        match video.units.classify(&sample) {
            Ok(Class::I) => {
                video.begun = true;
                Some(video.units.complete(&sample, Class::I).into_owned())
            }
            Ok(class @ (Class::P | Class::B | Class::Leading)) => {
                // It may have parameter sets for later ones.
                video.units.complete(&sample, class);
                self.skipped.early += 1;
                None
            }
            Err(error) => {
                self.skip(self.base + self.at - sample.len(), sample.len(), &error);
                None
            }
        }
    }

    fn skip(&mut self, at: usize, bytes: usize, error: &MediaError) {
        self.skipped.damage.add(at as u64, bytes as u64, || error.to_string());
    }

    /// Returns the plural name of the content: pictures or sound.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        match self.cutter {
            Cutter::Wav(_) | Cutter::Ogg(_) | Cutter::Sound(_) => "sound",
            Cutter::Units(_) | Cutter::Ivf(_) => "pictures that can be decoded",
            Cutter::Jpeg(_) | Cutter::Png | Cutter::Y4m(_) | Cutter::Picture(..) => "pictures",
        }
    }

    /// Returns the bytes that were no sample so far.
    #[must_use]
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Returns the properties of the stream; pass its first sample.
    ///
    /// # Errors
    /// The errors of [`Format::picture_size`], for a picture whose header cannot be read.
    pub fn properties(&self, sample: &[u8]) -> Result<Properties, MediaError> {
        let picture = |format: Format| {
            let size = Some(format.picture_size(sample)?);
            Ok(Properties { encoding: format.to_string(), size, hz: None })
        };
        let sound = |format: &AudioFormat| {
            let hz = Some(pace(format.rate).1);
            Properties { encoding: format.to_string(), size: None, hz }
        };
        if let Some(Video { codec, .. }) = &self.video {
            let info = codec.info(sample)?;
            let hz = info.and_then(|info| info.hz);
            let encoding = Format::from(*codec).to_string();
            return Ok(Properties {
                encoding,
                size: info.map(|info| info.size),
                hz: hz.or(self.cutter.hz()),
            });
        }
        match &self.cutter {
            Cutter::Jpeg(_) => picture(Format::Jpeg),
            Cutter::Png => picture(Format::Png),
            Cutter::Y4m(y4m) => {
                let header = y4m.header.as_ref().ok_or_else(|| no_header("y4m"))?;
                let properties = picture(Format::I420(header.size, header.range))?;
                Ok(Properties { hz: Some(header.rate.hertz()), ..properties })
            }
            Cutter::Wav(wav) => {
                let layout = wav.layout.as_ref().ok_or_else(|| no_header("wav"))?;
                Ok(sound(&layout.format))
            }
            Cutter::Ogg(ogg) => {
                let format = ogg.format.ok_or_else(|| no_header("ogg"))?;
                let hz = opus_micros(sample).map(|micros| 1e6 / f64::from(micros.max(1)));
                Ok(Properties { encoding: format.to_string(), size: None, hz })
            }
            Cutter::Picture(format, _) => picture(*format),
            Cutter::Sound(format) => Ok(sound(format)),
            Cutter::Units(_) | Cutter::Ivf(_) => Err(no_header("video")),
        }
    }
}

/// Returns the error for properties before the first sample.
fn no_header(format: &'static str) -> MediaError {
    let reason = "it has no header".to_owned();
    MediaError::Stream { format, at: 0, reason, fix: "pass its first sample" }
}

impl Cutter {
    fn step(&mut self, bytes: &[u8], end: End, at: usize) -> Result<Step, MediaError> {
        Ok(match self {
            Self::Jpeg(jpeg) => jpeg.step(bytes, end),
            Self::Png => png::step(bytes, end),
            Self::Y4m(y4m) => return y4m.step(bytes, end, at),
            Self::Units(units) => units.step(bytes, end),
            Self::Ivf(ivf) => return ivf.step(bytes, end),
            Self::Wav(wav) => return wav.step(bytes, end, at),
            Self::Ogg(ogg) => return ogg.step(bytes, end),
            Self::Picture(_, len) => blocks::step(bytes, end, *len, None),
            Self::Sound(format) => {
                let part = format.frame_bytes();
                blocks::step(bytes, end, pace(format.rate).0 * part, Some(part))
            }
        })
    }

    /// Returns the rate of pictures that the header states.
    fn hz(&self) -> Option<f64> {
        if let Self::Ivf(ivf) = self { ivf.hz } else { None }
    }
}
