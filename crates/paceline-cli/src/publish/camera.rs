//! The pictures and sound of a camera, by RTSP. A thread receives them, and connects again when the camera was away.

mod lane;
mod reader;
mod refusal;
mod tracks;

use super::args::PubArgs;
use super::media::{self, AHEAD, Streamed};
use super::news::News;
use super::source::{Next, Opened, Origin, Source};
use anyhow::anyhow;
use lane::Lane;
use paceline_edge::Medium;
use paceline_edge::{CameraAddress, Login};
use paceline_media::stream::Properties;
use paceline_tool::exit;
use paceline_tool::stop::Stop;
use reader::{Camera, Reader};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// The environment variable with the login.
const LOGIN: &str = "PACELINE_RTSP_LOGIN";
/// Longest file with a login in bytes.
const LOGIN_FILE_MAX: u64 = 4_096;
/// Limit of the wait for the camera's answer to the end of the session.
const FAREWELL: Duration = Duration::from_secs(1);

/// The samples of a camera.
struct CameraFeed {
    /// Dropped first: the reading thread ends with its receiver.
    samples: Option<Streamed>,
    wanted: Option<Arc<()>>,
    /// Disconnected when the reading thread has ended.
    ended: Receiver<()>,
}

/// Connects to a camera. Returns `None` if the user interrupts the wait for its first picture.
pub(super) fn open(args: &PubArgs, address: &str, stop: &Stop) -> anyhow::Result<Option<Opened>> {
    refuse_others(args)?;
    let address = address.parse::<CameraAddress>();
    let address = address.map_err(|error| exit::usage(format!("--rtsp: {error}")))?;
    let login = login(args.rtsp_login.as_deref())?;
    let name = address.to_string();
    let news = Arc::new(News::new(name.clone()));
    let camera = Camera { address, login, udp: args.rtsp_udp };
    let wanted = Arc::new(());
    let (to, messages) = sync_channel(AHEAD);
    let (last, ended) = sync_channel::<()>(0);
    let (reports, user) = (news.clone(), Arc::downgrade(&wanted));
    media::spawn(to, move |to| {
        let _last = last;
        let lanes = vec![Lane::new(Medium::Pictures, reports, to.clone())];
        Reader::new(camera, lanes, user).run()
    });
    let samples = Streamed { messages, has_end: true, keeps_time: false };
    let feed = CameraFeed { samples: Some(samples), wanted: Some(wanted), ended };
    let Some(head) = feed.head(&name, stop)? else { return Ok(None) };
    let found = head.ok_or_else(|| anyhow!("{name}: its reader found no pictures"))?;
    let hz = args.hertz().or(found.hz);
    let origin = media::origin(args, &name, "pictures", (&found, hz));
    let origin = Origin { live: true, news: Some(news), ..origin };
    Ok(Some(Opened { origin, feed: Box::new(feed) }))
}

fn refuse_others(args: &PubArgs) -> anyhow::Result<()> {
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
    /// Waits for the properties of the pictures; `None` if the user interrupts it.
    fn head(&self, name: &str, stop: &Stop) -> anyhow::Result<Option<Option<Properties>>> {
        match &self.samples {
            Some(samples) => media::head(name, &samples.messages, stop),
            None => Ok(None),
        }
    }
}

impl Source for CameraFeed {
    fn next(&mut self, number: u64) -> anyhow::Result<Next> {
        self.samples.as_mut().map_or(Ok(Next::End), |samples| samples.next(number))
    }

    fn has_end(&self) -> bool {
        // Only an error ends it.
        false
    }
}

impl Drop for CameraFeed {
    /// Waits until the camera knows that nobody receives: it would send over UDP for another minute.
    fn drop(&mut self) {
        (self.samples, self.wanted) = (None, None);
        let _ = self.ended.recv_timeout(FAREWELL);
    }
}
