//! The transport of one link over QUIC (RFC 9000), between nodes that know each other's certificates.
//!
//! Each connection is one peer, which has proven its identity in the handshake, so nobody receives the
//! frames of others or sends in their name. Frames are unreliable datagrams (RFC 9221): Paceline
//! retransmits lost ones as each subscription requests. On a link with a capacity Paceline's pacer is the
//! congestion control.
//!
//! A peer that changes its address keeps its connection (connection migration).

mod datagram;
mod meet;
mod pacer;

use super::{Error, Inbound, OPEN_MAX, Sent};
use crate::access::{Audit, Entry};
use crate::config::LinkConfig;
use crate::identity::{Identity, certified_name};
use bytes::Bytes;
use datagram::{Assembly, whole};
use meet::{cause, chain, meet};
use paceline_proto::NodeId;
use paceline_proto::wire::frame::{FrameBuf, Piece};
use pacer::NoCongestionControl;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, IdleTimeout, ServerConfig, TransportConfig};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

/// The limit of connections per link.
const PEERS_MAX: usize = 1_024;
/// The limit of handshakes in progress. Above half of it, addresses must be confirmed first.
const HANDSHAKES_MAX: usize = 128;
/// The silence after which a connection is closed, and the interval of packets that prevent it.
const IDLE_MAX: Duration = Duration::from_millis(1_500);
const KEEP_ALIVE: Duration = Duration::from_millis(400);
/// The delays between attempts to connect: the first, and the longest.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_millis(400);
/// The size of UDP payloads: one Ethernet packet with a frame. QUIC falls back to 1,200 bytes on paths
/// that carry less.
const DATAGRAM_BYTES: u16 = 1_420;
/// The interval of reading the certificates again and checking those of the peers.
const RENEW_EVERY: Duration = Duration::from_secs(2);
/// The limits of queued datagrams in bytes.
const SEND_BUFFER: usize = 1 << 20;
const RECEIVE_BUFFER: usize = 8 << 20;

/// The connected peers, by the ids that their certificates prove.
type Peers = Mutex<BTreeMap<NodeId, Connection>>;

/// The state that all tasks of a link share.
struct Shared {
    link: String,
    identity: Arc<Identity>,
    inbound: Arc<dyn Inbound>,
    peers: Peers,
    handshakes: AtomicUsize,
    audit: Audit,
}

/// The open QUIC endpoints of one link.
pub(crate) struct OverQuic {
    shared: Arc<Shared>,
    endpoints: Vec<Endpoint>,
    runtime: Runtime,
    /// The number of the next frame that does not fit into one datagram.
    next_split: AtomicU32,
}

impl OverQuic {
    /// Listens and connects.
    pub(super) fn open(
        identity: &Arc<Identity>,
        link: &LinkConfig,
        inbound: Arc<dyn Inbound>,
    ) -> Result<Self, Error> {
        let name = format!("paceline-{}-quic", link.name);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            // A subscriber's callback may occupy one of them.
            .worker_threads(2)
            .thread_name(name)
            .enable_all()
            .build()?;
        let transport = Arc::new(transport_config(link)?);
        let shared = Arc::new(Shared {
            link: link.name.clone(),
            identity: identity.clone(),
            inbound,
            peers: Mutex::default(),
            handshakes: AtomicUsize::new(0),
            audit: link.audit.clone(),
        });
        let mut endpoints = Vec::new();
        let entered = runtime.enter();
        for endpoint in &link.listen {
            let crypto = QuicServerConfig::try_from(identity.server.clone())?;
            let mut server = ServerConfig::with_crypto(Arc::new(crypto));
            server.transport_config(transport.clone());
            let address = resolve(endpoint)?;
            let listening = Endpoint::server(server, address)?;
            runtime.spawn(accept(shared.clone(), listening.clone()));
            endpoints.push(listening);
        }
        for endpoint in &link.connect {
            let dialler = Endpoint::client(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)))
                .or_else(|_| Endpoint::client(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))))?;
            let crypto = QuicClientConfig::try_from(identity.client.clone())?;
            let mut client = ClientConfig::new(Arc::new(crypto));
            client.transport_config(transport.clone());
            runtime.spawn(dial(shared.clone(), dialler.clone(), client, endpoint.clone()));
            endpoints.push(dialler);
        }
        drop(entered);
        runtime.spawn(renew(shared.clone()));
        Ok(Self { shared, endpoints, runtime, next_split: AtomicU32::new(0) })
    }

    pub(super) fn me(&self) -> NodeId {
        self.shared.identity.id()
    }

    /// Reports all connected peers.
    pub(super) fn find(&self) {
        let peers: Vec<NodeId> = lock(&self.shared.peers).keys().copied().collect();
        peers.into_iter().for_each(|node| self.shared.inbound.found(node));
    }

    /// Sends a frame. Never blocks.
    pub(super) fn try_send(&self, node: NodeId, frame: &FrameBuf) -> Sent {
        let mut bytes = Vec::with_capacity(frame.len() + 1);
        for piece in frame.pieces() {
            match piece {
                Piece::Copied(piece) => bytes.extend_from_slice(piece),
                Piece::Shared(piece) => bytes.extend_from_slice(piece),
            }
        }
        self.send(node, bytes.into())
    }

    pub(super) fn send(&self, node: NodeId, frame: Bytes) -> Sent {
        let Some(peer) = lock(&self.shared.peers).get(&node).cloned() else { return Sent::Down };
        let most = peer.max_datagram_size().unwrap_or_default();
        let datagrams = if frame.len() < most {
            [Some(whole(&frame)), None]
        } else {
            let number = self.next_split.fetch_add(1, Ordering::Relaxed);
            datagram::halves(&frame, number).map(Some)
        };
        let sent = datagrams.into_iter().flatten().try_for_each(|it| peer.send_datagram(it));
        if sent.is_ok() { Sent::Taken } else { Sent::Down }
    }

    /// Returns the name in a peer's certificate.
    pub(super) fn peer_name(&self, node: NodeId) -> Option<String> {
        let peer = lock(&self.shared.peers).get(&node).cloned()?;
        certified_name(chain(&peer)?.first()?)
    }

    /// Closes all connections.
    pub(super) fn close(self) {
        let Self { endpoints, runtime, .. } = self;
        endpoints.iter().for_each(|endpoint| endpoint.close(0u8.into(), b"closed"));
        runtime.block_on(async {
            for endpoint in &endpoints {
                let _ = timeout(Duration::from_millis(200), endpoint.wait_idle()).await;
            }
        });
        runtime.shutdown_background();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn transport_config(link: &LinkConfig) -> Result<TransportConfig, Error> {
    let mut config = TransportConfig::default();
    config
        .max_idle_timeout(Some(IdleTimeout::try_from(IDLE_MAX)?))
        .keep_alive_interval(Some(KEEP_ALIVE))
        .initial_mtu(DATAGRAM_BYTES)
        .datagram_send_buffer_size(SEND_BUFFER)
        .datagram_receive_buffer_size(Some(RECEIVE_BUFFER))
        // Only the introduction uses streams.
        .max_concurrent_bidi_streams(0u8.into())
        .max_concurrent_uni_streams(1u8.into());
    if link.capacity.is_some() {
        config.congestion_controller_factory(Arc::new(NoCongestionControl));
    }
    Ok(config)
}

/// Returns the address in `quic/HOST:PORT`.
fn address(endpoint: &str) -> &str {
    endpoint.strip_prefix("quic/").unwrap_or(endpoint)
}

fn resolve(endpoint: &str) -> Result<SocketAddr, Error> {
    let mut addresses = address(endpoint).to_socket_addrs()?;
    addresses.next().ok_or_else(|| format!("{endpoint} has no address").into())
}

/// Accepts connections until the endpoint is closed.
async fn accept(shared: Arc<Shared>, endpoint: Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        let busy = shared.handshakes.load(Ordering::Relaxed);
        if busy >= HANDSHAKES_MAX || endpoint.open_connections() >= PEERS_MAX + HANDSHAKES_MAX {
            incoming.ignore();
        } else if busy >= HANDSHAKES_MAX / 2 && !incoming.remote_address_validated() {
            // The sender of a forged address does not answer.
            let _ = incoming.retry();
        } else {
            shared.handshakes.fetch_add(1, Ordering::Relaxed);
            let shared = shared.clone();
            tokio::spawn(async move {
                let from = incoming.remote_address();
                let opened = timeout(OPEN_MAX, incoming).await;
                shared.handshakes.fetch_sub(1, Ordering::Relaxed);
                match opened {
                    Ok(Ok(connection)) => shared.serve(connection).await,
                    Ok(Err(error)) => shared.refused(from, &cause(&error)),
                    Err(_) => {}
                }
            });
        }
    }
}

/// Connects, and connects again after the end of a connection, until the endpoint is closed.
async fn dial(shared: Arc<Shared>, endpoint: Endpoint, client: ClientConfig, to: String) {
    let mut delay = RETRY_FIRST;
    loop {
        match connect(&endpoint, &client, &to).await {
            Ok(connection) => {
                delay = RETRY_FIRST;
                shared.serve(connection).await;
            }
            Err(why) => {
                crate::warn_limited!("link '{}': cannot connect to {to}: {why}", shared.link)
            }
        }
        sleep(delay).await;
        delay = (delay * 2).min(RETRY_MAX);
    }
}

async fn connect(
    endpoint: &Endpoint,
    client: &ClientConfig,
    to: &str,
) -> Result<Connection, String> {
    let host = address(to);
    let mut addresses = tokio::net::lookup_host(host).await.map_err(|error| error.to_string())?;
    let address = addresses.next().ok_or("the name has no address")?;
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let connecting = endpoint.connect_with(client.clone(), address, name);
    let connecting = connecting.map_err(|error| error.to_string())?;
    match timeout(OPEN_MAX, connecting).await {
        Ok(opened) => opened.map_err(|error| cause(&error)),
        Err(_) => Err("no answer".to_owned()),
    }
}

/// Reads the node's files again, and closes connections to peers that are no members any more.
async fn renew(shared: Arc<Shared>) {
    let mut told = None;
    loop {
        sleep(RENEW_EVERY).await;
        let failed = shared.identity.reload().err();
        if failed != told {
            if let Some(why) = &failed {
                tracing::warn!("link '{}': {why}; the previous files stay in force", shared.link);
            }
            told = failed;
        }
        let peers: Vec<Connection> = lock(&shared.peers).values().cloned().collect();
        for peer in peers {
            let why = chain(&peer).and_then(|chain| shared.identity.rejects(&chain));
            if let Some(why) = why {
                let from = peer.remote_address();
                tracing::warn!("link '{}': the peer at {from} is closed: {why}", shared.link);
                shared.note("closed", from, &why);
                peer.close(1u8.into(), why.as_bytes());
            }
        }
    }
}

impl Shared {
    fn note(&self, event: &'static str, from: SocketAddr, why: &str) {
        let entry = Entry::new(event).text("link", &self.link).text("from", &from.to_string());
        self.audit.note(entry.text("why", why));
    }

    /// Reports a peer that was refused in the handshake.
    fn refused(&self, from: SocketAddr, why: &str) {
        crate::warn_limited!("link '{}': the peer at {from} is refused: {why}", self.link);
        self.note("refused", from, why);
    }

    /// Receives the frames of a peer until the connection ends.
    async fn serve(&self, connection: Connection) {
        let node = match timeout(OPEN_MAX, meet(&connection, &self.identity)).await {
            Ok(Ok(node)) => node,
            Ok(Err(why)) => {
                // The other end may have refused this one after the handshake.
                let why = connection.close_reason().map_or(why, |error| cause(&error));
                let peer = connection.remote_address();
                crate::warn_limited!("link '{}': no link to the peer at {peer}: {why}", self.link);
                self.note("refused", peer, &why);
                return connection.close(1u8.into(), why.as_bytes());
            }
            Err(_) => return connection.close(1u8.into(), b"no introduction"),
        };
        {
            let mut peers = lock(&self.peers);
            if peers.len() >= PEERS_MAX && !peers.contains_key(&node) {
                return connection.close(1u8.into(), b"too many peers");
            }
            peers.insert(node, connection.clone());
        }
        self.inbound.found(node);
        let mut assembly = Assembly::default();
        while let Ok(datagram) = connection.read_datagram().await {
            if let Some(frame) = assembly.take(datagram) {
                self.inbound.frame(node, frame);
            }
        }
        let mut peers = lock(&self.peers);
        // A newer connection of the same peer stays.
        if peers.get(&node).is_some_and(|it| it.stable_id() == connection.stable_id()) {
            peers.remove(&node);
        }
    }
}
