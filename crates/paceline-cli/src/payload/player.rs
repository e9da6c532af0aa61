//! `paceline sub --play`: shows pictures in a window of ffplay.

use crate::programs;
use anyhow::{Context as _, anyhow};
use paceline::{Sample, Tag};
use paceline_media::{ColourRange, Format, MediaError};
use paceline_tool::exit;
use paceline_tool::ros::unwrapped;
use paceline_tool::show::StdoutClosed;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// The time in which ffplay ends at the end of its input.
const LINGER: Duration = Duration::from_millis(500);
const PROGRAM: &str = "ffplay";
/// Shows each picture at once instead of by its time, and reads little ahead.
const NOW: [&str; 17] = [
    "-hide_banner",
    "-loglevel",
    "error",
    "-fflags",
    "nobuffer",
    "-flags",
    "low_delay",
    "-probesize",
    "32",
    "-analyzeduration",
    "0",
    "-framedrop",
    "-autoexit",
    "-vf",
    "setpts=0",
    "-window_title",
    "paceline",
];

/// A window of ffplay. It opens with the first sample, whose encoding determines the format, and opens again when the
/// format changes.
pub(crate) struct Player {
    program: PathBuf,
    window: Option<Window>,
}

struct Window {
    child: Child,
    input: ChildStdin,
    tag: Tag,
    /// The arguments that name the format.
    format: String,
}

impl Player {
    /// Finds the program.
    pub(super) fn find() -> anyhow::Result<Self> {
        let program = programs::find(PROGRAM, &programs::folders()).ok_or_else(|| {
            exit::usage(
                "--play: ffplay is not on the PATH; install ffmpeg, or write the pictures with --out pictures.mjpeg",
            )
        })?;
        Ok(Self { program, window: None })
    }

    /// Shows one sample. A closed window ends the command with success.
    pub(super) fn show(&mut self, sample: &Sample) -> anyhow::Result<()> {
        let (format, picture) = match sample.encoding.as_str().parse() {
            Ok(format) => {
                unwrapped(format, &sample.payload).map_err(|error| broken(sample, &error))?
            }
            Err(_) => return Err(no_picture(sample)),
        };
        let format = arguments(format).ok_or_else(|| no_picture(sample))?;
        let window = match self.window.take() {
            Some(window) if window.format == format => window,
            Some(window) if window.tag != sample.tag => return Err(several(&window, sample)),
            before => {
                if let Some(before) = before {
                    before.close();
                }
                Window::open(&self.program, sample, format)?
            }
        };
        let Window { input, .. } = self.window.insert(window);
        match input.write_all(&picture).and_then(|()| input.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(StdoutClosed.into()),
            other => other.context("--play: cannot write to ffplay"),
        }
    }
}

impl Window {
    /// Opens a window for the format of this sample.
    fn open(program: &Path, sample: &Sample, format: String) -> anyhow::Result<Self> {
        let mut command = Command::new(program);
        command.args(NOW).args(format.split(' ')).args(["-i", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command
            .spawn()
            .with_context(|| format!("--play: cannot start {}", program.display()))?;
        let input = child.stdin.take().context("--play: ffplay has no standard input")?;
        Ok(Self { child, input, tag: sample.tag.clone(), format })
    }

    /// Waits until ffplay has shown its input, and ends it.
    fn close(self) {
        let Self { mut child, input, .. } = self;
        drop(input);
        let end = Instant::now() + LINGER;
        while Instant::now() < end && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(LINGER / 50);
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        if let Some(window) = self.window.take() {
            window.close();
        }
    }
}

fn no_picture(sample: &Sample) -> anyhow::Error {
    anyhow!(
        "--play: samples of {} are {}, and only pictures and video can be played: image/jpeg, image/png, video/h264, \
         video/h265, video/av1, video/raw, and pictures in messages of ROS 2; write them with --out FILE",
        sample.tag,
        sample.encoding
    )
}

/// Describes a pattern with several formats of pictures.
fn several(window: &Window, sample: &Sample) -> anyhow::Error {
    anyhow!(
        "--play: one window shows one format, and the pictures of {} and {} differ; subscribe to one \
         of these tags",
        window.tag,
        sample.tag
    )
}

/// Describes a message of ROS 2 whose picture cannot be shown.
fn broken(sample: &Sample, error: &MediaError) -> anyhow::Error {
    let why = if let MediaError::Ros { message, reason, .. } = error {
        format!("{message}: {reason}")
    } else {
        error.to_string()
    };
    anyhow!(
        "--play: cannot show sample {} of {}: {why}; write the messages with --out FILE, or record the tag with \
         paceline record and open the file in Foxglove",
        sample.seq,
        sample.tag
    )
}

/// Returns the arguments that name the format; `None` for a message around a picture.
fn arguments(format: Format) -> Option<String> {
    let raw = |pixels: &str, size: paceline_media::Size| {
        format!("-f rawvideo -pixel_format {pixels} -video_size {size}")
    };
    Some(match format {
        Format::Jpeg => "-f mjpeg".to_owned(),
        Format::Png => "-f png_pipe".to_owned(),
        Format::H264 => "-f h264".to_owned(),
        Format::H265 => "-f hevc".to_owned(),
        Format::Av1 => "-f obu".to_owned(),
        Format::I420(size, Some(ColourRange::Full)) => raw("yuvj420p", size),
        Format::I420(size, _) => raw("yuv420p", size),
        Format::Rgb8(size) => raw("rgb24", size),
        Format::Ros(_) => return None,
    })
}
