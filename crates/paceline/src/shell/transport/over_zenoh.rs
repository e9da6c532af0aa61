//! The transport between the processes of a host: Zenoh over a unix socket. Zenoh's types are used only in this
//! module.
//!
//! Zenoh carries frames over a single hop. Each link has its own session; peers forward nothing.
//! Each direction of each hop has its own key expression, and the configuration is complete and
//! explicit. Zenoh's queues stay nearly empty, because the link sends no more frames than the peer
//! has credited.
//!
//! A node subscribes to the keys of all possible neighbours with a wildcard, and to the key of each
//! proven neighbour. The subscription to an exact key gives it a number, and frames then carry that
//! number. Before that, a frame carries the rest of its key in full, 18 bytes. Nothing is declared
//! for a node that has not proven its existence (`shell/strangers.rs`), and nothing is declared on
//! a sending thread (`transport/declare.rs`).

mod declare;
mod session;

use super::{Inbound, OPEN_MAX, Sent};
use crate::config::LinkConfig;
use bytes::Bytes;
use declare::{Declarer, Listening, Slot};
use paceline_proto::NodeId;
use paceline_proto::wire::VERSION;
use paceline_proto::wire::frame::{FrameBuf, Piece};
pub use session::open_session;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use zenoh::bytes::ZBytes;
use zenoh::key_expr::KeyExpr;
use zenoh::pubsub::Subscriber;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::{Config, Session, Wait};

/// The open Zenoh session of one link.
pub(crate) struct OverZenoh {
    me: NodeId,
    session: Session,
    beacon: KeyExpr<'static>,
    hops: BTreeMap<NodeId, Route>,
    declarer: Declarer,
}

/// The route of frames to a neighbour.
struct Route {
    /// The full key; each frame is sent at once.
    key: KeyExpr<'static>,
    /// The declared key, if any.
    declared: Slot,
}

impl OverZenoh {
    /// Opens the link's session and listens for frames and beacons.
    pub(super) fn open(
        me: NodeId,
        link: &LinkConfig,
        inbound: Arc<dyn Inbound>,
    ) -> zenoh::Result<Self> {
        let session = open_session(config(link)?)?;
        let subscribers = listen(me, &session, &inbound)?;
        let beacon = KeyExpr::try_from("p/hi")?;
        let listening = Listening { me, session: session.clone(), _subscribers: subscribers };
        let declarer = Declarer::start(&link.name, listening)?;
        Ok(Self { me, session, beacon, hops: BTreeMap::new(), declarer })
    }

    /// Sends a beacon to all nodes at the other end.
    pub(super) fn greet(&self) {
        let mut hi = vec![VERSION];
        hi.extend_from_slice(&self.me.0.to_be_bytes());
        let _ = self.put(&self.beacon, hi.into(), true);
    }

    /// Sends a frame to a node that is not a neighbour.
    pub(super) fn greet_stranger(&self, node: NodeId, frame: Vec<u8>) {
        if let Ok(key) = self.key_to(node) {
            let _ = self.put(&key, frame.into(), true);
        }
    }

    fn key_to(&self, node: NodeId) -> zenoh::Result<KeyExpr<'static>> {
        KeyExpr::try_from(format!("p/{node}/{}", self.me))
    }

    /// Sends a payload by its full key. `merges` allows batching with others.
    fn put(&self, key: &KeyExpr<'static>, payload: ZBytes, merges: bool) -> zenoh::Result<()> {
        self.session
            .put(key, payload)
            .congestion_control(CongestionControl::Drop)
            .priority(Priority::Data)
            .express(!merges)
            .wait()
    }

    /// Adds a neighbour, so that frames can be sent to it. Never blocks.
    pub(super) fn add_hop(&mut self, node: NodeId) -> zenoh::Result<()> {
        if !self.hops.contains_key(&node) {
            let route = Route { key: self.key_to(node)?, declared: Slot::default() };
            self.hops.insert(node, route);
        }
        Ok(())
    }

    /// Starts to declare a neighbour's key, which makes its frames shorter. `express` frames are
    /// never delayed for batching. Never blocks.
    pub(super) fn declare_hop(&mut self, node: NodeId, express: bool) {
        if let Some(route) = self.hops.get(&node)
            && route.declared.get().is_none()
        {
            self.declarer.declare(node, express, route.declared.clone());
        }
    }

    /// Removes a neighbour. Never blocks.
    pub(super) fn remove_hop(&mut self, node: NodeId) {
        if let Some(route) = self.hops.remove(&node) {
            self.declarer.forget(route.declared);
        }
    }

    /// Sends a frame. Never blocks.
    ///
    /// The caller's window keeps the data in flight below the capacity of Zenoh's queue, so there
    /// is room whenever the hop is alive.
    pub(super) fn try_send(&self, node: NodeId, frame: &mut FrameBuf) -> Sent {
        let Some(route) = self.hops.get(&node) else { return Sent::Down };
        let merges = frame.merges;
        let sent = match route.declared.get() {
            Some(declared) => declared.put(to_zbytes(frame), merges),
            None => self.put(&route.key, to_zbytes(frame), merges),
        };
        if sent.is_ok() { Sent::Taken } else { Sent::Down }
    }

    /// Closes the session. Blocks for as long as Zenoh does.
    pub(super) fn close(self) {
        // Close before dropping the publishers: their undeclaration would overtake queued frames.
        if let Err(error) = self.session.close().wait() {
            tracing::debug!("cannot close a link cleanly: {error}");
        }
    }
}

/// Subscribes to the key of one neighbour, so that its frames can carry a number for the key.
///
/// The wildcard subscriber receives the frames. If this one did, a frame that arrives during the
/// declaration could reach neither.
fn subscribe_to(node: NodeId, me: NodeId, session: &Session) -> zenoh::Result<Subscriber<()>> {
    session.declare_subscriber(format!("p/{me}/{node}")).callback(|_| {}).wait()
}

/// Subscribes to frames from all nodes.
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

/// Subscribes to frames and beacons.
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
                    "a neighbour uses wire format version {version}, this node uses {VERSION}; \
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
        // Preallocate for a next frame of similar length.
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

/// Returns the payload without a copy if Zenoh has it in one piece, as it does unless a frame was
/// fragmented.
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

/// Returns the endpoints with shorter retry periods. The first attempts of a session use only the
/// periods of the endpoint itself, and a neighbour often starts at about the same time.
fn impatient(endpoints: &[String]) -> Vec<String> {
    let retry = "retry_period_init_ms=100;retry_period_max_ms=400;retry_period_increase_factor=2";
    let with = |endpoint: &String| {
        let mark = if endpoint.contains('#') { ';' } else { '#' };
        format!("{endpoint}{mark}{retry}")
    };
    endpoints.iter().map(with).collect()
}

/// Returns the complete configuration. Every setting that matters is explicit, because defaults
/// have changed within 1.x.
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
    Ok(config)
}
