//! The command line of `paceline pub`.

use crate::args::{self, CardSpec, Speed, Telemetry};
use crate::config::NodeArgs;
use clap::ArgGroup;
use paceline::pull::History;
use paceline::text::is_plain;
use paceline::{Capacity, Kind, LossTolerance, Tag};
use std::path::PathBuf;
use std::time::Duration;

const AFTER: &str = "\
Examples:
  paceline pub robot/goal '{\"x\": 3.5, \"y\": 1}' --latch
  paceline pub robot/steer left --hz 20
  paceline pub robot/camera --test-card 640x480@30 --loss 1/10 --json
  paceline pub robot/camera --rtsp rtsp://192.168.1.20/stream --rtsp-login camera.txt
  paceline pub robot/camera --rtsp rtsp://192.168.1.20/stream --rtsp-udp --sound robot/microphone
  paceline pub robot/camera --rtp camera.sdp
  paceline pub robot/camera --file film.mp4 --sound robot/microphone --loop
  ffmpeg -v error -f v4l2 -i /dev/video0 -c copy -f mjpeg - | paceline pub robot/camera - --hz 30
  paceline pub robot/pose --file pose.txt --hz 100 --count 1000 --log debug
  paceline pub robot/pose - --isolated --name robot \
--link name=radio,listen=tcp/0.0.0.0:7600,capacity=2mbit,insecure
  paceline pub robot/video --file flight.264 --config robot.toml --policy policy.toml --token robot.jwt

JPEG and PNG pictures, Y4M, H.264, H.265, AV1 (OBU or IVF), WAV, Ogg with Opus, and raw pictures or sound of the type --encoding are \
published sample by sample. Their type is found by the content, by --encoding, or by the name of the file. A file is published at \
its rate, or at 30 pictures per second. Other inputs are published as they arrive, and --hz only declares their rate: standard input, \
FIFOs, unix sockets, and tcp/HOST:PORT. The units of a film (MP4, MOV, Matroska, WebM, MPEG-TS, MPEG-PS, FLV) are published at \
their own times. .ulg files are published message by message at their own times, each topic on its own tag below TAG.
--wait defaults to 1s for a value that is published once, and to 0s with --hz or --latch.
Other files and standard input are published line by line if they are UTF-8 text or if --encoding is given, else in \
pieces of the size --chunk. Without --hz or --period they are published as they arrive.
Subscribers set delay bounds (paceline sub --within) and loss tolerances. --within and --loss apply to subscribers \
that set none.";

/// Arguments of `paceline pub`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = AFTER,
    allow_negative_numbers = true,
    group(ArgGroup::new("source").required(true).args(["value", "file", "rtsp", "rtp", "test_card"])),
    group(ArgGroup::new("pace").args(["hz", "period"]))
)]
pub(crate) struct PubArgs {
    /// The tag to publish on, such as robot/camera
    #[arg(value_parser = Tag::new)]
    pub(crate) tag: Tag,
    /// Publishes this value: a JSON object or list, or text. It is repeated with --hz or --period. - publishes
    /// standard input
    pub(crate) value: Option<String>,
    /// Publishes this file, FIFO or unix socket, or the output of the server at tcp/HOST:PORT
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Publishes the pictures of this camera: rtsp://HOST/PATH, without a password. It is connected again when it was away
    #[arg(long, value_name = "URL")]
    pub(crate) rtsp: Option<CameraArg>,
    /// File with USER:PASSWORD for the camera; defaults to the environment variable PACELINE_RTSP_LOGIN
    #[arg(long, value_name = "FILE", requires = "rtsp")]
    pub(crate) rtsp_login: Option<PathBuf>,
    /// Receives from the camera over UDP instead of TCP
    #[arg(long, requires = "rtsp")]
    pub(crate) rtsp_udp: bool,
    /// Publishes the pictures that arrive by RTP over UDP, as this session description (SDP) describes them
    #[arg(long, value_name = "FILE")]
    pub(crate) rtp: Option<PathBuf>,
    /// Also publishes the sound of the camera or the film, on this tag
    #[arg(long, value_name = "TAG", value_parser = Tag::new, conflicts_with = "test_card")]
    pub(crate) sound: Option<Tag>,
    /// Publishes pictures that show their number and time; HZ defaults to 30
    #[arg(long, value_name = "WxH@HZ", value_parser = args::card)]
    pub(crate) test_card: Option<CardSpec>,
    /// Samples per second
    #[arg(long, value_parser = args::rate, conflicts_with = "test_card")]
    pub(crate) hz: Option<f64>,
    /// Time between samples, such as 33.3ms
    #[arg(long, value_name = "TIME", value_parser = args::period, conflicts_with = "test_card")]
    pub(crate) period: Option<f64>,
    /// Sends late samples instead of dropping them (for commands and files)
    #[arg(long)]
    pub(crate) late: bool,
    /// Starts again at the end of the file
    #[arg(long = "loop", conflicts_with = "test_card")]
    pub(crate) repeat: bool,
    /// Ends after this many samples
    #[arg(long, value_name = "N", value_parser = args::count)]
    pub(crate) count: Option<u64>,
    /// Publishes pieces of this size instead of lines, such as 1kB
    #[arg(long, value_name = "SIZE", value_parser = args::chunk, conflicts_with = "test_card")]
    pub(crate) chunk: Option<usize>,
    /// JPEG quality of the test card, 1 to 100; defaults to 80
    #[arg(long, value_parser = args::quality)]
    pub(crate) quality: Option<u8>,
    /// Lowers the quality of the test card while a subscriber receives less than it requested
    #[arg(long)]
    pub(crate) adapt: bool,
    /// Media type of lines or pieces, of a stream whose beginning does not show it, or of raw pictures and sound
    #[arg(long, value_name = "TYPE", value_parser = encoding, conflicts_with = "test_card")]
    pub(crate) encoding: Option<String>,
    /// data, state, picture, audio or video; defaults to the kind of the media type. A newer state or picture
    /// replaces a queued older one
    #[arg(long, value_parser = args::kind)]
    pub(crate) kind: Option<Kind>,
    /// Longest wait for a subscriber before the first sample; defaults to 1s for files and standard input,
    /// to 0s for the test card and with --loop
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    pub(crate) wait: Option<Duration>,
    /// Playback speed of a .ulg file: 0.01 to 1000 times, or max for the subscribers' pace; defaults to 1
    #[arg(long, value_name = "X", value_parser = args::speed)]
    pub(crate) speed: Option<Speed>,
    /// Output form of a .ulg file's messages: raw or json; defaults to raw
    #[arg(long = "as", value_name = "FORM", value_parser = args::telemetry)]
    pub(crate) form: Option<Telemetry>,
    /// Prints one line of JSON per second
    #[arg(long)]
    pub(crate) json: bool,
    /// Requests a contract with this delay bound for subscribers that request none
    #[arg(long, value_name = "TIME", value_parser = args::within)]
    pub(crate) within: Option<Duration>,
    /// Allows X of each Y samples to miss the deadline, for subscribers with a delay bound and without --loss
    #[arg(long, value_name = "X/Y")]
    pub(crate) loss: Option<LossTolerance>,
    /// Mean bit rate, such as 2mbit, with --burst: contracts then reserve this instead of the largest sample in
    /// each period
    #[arg(long, value_name = "RATE", value_parser = args::capacity, requires = "burst")]
    pub(crate) rate: Option<Capacity>,
    /// Most bytes at once at the mean rate, such as 60kB
    #[arg(long, value_name = "SIZE", value_parser = args::bytes, requires = "rate")]
    pub(crate) burst: Option<u64>,
    /// Largest sample, such as 20kB; defaults to the largest one of the file, else it follows the samples
    #[arg(long, value_name = "SIZE", value_parser = args::bytes)]
    pub(crate) largest: Option<u64>,
    /// Traffic in the Tenet form: samples of at most SMAX, XMIN apart, and XAVE apart on average over INTERVAL
    #[arg(long, value_name = "XMIN,XAVE,INTERVAL,SMAX", conflicts_with_all = ["rate", "largest", "hz", "period"])]
    pub(crate) tenet: Option<Tenet>,
    /// Keeps the newest sample for subscribers that join later, which receive it first; ends on Ctrl-C. The kind
    /// defaults to state
    #[arg(long)]
    pub(crate) latch: bool,
    /// Buffers published samples for others to pull: N samples, or samples=N,bytes=10MB,age=60s
    #[arg(long, value_name = "LIMITS", value_parser = args::history)]
    pub(crate) history: Option<History>,
    /// Prints no report each second: a daemon publishes it
    #[arg(skip)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

impl PubArgs {
    /// Returns the requested rate in Hz.
    pub(crate) fn hertz(&self) -> Option<f64> {
        self.hz.or(self.period.map(|millis| 1_000.0 / millis))
    }

    /// Returns true if the traffic is declared.
    pub(crate) const fn declares_traffic(&self) -> bool {
        self.rate.is_some() || self.largest.is_some() || self.tenet.is_some()
    }

    /// Returns a flag that only telemetry files support, if one was given.
    pub(crate) fn telemetry_flag(&self) -> Option<&'static str> {
        self.speed.map(|_| "--speed").or(self.form.map(|_| "--as"))
    }
}

/// The address of a camera as the user wrote it. It is checked later, because errors of values repeat the value, which may
/// contain a password.
#[derive(Clone)]
pub(crate) struct CameraArg(pub(crate) String);

impl std::fmt::Debug for CameraArg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CameraArg(…)")
    }
}

impl From<String> for CameraArg {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// Traffic in the Tenet form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tenet {
    pub(crate) xmin: Duration,
    pub(crate) xave: Duration,
    pub(crate) interval: Duration,
    pub(crate) smax: u64,
}

impl std::str::FromStr for Tenet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let [xmin, xave, interval, smax] = parts[..] else {
            return Err("must be XMIN,XAVE,INTERVAL,SMAX, such as 33ms,50ms,1s,20kB".to_owned());
        };
        Ok(Self {
            xmin: args::duration(xmin)?,
            xave: args::duration(xave)?,
            interval: args::duration(interval)?,
            smax: args::bytes(smax)?,
        })
    }
}

fn encoding(text: &str) -> Result<String, String> {
    match text.len() {
        1..=255 if is_plain(text) => Ok(text.to_owned()),
        1..=255 => {
            Err("must be text without control characters, such as application/json".to_owned())
        }
        bytes => {
            Err(format!("has {bytes} bytes, must have from 1 to 255; for example application/json"))
        }
    }
}
