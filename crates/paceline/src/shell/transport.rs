//! One link's transport over Zenoh. Zenoh's types stop in this file.
//!
//! Zenoh carries frames over one hop and nothing else: a session a link, peers that forward nothing,
//! a key expression of its own for each direction of each hop, and a complete explicit configuration.
//! Its queues stay nearly empty, because the link lets no more frames go than the other end credits.
//!
//! A frame names its key by the number that the other end gave it when it subscribed to that very key. Had it
//! subscribed to all keys of its hops at once, each frame would name the rest of its key in full: 18 bytes.
//!
//! Over UDP Zenoh mends nothing, and that includes what its sessions declare to each other. So there a
//! frame names its key in full instead of a number that the other end may never have heard of, and
//! subscriptions are declared again as long as a neighbour is missing.

use crate::config::LinkConfig;
use bytes::Bytes;
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
use zenoh::pubsub::{Publisher, Subscriber};
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
    /// A neighbour has said that it is there.
    fn found(&self, node: NodeId);
}

/// The open transport of one link.
pub(crate) struct Transport {
    me: NodeId,
    session: Session,
    carrier: Carrier,
    inbound: Arc<dyn Inbound>,
    /// Gone while they are declared again.
    subscribers: Vec<Subscriber<()>>,
    beacon: Way,
    hops: BTreeMap<NodeId, Ways>,
}

/// The ways to a neighbour and back.
struct Ways {
    there: Way,
    /// What comes; nothing where one subscriber listens to all neighbours.
    _back: Option<Subscriber<()>>,
}

/// How frames for one key leave.
enum Way {
    /// By the number that the other end knows the key by.
    Declared {
        /// Puts a frame into a batch that may wait for more.
        merging: Publisher<'static>,
        /// Sends the batch with the frame at once, where that makes a difference.
        express: Option<Publisher<'static>>,
    },
    /// By the whole key, each at once.
    Named(KeyExpr<'static>),
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
        let subscribers = listen(me, &session, carrier, &inbound)?;
        let beacon = declare(&session, carrier, "p/hi".to_owned(), false)?;
        Ok(Self { me, session, carrier, inbound, subscribers, beacon, hops: BTreeMap::new() })
    }

    /// The node that it was opened for.
    pub(crate) const fn me(&self) -> NodeId {
        self.me
    }

    /// Declares again what this node listens to, if the way may have lost that: a neighbour is missing.
    pub(crate) fn listen_again(&mut self) {
        if self.carrier.is_ordered() {
            return;
        }
        self.subscribers.clear();
        match listen(self.me, &self.session, self.carrier, &self.inbound) {
            Ok(subscribers) => self.subscribers = subscribers,
            Err(error) => tracing::warn!("listening again: {error}"),
        }
    }

    /// Tells whoever is at the other end that this node is there.
    pub(crate) fn greet(&self) {
        let mut hi = vec![VERSION];
        hi.extend_from_slice(&self.me.0.to_be_bytes());
        let _ = self.put(&self.beacon, hi.into(), true);
    }

    /// Hands a payload to Zenoh; `merges` where it may share a batch with others.
    fn put(&self, way: &Way, payload: ZBytes, merges: bool) -> zenoh::Result<()> {
        match way {
            Way::Declared { express: Some(express), .. } if !merges => express.put(payload).wait(),
            Way::Declared { merging, .. } => merging.put(payload).wait(),
            Way::Named(key) => self
                .session
                .put(key, payload)
                .congestion_control(CongestionControl::Drop)
                .priority(Priority::Data)
                .express(true)
                .wait(),
        }
    }
    /// Makes the ways to a neighbour and back; `express` where a frame must not wait to be batched.
    pub(crate) fn add_hop(&mut self, node: NodeId, express: bool) -> zenoh::Result<()> {
        if self.hops.contains_key(&node) {
            return Ok(());
        }
        let (me, session) = (self.me, &self.session);
        let back = match self.carrier {
            Carrier::Ordered | Carrier::Local => Some(listen_to(node, me, session, &self.inbound)?),
            Carrier::Datagrams => None,
        };
        let there = declare(session, self.carrier, format!("p/{node}/{me}"), express)?;
        self.hops.insert(node, Ways { there, _back: back });
        Ok(())
    }

    /// Forgets the ways to a neighbour and back.
    pub(crate) fn remove_hop(&mut self, node: NodeId) {
        self.hops.remove(&node);
    }

    /// Hands a frame over; never waits. The caller's window keeps what is in flight below what
    /// Zenoh's queue holds, so there is room whenever the hop is alive.
    pub(crate) fn try_send(&self, node: NodeId, frame: &mut FrameBuf) -> Sent {
        let Some(ways) = self.hops.get(&node) else { return Sent::Down };
        let merges = frame.merges;
        match self.put(&ways.there, to_zbytes(frame), merges) {
            Ok(()) => Sent::Taken,
            Err(_) => Sent::Down,
        }
    }

    /// Closes the session aside: Zenoh waits for the end of an attempt to connect, of which nothing is left to
    /// be sent.
    pub(crate) fn close_aside(self) {
        let aside = std::thread::Builder::new().name("paceline-close".to_owned());
        if let Err(error) = aside.spawn(move || self.close()) {
            tracing::warn!("closing a link at once: {error}");
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

/// Listens for frames from one neighbour.
fn listen_to(
    node: NodeId,
    me: NodeId,
    session: &Session,
    inbound: &Arc<dyn Inbound>,
) -> zenoh::Result<Subscriber<()>> {
    let frames = inbound.clone();
    session
        .declare_subscriber(format!("p/{me}/{node}"))
        .callback(move |sample| frames.frame(node, shared_bytes(sample.payload())))
        .wait()
}

/// Listens for frames from all neighbours.
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

/// Listens for neighbours, and where what is declared may be lost for their frames.
fn listen(
    me: NodeId,
    session: &Session,
    carrier: Carrier,
    inbound: &Arc<dyn Inbound>,
) -> zenoh::Result<Vec<Subscriber<()>>> {
    let mut subscribers = match carrier {
        Carrier::Ordered | Carrier::Local => Vec::new(),
        Carrier::Datagrams => vec![listen_to_all(me, session, inbound)?],
    };
    subscribers.push(listen_for_neighbours(me, session, inbound)?);
    Ok(subscribers)
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
                tracing::warn!(
                    "a neighbour speaks wire format version {version}, this node {VERSION}: \
                         update the older one"
                );
            }
            _ => {}
        })
        .wait()
}

fn declare(session: &Session, carrier: Carrier, key: String, express: bool) -> zenoh::Result<Way> {
    if carrier == Carrier::Datagrams {
        return KeyExpr::try_from(key).map(Way::Named);
    }
    let publisher = |express| {
        let publisher = session.declare_publisher(key.clone());
        let publisher = publisher.congestion_control(CongestionControl::Drop);
        publisher.priority(Priority::Data).express(express).wait()
    };
    let express = if express { Some(publisher(true)?) } else { None };
    Ok(Way::Declared { merging: publisher(false)?, express })
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
