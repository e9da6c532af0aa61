//! The connection of one browser.

use super::carrier::{Arrived, BrowserReader, BrowserWriter, Out};
use super::hub::{HubTask, Input, Opened};
use super::protocol::{self, Request, SourceLine};
use super::timer::now;
use super::{BrowserRights, words};
use crate::change::wish_in;
use paceline::delivery::Otherwise;
use paceline::{Encoding, LossTolerance, Node, Pattern};
use paceline_edge::browser::{SessionId, frame};
use paceline_proto::Carrier;
use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// The answers that wait for the connection.
const ANSWERS_MAX: usize = 64;
/// A connection without any message for this time is dead. A page asks for the time every two seconds, and in the background
/// once per minute.
const SILENT_MAX: Duration = Duration::from_secs(150);
/// The most publishers in an answer.
const SOURCES_MAX: usize = 1_024;

/// A browser and its place at the hub.
struct Connection<'a> {
    node: &'a Node,
    inbox: mpsc::Sender<Input>,
    session: SessionId,
    rights: BrowserRights,
    answers: mpsc::Sender<String>,
}

/// Serves a browser until either side ends the connection.
pub(super) async fn run(
    (mut reader, mut writer): (BrowserReader, BrowserWriter),
    hub: &HubTask,
    rights: BrowserRights,
    from: &str,
) {
    let inbox = hub.inbox();
    let carrier = match &reader {
        BrowserReader::Socket(_) => Carrier::Ordered,
        BrowserReader::Transport(_) => Carrier::Datagrams,
    };
    let opened = open(&inbox, from, carrier).await;
    let Opened { session, id, out } = match opened {
        Ok(opened) => opened,
        Err(error) => {
            writer.send(Out::Text(protocol::error(None, &error))).await;
            return writer.close().await;
        }
    };
    let may_publish = rights == BrowserRights::Change;
    let welcome = protocol::welcome(hub.node.name(), &id.to_string(), may_publish);
    let (answers, waiting) = mpsc::channel(ANSWERS_MAX);
    let _ = answers.send(welcome).await;
    let mut writing = tokio::spawn(write(writer, out, waiting));
    let connection = Connection { node: &hub.node, inbox, session, rights, answers };
    loop {
        let message = tokio::select! {
            message = timeout(SILENT_MAX, reader.next()) => message.ok().flatten(),
            // The hub has closed the session.
            _ = &mut writing => break,
        };
        match message {
            Some(Arrived::Binary(bytes)) => {
                connection.give(Input::Binary(session, bytes, rights)).await;
            }
            Some(Arrived::Text(text)) => connection.take(&text).await,
            None => break,
        }
    }
    connection.give(Input::Close(session)).await;
    writing.abort();
}

async fn open(inbox: &mpsc::Sender<Input>, from: &str, carrier: Carrier) -> Result<Opened, String> {
    let (reply, answer) = oneshot::channel();
    let name = format!("browser {from}");
    let _ = inbox.send(Input::Open { name, carrier, reply }).await;
    answer.await.unwrap_or_else(|_| Err("the node does not serve browsers now".to_owned()))
}

/// Writes what waits for the browser, texts that answer it first.
async fn write(
    mut to: BrowserWriter,
    mut out: mpsc::Receiver<Out>,
    mut answers: mpsc::Receiver<String>,
) {
    loop {
        let message = tokio::select! {
            biased;
            answer = answers.recv() => answer.map(Out::Text),
            out = out.recv() => out,
        };
        let Some(message) = message else { break };
        if !to.send(message).await {
            return;
        }
    }
    to.close().await;
}

impl Connection<'_> {
    async fn give(&self, input: Input) {
        // Without the hub the writer ends, and the connection with it.
        let _ = self.inbox.send(input).await;
    }

    async fn answer(&self, text: String) {
        let _ = self.answers.send(text).await;
    }

    async fn take(&self, text: &str) {
        let arrived = frame::micros(now());
        let session = self.session;
        let (id, done) = match serde_json::from_str(text) {
            Ok(Request::Ping { at }) => {
                self.answer(protocol::pong(at, arrived)).await;
                return self.give(Input::Alive(session)).await;
            }
            Ok(Request::Subscribe { id, tag, want, fresh_ms }) => {
                let spec =
                    words::of_fields(&want).and_then(|words| self.wanted(&tag, &words, fresh_ms));
                (Some(id), spec.map(|spec| Input::Subscribe(session, id, Box::new(spec))))
            }
            Ok(Request::Unsubscribe { id }) => (Some(id), Ok(Input::Unsubscribe(session, id))),
            Ok(Request::Unpublish { id }) => (Some(id), Ok(Input::Unpublish(session, id))),
            Ok(Request::Publish { .. }) if self.rights == BrowserRights::Read => {
                let error = "this token grants reading only: use a token of a line 'change'";
                (None, Err(error.to_owned()))
            }
            Ok(Request::Publish { id, tag, encoding, hz, within_ms, loss, bytes_max }) => {
                let spec = self.published((&tag, encoding, hz), (within_ms, loss, bytes_max));
                (Some(id), spec.map(|spec| Input::Publish(session, id, Box::new(spec))))
            }
            Ok(Request::Sources { id, pattern }) => {
                let found = self.sources(pattern.unwrap_or_else(|| "**".to_owned())).await;
                let answer = match found {
                    Ok(found) => protocol::sources(id, &found),
                    Err(error) => protocol::error(Some(id), &error),
                };
                return self.answer(answer).await;
            }
            Err(error) => (None, Err(format!("a message is not one of the protocol: {error}"))),
        };
        match done {
            Ok(input) => self.give(input).await,
            Err(error) => self.answer(protocol::error(id, &error)).await,
        }
    }

    /// Returns the subscription of a request.
    fn wanted(
        &self,
        tag: &str,
        words: &str,
        fresh_ms: Option<f64>,
    ) -> Result<SubscriptionSpec, String> {
        let wish = wish_in(words)?;
        let mut builder = wish.apply(self.node.subscriber(tag));
        if let Some(limit) = fresh_ms {
            builder = builder.fresh_within(milliseconds("fresh_ms", limit)?, Otherwise::Hold);
        }
        builder.spec().map_err(|error| error.to_string())
    }

    /// Returns the declaration of a publisher.
    fn published(
        &self,
        (tag, encoding, hz): (&str, Option<String>, Option<f64>),
        (within_ms, loss, bytes_max): (Option<f64>, Option<String>, Option<u64>),
    ) -> Result<PublisherSpec, String> {
        let mut builder = self.node.publisher(tag);
        if let Some(encoding) = encoding {
            builder = builder.encoding(Encoding::new(&encoding));
        }
        if let Some(hz) = hz {
            builder = builder.hz(hz);
        }
        if let Some(within) = within_ms {
            builder = builder.within(milliseconds("within_ms", within)?);
        }
        if let Some(bytes) = bytes_max {
            builder = builder.bytes_max(bytes);
        }
        if let Some(loss) = loss {
            let loss: LossTolerance = loss.parse().map_err(|error| format!("loss: {error}"))?;
            builder = builder.loss(loss.x(), loss.y());
        }
        builder.spec().map_err(|error| error.to_string())
    }

    async fn sources(&self, pattern: String) -> Result<Vec<SourceLine>, String> {
        let pattern = Pattern::new(&pattern).map_err(|error| error.to_string())?;
        let node = self.node.clone();
        let found = tokio::task::spawn_blocking(move || node.sources(&pattern)).await;
        let found = found.map_err(|error| error.to_string())?;
        let line = |source: paceline::status::SourceView| SourceLine {
            tag: source.tag.to_string(),
            encoding: source.encoding.as_str().to_owned(),
            node: source.node,
            hz: source.period.map(|period| 1.0 / period.as_secs_f64()),
            size: source.size.map(|size| size.to_string()),
        };
        Ok(found.into_iter().take(SOURCES_MAX).map(line).collect())
    }
}

/// Reads a time of a message.
fn milliseconds(name: &str, value: f64) -> Result<Duration, String> {
    let time = Duration::try_from_secs_f64(value / 1_000.0).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| format!("{name}: {value} must be a number of milliseconds above 0"))
}
