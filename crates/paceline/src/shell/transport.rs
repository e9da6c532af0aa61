//! The transport of one link: a connection to each peer, over QUIC, TLS, TCP or a unix socket
//! (docs/internals/wire.md, docs/decisions/0014-quic.md).
//!
//! Nobody receives the frames of others or sends in their name, because each connection is one peer, which has
//! introduced itself ([`meet`]). With certificates the introduction is proven, and
//! within the host the kernel names the account.
//!
//! Frames go into a byte stream, or over QUIC into unreliable datagrams: those of links with a capacity, unless
//! the link is configured as ordered. On a link with a capacity Paceline's pacer is the congestion control of QUIC.

mod accept;
mod account;
mod attach;
mod cause;
mod datagram;
mod datagrams;
mod dial;
mod handshakes;
mod inbox;
mod liveness;
mod meet;
mod multicast;
mod origin;
mod outbox;
mod pacer;
mod peer;
mod peers;
mod proof;
mod quic;
mod shared;
mod stream;
mod unix;

use crate::address;
use crate::config::LinkConfig;
use crate::identity::Introduction;
pub use attach::{AttachedWriter, Attachment};
use bytes::Bytes;
use multicast::PROBE_EVERY;
pub(crate) use multicast::{GroupView, Multicast};
use paceline_proto::address::Address;
use paceline_proto::rights::PeerName;
use paceline_proto::wire::frame::FrameBuf;
use paceline_proto::{NodeId, ProbeInterval};
use paceline_sched::Capacity;
pub use pacer::NoCongestionControl;
use quic::Quic;
use quinn::Endpoint;
use shared::Shared;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep, timeout};

/// The timeout of each step of connecting or accepting a connection, on a link that is not slow: a round trip of 4 s, and
/// some time.
const OPEN_MAX: Duration = Duration::from_secs(5);
/// The interval between attempts that run at the same time. Users notice a delay of 250 ms.
const KNOCK_EVERY: Duration = Duration::from_millis(200);
/// The bytes of a handshake with certificates, of the attempts next to it, and of one attempt over QUIC, at most. A slow
/// link needs seconds for them.
const OPEN_BYTES: u64 = 12_000;
const KNOCK_BYTES: u64 = 3_000;
/// The time within which the hop of an incoming connection comes up, in timeouts of a step: 30 s on a link that is not slow.
const PROVE_STEPS: u32 = 6;
/// The longest waits for the last frames of the other end, and for the end of this end's own, each.
const PART_MAX: Duration = Duration::from_millis(200);

/// The result of sending a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sent {
    /// The transport accepted the frame.
    Taken,
    /// The hop is closed.
    Down,
}

/// The times of opening a connection.
#[derive(Clone, Copy, Debug)]
struct Opening {
    /// The timeout of each step.
    max: Duration,
    /// The interval between attempts that run at the same time.
    knock_every: Duration,
    /// The pacer of a link with a capacity replaces the congestion control of TCP.
    paced: bool,
}

impl Opening {
    fn of(capacity: Option<Capacity>) -> Self {
        let time = |bytes| capacity.map_or(Duration::ZERO, |it| it.time_for(bytes).into());
        let knock_every = KNOCK_EVERY + time(KNOCK_BYTES);
        Self { max: OPEN_MAX + time(OPEN_BYTES), knock_every, paced: capacity.is_some() }
    }
}

/// The receiver of frames, called on the transport's threads.
pub(crate) trait Inbound: Send + Sync + 'static {
    /// Handles frames of a peer, which arrived together.
    fn frames(&self, from: NodeId, frames: &mut dyn Iterator<Item = Bytes>);
    /// Handles a frame of a peer.
    fn frame(&self, from: NodeId, frame: Bytes) {
        self.frames(from, &mut std::iter::once(frame));
    }
    /// Handles a connected peer.
    fn found(&self, node: NodeId);
    /// Prepares a thread that calls the others.
    fn enter(&self) {}
}

/// An error of opening a transport.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

/// An error of opening a transport, and the endpoint that cannot be opened; `None` if it concerns all of them.
pub(crate) struct Unopened {
    pub(crate) endpoint: Option<String>,
    pub(crate) error: Error,
}

impl Unopened {
    fn at(endpoint: &str) -> impl FnOnce(Error) -> Self {
        |error| Self { endpoint: Some(endpoint.to_owned()), error }
    }
}

impl From<Error> for Unopened {
    fn from(error: Error) -> Self {
        Self { endpoint: None, error }
    }
}

/// The open endpoints of one link.
pub(crate) struct Transport {
    shared: Arc<Shared>,
    quic: Vec<Endpoint>,
    runtime: Runtime,
}

impl Transport {
    /// Listens and connects.
    pub(crate) fn open(
        introduction: Introduction,
        link: &LinkConfig,
        inbound: Arc<dyn Inbound>,
    ) -> Result<Self, Unopened> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            // A subscriber's callback may occupy one of them.
            .worker_threads(2)
            .thread_name(format!("paceline-{}-net", link.name))
            .on_thread_start({
                let inbound = inbound.clone();
                move || inbound.enter()
            })
            .enable_all()
            .build()
            .map_err(Error::from)?;
        let shared = Arc::new(Shared::new(link, introduction, inbound));
        let entered = runtime.enter();
        let mut endpoints = Vec::new();
        let quic = if link.is_quic() { Some(Quic::new(shared.clone(), link)?) } else { None };
        let quic = |endpoint: &str| quic.as_ref().filter(|_| endpoint.starts_with("quic/"));
        for endpoint in &link.listen {
            match (quic(endpoint), unix::path(endpoint)) {
                (Some(quic), _) => quic.listen(endpoint).map(|opened| endpoints.push(opened)),
                (None, Some(path)) => unix::listen(&shared, path),
                (None, None) => stream::listen(&shared, endpoint),
            }
            .map_err(Unopened::at(endpoint))?;
        }
        for endpoint in &link.connect {
            match (quic(endpoint), unix::path(endpoint)) {
                (Some(quic), _) => quic.connect(endpoint).map(|opened| endpoints.push(opened)),
                (None, Some(path)) => {
                    unix::connect(&shared, path);
                    Ok(())
                }
                (None, None) => stream::connect(&shared, endpoint, link.proxy.clone()),
            }
            .map_err(Unopened::at(endpoint))?;
        }
        if let Some(identity) = shared.identity.clone() {
            tokio::spawn(shared.clone().renew(identity));
        }
        if shared.multicast.is_some() {
            let shared = shared.clone();
            tokio::spawn(async move {
                loop {
                    sleep(PROBE_EVERY).await;
                    shared.multicast.iter().for_each(Multicast::tick);
                }
            });
        }
        drop(entered);
        Ok(Self { shared, quic: endpoints, runtime })
    }

    /// Reports all connected peers.
    pub(crate) fn find(&self) {
        self.shared.peers.nodes().into_iter().for_each(|node| self.shared.inbound.found(node));
    }

    /// Returns true if there is a connection to the node.
    pub(crate) fn is_connected(&self, node: NodeId) -> bool {
        self.shared.peers.get(node).is_some()
    }

    /// Returns the time that the introductions took on the newest connection to a node: one round trip or more at the end that
    /// has connected; zero at the other end, and without a connection.
    pub(crate) fn met_within(&self, node: NodeId) -> Duration {
        self.shared.peers.get(node).map_or(Duration::ZERO, |peer| peer.met_within)
    }

    /// Sets the interval of the probes of a hop, at which its connections show that they are alive.
    pub(crate) fn set_interval(&self, node: NodeId, probes: ProbeInterval) {
        self.shared.peers.set_interval(node, probes);
    }

    /// Notes that the hop to a node is up: its connections keep their places.
    pub(crate) fn prove(&self, node: NodeId) {
        self.shared.peers.prove(node);
    }

    /// Closes incoming connections whose hop has not come up.
    pub(crate) fn close_unproven(&self) {
        self.shared.peers.close_unproven(PROVE_STEPS * self.shared.opening.max);
    }

    /// Sends a frame. Never blocks.
    ///
    /// The caller's window keeps the data in flight below the capacity of the transport's queue, so
    /// there is room whenever the hop is alive.
    pub(crate) fn try_send(&self, node: NodeId, frame: &FrameBuf) -> Sent {
        if let (Some(multicast), Some(group)) = (&self.shared.multicast, &frame.group) {
            return multicast.send(node, frame, group, &self.shared.peers);
        }
        self.shared.peers.get(node).map_or(Sent::Down, |peer| peer.send(frame))
    }

    /// Returns the multicast groups, if the link uses any.
    pub(crate) fn multicast(&self) -> Option<&Multicast> {
        self.shared.multicast.as_ref()
    }

    /// Returns the name that a peer has proven; `None` if it has proven none.
    pub(crate) fn peer_name(&self, node: NodeId) -> Option<PeerName> {
        self.shared.peers.get(node)?.name()
    }

    /// Closes the transport on another thread.
    pub(crate) fn close_aside(self) {
        let aside = std::thread::Builder::new().name("paceline-close".to_owned());
        if let Err(error) = aside.spawn(move || self.close()) {
            crate::warn_limited!("cannot start a thread to close a link: {error}");
        }
    }

    /// Closes all connections behind the frames that wait. Blocks for up to a second.
    pub(crate) fn close(self) {
        let Self { shared, quic, runtime } = self;
        shared.peers.close();
        runtime.block_on(async {
            let until = Instant::now() + 2 * PART_MAX;
            while Instant::now() < until && !shared.peers.is_empty() {
                sleep(Duration::from_millis(1)).await;
            }
            quic.iter().for_each(|endpoint| endpoint.close(0u8.into(), b"closed"));
            let idle = async {
                for endpoint in &quic {
                    endpoint.wait_idle().await;
                }
            };
            let _ = timeout(PART_MAX, idle).await;
        });
        runtime.shutdown_background();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the address of an endpoint, behind its protocol.
fn address_of(endpoint: &str) -> Result<Address, String> {
    let (_, place) = endpoint.split_once('/').unwrap_or(("", endpoint));
    Address::parse(place).map_err(|rule| format!("{endpoint}: {rule}"))
}

/// Returns the address at which a socket listens.
fn resolve(endpoint: &str) -> Result<SocketAddr, Error> {
    let found =
        address::resolve(&address_of(endpoint)?).map_err(|why| format!("{endpoint}: {why}"))?;
    found.into_iter().next().ok_or_else(|| format!("{endpoint} has no address").into())
}
