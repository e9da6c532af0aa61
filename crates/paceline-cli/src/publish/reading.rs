//! Reading threads: a silent input must not prevent the command from ending.

use super::args::PubArgs;
use super::news::News;
use super::source::{Next, Origin, Piece, Source};
use anyhow::bail;
use paceline::{Encoding, Size};
use paceline_media::stream::Properties;
use paceline_tool::show;
use paceline_tool::stop::{STOP_SLICE, Stop};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// Number of samples read ahead.
pub(super) const AHEAD: usize = 16;
/// Time after which a silent input is reported.
const PATIENCE: Duration = Duration::from_secs(2);

/// A message of the reading thread.
pub(super) enum Message {
    /// The properties of the stream; `None` for lines of text.
    Head(Option<Properties>),
    Sample(Piece),
    Failed(anyhow::Error),
}

/// The samples of a reading thread.
pub(super) struct Streamed {
    pub(super) messages: Receiver<Message>,
    pub(super) has_end: bool,
    pub(super) keeps_time: bool,
}

impl Source for Streamed {
    /// Returns the next sample, or [`Next::Wait`] after 50 ms.
    fn next(&mut self, _number: u64) -> anyhow::Result<Next> {
        match self.messages.recv_timeout(Duration::from_millis(50)) {
            Ok(Message::Sample(piece)) => Ok(Next::Sample(piece)),
            Ok(Message::Failed(error)) => Err(error),
            Ok(Message::Head(_)) | Err(RecvTimeoutError::Timeout) => Ok(Next::Wait),
            Err(RecvTimeoutError::Disconnected) => Ok(Next::End),
        }
    }

    fn has_end(&self) -> bool {
        self.has_end
    }

    fn keeps_time(&self) -> bool {
        self.keeps_time
    }
}

/// Runs a reading thread, which ends with its error.
pub(super) fn spawn(
    to: SyncSender<Message>,
    read: impl FnOnce(&SyncSender<Message>) -> anyhow::Result<()> + Send + 'static,
) {
    std::thread::spawn(move || {
        if let Err(error) = read(&to) {
            // Sending fails only after the receiver was dropped.
            let _ = to.send(Message::Failed(error));
        }
    });
}

/// Waits for the properties of a live input; `None` if the user interrupts it. Shows the parts that are left out meanwhile.
pub(super) fn head(
    name: &str,
    (messages, news): (&Receiver<Message>, &News),
    stop: &Stop,
) -> anyhow::Result<Option<Option<Properties>>> {
    let until = Instant::now() + PATIENCE;
    let (mut waits, mut described) = (true, false);
    loop {
        match messages.recv_timeout(STOP_SLICE) {
            Ok(Message::Head(head)) => return Ok(Some(head)),
            Ok(Message::Failed(error)) => return Err(error),
            Ok(Message::Sample(_)) | Err(RecvTimeoutError::Disconnected) => {
                bail!("cannot read {name}: its reader ended early")
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let stops = stop.requested();
        let late = Instant::now() > until;
        if waits && late {
            waits = false;
            show::note(&format!("waiting for the first sample of {name}"));
        }
        if news.count() > 0 && (stops || late && !described) {
            described = true;
            show::note(&news.describe());
        }
        if stops {
            return Ok(None);
        }
    }
}

/// Returns the properties of a source for its publisher.
pub(super) fn origin(
    args: &PubArgs,
    name: &str,
    samples: &str,
    (found, hz): (&Properties, Option<f64>),
) -> Origin {
    let size = found.size.map(|size| Size { width: size.width, height: size.height });
    let at = found.size.map(|size| format!(" of {size}")).unwrap_or_default();
    let rate = hz.map_or_else(String::new, |hz| format!(" at {hz} Hz"));
    Origin {
        encoding: Encoding::new(&found.encoding),
        hz,
        size,
        bytes_max: None,
        traffic: None,
        live: false,
        wait: Duration::from_secs(u64::from(!args.repeat)),
        news: None,
        what: format!("{name}, {samples}{at}{rate}, {}", found.encoding),
    }
}
