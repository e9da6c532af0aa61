//! Combines several nodes on one page. Each is queried at its unix socket, without traffic on their
//! links.

use super::api::{Change, SCHEMA, State, Switch};
use super::pictures::{H264, Shown};
use super::source::{ANSWERS_WITHIN, Source, now_ms};
use super::watched::NoPicture;
use crate::status::StatusDocument;
use anyhow::{Context as _, bail};
use bytes::Bytes;
use hyper::StatusCode;
use paceline::status::{NetworkHealth, NodeStatus};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The longest wait for a node's answer.
const PATIENCE: Duration = Duration::from_millis(600);
/// The longest answer in bytes.
const ANSWER_MAX: u64 = 8 << 20;

/// Sets a switch; returns false on failure.
pub type SwitchTurn = Box<dyn Fn(&str, bool) -> bool + Send + Sync>;

/// Computes the same traffic in another discipline, as JSON.
pub type Compare = fn() -> Option<Bytes>;

/// Nodes with their own HTTP servers.
pub struct Gateway {
    sockets: Vec<PathBuf>,
    switches: Mutex<Vec<Switch>>,
    turn: SwitchTurn,
    /// The socket of each node by the node's id.
    places: Mutex<BTreeMap<String, PathBuf>>,
    compare: Compare,
    comparison: OnceLock<Option<Bytes>>,
}

impl Gateway {
    /// Creates a gateway to the nodes at `sockets`, with `switches` that `turn` sets. `compare` is called at most
    /// once, for the first client that requests it.
    pub fn new(
        sockets: Vec<PathBuf>,
        switches: Vec<Switch>,
        turn: SwitchTurn,
        compare: Compare,
    ) -> Self {
        let (places, comparison) = (Mutex::default(), OnceLock::new());
        Self { sockets, switches: Mutex::new(switches), turn, places, compare, comparison }
    }

    /// Sends a request about a subscription to the server of its node, and returns the answer.
    fn relay(
        &self,
        subscription: &str,
        line: (&str, &str),
        body: &str,
    ) -> Result<Bytes, (StatusCode, String)> {
        let node = subscription.split('.').next().unwrap_or_default();
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let socket = places.get(node).cloned().ok_or_else(|| {
            (StatusCode::NOT_FOUND, format!("there is no subscription {subscription}"))
        })?;
        drop(places);
        let answer = send(&socket, line, body, ANSWERS_WITHIN + PATIENCE)
            .map_err(|error| (StatusCode::BAD_GATEWAY, format!("{error:#}")))?;
        if answer.status == 200 {
            return Ok(answer.body);
        }
        let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::BAD_GATEWAY);
        Err((status, answer.error().unwrap_or_else(|| "no answer".to_owned())))
    }

    fn nodes(&self) -> Vec<NodeStatus> {
        let mut nodes = Vec::new();
        for socket in &self.sockets {
            let state = state_of(socket);
            if let Err(error) = &state {
                tracing::debug!("{}: {error:#}", socket.display());
                // A busy node keeps its place: it answers the next request.
                if is_late(error) {
                    continue;
                }
            }
            let found = state.map_or_else(|_| Vec::new(), |state| state.nodes);
            let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
            places.retain(|_, place| place != socket);
            places.extend(found.iter().map(|node| (node.id.to_string(), socket.clone())));
            nodes.extend(found);
        }
        StatusDocument::new(nodes).nodes
    }
}

impl Source for Gateway {
    /// The demo needs no tokens.
    fn note_refused(&self, _: &str, _: &str, _: &str) {}

    fn state(&self, _viewed: bool) -> State {
        let nodes = self.nodes();
        State {
            schema: SCHEMA,
            at_ms: now_ms(),
            health: NetworkHealth::of(&nodes),
            nodes,
            known: Vec::new(),
            switches: self.switches.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            far: BTreeSet::new(),
        }
    }

    fn picture(&self, subscription: &str, after: Option<u64>) -> Result<Option<Shown>, NoPicture> {
        let node = subscription.split('.').next().unwrap_or_default();
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let socket = places.get(node).cloned().ok_or(NoPicture::Unknown)?;
        drop(places);
        let query = after.map_or_else(String::new, |seq| format!("?after={seq}"));
        let path = format!("/api/v1/pictures/{subscription}{query}");
        let answer = match ask(&socket, &path) {
            Ok(answer) => answer,
            // A busy node has no newer picture yet.
            Err(error) if is_late(&error) => return Ok(None),
            Err(error) => return Err(NoPicture::NoAnswer(format!("{error:#}"))),
        };
        match answer.status {
            200 => Ok(Some(answer.shown())),
            204 => Ok(None),
            404 => Err(NoPicture::Unknown),
            503 => Err(NoPicture::Busy),
            _ => {
                Err(NoPicture::NotShown(answer.error().unwrap_or_else(|| "no picture".to_owned())))
            }
        }
    }

    fn change(&self, subscription: &str, change: &Change) -> Result<Bytes, (StatusCode, String)> {
        let path = format!("/api/v1/subscriptions/{subscription}");
        let body = serde_json::json!(change).to_string();
        self.relay(subscription, ("POST", &path), &body)
    }

    fn values(&self, subscription: &str) -> Result<Bytes, (StatusCode, String)> {
        let path = format!("/api/v1/values/{subscription}");
        self.relay(subscription, ("GET", &path), "")
    }

    fn comparison(&self) -> Option<Bytes> {
        self.comparison.get_or_init(|| (self.compare)()).clone()
    }

    fn turn(&self, switch: &str, on: bool) -> bool {
        let mut switches = self.switches.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(found) = switches.iter_mut().find(|known| known.name == switch) else {
            return false;
        };
        let done = (self.turn)(switch, on);
        if done {
            found.on = on;
        }
        done
    }
}

fn state_of(socket: &PathBuf) -> anyhow::Result<State> {
    let answer = ask(socket, "/api/v1/state")?;
    if answer.status != 200 {
        bail!("answers {}", answer.status);
    }
    serde_json::from_slice(&answer.body).context("its state cannot be read")
}

#[derive(Debug)]
struct Answered {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Bytes,
}

impl Answered {
    fn number(&self, name: &str) -> u64 {
        self.headers.get(name).and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    /// Returns the reason of an error.
    fn error(&self) -> Option<String> {
        let reported: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        reported.get("error").and_then(serde_json::Value::as_str).map(str::to_owned)
    }

    fn shown(self) -> Shown {
        let size = self.headers.get("x-paceline-size").and_then(|text| {
            let (width, height) = text.split_once('x')?;
            Some((width.parse().ok()?, height.parse().ok()?))
        });
        let kind = self.headers.get("content-type").map(String::as_str);
        let known = ["image/png", H264].into_iter().find(|known| kind == Some(*known));
        Shown {
            seq: self.number("x-paceline-seq"),
            age_us: self.number("x-paceline-age-us"),
            size: size.unwrap_or_default(),
            bytes: self.number("x-paceline-bytes"),
            kind: known.unwrap_or("image/jpeg"),
            picture: self.body,
        }
    }
}

/// Sends one request to a Paceline server, which closes the connection after its answer.
fn ask(socket: &PathBuf, path: &str) -> anyhow::Result<Answered> {
    send(socket, ("GET", path), "", PATIENCE)
}

/// Returns whether the time limit of an answer passed.
fn is_late(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    matches!(kind, Some(io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut))
}

/// Sends one request with a JSON body, unless that is empty.
fn send(
    socket: &PathBuf,
    (method, path): (&str, &str),
    body: &str,
    patience: Duration,
) -> anyhow::Result<Answered> {
    let mut stream = UnixStream::connect(socket).context("no listener")?;
    stream.set_read_timeout(Some(patience)).context("no timeout")?;
    stream.set_write_timeout(Some(patience)).context("no timeout")?;
    let content = match body.len() {
        0 => String::new(),
        bytes => format!("Content-Type: application/json\r\nContent-Length: {bytes}\r\n"),
    };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{content}Connection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).context("does not accept the request")?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut answer).context("does not answer in time")?;
    parse(answer).context("its answer is invalid")
}

/// Parses a complete answer with a content length.
fn parse(answer: Vec<u8>) -> Option<Answered> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(answer.get(..end)?).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let fields = lines.filter_map(|line| line.split_once(':'));
    let headers: BTreeMap<String, String> =
        fields.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    let body = Bytes::from(answer).slice(end + 4..);
    let length = headers.get("content-length").map_or(Some(0), |text| text.parse::<usize>().ok());
    (length == Some(body.len())).then_some(Answered { status, headers, body })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_busy_node_has_no_newer_picture_and_one_that_is_gone_no_answer() {
        let socket = std::env::temp_dir().join(format!("plg-{}", std::process::id()));
        let listener = UnixListener::bind(&socket).unwrap();
        let gateway =
            Gateway::new(vec![socket.clone()], Vec::new(), Box::new(|_, _| false), || None);
        gateway.places.lock().unwrap().insert("7".to_owned(), socket.clone());
        assert_eq!(gateway.picture("7.0", Some(3)).unwrap().map(|shown| shown.seq), None);
        assert!(gateway.state(false).nodes.is_empty());
        drop(listener);
        let error = gateway.picture("7.0", None).err().unwrap();
        assert_eq!(
            error,
            NoPicture::NoAnswer("no listener: Connection refused (os error 111)".into())
        );
        gateway.state(false);
        assert_eq!(gateway.picture("7.0", None).err().unwrap(), NoPicture::Unknown);
        std::fs::remove_file(socket).unwrap();
    }

    #[test]
    fn answers_are_taken_apart_only_when_they_are_whole() {
        let text = "HTTP/1.1 200 OK\r\nX-Paceline-Seq: 7\r\nX-Paceline-Size: 640x480\r\n\
                    Content-Length: 3\r\n\r\nabc";
        let answer = parse(text.into()).unwrap();
        assert_eq!((answer.status, &answer.body[..]), (200, &b"abc"[..]));
        let shown = answer.shown();
        assert_eq!((shown.seq, shown.size, shown.kind), (7, (640, 480), "image/jpeg"));
        for end in 0..text.len() {
            assert!(parse(text.as_bytes()[..end].into()).is_none(), "{end}");
        }
        assert_eq!(parse("HTTP/1.1 204 No Content\r\n\r\n".into()).unwrap().status, 204);
    }
}
