//! Delivers the answers of one query to a program here, in order and from one thread at a time.

use super::Common;
use super::message::{Body, Value};
use super::plainly::{reply, stamp};
use super::pool::Work;
use crate::lock;
use paceline::status::DropReason;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use zenoh::Wait;
use zenoh::bytes::Encoding;
use zenoh::key_expr::KeyExpr;
use zenoh::query::Query;

/// The number of answers that one query may queue for a slow reader.
const ANSWERS_MAX: usize = 256;
/// The bytes that all queries of a rule may queue.
const BYTES_MAX: usize = 64 << 20;

/// The bytes queued for the programs of a rule.
#[derive(Debug, Default)]
pub(super) struct Buffered(AtomicUsize);

impl Buffered {
    /// Reserves `bytes`. Returns false if the limit would be exceeded.
    fn take(&self, bytes: usize) -> bool {
        let more =
            |buffered: usize| buffered.checked_add(bytes).filter(|buffered| *buffered <= BYTES_MAX);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A query of a program here. The query ends for the program when the last reference is dropped.
pub(super) struct Lane {
    query: Query,
    buffered: Arc<Buffered>,
    todo: Mutex<Todo>,
}

#[derive(Default)]
struct Todo {
    /// The queued answers, each with its reserved bytes.
    answers: VecDeque<(Body, usize)>,
    /// The number of answers dropped because the queue was full.
    lost: u64,
    /// True while a thread delivers answers.
    busy: bool,
}

impl Lane {
    pub(super) fn new(query: Query, buffered: Arc<Buffered>) -> Self {
        Self { query, buffered, todo: Mutex::default() }
    }

    pub(super) fn key(&self) -> &KeyExpr<'static> {
        self.query.key_expr()
    }

    /// Queues an answer with its reserved bytes. Returns the delivery work, which may block on the
    /// program, or `None` if another thread is already delivering.
    pub(super) fn give(
        self: &Arc<Self>,
        common: &Arc<Common>,
        answer: Body,
        bytes: usize,
    ) -> Option<Work> {
        let mut todo = lock(&self.todo);
        if todo.answers.len() < ANSWERS_MAX && self.buffered.take(bytes) {
            return self.begin(common, &mut todo, (answer, bytes));
        }
        todo.lost += 1;
        drop(todo);
        common.node.note_dropped(DropReason::SubscriberFull, 1);
        common.warn(|| {
            let key = self.key();
            format!(
                "answers to '{key}' arrive faster than the program here reads them; some are dropped"
            )
        });
        None
    }

    /// Queues an error for the program. This is not limited, because it happens once per node.
    pub(super) fn refuse(self: &Arc<Self>, common: &Arc<Common>, what: String) -> Option<Work> {
        self.begin(common, &mut lock(&self.todo), (error_body(what), 0))
    }

    fn begin(
        self: &Arc<Self>,
        common: &Arc<Common>,
        todo: &mut Todo,
        answer: (Body, usize),
    ) -> Option<Work> {
        todo.answers.push_back(answer);
        if std::mem::replace(&mut todo.busy, true) {
            return None;
        }
        let (lane, common) = (self.clone(), common.clone());
        Some(Box::new(move || {
            while let Some(answer) = lane.next() {
                lane.put(&common, answer);
            }
        }))
    }

    /// Returns the next answer, and finally an error with the number of dropped answers. `None`
    /// ends the delivery.
    fn next(&self) -> Option<Body> {
        let mut todo = lock(&self.todo);
        if let Some((answer, bytes)) = todo.answers.pop_front() {
            self.buffered.give_back(bytes);
            return Some(answer);
        }
        let lost = std::mem::take(&mut todo.lost);
        if lost > 0 {
            return Some(error_body(format!(
                "{lost} answers were dropped: they arrived faster than this program reads them"
            )));
        }
        todo.busy = false;
        None
    }

    fn put(&self, common: &Common, answer: Body) {
        let query = &self.query;
        let replied = match answer {
            Body::Sample(sample) => reply(query, sample),
            Body::Deletion(sample) => {
                let stamp = stamp(&sample);
                let attachment = sample.attachment.map(|bytes| bytes.to_vec());
                query.reply_del(sample.key).attachment(attachment).timestamp(stamp).wait()
            }
            Body::Error(Value { encoding, payload }) => {
                query.reply_err(payload).encoding(Encoding::from(encoding)).wait()
            }
            // Not answers. `Asking::answer` handles them.
            Body::Ask(_) | Body::End(_) => Ok(()),
        };
        if let Err(error) = replied {
            common.node.note_dropped(DropReason::NotExported, 1);
            tracing::debug!("query {}: cannot deliver an answer: {error}", common.number);
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let todo = lock(&self.todo);
        self.buffered.give_back(todo.answers.iter().map(|(_, bytes)| bytes).sum());
    }
}

fn error_body(what: String) -> Body {
    Body::Error(Value { encoding: Encoding::TEXT_PLAIN.to_string(), payload: what.into() })
}
