//! One viewer: its subscriptions and parameters.

use super::channels::{CHANNELS_MAX, Channels, Topic};
use super::feed::{self, Feed};
use super::protocol::{self, ClientMessage, ClientSubscription, Level, Parameter};
use crate::change::{ChangeResult, change};
use crate::request::ViewerRequest;
use crate::source::ANSWERS_WITHIN;
use crate::websocket::Socket;
use futures_util::{SinkExt as _, StreamExt as _};
use paceline::status::SubscriptionId;
use paceline::{Node, Pattern};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;

/// The time between two looks at the publishers of the network.
const LOOK: Duration = Duration::from_millis(500);
/// The messages that wait for the connection. All subscriptions share them, so that a slow viewer fills their own queues.
const WAITING: usize = 2;
/// The most subscriptions of a viewer.
const SUBSCRIPTIONS_MAX: usize = 256;

/// A subscription of the viewer.
struct Running {
    topic: Topic,
    /// The id of the node's subscription.
    subscription: SubscriptionId,
    task: JoinHandle<()>,
}

/// The state of a viewer.
struct Session {
    node: Node,
    /// The request for topics without an own one.
    usual: ViewerRequest,
    /// The requests of tags.
    requests: BTreeMap<String, ViewerRequest>,
    channels: Channels,
    running: BTreeMap<u32, Running>,
    out: mpsc::Sender<Message>,
    /// True once the viewer knows that topics are left out.
    warned: bool,
}

/// Serves a viewer until it or the node ends.
pub(super) async fn run(socket: Socket, node: Node, usual: ViewerRequest) {
    let (mut to, mut from) = socket.split();
    let (out, mut waiting) = mpsc::channel(WAITING);
    let write = tokio::spawn(async move {
        while let Some(message) = waiting.recv().await {
            if to.send(message).await.is_err() {
                return;
            }
        }
        let _ = to.close().await;
    });
    let mut session = Session {
        node,
        usual,
        requests: BTreeMap::new(),
        channels: Channels::default(),
        running: BTreeMap::new(),
        out,
        warned: false,
    };
    session.greet().await;
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !session.out.is_closed() {
        tokio::select! {
            _ = look.tick() => session.look().await,
            message = from.next() => match message {
                Some(Ok(message)) if message.is_close() => break,
                Some(Ok(message)) => session.take(&message).await,
                Some(Err(error)) => {
                    tracing::debug!("Foxglove: a connection ended: {error}");
                    break;
                }
                None => break,
            },
        }
    }
    drop(session);
    let _ = write.await;
}

impl Drop for Session {
    fn drop(&mut self) {
        self.running.values().for_each(|running| running.task.abort());
    }
}

impl Session {
    async fn send(&self, text: String) {
        // Without a connection the session ends at its next turn.
        let _ = self.out.send(Message::text(text)).await;
    }

    async fn greet(&self) {
        let name = format!("Paceline {}", self.node.name());
        self.send(protocol::server_info(&name, &self.node.id().to_string())).await;
    }

    /// Compares the channels with the publishers.
    async fn look(&mut self) {
        let node = self.node.clone();
        let found = move || Pattern::new("**").map(|all| node.sources(&all)).unwrap_or_default();
        let Ok(sources) = tokio::task::spawn_blocking(found).await else { return };
        let changes = self.channels.set(&sources);
        if !changes.gone.is_empty() {
            self.send(protocol::unadvertise(&changes.gone)).await;
        }
        if !changes.new.is_empty() {
            self.send(protocol::advertise(&changes.new)).await;
        }
        let left_out = self.channels.left_out();
        if left_out > 0 && !self.warned {
            let text = format!("{left_out} topics are not shown: a viewer gets {CHANNELS_MAX}");
            self.send(protocol::status(Level::Warning, &text, Some("channels"))).await;
        } else if left_out == 0 && self.warned {
            self.send(protocol::remove_status(&["channels".to_owned()])).await;
        }
        self.warned = left_out > 0;
    }

    /// Takes a message of the viewer.
    async fn take(&mut self, message: &Message) {
        let Message::Text(text) = message else { return };
        match serde_json::from_str(text) {
            Ok(ClientMessage::Subscribe { subscriptions }) => {
                for subscription in subscriptions {
                    if let Err(reason) = self.subscribe(subscription).await {
                        self.send(protocol::status(Level::Error, &reason, None)).await;
                    }
                }
            }
            Ok(ClientMessage::Unsubscribe { subscription_ids }) => {
                for id in subscription_ids {
                    if let Some(ended) = self.running.remove(&id) {
                        ended.task.abort();
                        self.send(protocol::remove_status(&feed::statuses_of(&ended.topic))).await;
                    }
                }
            }
            Ok(ClientMessage::GetParameters { parameter_names, id }) => {
                self.show_parameters(&parameter_names, id.as_deref()).await;
            }
            Ok(ClientMessage::SetParameters { parameters, id }) => {
                let names: Vec<String> = parameters.iter().map(|one| one.name.clone()).collect();
                for parameter in parameters {
                    if let Err(reason) = self.set(&parameter).await {
                        let text = format!("{}: {reason}", parameter.name);
                        self.send(protocol::status(Level::Error, &text, None)).await;
                    }
                }
                self.show_parameters(&names, id.as_deref()).await;
            }
            Ok(ClientMessage::Other) => {
                let text = "this server sends samples and takes parameters; it offers nothing else";
                self.send(protocol::status(Level::Warning, text, Some("operation"))).await;
            }
            Err(error) => {
                let text = format!("a message is not one of the protocol: {error}");
                self.send(protocol::status(Level::Error, &text, Some("message"))).await;
            }
        }
    }

    /// Begins a subscription.
    ///
    /// # Errors
    /// Returns the reason if it cannot begin.
    async fn subscribe(&mut self, wanted: ClientSubscription) -> Result<(), String> {
        let ClientSubscription { id, channel_id } = wanted;
        let topic = self.channels.topic(channel_id).cloned();
        let topic = topic.ok_or_else(|| format!("there is no channel {channel_id}"))?;
        if self.running.contains_key(&id) {
            return Err(format!("{}: a subscription has the id {id} already", topic.tag));
        }
        if self.running.len() >= SUBSCRIPTIONS_MAX {
            return Err(format!(
                "{}: a viewer has at most {SUBSCRIPTIONS_MAX} subscriptions: close a panel",
                topic.tag
            ));
        }
        let request = self.requests.get(&topic.tag).unwrap_or(&self.usual).clone();
        let (node, out, of) = (self.node.clone(), self.out.clone(), (id, topic.clone()));
        let feed = tokio::task::spawn_blocking(move || Feed::open(&node, of, &request, out)).await;
        let feed = feed.map_err(|error| error.to_string())?;
        let feed = feed.map_err(|reason| format!("{}: {reason}", topic.tag))?;
        let subscription = feed.subscription();
        let task = tokio::spawn(feed.run());
        self.running.insert(id, Running { topic, subscription, task });
        Ok(())
    }

    /// Sets the request for a tag, and changes its running subscriptions.
    ///
    /// # Errors
    /// Returns the reason if the options are wrong or the path refuses them; the earlier request stays then.
    async fn set(&mut self, parameter: &Parameter) -> Result<(), String> {
        let value = &parameter.value;
        let request = match value.as_str() {
            Some(words) => Some(ViewerRequest::from_words(words)?),
            None if value.is_null() => None,
            None => return Err(format!("{value} must be text with options: \"--max-hz 10\"")),
        };
        let tag = &parameter.name;
        if request.is_some()
            && !self.requests.contains_key(tag)
            && self.requests.len() >= CHANNELS_MAX
        {
            return Err(format!("at most {CHANNELS_MAX} tags have a request of their own"));
        }
        let wanted = request.as_ref().unwrap_or(&self.usual);
        let ids = self.running.values().filter(|running| running.topic.tag == *tag);
        let ids: Vec<SubscriptionId> = ids.map(|running| running.subscription).collect();
        for id in ids {
            let (node, wanted) = (self.node.clone(), wanted.clone());
            let changed = tokio::task::spawn_blocking(move || change_to(&node, id, &wanted)).await;
            changed.map_err(|error| error.to_string())??;
        }
        match request {
            Some(request) => self.requests.insert(tag.clone(), request),
            None => self.requests.remove(tag),
        };
        Ok(())
    }

    /// Sends the requests of tags: of all channels if no name is given.
    async fn show_parameters(&self, names: &[String], id: Option<&str>) {
        let tags: Vec<String> = match names {
            [] => self.channels.tags(),
            names => names.to_vec(),
        };
        let value = |name: String| {
            let words = self.requests.get(&name).unwrap_or(&self.usual).words().to_owned();
            Parameter { name, value: words.into() }
        };
        let parameters: Vec<Parameter> = tags.into_iter().map(value).collect();
        self.send(protocol::parameter_values(&parameters, id)).await;
    }
}

/// Changes a running subscription to a request, and waits for the answer of the path. May block for some seconds.
///
/// # Errors
/// Returns the reason if the path refuses it or does not answer, or the subscription has ended.
fn change_to(node: &Node, id: SubscriptionId, request: &ViewerRequest) -> Result<(), String> {
    let before = node.subscriptions().into_iter().find(|known| known.id == id);
    let before = before.ok_or_else(|| format!("the subscription {id} has ended"))?;
    // A change keeps what it does not name, and the new request replaces the earlier one.
    let line =
        change(node, &before, ANSWERS_WITHIN, |builder| request.apply(builder.as_published()));
    let line = line.map_err(|error| format!("{error:#}"))?;
    match line.answer {
        ChangeResult::Refused | ChangeResult::None => Err(line.to_text(ANSWERS_WITHIN)),
        ChangeResult::Granted | ChangeResult::BestEffort | ChangeResult::Replaced => Ok(()),
    }
}
