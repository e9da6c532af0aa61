//! One running import rule: samples of plain programs become publications of the node.
//!
//! Zenoh's threads also carry links, so nothing here may block them. A separate thread declares new
//! keys. Samples of a key that is being declared wait in a short queue.

use crate::convert::{self, DELETION, Encodings};
use crate::gate::Gate;
use crate::lock;
use crate::mark::Mark;
use crate::rule::ImportRule;
use bytes::Bytes;
use paceline::status::DropReason;
use paceline::{Encoding, LogLimit, Node, PublishError, Publisher, PutOptions};
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use zenoh::bytes::Encoding as ZenohEncoding;
use zenoh::pubsub::Subscriber;
use zenoh::sample::{Locality, Sample, SampleKind};
use zenoh::{Session, Wait};

/// The number of samples that one key may queue while it is declared.
const OPENING_SAMPLES: usize = 256;
/// The bytes that one rule may queue for keys being declared. One sample is always accepted,
/// whatever its length.
const OPENING_BYTES: usize = 64 << 20;
/// If a rule is full, keys without a sample for this time are removed.
const IDLE: Duration = Duration::from_secs(60);
/// The interval at which a full rule looks for idle keys.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A converted sample before its publication.
struct Incoming {
    payload: Bytes,
    options: PutOptions,
}

impl Incoming {
    fn bytes(&self) -> usize {
        let attached = self.options.attachment.as_ref().map_or(0, |bytes| bytes.len());
        self.payload.len().saturating_add(attached)
    }
}

/// The keys that a rule knows.
#[derive(Default)]
struct Keys {
    all: HashMap<String, Key>,
    /// The bytes queued for keys being declared.
    waiting: usize,
}

impl Keys {
    /// Reserves queue space for a sample. Returns false if there is none.
    const fn take_room(&mut self, bytes: usize) -> bool {
        let after = self.waiting.saturating_add(bytes);
        let has_room = self.waiting == 0 || after <= OPENING_BYTES;
        if has_room {
            self.waiting = after;
        }
        has_room
    }

    /// Queues a sample for a key that is being declared or is new. Returns false if there is no
    /// space.
    fn wait(&mut self, name: &str, incoming: Incoming) -> bool {
        if !self.take_room(incoming.bytes()) {
            return false;
        }
        match self.all.get_mut(name) {
            Some(Key::Opening(waiting)) => waiting.push(incoming),
            _ => drop(self.all.insert(name.to_owned(), Key::Opening(vec![incoming]))),
        }
        true
    }

    /// Takes the queued samples of a key. Returns `None` if the key is not being declared.
    fn take_waiting(&mut self, name: &str) -> Option<Vec<Incoming>> {
        let Some(Key::Opening(waiting)) = self.all.get_mut(name) else { return None };
        let waiting = std::mem::take(waiting);
        self.waiting -= waiting.iter().map(Incoming::bytes).sum::<usize>();
        self.all.remove(name);
        Some(waiting)
    }
}

/// A key of the plain side.
enum Key {
    /// Being declared, with its queued samples.
    Opening(Vec<Incoming>),
    Open(Box<OpenKey>),
    /// The key cannot be converted to a tag.
    Refused,
}

struct OpenKey {
    publisher: Publisher,
    encodings: Encodings<ZenohEncoding, Encoding>,
    gate: Option<Gate>,
    last: Instant,
}

impl OpenKey {
    fn may_enter(&mut self) -> bool {
        self.gate.as_mut().is_none_or(|gate| gate.passes(Instant::now()))
    }
}

struct Shared {
    node: Node,
    number: usize,
    rule: ImportRule,
    keys: Mutex<Keys>,
    log_limit: LogLimit,
    /// Dropped with the rule, which ends the thread.
    to_open: Mutex<Option<SyncSender<String>>>,
}

/// A running import rule. Stops when dropped.
pub(crate) struct Import {
    subscriber: Option<Subscriber<()>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Import {
    /// Starts publishing samples that arrive on the rule's keys.
    pub(crate) fn open(
        node: &Node,
        session: &Session,
        number: usize,
        rule: ImportRule,
    ) -> zenoh::Result<Self> {
        let (to_open, opening) = sync_channel(rule.keys);
        let shared = Arc::new(Shared {
            node: node.clone(),
            number,
            rule,
            keys: Mutex::default(),
            log_limit: LogLimit::new(),
            to_open: Mutex::new(Some(to_open)),
        });
        let (worker, taker) = (shared.clone(), shared.clone());
        let named = std::thread::Builder::new().name(format!("paceline-in-{number}"));
        let thread = named.spawn(move || worker.run(&opening))?;
        let subscriber = session
            .declare_subscriber(shared.rule.key.as_str())
            // Exclude this node's own puts on the plain side.
            .allowed_origin(Locality::Remote)
            .callback(move |sample| taker.take(&sample))
            .wait()?;
        Ok(Self { subscriber: Some(subscriber), shared, thread: Some(thread) })
    }

    pub(crate) fn rule(&self) -> &ImportRule {
        &self.shared.rule
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        drop(self.subscriber.take());
        drop(lock(&self.shared.to_open).take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        lock(&self.shared.keys).all.clear();
    }
}

impl Shared {
    /// Handles one sample. Runs on a thread of Zenoh and never blocks.
    fn take(&self, sample: &Sample) {
        if let Some(mark) = Mark::of(sample) {
            return self.refuse_loop(sample.key_expr().as_str(), mark);
        }
        let name = sample.key_expr().as_str();
        // Checked before the payload is copied or queued.
        let bytes = u64::try_from(sample.payload().len()).unwrap_or(u64::MAX);
        if let Some(most) = self.rule.bytes_max.filter(|most| bytes > *most) {
            self.node.note_dropped(DropReason::TooLarge, 1);
            return self
                .warn(|| format!("takes at most {most} bytes (max_bytes): '{name}' has {bytes}"));
        }
        let mut keys = lock(&self.keys);
        let full = keys.all.len() >= self.rule.keys;
        match keys.all.get_mut(name) {
            Some(Key::Open(key)) => {
                if !key.may_enter() {
                    self.node.note_dropped(DropReason::Policed, 1);
                    return self.warn(|| {
                        format!("'{name}' arrives faster than max_hz; the excess is dropped")
                    });
                }
                let incoming = incoming(sample, &self.rule, &mut key.encodings);
                self.publish(key, incoming);
            }
            Some(Key::Opening(waiting)) => {
                let crowded = waiting.len() >= OPENING_SAMPLES;
                let next = incoming(sample, &self.rule, &mut Encodings::default());
                if crowded || !keys.wait(name, next) {
                    self.crowded(name);
                }
            }
            Some(Key::Refused) => self.node.note_dropped(DropReason::NotImported, 1),
            None if full => {
                self.node.note_dropped(DropReason::NotImported, 1);
                let most = self.rule.keys;
                self.warn(|| {
                    format!("has {most} keys, the maximum, and ignores '{name}'; raise keys")
                });
            }
            None => {
                let first = incoming(sample, &self.rule, &mut Encodings::default());
                // The channel has one slot for each key that the rule may have.
                let open = || {
                    let to_open = lock(&self.to_open);
                    to_open.as_ref().is_some_and(|to| to.try_send(name.to_owned()).is_ok())
                };
                if !keys.wait(name, first) {
                    self.crowded(name);
                } else if !open() {
                    keys.take_waiting(name);
                    self.crowded(name);
                }
            }
        }
    }

    /// Counts the drop of a sample of a new key that finds no queue space.
    fn crowded(&self, name: &str) {
        self.node.note_dropped(DropReason::QueueFull, 1);
        self.warn(|| {
            format!(
                "new keys arrive faster than they can be declared; samples are dropped, most \
                 recently of '{name}' ({OPENING_SAMPLES} of a key may wait, {} MiB of the rule)",
                OPENING_BYTES >> 20
            )
        });
    }

    fn publish(&self, key: &mut OpenKey, incoming: Incoming) {
        key.last = Instant::now();
        match key.publisher.put_with(incoming.payload, incoming.options) {
            // A closed node does not count drops.
            Ok(_) | Err(PublishError::Closed) => {}
            Err(error) => {
                self.node.note_dropped(DropReason::TooLarge, 1);
                let tag = key.publisher.tag().clone();
                self.warn(|| format!("a sample of {tag} was dropped: {error}"));
            }
        }
    }

    /// Declares new keys until the rule ends.
    fn run(&self, opening: &Receiver<String>) {
        loop {
            match opening.recv_timeout(LOOK_EVERY) {
                Ok(name) => self.open(&name),
                Err(RecvTimeoutError::Timeout) => self.forget_idle(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn open(&self, name: &str) {
        let encoding = match lock(&self.keys).all.get(name) {
            Some(Key::Opening(waiting)) => {
                waiting.first().and_then(|it| it.options.encoding.clone())
            }
            _ => return,
        };
        let declared = self.declare(name, encoding);
        let mut keys = lock(&self.keys);
        let Some(waiting) = keys.take_waiting(name) else { return };
        match declared {
            Ok(publisher) => {
                let encodings = Encodings::default();
                let gate = self.rule.spacing.map(Gate::new);
                let last = Instant::now();
                let mut key = Box::new(OpenKey { publisher, encodings, gate, last });
                for incoming in waiting {
                    if key.may_enter() {
                        self.publish(&mut key, incoming);
                    } else {
                        self.node.note_dropped(DropReason::Policed, 1);
                    }
                }
                keys.all.insert(name.to_owned(), Key::Open(key));
            }
            Err(what) => {
                let count = u64::try_from(waiting.len()).unwrap_or(u64::MAX);
                self.node.note_dropped(DropReason::NotImported, count);
                keys.all.insert(name.to_owned(), Key::Refused);
                self.warn(|| format!("cannot publish '{name}': {what}"));
            }
        }
    }

    fn declare(&self, name: &str, encoding: Option<Encoding>) -> Result<Publisher, String> {
        let tag = self.rule.tag.fill(name).ok_or("its tag would be empty")?;
        let declare = || {
            let mut builder = self.node.publisher(&tag);
            if let Some(encoding) = encoding {
                builder = builder.encoding(encoding);
            }
            if let Some(kind) = self.rule.kind {
                builder = builder.kind(kind);
            }
            if let Some(period) = self.rule.period {
                builder = builder.period(period);
            }
            if let Some(loss) = self.rule.loss {
                builder = builder.loss(loss.x(), loss.y());
            }
            builder.declare()
        };
        declare().map_err(|error| error.to_string())
    }

    /// Removes idle keys if the rule is full.
    fn forget_idle(&self) {
        let mut removed = Vec::new();
        let mut keys = lock(&self.keys);
        if keys.all.len() < self.rule.keys {
            return;
        }
        keys.all.retain(|_, key| match key {
            Key::Open(open) if open.last.elapsed() > IDLE => {
                removed.push(std::mem::replace(key, Key::Refused));
                false
            }
            Key::Open(_) | Key::Opening(_) => true,
            Key::Refused => false,
        });
        drop(keys);
        // Dropping a publisher waits for the engine, so drop them without the lock.
        drop(removed);
    }

    fn refuse_loop(&self, name: &str, mark: Mark) {
        self.node.note_dropped(DropReason::Loop, 1);
        self.warn(|| {
            let nodes = self.node.nodes();
            let known = nodes.iter().find(|(id, _)| *id == mark.node);
            let peer = known.map_or_else(|| mark.node.to_string(), |(_, name)| name.clone());
            format!(
                "a loop with export {} of node {peer}, which puts '{name}' on a plain side \
                 connected to this one; its samples are dropped here. Separate the two sides, or \
                 use other keys",
                mark.rule
            )
        });
    }

    /// Logs a problem of this rule, rate-limited.
    fn warn(&self, what: impl FnOnce() -> String) {
        if let Some(suppressed) = self.log_limit.pass() {
            tracing::warn!(
                "import {} (key '{}'): {}{suppressed}",
                self.number,
                self.rule.key,
                what()
            );
        }
    }
}

fn incoming(
    sample: &Sample,
    rule: &ImportRule,
    encodings: &mut Encodings<ZenohEncoding, Encoding>,
) -> Incoming {
    let deleted = sample.kind() == SampleKind::Delete;
    let encoding = match &rule.encoding {
        _ if deleted => Encoding::new(DELETION),
        Some(encoding) => encoding.clone(),
        None => encodings.import(sample.encoding(), sample.key_expr().as_str()),
    };
    let options = PutOptions {
        encoding: Some(encoding),
        captured: sample.timestamp().map(convert::captured),
        attachment: sample.attachment().map(convert::attachment),
    };
    Incoming { payload: convert::payload(sample.payload()), options }
}
