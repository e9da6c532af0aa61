//! The pictures and sound of a camera, by RTSP or plain RTP. A thread receives them, and connects again when the camera was away.

mod lane;
mod pace;
mod queue;
mod reader;
mod refusal;
mod rtp;
mod tracks;

use super::args::PubArgs;
use super::media::{self, Message, Streamed};
use super::news::News;
use super::sound::Sound;
use super::source::{Next, Opened, Origin, Source};
use anyhow::anyhow;
use lane::Lane;
use paceline_edge::{CameraAddress, Login, RtpTrack, SDP_BYTES_MAX, TrackKind};
use paceline_tool::exit;
use paceline_tool::stop::Stop;
use queue::LaneQueue;
use reader::{Camera, Reader};
use rtp::RtpReader;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The environment variable with the login.
const LOGIN: &str = "PACELINE_RTSP_LOGIN";
/// Longest file with a login in bytes.
const LOGIN_FILE_MAX: u64 = 4_096;
/// Limit of the wait for the camera's answer to the end of the session.
const FAREWELL: Duration = Duration::from_secs(1);

/// The samples of a track.
struct CameraFeed {
    /// Dropped first: the reading thread ends with its receivers.
    samples: Option<(Streamed, Arc<()>)>,
    /// Disconnected when the reading thread has ended.
    ended: Receiver<()>,
}

/// Connects to a camera, whose sound is published with `--sound`. Returns `None` if the user interrupts the wait for its first
/// picture.
pub(super) fn open(
    args: &PubArgs,
    address: &str,
    stop: &Stop,
) -> anyhow::Result<Option<(Opened, Option<Sound>)>> {
    refuse_others(args)?;
    let address = address.parse::<CameraAddress>();
    let address = address.map_err(|error| exit::usage(format!("--rtsp: {error}")))?;
    let login = login(args.rtsp_login.as_deref())?;
    let name = address.to_string();
    let camera = Camera { address, login, udp: args.rtsp_udp };
    start(args, &name, stop, |lanes, user| Reader::new(camera, lanes, user).run())
}

/// Receives RTP as a session description describes it. Returns as [`open`].
pub(super) fn open_rtp(
    args: &PubArgs,
    file: &Path,
    stop: &Stop,
) -> anyhow::Result<Option<(Opened, Option<Sound>)>> {
    refuse_others(args)?;
    let name = file.display().to_string();
    let cannot =
        |error: std::io::Error| anyhow!("cannot read --rtp {name}: {}", exit::file_error(&error));
    let mut text = Vec::new();
    let limit = u64::try_from(SDP_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    File::open(file).and_then(|file| file.take(limit).read_to_end(&mut text)).map_err(cannot)?;
    let tracks = RtpTrack::parse(&text);
    let tracks = tracks.map_err(|error| exit::usage(format!("--rtp: {name}: {error}")))?;
    let described = name.clone();
    start(args, &name, stop, |lanes, user| RtpReader::new(described, tracks, lanes, user).run())
}

/// Starts a reading thread, and waits for its first picture.
fn start(
    args: &PubArgs,
    name: &str,
    stop: &Stop,
    run: impl FnOnce(Vec<Lane>, Weak<()>) -> anyhow::Result<()> + Send + 'static,
) -> anyhow::Result<Option<(Opened, Option<Sound>)>> {
    let pictures = Arc::new(News::new(name.to_owned()));
    let (queue, messages) = LaneQueue::new();
    let to = queue.sender();
    let mut lanes = vec![Lane::new(TrackKind::Pictures, pictures.clone(), queue)];
    let sound = args.sound.clone().map(|tag| {
        let (to, messages) = LaneQueue::new();
        let news = Arc::new(News::of_sound(name.to_owned()));
        lanes.push(Lane::new(TrackKind::Sound, news.clone(), to));
        Sound::new(tag, messages, news)
    });
    let feed = CameraFeed::start(messages, to, |user| run(lanes, user));
    let Some((samples, _)) = &feed.samples else { return Ok(None) };
    let Some(head) = media::head(name, (&samples.messages, &pictures), stop)? else {
        return Ok(None);
    };
    let found = head.ok_or_else(|| anyhow!("{name}: its reader found no pictures"))?;
    let hz = args.hertz().or(found.hz);
    let origin = media::origin(args, name, "pictures", (&found, hz));
    let origin = Origin { live: true, news: Some(pictures), ..origin };
    Ok(Some((Opened::new(origin, feed), sound)))
}

fn refuse_others(args: &PubArgs) -> anyhow::Result<()> {
    if args.sound.as_ref() == Some(&args.tag) {
        return Err(exit::usage(format!(
            "--sound {}: its pictures have this tag; give the sound another one",
            args.tag
        )));
    }
    let others = [
        (args.repeat, "--loop", "a camera has no end"),
        (args.chunk.is_some(), "--chunk", "the pictures of a camera are published one by one"),
        (args.encoding.is_some(), "--encoding", "a camera states the type of its pictures"),
    ];
    match others.into_iter().find(|(given, ..)| *given) {
        Some((_, flag, why)) => Err(exit::usage(format!("{flag}: {why}; leave {flag} out"))),
        None => Ok(()),
    }
}

/// Returns the login from a file, or from the environment. Errors never contain it.
fn login(file: Option<&Path>) -> anyhow::Result<Option<Login>> {
    let (text, place) = match file {
        Some(file) => {
            let cannot = |error: std::io::Error| {
                anyhow!("cannot read --rtsp-login {}: {}", file.display(), exit::file_error(&error))
            };
            if file.metadata().map_err(cannot)?.len() > LOGIN_FILE_MAX {
                return Err(exit::usage(format!(
                    "--rtsp-login: {} has more than {LOGIN_FILE_MAX} bytes, must be USER:PASSWORD on one line",
                    file.display()
                )));
            }
            let text = std::fs::read_to_string(file).map_err(cannot)?;
            (text, format!("--rtsp-login: {}", file.display()))
        }
        None => match std::env::var(LOGIN) {
            Ok(text) => (text, LOGIN.to_owned()),
            Err(std::env::VarError::NotPresent) => return Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => {
                return Err(exit::usage(format!("{LOGIN} is not UTF-8, must be USER:PASSWORD")));
            }
        },
    };
    text.parse().map(Some).map_err(|error| exit::usage(format!("{place} {error}")))
}

impl CameraFeed {
    /// Starts the reading thread, whose errors are sent to `to`.
    fn start(
        messages: Receiver<Message>,
        to: SyncSender<Message>,
        run: impl FnOnce(Weak<()>) -> anyhow::Result<()> + Send + 'static,
    ) -> Self {
        let (last, ended) = sync_channel::<()>(0);
        let wanted = Arc::new(());
        let user = Arc::downgrade(&wanted);
        media::spawn(to, move |_| {
            let _last = last;
            run(user)
        });
        let samples = Streamed { messages, has_end: true, keeps_time: false };
        Self { samples: Some((samples, wanted)), ended }
    }
}

impl Source for CameraFeed {
    fn next(&mut self, number: u64) -> anyhow::Result<Next> {
        let Some((samples, _)) = &mut self.samples else { return Ok(Next::End) };
        match samples.next(number)? {
            Next::End => Err(anyhow!("the reader of the camera ended; start paceline pub again")),
            next @ (Next::Sample(_) | Next::Wait) => Ok(next),
        }
    }

    fn has_end(&self) -> bool {
        // Only an error ends it.
        false
    }
}

impl Drop for CameraFeed {
    /// Waits until the camera knows that nobody receives: it would send over UDP for another minute.
    fn drop(&mut self) {
        self.samples = None;
        let _ = self.ended.recv_timeout(FAREWELL);
    }
}
