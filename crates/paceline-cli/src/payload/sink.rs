//! The output of payloads: none, standard output, or a file.

use super::film::FilmFile;
use super::named::{Holds, check};
use super::ogg::Ogg;
use super::player::Player;
use super::still::Still;
use super::wave::Wave;
use crate::args::RequestedRate;
use crate::outfile;
use anyhow::{Context as _, anyhow};
use paceline::status::PublisherId;
use paceline::{Encoding, Node, Sample, Tag};
use paceline_media::{ColourRange, Format, FrameRate, Picture, PixelFormat, Y4mWriter, jpeg, png};
use paceline_tool::{exit, show};
use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The output of payloads.
pub(crate) enum Sink {
    /// No output; payloads are only counted.
    Nowhere,
    /// Concatenated payloads on standard output; only text on a terminal.
    Stdout {
        /// True if standard output is a terminal.
        terminal: bool,
    },
    /// A file of payloads.
    File(Output),
    /// A WAV file.
    Wave(Wave),
    /// An Ogg file of packets of Opus.
    Ogg(Ogg),
    /// A film.
    Film(Box<FilmFile>),
    /// A file of one picture.
    Still(Still),
    /// A window that shows the pictures.
    Window(Player),
}

/// A file that contains whole samples only.
pub(crate) struct Output {
    file: File,
    path: PathBuf,
    holds: Holds,
    header: Option<Y4mWriter>,
    samples: u64,
    bytes: u64,
    buffer: Vec<u8>,
}

/// Returns true if `--out` names standard output.
pub(crate) fn is_stdout(out: Option<&Path>) -> bool {
    out == Some(Path::new("-"))
}

impl Sink {
    /// Opens the output that `--out` names. An existing file is replaced only if `force`; `json` means that standard
    /// output carries JSON.
    pub(crate) fn open(out: Option<&Path>, force: bool, json: bool) -> anyhow::Result<Self> {
        let Some(path) = out else { return Ok(Self::Nowhere) };
        if is_stdout(out) {
            if json {
                return Err(exit::usage(
                    "--out - and --json both write to standard output; give --out a file",
                ));
            }
            return Ok(Self::Stdout { terminal: io::stdout().is_terminal() });
        }
        let holds = Holds::of(path)?;
        let file = outfile::create("--out", path, force)?;
        Ok(match holds {
            Holds::Sound => Self::Wave(Wave::new(file, path.to_owned())),
            Holds::Opus => Self::Ogg(Ogg::new(file, path.to_owned())),
            Holds::Film(format) => Self::Film(Box::new(FilmFile::new(file, path, format, force)?)),
            Holds::Still(encoding) => Self::Still(Still::new(path.to_owned(), encoding)),
            Holds::RawPictures | Holds::Only(_) | Holds::Any => Self::File(Output {
                file,
                path: path.to_owned(),
                holds,
                header: None,
                samples: 0,
                bytes: 0,
                buffer: Vec::new(),
            }),
        })
    }

    /// Returns a window of ffplay, which opens with the first sample.
    pub(crate) fn window() -> anyhow::Result<Self> {
        Ok(Self::Window(Player::find()?))
    }

    /// Adds the sound of another tag to a film.
    ///
    /// # Errors
    /// Errors for other outputs.
    pub(crate) fn hear(
        &mut self,
        node: &Node,
        tag: &Tag,
        within: Option<Duration>,
    ) -> anyhow::Result<()> {
        match self {
            Self::Film(film) => film.hear(node, tag, within),
            Self::Nowhere
            | Self::Stdout { .. }
            | Self::File(_)
            | Self::Wave(_)
            | Self::Ogg(_)
            | Self::Still(_)
            | Self::Window(_) => Err(exit::usage(
                "--sound: only a film has a second track; give --out a name that ends in .mp4, .mkv or .ts",
            )),
        }
    }

    /// Writes what has become due without a sample.
    pub(crate) fn poll(&mut self) -> anyhow::Result<()> {
        if let Self::Film(film) = self { film.poll() } else { Ok(()) }
    }

    /// Writes the rest at the end.
    pub(crate) fn end(&mut self) -> anyhow::Result<()> {
        if let Self::Film(film) = self { film.end() } else { Ok(()) }
    }

    /// Writes one sample.
    pub(crate) fn write(
        &mut self,
        delivery: &Sample,
        asked: RequestedRate,
        node: &Node,
    ) -> anyhow::Result<()> {
        match self {
            Self::Nowhere => Ok(()),
            Self::Wave(wave) => wave.write(delivery),
            Self::Ogg(ogg) => ogg.write(delivery),
            Self::Film(film) => film.write(delivery),
            Self::Still(still) => still.write(delivery),
            Self::Window(player) => player.show(delivery),
            Self::Stdout { terminal: true } => to_terminal(delivery),
            Self::Stdout { terminal: false } => {
                let mut stdout = io::stdout().lock();
                let all = stdout
                    .write_all(&delivery.payload)
                    .and_then(|()| stdout.write_all(end_of(&delivery.encoding)))
                    .and_then(|()| stdout.flush());
                show::written(all)
            }
            Self::File(output) => {
                if output.holds == Holds::RawPictures && output.header.is_none() {
                    output.begin_y4m(delivery, rate(asked, node, delivery.publisher))?;
                }
                output.write(delivery)
            }
        }
    }
}

impl Output {
    fn begin_y4m(&mut self, delivery: &Sample, rate: FrameRate) -> anyhow::Result<()> {
        let size = super::picture_size(delivery).ok_or_else(|| self.no_picture(delivery))?;
        let range = match delivery.encoding.as_str().parse() {
            Ok(Format::I420(_, range)) => range,
            // JPEG and PNG are decoded to the full range.
            Ok(_) | Err(_) => Some(ColourRange::Full),
        };
        let writer = Y4mWriter::new(size, rate)?.with_range(range);
        writer.append_header(&mut self.buffer);
        self.header = Some(writer);
        Ok(())
    }

    fn no_picture(&self, delivery: &Sample) -> anyhow::Error {
        anyhow!(
            "--out {}: sample {} of {} is {}, a .y4m file contains image/jpeg, image/png or \
             video/raw;format=i420 pictures; give a name that does not end in .y4m",
            self.path.display(),
            delivery.seq,
            delivery.tag,
            delivery.encoding
        )
    }

    fn write(&mut self, delivery: &Sample) -> anyhow::Result<()> {
        if let Holds::Only(encoding) = self.holds {
            check(&self.path, encoding, delivery)?;
        }
        match self.header {
            Some(writer) => self.append_frame(&writer, delivery)?,
            None => {
                self.buffer.extend_from_slice(&delivery.payload);
                self.buffer.extend_from_slice(end_of(&delivery.encoding));
            }
        }
        let written = self.file.write_all(&self.buffer);
        if let Err(error) = written {
            // Truncates to the whole samples; devices do not support it.
            let _ = self.file.set_len(self.bytes);
            let fix = if error.kind() == io::ErrorKind::StorageFull {
                "free some space or give another --out"
            } else {
                "give another --out"
            };
            return Err(anyhow!(
                "--out {}: cannot write: {error}; the file contains {} whole samples, {} bytes; \
                 {fix}",
                self.path.display(),
                self.samples,
                self.bytes
            ));
        }
        self.samples += 1;
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn append_frame(&mut self, writer: &Y4mWriter, delivery: &Sample) -> anyhow::Result<()> {
        let here = || format!("--out {}: sample {}", self.path.display(), delivery.seq);
        match delivery.encoding.as_str().parse() {
            Ok(Format::Jpeg) => {
                let picture =
                    jpeg::decode(&delivery.payload, PixelFormat::I420).with_context(here)?;
                writer.append_frame(&picture.as_picture(), &mut self.buffer)
            }
            Ok(Format::Png) => {
                let picture =
                    png::decode(&delivery.payload, PixelFormat::I420).with_context(here)?;
                writer.append_frame(&picture.as_picture(), &mut self.buffer)
            }
            Ok(Format::I420(size, _)) => {
                let picture = Picture::new(PixelFormat::I420, size, &delivery.payload);
                writer.append_frame(&picture.with_context(here)?, &mut self.buffer)
            }
            Ok(Format::Rgb8(_) | Format::H264 | Format::H265 | Format::Av1 | Format::Ros(_))
            | Err(_) => {
                return Err(self.no_picture(delivery));
            }
        }
        .with_context(|| format!("--out {}: sample {}", self.path.display(), delivery.seq))
    }
}

/// Prints a text sample on a terminal.
fn to_terminal(delivery: &Sample) -> anyhow::Result<()> {
    let payload = &delivery.payload;
    match std::str::from_utf8(payload) {
        Ok(text) if !text.contains('\0') => {
            show::text(text)?;
            show::text(if end_of(&delivery.encoding).is_empty() { "" } else { "\n" })
        }
        _ => Err(exit::usage(format!(
            "--out -: sample {} of {} is {}, {} bytes that are not text: a terminal cannot show \
             them; give --out FILE, or pipe them into a program",
            delivery.seq,
            delivery.tag,
            delivery.encoding,
            payload.len()
        ))),
    }
}

/// Returns the separator after a payload: a line break after text.
fn end_of(encoding: &Encoding) -> &'static [u8] {
    match encoding {
        Encoding::Text | Encoding::Json => b"\n",
        Encoding::Bytes | Encoding::Jpeg | Encoding::Other(_) => b"",
    }
}

/// Returns the rate for a file header: the requested part of the publisher's declared rate, or 30.
fn rate(asked: RequestedRate, node: &Node, publisher: PublisherId) -> FrameRate {
    let declared = node
        .status(Duration::from_millis(300))
        .iter()
        .flat_map(|node| &node.publishers)
        .find(|found| found.id == publisher)
        .and_then(|found| found.period)
        .map(|period| 1.0 / period.as_secs_f64().max(1e-6));
    header_rate(declared, asked.max_hz, asked.every)
}

fn header_rate(declared: Option<f64>, max_hz: Option<f64>, every: Option<u32>) -> FrameRate {
    // The limit applies to what remains after one in n.
    let hz = match (declared, max_hz) {
        (None, Some(max)) => max,
        _ => declared.unwrap_or(30.0) / f64::from(every.unwrap_or(1)),
    };
    let hz = max_hz.map_or(hz, |max| max.min(hz));
    #[expect(clippy::cast_possible_truncation, reason = "in the range of u32 by clamp")]
    let millihertz = (hz * 1_000.0).round().clamp(1.0, f64::from(u32::MAX)) as u32;
    match millihertz % 1_000 {
        0 => FrameRate { num: millihertz / 1_000, den: 1 },
        _ => FrameRate { num: millihertz, den: 1_000 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate_of(declared: Option<f64>, max_hz: Option<f64>, every: Option<u32>) -> (u32, u32) {
        let rate = header_rate(declared, max_hz, every);
        (rate.num, rate.den)
    }

    #[test]
    fn the_rate_of_a_file_is_the_requested_part_of_the_published_rate() {
        assert_eq!(rate_of(None, None, None), (30, 1));
        assert_eq!(rate_of(Some(30.0), Some(10.0), None), (10, 1));
        assert_eq!(rate_of(Some(30.0), Some(50.0), None), (30, 1));
        assert_eq!(rate_of(Some(30.0), None, Some(4)), (7_500, 1_000));
        assert_eq!(rate_of(Some(30.0), Some(10.0), Some(2)), (10, 1));
        assert_eq!(rate_of(Some(30.0), Some(20.0), Some(2)), (15, 1));
        assert_eq!(rate_of(Some(29.97), None, None), (29_970, 1_000));
        assert_eq!(rate_of(Some(0.0), None, None), (1, 1_000));
    }

    #[test]
    fn only_text_gets_a_line_break() {
        assert_eq!(end_of(&Encoding::Text), b"\n");
        assert_eq!(end_of(&Encoding::Jpeg), b"");
    }
}
