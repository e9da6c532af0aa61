//! The task that steps the nodes of all browsers.

use super::carrier::Out;
use super::timer::{FineTimer, now};
use super::{BrowserRights, protocol};
use bytes::Bytes;
use paceline::Node;
use paceline::attach::{AttachedWriter, Attachment};
use paceline::status::NodeId;
use paceline_edge::browser::{BrowserHub, HubOutput, SESSIONS_MAX, SessionId, frame};
use paceline_proto::Carrier;
use paceline_proto::capacity::LinkCapacity;
use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The inputs that wait for the task.
const INPUTS_MAX: usize = 1_024;
/// The messages that wait for a browser, besides those in its socket. The window of its link is smaller, unless it does not read.
const OUT_MAX: usize = 8_192;
/// The pause before the gate connects to its node again.
const AGAIN: Duration = Duration::from_millis(500);

/// An input of the task.
pub(super) enum Input {
    Open { name: String, carrier: Carrier, reply: oneshot::Sender<Result<Opened, String>> },
    Binary(SessionId, Bytes, BrowserRights),
    Alive(SessionId),
    Subscribe(SessionId, u32, Box<SubscriptionSpec>),
    Unsubscribe(SessionId, u32),
    Publish(SessionId, u32, Box<PublisherSpec>),
    Unpublish(SessionId, u32),
    Close(SessionId),
}

/// A browser's place at the task.
pub(super) struct Opened {
    pub(super) session: SessionId,
    pub(super) id: NodeId,
    pub(super) out: mpsc::Receiver<Out>,
}

/// The task that steps the nodes of browsers. It starts with the first one.
pub(super) struct HubTask {
    pub(super) node: Node,
    inbox: Mutex<Option<mpsc::Sender<Input>>>,
}

impl HubTask {
    pub(super) const fn new(node: Node) -> Self {
        Self { node, inbox: Mutex::new(None) }
    }

    /// Returns the inputs of the task. Starts it if it does not run.
    pub(super) fn inbox(&self) -> mpsc::Sender<Input> {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = inbox.as_ref().filter(|known| !known.is_closed()) {
            return known.clone();
        }
        let (sender, receiver) = mpsc::channel(INPUTS_MAX);
        *inbox = Some(sender.clone());
        tokio::spawn(run(self.node.clone(), receiver));
        sender
    }
}

/// Draws an id for a node.
fn draw() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// The task: the hub, and its connection to the serving node.
struct Task {
    node: Node,
    hub: BrowserHub,
    nonce: [u8; 16],
    out: BTreeMap<SessionId, mpsc::Sender<Out>>,
    uplink: Option<(Attachment, AttachedWriter)>,
}

/// Steps the nodes until the server ends.
async fn run(node: Node, mut inbox: mpsc::Receiver<Input>) {
    let (Ok(nonce), Ok(mut timer)) = (draw(), FineTimer::new()) else {
        tracing::error!("browsers: the system has no random numbers, or no timers");
        return;
    };
    let uplink = match attach(&node, nonce).await {
        Ok(uplink) => uplink,
        Err(error) => {
            tracing::warn!("browsers cannot be served: {error}");
            return refuse_all(inbox, &error.to_string()).await;
        }
    };
    let mut hub = BrowserHub::new(uplink.0.id(), &format!("{} (browsers)", node.name()));
    hub.connect(now(), uplink.0.neighbour());
    let mut task = Task { node, hub, nonce, out: BTreeMap::new(), uplink: Some(uplink) };
    let mut frames = Vec::new();
    loop {
        task.flush().await;
        let until = task.hub.poll_timeout();
        tokio::select! {
            input = inbox.recv() => {
                let Some(input) = input else { return };
                task.take(input);
                while let Ok(input) = inbox.try_recv() {
                    task.take(input);
                }
            }
            alive = read(&mut task.uplink, &mut frames) => {
                frames.drain(..).for_each(|frame| task.hub.handle_frame(now(), frame));
                if !alive {
                    task.reconnect().await;
                }
            }
            () = timer.until(until) => {}
        }
    }
}

async fn attach(node: &Node, nonce: [u8; 16]) -> io::Result<(Attachment, AttachedWriter)> {
    let mut attachment = node.attach(nonce).await?;
    let writer = attachment.take_writer().ok_or_else(|| io::Error::other("no writer"))?;
    Ok((attachment, writer))
}

async fn read(uplink: &mut Option<(Attachment, AttachedWriter)>, frames: &mut Vec<Bytes>) -> bool {
    match uplink {
        Some((attachment, _)) => attachment.read(frames).await,
        None => {
            tokio::time::sleep(AGAIN).await;
            false
        }
    }
}

async fn refuse_all(mut inbox: mpsc::Receiver<Input>, why: &str) {
    while let Some(input) = inbox.recv().await {
        if let Input::Open { reply, .. } = input {
            let _ = reply.send(Err(why.to_owned()));
        }
    }
}

impl Task {
    async fn reconnect(&mut self) {
        self.hub.disconnect(now());
        self.uplink = attach(&self.node, self.nonce).await.ok();
        if let Some((attachment, _)) = &self.uplink {
            self.hub.connect(now(), attachment.neighbour());
        }
    }

    /// Passes all outputs on.
    async fn flush(&mut self) {
        let mut frames = Vec::new();
        while let Some(output) = self.hub.poll_output(now()) {
            match output {
                HubOutput::Frame(frame) => frames.push(frame),
                HubOutput::Message(session, bytes) => self.send(session, Out::Binary(bytes)),
                HubOutput::Readers(session, readers) => {
                    self.send(session, Out::Text(protocol::stream(&readers)));
                }
                HubOutput::Event(session, event) => {
                    self.send(session, Out::Text(protocol::event(&event)));
                }
                HubOutput::Ready(session) => self.send(session, Out::Text(protocol::ready())),
                HubOutput::Stalled(session) => self.close(session),
            }
        }
        if let Some((_, writer)) = self.uplink.as_mut().filter(|_| !frames.is_empty())
            && writer.write(frames).await.is_err()
        {
            self.uplink = None;
        }
    }

    fn send(&mut self, session: SessionId, message: Out) {
        let sent = self.out.get(&session).map(|out| out.try_send(message));
        if sent.is_some_and(|sent| sent.is_err()) {
            self.close(session);
        }
    }

    fn close(&mut self, session: SessionId) {
        self.out.remove(&session);
        self.hub.close(now(), session);
    }

    fn open(&mut self, name: &str, carrier: Carrier) -> Result<Opened, String> {
        let drawn = draw().map_err(|error| error.to_string())?;
        let (first, _) = drawn.split_first_chunk().ok_or("no id")?;
        let id = NodeId(u64::from_le_bytes(*first));
        let capacity = LinkCapacity::Measured { min: None, max: None };
        let session = self.hub.open(now(), (id, name), (capacity, carrier));
        let session =
            session.ok_or_else(|| format!("{SESSIONS_MAX} browsers are connected: close one"))?;
        let (sender, out) = mpsc::channel(OUT_MAX);
        self.out.insert(session, sender);
        Ok(Opened { session, id, out })
    }

    fn take(&mut self, input: Input) {
        let now = now();
        match input {
            Input::Open { name, carrier, reply } => {
                let opened = self.open(&name, carrier);
                // A browser that has left meanwhile.
                if let Err(Ok(opened)) = reply.send(opened) {
                    self.close(opened.session);
                }
            }
            Input::Binary(session, bytes, rights) => {
                let done = match frame::read(now, bytes) {
                    Some(frame::InMessage::Ack(numbers)) => {
                        self.hub.handle_acks(now, session, &numbers);
                        Ok(())
                    }
                    Some(frame::InMessage::Sample(_)) if rights == BrowserRights::Read => {
                        Err("this token grants reading only: use a token of a line 'change'")
                    }
                    Some(frame::InMessage::Sample(sample)) => {
                        let found = self.hub.handle_sample(now, session, sample);
                        found.then_some(()).ok_or("a sample names no publisher of this connection")
                    }
                    None => Err("a binary message is not one of the protocol"),
                };
                if let Err(error) = done {
                    self.send(session, Out::Text(protocol::error(None, error)));
                }
            }
            Input::Subscribe(session, id, spec) => {
                let done = self.hub.subscribe(now, session, (id, *spec));
                self.report(session, id, done);
            }
            Input::Publish(session, id, spec) => {
                let done = self.hub.publish(now, session, (id, *spec));
                self.report(session, id, done);
            }
            Input::Alive(session) => self.hub.handle_alive(now, session),
            Input::Unsubscribe(session, id) => self.hub.unsubscribe(now, session, id),
            Input::Unpublish(session, id) => self.hub.unpublish(now, session, id),
            Input::Close(session) => self.close(session),
        }
    }

    fn report(&mut self, session: SessionId, id: u32, done: Result<(), String>) {
        if let Err(error) = done {
            self.send(session, Out::Text(protocol::error(Some(id), &error)));
        }
    }
}
