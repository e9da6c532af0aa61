//! One running export rule: a subscription whose samples are put on keys for plain programs.
//!
//! The rule subscribes only while a plain program subscribes to its keys, so no link carries unread
//! samples. Its own threads put the samples, because a put may block on a slow program, and a link
//! must not.

mod large;
mod putter;

use crate::answer::Answers;
use crate::lock;
use crate::mark::Mark;
use crate::rule::{ExportRule, FreshRule};
use large::Large;
use paceline::contract::Form;
use paceline::delivery::Otherwise;
use paceline::{LogLimit, Node, RecvError, SubscribeError, Subscriber, SubscriberEvent};
use putter::{Lane, Putter};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use zenoh::pubsub::Publisher;
use zenoh::sample::Locality;
use zenoh::{Session, Wait};

/// The longest delay until a change on the plain side is noticed while no sample arrives.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The number of keys that stay declared to Zenoh.
const KEYS_MAX: usize = 4_096;
/// The number of samples queued for a slow plain side before the oldest is dropped.
const QUEUE: usize = 256;

/// A running export rule. Stops when dropped.
pub(crate) struct Export {
    rule: ExportRule,
    wanted: Arc<Wanted>,
    /// Reports whether plain programs subscribe to the keys. Undeclared with the rule.
    watch: Option<Publisher<'static>>,
    _answers: Option<Answers>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Want {
    Nobody,
    Somebody,
    End,
}

/// Whether a plain program subscribes to the keys of the rule.
struct Wanted {
    want: Mutex<Want>,
    changed: Condvar,
}

impl Wanted {
    fn set(&self, matching: bool) {
        let mut want = lock(&self.want);
        if *want != Want::End {
            *want = if matching { Want::Somebody } else { Want::Nobody };
        }
        drop(want);
        self.changed.notify_all();
    }

    fn end(&self) {
        *lock(&self.want) = Want::End;
        self.changed.notify_all();
    }

    fn get(&self) -> Want {
        *lock(&self.want)
    }

    /// Waits until a program subscribes, or until the rule ends.
    fn wait(&self) -> Want {
        let mut want = lock(&self.want);
        while *want == Want::Nobody {
            want = self.changed.wait(want).unwrap_or_else(PoisonError::into_inner);
        }
        *want
    }
}

impl Export {
    /// Starts putting samples of the rule's tags on its keys.
    pub(crate) fn open(
        node: &Node,
        session: &Session,
        number: usize,
        rule: ExportRule,
    ) -> zenoh::Result<Self> {
        let want = if rule.always { Want::Somebody } else { Want::Nobody };
        let wanted = Arc::new(Wanted { want: Mutex::new(want), changed: Condvar::new() });
        let mark = Mark { node: node.id(), rule: u16::try_from(number).unwrap_or(u16::MAX) };
        let answers = if rule.queries {
            let keys = rule.key.makes().map_err(|error| error.to_string())?;
            let back = rule.key.inverse().ok_or("its keys cannot be converted back to tags")?;
            Some(Answers::open(node, session, mark, (keys.as_str(), back))?)
        } else {
            None
        };
        let mut watch = None;
        if !rule.always {
            let keys = rule.key.makes().map_err(|error| error.to_string())?;
            let publisher = session
                .declare_publisher(keys.as_str().to_owned())
                .allowed_destination(Locality::Remote)
                .wait()?;
            let update = wanted.clone();
            publisher
                .matching_listener()
                .callback(move |status| update.set(status.matching()))
                .background()
                .wait()?;
            wanted.set(publisher.matching_status().wait()?.matching());
            watch = Some(publisher);
        }
        let putter = |lane| Putter::new((node, session), (number, mark), rule.key.clone(), lane);
        let worker = Worker {
            node: node.clone(),
            number,
            rule: rule.clone(),
            wanted: wanted.clone(),
            log_limit: LogLimit::new(),
            small: putter(Lane::Small),
            large: Large::new(putter(Lane::Large)),
        };
        let named = std::thread::Builder::new().name(format!("paceline-out-{number}"));
        let thread = named.spawn(move || worker.run())?;
        Ok(Self { rule, wanted, watch, _answers: answers, thread: Some(thread) })
    }

    pub(crate) const fn rule(&self) -> &ExportRule {
        &self.rule
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        drop(self.watch.take());
        self.wanted.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Worker {
    node: Node,
    number: usize,
    rule: ExportRule,
    log_limit: LogLimit,
    wanted: Arc<Wanted>,
    small: Putter,
    large: Large,
}

impl Worker {
    fn run(mut self) {
        while self.wanted.wait() == Want::Somebody {
            let Some(mut subscriber) = self.ok_or_log(self.subscribe()) else { return };
            while self.wanted.get() == Want::Somebody {
                while let Some(event) = subscriber.try_event() {
                    self.handle_event(event);
                }
                match subscriber.recv_timeout(LOOK_EVERY) {
                    Ok(delivery) => {
                        if let Some(delivery) = self.large.take(delivery) {
                            self.small.put(delivery);
                        }
                    }
                    Err(RecvError::Closed) => return,
                    Err(_) => {}
                }
            }
            self.small.clear();
        }
    }

    fn ok_or_log<T>(&self, result: Result<T, SubscribeError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(SubscribeError::Closed) => None,
            Err(error) => {
                tracing::error!("export {} (tag '{}'): {error}", self.number, self.rule.tag);
                None
            }
        }
    }

    fn subscribe(&self) -> Result<Subscriber, SubscribeError> {
        let ExportRule { tag, form, within, loss, fresh, proxy, retransmit, .. } = &self.rule;
        let Form { rate, size, audio, bitrate, quality, via: _ } = form;
        let mut builder = self.node.subscriber(tag.as_str()).queue(QUEUE);
        builder = builder.rate(*rate);
        if let Some(bitrate) = bitrate {
            builder = builder.bitrate(bitrate.get());
        }
        if let Some(quality) = quality {
            builder = builder.quality(quality.get());
        }
        if let Some(size) = size {
            builder = builder.size(size.width, size.height);
        }
        if let Some(audio) = audio {
            builder = builder.audio(audio.rate, audio.channels);
        }
        if let Some(within) = within {
            builder = builder.within(*within);
        }
        if let Some(loss) = loss {
            builder = builder.loss(loss.x(), loss.y());
        }
        if let Some(FreshRule { limit, zero }) = *fresh {
            let otherwise = if zero { Otherwise::Zero } else { Otherwise::Hold };
            builder = builder.fresh_within(limit, otherwise);
        }
        builder.proxy(proxy.clone()).retransmit(*retransmit).declare()
    }

    fn handle_event(&self, event: SubscriberEvent) {
        if let SubscriberEvent::Refused(publisher, refusal) = event {
            self.warn(|| format!("{publisher} was refused: {refusal}"));
        }
    }

    /// Logs a problem of this rule, rate-limited.
    fn warn(&self, what: impl FnOnce() -> String) {
        if let Some(suppressed) = self.log_limit.pass() {
            let (number, tag) = (self.number, &self.rule.tag);
            tracing::warn!("export {number} (tag '{tag}'): {}{suppressed}", what());
        }
    }
}
