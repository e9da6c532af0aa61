//! Liveliness tokens: tokens that plain programs of one host declare are declared again on other
//! hosts.
//!
//! All tokens of a rule form one text sample, one line each. It is published on each change and
//! periodically for late joiners. The tokens are undeclared when their publisher leaves, so a node
//! that fails takes its tokens with it.

use crate::lock;
use crate::rule::{ExportRule, ImportRule, KEYS_MAX};
use paceline::status::{DropReason, PublisherId};
use paceline::{Encoding, Kind, Node, Publisher, RecvError, Subscriber, SubscriberEvent};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber as ZenohSubscriber;
use zenoh::sample::SampleKind;
use zenoh::{Session, Wait};

/// The media type of these samples.
const ENCODING: &str = "text/plain;tokens";
/// Changes within this time are published together.
const GATHER: Duration = Duration::from_millis(20);
/// The interval at which all tokens are published again, for late joiners and after losses.
const REPEAT: Duration = Duration::from_secs(10);
/// The longest delay until the end of the rule, or a change of publishers, is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The tokens that this node itself has declared. They are not imported.
pub(crate) type Own = Arc<Mutex<BTreeSet<String>>>;

/// Publishes the tokens of plain programs here. Stops when dropped.
pub(crate) struct TokenImport {
    rule: ImportRule,
    subscriber: Option<ZenohSubscriber<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TokenImport {
    pub(crate) fn open(
        node: &Node,
        session: &Session,
        (number, rule): (usize, ImportRule),
        own: &Own,
    ) -> zenoh::Result<Self> {
        let tag = rule.tag.fill(rule.key.as_str()).unwrap_or_default();
        let encoding = Encoding::new(ENCODING);
        let publisher = node.publisher(&tag).kind(Kind::State).encoding(encoding).declare()?;
        let tokens = Arc::new(Mutex::new(BTreeSet::new()));
        // One pending notification is enough, because the thread reads the whole set.
        let (changed, changes) = sync_channel(1);
        let announcer = Announcer { publisher, tokens: tokens.clone() };
        let named = std::thread::Builder::new().name(format!("paceline-in-{number}"));
        let thread = named.spawn(move || announcer.run(&changes))?;
        let (own, node, keys) = (own.clone(), node.clone(), rule.keys);
        let subscriber = session
            .liveliness()
            .declare_subscriber(rule.key.as_str().to_owned())
            .history(true)
            .callback(move |sample| {
                let key = sample.key_expr().as_str();
                let mut tokens = lock(&tokens);
                let differs = match sample.kind() {
                    SampleKind::Delete => tokens.remove(key),
                    SampleKind::Put if lock(&own).contains(key) => false,
                    SampleKind::Put if tokens.len() >= keys && !tokens.contains(key) => {
                        node.note_dropped(DropReason::NotImported, 1);
                        false
                    }
                    SampleKind::Put => tokens.insert(key.to_owned()),
                };
                if differs {
                    notify(&changed);
                }
            })
            .wait()?;
        Ok(Self { rule, subscriber: Some(subscriber), thread: Some(thread) })
    }

    pub(crate) const fn rule(&self) -> &ImportRule {
        &self.rule
    }
}

impl Drop for TokenImport {
    fn drop(&mut self) {
        // Undeclaring drops the callback with the channel's sender, which ends the thread.
        if let Some(subscriber) = self.subscriber.take() {
            let _ = subscriber.undeclare().wait();
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn notify(changed: &SyncSender<()>) {
    if let Err(TrySendError::Disconnected(())) = changed.try_send(()) {
        tracing::debug!("a token change arrived after the end of its rule");
    }
}

struct Announcer {
    publisher: Publisher,
    tokens: Arc<Mutex<BTreeSet<String>>>,
}

impl Announcer {
    fn run(mut self, changes: &Receiver<()>) {
        let (mut matching, mut announced) = (false, Instant::now());
        loop {
            let heard = changes.recv_timeout(LOOK_EVERY);
            let newly = self.publisher.matching() && !matching;
            matching = self.publisher.matching();
            match heard {
                Ok(()) => std::thread::sleep(GATHER),
                Err(RecvTimeoutError::Timeout) if newly || announced.elapsed() > REPEAT => {}
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return,
            }
            announced = Instant::now();
            let tokens = lock(&self.tokens).iter().cloned().collect::<Vec<_>>().join("\n");
            if let Err(error) = self.publisher.put(tokens.into_bytes()) {
                tracing::debug!("{}: {error}", self.publisher.tag());
            }
        }
    }
}

/// Declares the tokens of other nodes to plain programs here. Stops when dropped.
pub(crate) struct TokenExport {
    rule: ExportRule,
    end: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TokenExport {
    pub(crate) fn open(
        node: &Node,
        session: &Session,
        (number, rule): (usize, ExportRule),
        own: &Own,
    ) -> zenoh::Result<Self> {
        let subscriber = node.subscriber(rule.tag.as_str()).declare()?;
        let (end, ended) = sync_channel(0);
        let (session, own) = (session.clone(), own.clone());
        let mut declarer =
            Declarer { session, own, heard: BTreeMap::new(), declared: BTreeMap::new() };
        let named = std::thread::Builder::new().name(format!("paceline-out-{number}"));
        let thread = named.spawn(move || declarer.run(subscriber, &ended))?;
        Ok(Self { rule, end: Some(end), thread: Some(thread) })
    }

    pub(crate) const fn rule(&self) -> &ExportRule {
        &self.rule
    }
}

impl Drop for TokenExport {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Declarer {
    session: Session,
    own: Own,
    /// The tokens of each publisher.
    heard: BTreeMap<PublisherId, BTreeSet<String>>,
    declared: BTreeMap<String, LivelinessToken>,
}

impl Declarer {
    fn run(&mut self, mut subscriber: Subscriber, ended: &Receiver<()>) {
        while !matches!(ended.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected)) {
            while let Some(event) = subscriber.try_event() {
                if let SubscriberEvent::Publishers(present) = event {
                    self.heard.retain(|publisher, _| present.contains(publisher));
                    self.declare();
                }
            }
            match subscriber.recv_timeout(LOOK_EVERY) {
                Ok(delivery) => {
                    let tokens = read(&delivery.payload);
                    self.heard.insert(delivery.publisher, tokens);
                    self.declare();
                }
                Err(RecvError::Closed) => break,
                Err(_) => {}
            }
        }
        self.heard.clear();
        self.declare();
    }

    /// Makes the declared tokens equal to the received ones.
    fn declare(&mut self) {
        let wanted: BTreeSet<&String> = self.heard.values().flatten().take(KEYS_MAX).collect();
        for key in &wanted {
            if self.declared.contains_key(*key) {
                continue;
            }
            // Recorded before the declaration, because this node's own import rules are notified at
            // once.
            lock(&self.own).insert((*key).clone());
            match self.session.liveliness().declare_token((*key).clone()).wait() {
                Ok(token) => drop(self.declared.insert((*key).clone(), token)),
                Err(error) => {
                    lock(&self.own).remove(*key);
                    tracing::debug!("token {key}: {error}");
                }
            }
        }
        let removed: Vec<_> =
            self.declared.keys().filter(|key| !wanted.contains(key)).cloned().collect();
        for key in removed {
            self.declared.remove(&key);
            lock(&self.own).remove(&key);
        }
    }
}

/// Parses the tokens of a sample. Skips lines that are not keys.
fn read(payload: &[u8]) -> BTreeSet<String> {
    let text = std::str::from_utf8(payload).unwrap_or_default();
    let is_key =
        |line: &&str| zenoh::key_expr::KeyExpr::try_from(*line).is_ok_and(|key| !key.is_wild());
    text.lines().filter(is_key).take(KEYS_MAX).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_key_expressions_are_tokens() {
        let read = read(b"@ros2_lv/0/a/0/0/NN/%/%/talker\n\na//b\n/x\n*\na/**\n{ok}\n\xc3");
        assert!(read.is_empty(), "non-text payloads hold none");
        let read = super::read(b"@ros2_lv/0/a/0/0/NN/%/%/talker\n\na//b\n/x\n*\na/**\nok");
        let read: Vec<_> = read.iter().map(String::as_str).collect();
        assert_eq!(read, ["@ros2_lv/0/a/0/0/NN/%/%/talker", "ok"]);
    }
}
