//! `paceline sub --play`: shows pictures in a window of ffplay.

use crate::exit;
use crate::programs;
use crate::show::StdoutClosed;
use anyhow::{Context as _, anyhow};
use paceline::Sample;
use paceline_media::Format;
use std::io::{self, Write as _};
use std::path::PathBuf;
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

/// A window of ffplay. It opens with the first sample, whose encoding determines the format.
pub(crate) struct Player {
    program: PathBuf,
    window: Option<(Child, ChildStdin)>,
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
        let input = match &mut self.window {
            Some((_, input)) => input,
            None => &mut self.window.insert(open(&self.program, sample)?).1,
        };
        match input.write_all(&sample.payload).and_then(|()| input.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(StdoutClosed.into()),
            other => other.context("--play: cannot write to ffplay"),
        }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        if let Some((mut child, input)) = self.window.take() {
            drop(input);
            let end = Instant::now() + LINGER;
            while Instant::now() < end && matches!(child.try_wait(), Ok(None)) {
                std::thread::sleep(LINGER / 50);
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn open(program: &PathBuf, sample: &Sample) -> anyhow::Result<(Child, ChildStdin)> {
    let format = arguments(sample)?;
    let mut command = Command::new(program);
    command.args(NOW).args(format).args(["-i", "-"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child =
        command.spawn().with_context(|| format!("--play: cannot start {}", program.display()))?;
    let input = child.stdin.take().context("--play: ffplay has no standard input")?;
    Ok((child, input))
}

/// Returns the arguments that name the format of the samples.
fn arguments(sample: &Sample) -> anyhow::Result<Vec<String>> {
    let raw = |pixels: &str, size: paceline_media::Size| {
        format!("-f rawvideo -pixel_format {pixels} -video_size {size}")
    };
    let words = match sample.encoding.as_str().parse() {
        Ok(Format::Jpeg) => "-f mjpeg".to_owned(),
        Ok(Format::Png) => "-f png_pipe".to_owned(),
        Ok(Format::H264) => "-f h264".to_owned(),
        Ok(Format::H265) => "-f hevc".to_owned(),
        Ok(Format::Av1) => "-f obu".to_owned(),
        Ok(Format::I420(size)) => raw("yuv420p", size),
        Ok(Format::Rgb8(size)) => raw("rgb24", size),
        Ok(Format::Ros(_)) | Err(_) => {
            return Err(anyhow!(
                "--play: samples of {} are {}, and only pictures and video can be played: image/jpeg, image/png, \
                 video/h264, video/h265, video/av1 and video/raw; write them with --out FILE",
                sample.tag,
                sample.encoding
            ));
        }
    };
    Ok(words.split(' ').map(str::to_owned).collect())
}
