//! A common interface to Paceline and plain Zenoh, so that the same code measures both.

use crate::bench::protocol::{Content, Engine, Place, Source, Want};
use anyhow::{Context as _, Result, anyhow};
use bytes::Bytes;
use paceline::contract::Refusal;
use paceline::{Capacity, Encoding, Kind, Late, LinkConfig, Node};
use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use zenoh::Wait as _;
use zenoh::qos::{CongestionControl, Priority};

/// An open node or session.
pub(super) enum Session {
    Paceline(Node),
    Plain(zenoh::Session),
}

/// A declared publisher.
pub(super) enum Publisher {
    Paceline(Box<paceline::Publisher>),
    Plain(zenoh::pubsub::Publisher<'static>),
}

/// A declared subscription; dropping it ends the subscription.
#[expect(dead_code, reason = "never read: dropping it ends the subscription")]
pub(super) enum Subscription {
    Paceline(paceline::Subscription),
    Plain(zenoh::pubsub::Subscriber<()>),
}

/// A sample delivered by an engine.
pub(super) enum Sample {
    Paceline(paceline::Sample),
    Plain(zenoh::sample::Sample),
}

impl Session {
    pub(super) fn open(place: &Place) -> Result<Self> {
        match place.engine {
            Engine::Paceline => open_node(place).map(Self::Paceline),
            Engine::Plain => open_zenoh(place).map(Self::Plain),
        }
    }

    /// Declares a publisher with the strongest guarantee that the engine has for this source.
    pub(super) fn publisher(&self, source: &Source) -> Result<Publisher> {
        match self {
            Self::Paceline(node) => {
                declare_paceline(node, source).map(|it| Publisher::Paceline(Box::new(it)))
            }
            Self::Plain(session) => {
                let (priority, congestion, express) = if source.urgent {
                    (Priority::RealTime, CongestionControl::Drop, true)
                } else {
                    (Priority::Background, CongestionControl::Drop, false)
                };
                declare_zenoh(session, &source.tag, priority, congestion, express)
            }
        }
    }

    /// Declares a publisher without rate or contract. It blocks while there is no room for a
    /// sample.
    pub(super) fn plain_publisher(&self, tag: &str, express: bool) -> Result<Publisher> {
        match self {
            Self::Paceline(node) => {
                Ok(Publisher::Paceline(Box::new(node.publisher(tag).declare()?)))
            }
            Self::Plain(session) => {
                declare_zenoh(session, tag, Priority::Data, CongestionControl::Block, express)
            }
        }
    }

    pub(super) fn subscribe(
        &self,
        want: &Want,
        mut deliver: impl FnMut(Sample) + Send + 'static,
    ) -> Result<Subscription> {
        let named = || format!("subscription to {}", want.tag);
        match self {
            Self::Paceline(node) => {
                let mut builder = node.subscriber(&want.tag);
                if let Some(hz) = want.max_hz {
                    builder = builder.max_hz(hz);
                }
                if let Some((width, height)) = want.size {
                    builder = builder.size(width, height);
                }
                if let Some(millis) = want.within_ms {
                    builder = builder.within(Duration::from_millis(millis));
                }
                if let Some((x, y)) = want.loss {
                    builder = builder.loss(x, y);
                }
                let deliver = move |sample| deliver(Sample::Paceline(sample));
                builder.callback(deliver).map(Subscription::Paceline).with_context(named)
            }
            Self::Plain(session) => {
                let deliver = Mutex::new(deliver);
                let builder =
                    session.declare_subscriber(want.tag.clone()).callback(move |sample| {
                        let mut deliver = deliver.lock().unwrap_or_else(PoisonError::into_inner);
                        deliver(Sample::Plain(sample));
                    });
                let subscriber = builder.wait().map(Subscription::Plain);
                subscriber.map_err(|error| anyhow!("{}: {error}", named()))
            }
        }
    }

    /// Returns the violated windows and the samples dropped by reason on this node's own links.
    pub(super) fn link_report(&self) -> (u64, String) {
        let Self::Paceline(node) = self else { return (0, String::new()) };
        let status = node.status(Duration::from_secs(1));
        let own = status.iter().filter(|status| status.id == node.id());
        let streams = own.flat_map(|status| &status.links).flat_map(|link| &link.streams);
        let (mut violations, mut drops) = (0, Vec::new());
        for stream in streams {
            violations += stream.counters.violations;
            drops.extend(stream.counters.dropped.iter().map(|(reason, n)| format!("{reason} {n}")));
        }
        (violations, drops.join(", "))
    }

    pub(super) fn close(self) {
        match self {
            Self::Paceline(node) => node.close(),
            // An error at the very end does not matter.
            Self::Plain(session) => drop(session.close().wait()),
        }
    }
}

impl Subscription {
    /// Returns the refusals since the last call.
    pub(super) fn refusals(&self) -> Vec<Refusal> {
        let Self::Paceline(subscription) = self else { return Vec::new() };
        let events = std::iter::from_fn(|| subscription.try_event());
        let refusals = events.filter_map(|event| match event {
            paceline::SubscriberEvent::Refused(_, refusal) => Some(refusal),
            paceline::SubscriberEvent::Publishers(_)
            | paceline::SubscriberEvent::Granted(_)
            | paceline::SubscriberEvent::NoSpare(_)
            | paceline::SubscriberEvent::Withdrawn(_)
            | paceline::SubscriberEvent::BestEffort(..)
            | paceline::SubscriberEvent::Excess { .. }
            | paceline::SubscriberEvent::Silent(_)
            | paceline::SubscriberEvent::Resumed(_)
            | paceline::SubscriberEvent::ChangeRefused { .. }
            | paceline::SubscriberEvent::Changed { .. }
            | paceline::SubscriberEvent::Adapted { .. }
            | paceline::SubscriberEvent::Warned(..) => None,
            // An event of a later version.
            _ => None,
        });
        refusals.collect()
    }
}

impl Publisher {
    /// Publishes without waiting for room.
    pub(super) fn put(&mut self, payload: Bytes) -> Result<()> {
        match self {
            Self::Paceline(publisher) => Ok(publisher.put(payload).map(drop)?),
            Self::Plain(publisher) => put_zenoh(publisher, payload),
        }
    }

    /// Publishes as soon as there is room.
    pub(super) fn put_blocking(&mut self, payload: Bytes) -> Result<()> {
        match self {
            Self::Paceline(publisher) => Ok(publisher.put_blocking(payload).map(drop)?),
            Self::Plain(publisher) => put_zenoh(publisher, payload),
        }
    }
}

impl Sample {
    pub(super) fn payload(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Paceline(delivery) => Cow::Borrowed(&delivery.payload),
            Self::Plain(sample) => sample.payload().to_bytes(),
        }
    }

    /// Returns the payload, without a copy if possible.
    pub(super) fn into_payload(self) -> Bytes {
        match self {
            Self::Paceline(delivery) => delivery.payload,
            Self::Plain(sample) => Bytes::from(sample.payload().to_bytes().into_owned()),
        }
    }

    /// Returns the engine's sequence number, or `None` if the engine has none.
    pub(super) fn seq(&self) -> Option<u64> {
        match self {
            Self::Paceline(delivery) => Some(delivery.seq),
            Self::Plain(_) => None,
        }
    }
}

fn open_node(place: &Place) -> Result<Node> {
    let mut builder = Node::builder().name(&place.name);
    if place.listen.is_some() || place.connect.is_some() {
        let mut link = LinkConfig::new("thin");
        if let Some(endpoint) = &place.listen {
            link = link.listen(endpoint).insecure();
        }
        if let Some(endpoint) = &place.connect {
            link = link.connect(endpoint);
        }
        link = link.policy(place.policy.parse()?);
        if let Some(bits) = place.capacity {
            let capacity = Capacity::from_bits_per_s(bits);
            link = link.capacity(capacity.map_err(|error| anyhow!("{error}"))?);
        }
        builder = builder.link(link);
    }
    builder.open().with_context(|| format!("node {}", place.name))
}

fn declare_paceline(node: &Node, source: &Source) -> Result<paceline::Publisher> {
    let builder = node.publisher(&source.tag).hz(source.hz);
    let builder = match source.content {
        Content::Noise(bytes) => builder.bytes_max(u64::try_from(bytes)?),
        Content::Card { .. } => builder.encoding(Encoding::Jpeg),
    };
    let builder = match source.urgent {
        true => builder.kind(Kind::Data).late(Late::Send),
        false => builder.kind(Kind::Picture).late(Late::Drop),
    };
    builder.declare().with_context(|| format!("publisher {}", source.tag))
}

/// Opens a session that connects only to the given endpoints.
fn open_zenoh(place: &Place) -> Result<zenoh::Session> {
    let list = |endpoint: &Option<String>| endpoint.iter().cloned().collect::<Vec<_>>();
    super::super::zenoh::open("peer", &list(&place.listen), &list(&place.connect), &[])
        .with_context(|| place.name.clone())
}

fn declare_zenoh(
    session: &zenoh::Session,
    tag: &str,
    priority: Priority,
    congestion: CongestionControl,
    express: bool,
) -> Result<Publisher> {
    let builder = session.declare_publisher(tag.to_owned()).priority(priority);
    let publisher = builder.congestion_control(congestion).express(express).wait();
    publisher.map(Publisher::Plain).map_err(|error| anyhow!("Zenoh publisher {tag}: {error}"))
}

fn put_zenoh(publisher: &zenoh::pubsub::Publisher<'_>, payload: Bytes) -> Result<()> {
    publisher.put(payload).wait().map_err(|error| anyhow!("Zenoh put: {error}"))
}
