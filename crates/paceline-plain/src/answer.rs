//! Answers queries of plain programs from the pull buffers of any node.
//!
//! Each rule has its own thread for pulling, because an answer takes as long as the link to the
//! buffer needs. Pulled samples travel as background traffic.

use crate::convert::{DELETION, Encodings};
use crate::key::Template;
use crate::mark::Mark;
use crate::selector::{self, Asked};
use paceline::{Node, RecvError, Sample};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant, SystemTime};
use zenoh::query::{Query, Queryable};
use zenoh::{Session, Wait};

/// The number of queries that may be queued behind the current one.
const WAITING: usize = 64;
/// The time limit of one answer. Zenoh's default query timeout is 10 s, so the answer must be
/// faster.
const PATIENCE: Duration = Duration::from_secs(9);
/// The longest delay until the end of the rule is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The causes of the end of a rule.
pub(crate) const RULE_ENDS: &str = "it was removed or changed, or the node stops";

/// Answers queries for the keys of a rule. Stops when dropped.
pub(crate) struct Answers {
    queryable: Option<Queryable<()>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Wakes a thread that waits for a future.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

struct Answerer {
    node: Node,
    /// True once the rule has ended.
    ended: Arc<AtomicBool>,
    mark: Mark,
    /// Converts a key to a tag.
    tag: Template,
}

impl Answers {
    /// Starts answering queries on `keys`. `tag` converts a key to a tag.
    pub(crate) fn open(
        node: &Node,
        session: &Session,
        mark: Mark,
        (keys, tag): (&str, Template),
    ) -> zenoh::Result<Self> {
        let (to, queries) = sync_channel::<Query>(WAITING);
        let ended = Arc::new(AtomicBool::new(false));
        let answerer = Answerer { node: node.clone(), ended: ended.clone(), mark, tag };
        let named = std::thread::Builder::new().name(format!("paceline-ask-{}", mark.rule));
        let thread = named.spawn(move || answerer.run(&queries))?;
        let queryable = session
            .declare_queryable(keys.to_owned())
            .callback(move |query| {
                if let Err(refused) = to.try_send(query) {
                    let query = match refused {
                        std::sync::mpsc::TrySendError::Full(query)
                        | std::sync::mpsc::TrySendError::Disconnected(query) => query,
                    };
                    refuse(&query, "64 queries already wait; try again later");
                }
            })
            .wait()?;
        Ok(Self { queryable: Some(queryable), ended, thread: Some(thread) })
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Undeclaring drops the callback with the channel's sender, which ends the thread.
        if let Some(queryable) = self.queryable.take() {
            let _ = queryable.undeclare().wait();
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Answerer {
    fn run(&self, queries: &Receiver<Query>) {
        for query in queries {
            if let Err(what) = self.answer(&query) {
                refuse(&query, &what);
            }
        }
    }

    fn answer(&self, query: &Query) -> Result<(), String> {
        self.check()?;
        let key = query.key_expr().as_str();
        if key.contains('*') {
            return Err(format!("'{key}' has wildcards; query one key at a time"));
        }
        let tag = self.tag.fill(key).ok_or_else(|| format!("'{key}' is not a valid tag"))?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let pull = self.node.pull(&tag).timeout(PATIENCE);
        let pull = match selector::read(query.parameters().as_str(), now)? {
            Asked::Newest(n) => pull.newest(n),
            Asked::Between(from, to) => pull.time(from..=to),
        };
        let mut pulled = self.wait(pull.run_async())?.map_err(|error| error.to_string())?;
        let (mut encodings, mut until) = (Encodings::default(), Instant::now() + PATIENCE);
        loop {
            self.check()?;
            match pulled.next_timeout(LOOK_EVERY) {
                Ok(Some(delivery)) => {
                    self.reply(query, delivery, &mut encodings)?;
                    until = Instant::now() + PATIENCE;
                }
                Err(RecvError::Timeout) if Instant::now() < until => {}
                Ok(None) | Err(_) => return Ok(()),
            }
        }
    }

    /// Waits for `work`, and fails once the rule has ended.
    fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, String> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut work = pin!(work);
        loop {
            self.check()?;
            match work.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(done) => return Ok(done),
                Poll::Pending => std::thread::park_timeout(LOOK_EVERY),
            }
        }
    }

    /// Fails once the rule has ended, so that no query waits for the rest of its answer.
    fn check(&self) -> Result<(), String> {
        match self.ended.load(Ordering::Relaxed) {
            true => Err(format!("the rule that answers this query ended: {RULE_ENDS}")),
            false => Ok(()),
        }
    }

    fn reply(
        &self,
        query: &Query,
        delivery: Sample,
        encodings: &mut Encodings<paceline::Encoding, zenoh::bytes::Encoding>,
    ) -> Result<(), String> {
        let key = query.key_expr().clone();
        let stamp = self.mark.stamp(delivery.captured);
        let attachment = delivery.attachment.map(|bytes| bytes.to_vec());
        let replied = if delivery.encoding.as_str() == DELETION {
            query.reply_del(key).attachment(attachment).timestamp(stamp).wait()
        } else {
            let encoding = encodings.export(&delivery.encoding);
            let reply = query.reply(key, delivery.payload).encoding(encoding);
            reply.attachment(attachment).timestamp(stamp).wait()
        };
        replied.map_err(|error| error.to_string())
    }
}

fn refuse(query: &Query, what: &str) {
    if let Err(error) = query.reply_err(what).wait() {
        tracing::debug!("cannot answer a query: {error}");
    }
}
