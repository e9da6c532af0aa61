//! The newest sample of latched publishers, for subscribers that join late.
//!
//! When a stream of such a publisher reaches a subscription of this node, a thread pulls the publisher's newest
//! sample from its pull buffer, in the form of the subscription, and delivers it unless a newer one has arrived.
//! A pull is best effort, so contracts on the path are not disturbed.

use super::command::Commands;
use super::pull::{Pipe, PullEvent, Wanted, pull_into};
use super::sink::{Order, Sink};
use paceline_proto::form::{Form, Rate};
use paceline_proto::pull::{Find, Selection};
use paceline_proto::{PublisherId, Tag};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// The longest time of one pull. Later samples of the publisher arrive by themselves.
const TIME_MAX: Duration = Duration::from_secs(5);

/// A subscription that misses the newest sample of a publisher.
pub(crate) struct Latecomer {
    pub(crate) sink: Arc<Sink>,
    /// The order of the publisher's samples at the subscription.
    pub(crate) order: Arc<Order>,
    pub(crate) tag: Tag,
    pub(crate) publisher: PublisherId,
    pub(crate) form: Form,
}

impl Latecomer {
    fn serve(&self, commands: &Commands) {
        let Self { sink, order, tag, publisher, form } = self;
        if sink.is_closed() {
            return;
        }
        let find = Find {
            tag: tag.clone(),
            publisher: Some(*publisher),
            selection: Selection::Newest(1),
            rate: Rate::All,
            after: None,
        };
        let form = Form { rate: Rate::All, ..*form };
        let from = Some(publisher.node.to_string());
        let until = Some(Instant::now() + TIME_MAX);
        // One sample and two notices fit into the pipe without a reader.
        let pipe = Pipe::default();
        if let Err(error) = pull_into(commands, &Wanted { find, form, from, until }, &pipe) {
            tracing::debug!(%tag, %publisher, %error, "no latched sample");
        }
        while let Some(event) = pipe.pop() {
            if let PullEvent::Sample(sample) = event {
                sink.deliver_latched(order, *sample);
            }
        }
    }
}

/// The thread that serves the latecomers of a node, started for the first one.
pub(crate) struct Latch {
    commands: Commands,
    waiting: Option<Sender<Latecomer>>,
}

impl Latch {
    pub(crate) const fn new(commands: Commands) -> Self {
        Self { commands, waiting: None }
    }

    /// Serves `latecomer` after earlier ones.
    pub(crate) fn serve(&mut self, latecomer: Latecomer) {
        if self.waiting.is_none() {
            let (waiting, inbox) = channel();
            let commands = self.commands.clone();
            let named = std::thread::Builder::new().name("paceline-latch".to_owned());
            match named.spawn(move || serve_all(&commands, &inbox)) {
                Ok(_) => self.waiting = Some(waiting),
                Err(error) => crate::warn_limited!("no thread for latched samples: {error}"),
            }
        }
        if let Some(waiting) = &self.waiting {
            let _ = waiting.send(latecomer);
        }
    }
}

fn serve_all(commands: &Commands, inbox: &Receiver<Latecomer>) {
    for latecomer in inbox {
        latecomer.serve(commands);
    }
}
