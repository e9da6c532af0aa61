//! One link's transport over Zenoh. Zenoh's types stop in this file.
//!
//! Zenoh carries frames over one hop and nothing else: a session a link, peers that forward nothing,
//! a key expression of its own for each direction of each hop, and a complete explicit configuration.
//! Its queues stay nearly empty, because the link lets no more frames go than the other end credits.
//!
//! A node subscribes to the keys of all its neighbours at once, and to that of each neighbour once it is proven. A frame
//! names its key by the number that the other end gave it when it subscribed to that very key; before that it names the
//! rest of its key in full, 18 bytes. Nothing is declared for a node that has not proven that it exists
//! (`shell/strangers.rs`), and nothing is declared on a thread that sends (`transport/declare.rs`).
//!
//! Over UDP Zenoh repairs nothing, and that includes what its sessions declare to each other. So there a
//! frame names its key in full instead of a number that the other end may never have heard of, and
//! subscriptions are declared again as long as a neighbour is missing.

mod declare;

use crate::config::LinkConfig;
use bytes::Bytes;
use declare::{Declarer, Listening, Slot};
use paceline_proto::NodeId;
use paceline_proto::link::Carrier;
use paceline_proto::wire::VERSION;
use paceline_proto::wire::frame::{FrameBuf, Piece};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use zenoh::bytes::ZBytes;
use zenoh::key_expr::KeyExpr;
use zenoh::pubsub::Subscriber;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::{Config, Session, Wait};

/// Over UDP Zenoh sends no longer datagram than this: with the headers of UDP and IPv6 one packet of
/// Ethernet. Frames there are at most 1,350 bytes, and Zenoh adds at most 80.
const DATAGRAM_BYTES: usize = 1_440;

/// How long an attempt to connect, or to take a connection, may take. Zenoh's needs three round trips: this is
/// enough for 0.8 s, a satellite's 0.6 s and a slow link. Who is not answered at all is not kept from
/// returning by it: `shell/redial.rs`.
pub(crate) const OPEN_MAX: Duration = Duration::from_millis(2_500);

/// What became of a frame handed to the transport.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sent {
    /// The transport has it.
    Taken,
    /// The hop is gone.
    Down,
}

/// What comes from the transport, on its own threads.
pub(crate) trait Inbound: Send + Sync + 'static {
    /// A frame from a neighbour.
    fn frame(&self, from: NodeId, frame: Bytes);
    /// A node has said that it is there.
    fn found(&self, node: NodeId);
}

/// The open transport of one link.
pub(crate) struct Transport {
    me: NodeId,
    session: Session,
    carrier: Carrier,
    beacon: KeyExpr<'static>,
    hops: BTreeMap<NodeId, Route>,
    declarer: Declarer,
}

/// How frames leave for a neighbour.
struct Route {
    /// By the whole key, each at once.
    key: KeyExpr<'static>,
    /// By what was declared for it, once it is; never where declarations may be lost.
    declared: Slot,
}

impl Transport {
    /// Opens the link's session and listens for frames and neighbours.
    pub(crate) fn open(
        me: NodeId,
        link: &LinkConfig,
        inbound: Arc<dyn Inbound>,
    ) -> zenoh::Result<Self> {
        let session = zenoh::open(config(link)?).wait()?;
        let carrier = link.carrier();
        let subscribers = listen(me, &session, &inbound)?;
        let beacon = KeyExpr::try_from("p/hi")?;
        let listening = Listening { me, session: session.clone(), inbound, subscribers };
        let declarer = Declarer::start(&link.name, listening)?;
        Ok(Self { me, session, carrier, beacon, hops: BTreeMap::new(), declarer })
    }

    /// The node that it was opened for.
    pub(crate) const fn me(&self) -> NodeId {
        self.me
    }

    /// Declares again what this node listens to, if that may have been lost: a neighbour is missing.
    pub(crate) fn listen_again(&mut self) {
        if self.carrier == Carrier::Datagrams {
            self.declarer.listen_again();
        }
    }

    /// Tells whoever is at the other end that this node is there.
    pub(crate) fn greet(&self) {
        let mut hi = vec![VERSION];
        hi.extend_from_slice(&self.me.0.to_be_bytes());
        let _ = self.put(&self.beacon, hi.into(), true);
    }

    /// Sends a frame to a node that is no neighbour.
    pub(crate) fn greet_stranger(&self, node: NodeId, frame: Vec<u8>) {
        if let Ok(key) = self.key_to(node) {
            let _ = self.put(&key, frame.into(), true);
        }
    }

    fn key_to(&self, node: NodeId) -> zenoh::Result<KeyExpr<'static>> {
        KeyExpr::try_from(format!("p/{node}/{}", self.me))
    }

    /// Hands a payload to Zenoh by its whole key; `merges` where it may share a batch with others, as no datagram does.
    fn put(&self, key: &KeyExpr<'static>, payload: ZBytes, merges: bool) -> zenoh::Result<()> {
        self.session
            .put(key, payload)
            .congestion_control(CongestionControl::Drop)
            .priority(Priority::Data)
            .express(!(merges && self.carrier.is_ordered()))
            .wait()
    }

    /// A node is a neighbour: frames can be sent to it from now on. Never waits.
    pub(crate) fn add_hop(&mut self, node: NodeId) -> zenoh::Result<()> {
        if !self.hops.contains_key(&node) {
            let route = Route { key: self.key_to(node)?, declared: Slot::default() };
            self.hops.insert(node, route);
        }
        Ok(())
    }

    /// Makes the frames of a neighbour shorter and cheaper, some time soon; `express` where a frame must not wait to be
    /// batched. Never waits.
    pub(crate) fn declare_hop(&mut self, node: NodeId, express: bool) {
        if let Some(route) = self.hops.get(&node)
            && self.carrier.is_ordered()
            && route.declared.get().is_none()
        {
            self.declarer.declare(node, express, route.declared.clone());
        }
    }

    /// Forgets a neighbour. Never waits.
    pub(crate) fn remove_hop(&mut self, node: NodeId) {
        if let Some(route) = self.hops.remove(&node) {
            self.declarer.forget(route.declared);
        }
    }

    /// Hands a frame over; never waits. The caller's window keeps what is in flight below what
    /// Zenoh's queue holds, so there is room whenever the hop is alive.
    pub(crate) fn try_send(&self, node: NodeId, frame: &mut FrameBuf) -> Sent {
        let Some(route) = self.hops.get(&node) else { return Sent::Down };
        let merges = frame.merges;
        let sent = match route.declared.get() {
            Some(declared) => declared.put(to_zbytes(frame), merges),
            None => self.put(&route.key, to_zbytes(frame), merges),
        };
        if sent.is_ok() { Sent::Taken } else { Sent::Down }
    }

    /// Closes the session aside: Zenoh waits for the end of an attempt to connect, of which nothing is left to
    /// be sent.
    pub(crate) fn close_aside(self) {
        let aside = std::thread::Builder::new().name("paceline-close".to_owned());
        if let Err(error) = aside.spawn(move || self.close()) {
            crate::warn_limited!("closing a link at once: {error}");
        }
    }

    /// Closes the session; waits for at most as long as Zenoh does.
    pub(crate) fn close(self) {
        // Before its publishers go: their undeclaration would overtake frames that wait to be sent.
        if let Err(error) = self.session.close().wait() {
            tracing::debug!("closing a link: {error}");
        }
    }
}

/// Subscribes to the key of one neighbour, so that its frames name that key by a number. The subscriber to all nodes takes
/// the frames: were they this one's, a frame that arrives while it is declared could find neither.
fn subscribe_to(node: NodeId, me: NodeId, session: &Session) -> zenoh::Result<Subscriber<()>> {
    session.declare_subscriber(format!("p/{me}/{node}")).callback(|_| {}).wait()
}

/// Listens for frames from all nodes.
fn listen_to_all(
    me: NodeId,
    session: &Session,
    inbound: &Arc<dyn Inbound>,
) -> zenoh::Result<Subscriber<()>> {
    let frames = inbound.clone();
    session
        .declare_subscriber(format!("p/{me}/*"))
        .callback(move |sample| {
            let key = sample.key_expr().as_str();
            let from = key.rsplit('/').next().and_then(parse_node);
            if let Some(from) = from {
                frames.frame(from, shared_bytes(sample.payload()));
            }
        })
        .wait()
}

/// Listens for frames and for beacons.
fn listen(
    me: NodeId,
    session: &Session,
    inbound: &Arc<dyn Inbound>,
) -> zenoh::Result<Vec<Subscriber<()>>> {
    Ok(vec![listen_to_all(me, session, inbound)?, listen_for_neighbours(me, session, inbound)?])
}

fn listen_for_neighbours(
    me: NodeId,
    session: &Session,
    inbound: &Arc<dyn Inbound>,
) -> zenoh::Result<Subscriber<()>> {
    let inbound = inbound.clone();
    let other_version = AtomicU8::new(0);
    session
        .declare_subscriber("p/hi")
        .callback(move |sample| match *sample.payload().to_bytes() {
            [VERSION, ref id @ ..] if id.len() == 8 => {
                let node = NodeId(id.iter().fold(0, |id, byte| id << 8 | u64::from(*byte)));
                if node != me {
                    inbound.found(node);
                }
            }
            [version, ..] if other_version.swap(version, Ordering::Relaxed) != version => {
                crate::warn_limited!(
                    "a neighbour speaks wire format version {version}, this node {VERSION}: \
                         update the older one"
                );
            }
            _ => {}
        })
        .wait()
}

fn parse_node(text: &str) -> Option<NodeId> {
    u64::from_str_radix(text, 16).ok().map(NodeId)
}

fn to_zbytes(frame: &mut FrameBuf) -> ZBytes {
    if frame.shared.is_empty() {
        // The next frame will be about as long.
        let next = Vec::with_capacity(frame.head.len());
        return ZBytes::from(std::mem::replace(&mut frame.head, next));
    }
    let mut writer = ZBytes::writer();
    for piece in frame.pieces() {
        match piece {
            Piece::Copied([]) => {}
            Piece::Copied(bytes) => writer.append(ZBytes::from(bytes)),
            Piece::Shared(bytes) => writer.append(ZBytes::from(bytes.clone())),
        }
    }
    writer.finish()
}

/// The payload without a copy where Zenoh has it in one piece, as it has unless a frame was cut.
fn shared_bytes(payload: &ZBytes) -> Bytes {
    struct Whole(ZBytes);
    impl AsRef<[u8]> for Whole {
        fn as_ref(&self) -> &[u8] {
            self.0.slices().next().unwrap_or_default()
        }
    }
    let mut slices = payload.slices();
    match (slices.next(), slices.next()) {
        (Some(_), None) => Bytes::from_owner(Whole(payload.clone())),
        (None, _) => Bytes::new(),
        (Some(_), Some(_)) => Bytes::from(payload.to_bytes().into_owned()),
    }
}

/// The endpoints with our retry periods: the first attempts of a session heed only those of the
/// endpoint itself, and a neighbour is often there a moment after us.
fn impatient(endpoints: &[String]) -> Vec<String> {
    let retry = "retry_period_init_ms=100;retry_period_max_ms=400;retry_period_increase_factor=2";
    let with = |endpoint: &String| {
        let mark = if endpoint.contains('#') { ';' } else { '#' };
        format!("{endpoint}{mark}{retry}")
    };
    endpoints.iter().map(with).collect()
}

/// Everything that we rely on, said explicitly: defaults have changed inside 1.x.
fn config(link: &LinkConfig) -> zenoh::Result<Config> {
    let list = |endpoints: &[String]| {
        let mut text = String::from("[");
        for endpoint in endpoints {
            let _ = write!(text, "{endpoint:?},");
        }
        text + "]"
    };
    let retry = "{period_init_ms: 200, period_max_ms: 400, period_increase_factor: 2}";
    let open = OPEN_MAX.as_millis().to_string();
    let mut config = Config::default();
    for (key, value) in [
        ("mode", "\"peer\"".to_owned()),
        ("listen/endpoints", list(&link.listen)),
        ("listen/timeout_ms", "0".to_owned()),
        ("listen/exit_on_failure", "true".to_owned()),
        ("connect/endpoints", list(&impatient(&link.connect))),
        ("connect/timeout_ms", "-1".to_owned()),
        ("connect/exit_on_failure", "false".to_owned()),
        ("connect/retry", retry.to_owned()),
        ("open/return_conditions/connect_scouted", "false".to_owned()),
        ("open/return_conditions/declares", "false".to_owned()),
        ("scouting/multicast/enabled", "false".to_owned()),
        ("scouting/gossip/enabled", "false".to_owned()),
        ("timestamping/enabled", "false".to_owned()),
        ("adminspace/enabled", "false".to_owned()),
        ("transport/unicast/open_timeout", open.clone()),
        ("transport/unicast/accept_timeout", open),
        ("transport/link/tx/lease", "1500".to_owned()),
        ("transport/link/tx/queue/size/data", "16".to_owned()),
        ("transport/link/tx/queue/congestion_control/drop/wait_before_drop", "0".to_owned()),
        (
            "transport/link/tx/queue/congestion_control/drop/max_wait_before_drop_fragments",
            "0".to_owned(),
        ),
        ("transport/link/rx/max_message_size", (64 << 20).to_string()),
    ] {
        config.insert_json5(key, &value)?;
    }
    if link.carrier() == Carrier::Datagrams {
        config.insert_json5("transport/link/tx/batch_size", &DATAGRAM_BYTES.to_string())?;
    }
    Ok(config)
}
