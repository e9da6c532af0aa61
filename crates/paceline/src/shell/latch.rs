//! The newest sample of latched publishers, for subscribers that join late.
//!
//! When a stream of such a publisher reaches a subscription of this node, a thread pulls the publisher's newest
//! sample from its pull buffer, in the form of the subscription, and delivers it unless a newer one has arrived.
//! A pull is best effort, so contracts on the path are not disturbed.

use super::command::Commands;
use super::lock;
use super::pacer::Wake as _;
use super::pull::{Pipe, PullEvent, Wanted, pull_into};
use super::sink::Sink;
use paceline_proto::form::{Form, Rate};
use paceline_proto::pull::{Find, Selection};
use paceline_proto::{PublisherId, Tag};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The longest time of one pull. Later samples of the publisher arrive by themselves.
const TIME_MAX: Duration = Duration::from_secs(5);

/// A subscription that misses the newest sample of a publisher.
pub(crate) struct Latecomer {
    pub(crate) sink: Arc<Sink>,
    pub(crate) tag: Tag,
    pub(crate) publisher: PublisherId,
    pub(crate) form: Form,
}

impl Latecomer {
    fn serve(&self, commands: &Commands) {
        let Self { sink, tag, publisher, form } = self;
        if sink.is_closed() {
            return;
        }
        let find = Find {
            tag: tag.clone(),
            publisher: Some(*publisher),
            selection: Selection::Newest(1),
            rate: Rate::ALL,
            after: None,
        };
        let form = Form { rate: Rate::ALL, ..*form };
        let from = Some(publisher.node.to_string());
        let until = Some(Instant::now() + TIME_MAX);
        // One sample and two notices fit into the pipe without a reader.
        let pipe = Pipe::default();
        if let Err(error) = pull_into(
            commands,
            &Wanted { find, form, from, order: None, until, at_once: false },
            &pipe,
        ) {
            tracing::debug!(%tag, %publisher, %error, "no latched sample");
        }
        while let Some(event) = pipe.pop() {
            if let PullEvent::Sample(sample) = event {
                sink.deliver_latched(*publisher, *sample);
            }
        }
    }
}

/// The most threads of a node that serve latecomers: a publisher that does not answer occupies one for [`TIME_MAX`].
const THREADS_MAX: usize = 8;

/// The threads that serve the latecomers of a node. Each ends when it finds nobody to serve.
pub(crate) struct Latch {
    commands: Commands,
    queue: Arc<Mutex<Queue>>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Latecomer>,
    threads: usize,
}

impl Latch {
    pub(crate) fn new(commands: Commands) -> Self {
        Self { commands, queue: Arc::default() }
    }

    /// Serves `latecomer`, after earlier ones if all threads are busy.
    pub(crate) fn serve(&self, latecomer: Latecomer) {
        let mut queue = lock(&self.queue);
        queue.waiting.push_back(latecomer);
        if queue.threads >= THREADS_MAX {
            return;
        }
        let (commands, all) = (self.commands.clone(), self.queue.clone());
        let named = std::thread::Builder::new().name("paceline-latch".to_owned());
        match named.spawn(move || serve_all(&commands, &all)) {
            Ok(_) => queue.threads += 1,
            Err(error) => {
                crate::warn_limited!("no thread for latched samples: {error}");
                if queue.threads == 0 {
                    queue.waiting.clear();
                }
            }
        }
    }
}

fn serve_all(commands: &Commands, queue: &Mutex<Queue>) {
    loop {
        let next = {
            let mut queue = lock(queue);
            let next = queue.waiting.pop_front();
            queue.threads -= usize::from(next.is_none());
            next
        };
        let Some(latecomer) = next else { return };
        let served = catch_unwind(AssertUnwindSafe(|| latecomer.serve(commands)));
        if served.is_err() {
            tracing::error!(
                "a callback panicked with a latched sample; its subscription has ended"
            );
            latecomer.sink.fail();
        }
    }
}
