//! Receives the datagrams of a link that listens on UDP, and forwards them to Zenoh.
//!
//! Zenoh reads all datagrams of a listener in one task, which waits for the reader of each peer. A
//! peer that was refused has no reader. If two of its datagrams arrive close together, the task
//! waits forever, and nothing reads the port any more.
//!
//! This thread protects Zenoh from that. Zenoh listens on a loopback port, and this thread receives
//! on the public one. It forwards one datagram of a new address, and the next only after Zenoh has
//! answered it, until both handshakes are complete. A refused peer is never answered.
//!
//! If the task nevertheless blocks, the receive queue of its socket grows. The link then opens a
//! new session on another loopback port, behind the same public address.

mod queue;

use super::lock;
use crate::config::LinkConfig;
use queue::Queue;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::interval;

/// The limit of addresses that Zenoh has answered twice, which are neighbours from its view.
const PEERS_MAX: usize = 1_024;
/// The limit of addresses that it has not answered twice.
const STRANGERS_MAX: usize = 64;
/// The number of answers after which all datagrams of an address are forwarded.
const ANSWERS: u32 = 2;
/// Addresses that are silent for longer are removed.
const SILENT_MAX: Duration = Duration::from_secs(10);
/// The interval between checks of silent addresses and of Zenoh's receive queue.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// An upper bound of the datagram size.
const DATAGRAM_MAX: usize = 65_536;

/// The first byte of a message that opens a Zenoh session: its kind, without the answer flag.
const INIT: u8 = 0x01;
const INIT_MASK: u8 = 0x3f;

/// Zenoh's loopback address for each UDP endpoint of a link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(BTreeMap<String, SocketAddr>);

impl Places {
    /// Returns the configuration with which Zenoh opens the link.
    pub(crate) fn behind(&self, link: &LinkConfig) -> LinkConfig {
        let mut link = link.clone();
        for endpoint in &mut link.listen {
            if let Some(inner) = self.0.get(endpoint) {
                *endpoint = format!("udp/{inner}");
            }
        }
        link
    }

    /// Returns new addresses for the same endpoints.
    fn anew(&self) -> io::Result<Self> {
        let ports = self.0.keys().map(|endpoint| Ok((endpoint.clone(), free_port()?)));
        ports.collect::<io::Result<_>>().map(Self)
    }
}

/// The public sockets of the UDP endpoints of a link.
pub(crate) struct Fronts {
    sockets: Vec<(String, std::net::UdpSocket)>,
    pub(crate) places: Places,
}

/// A handle of the forwarding thread, which ends when this is dropped.
pub(crate) struct Standing {
    _alive: watch::Sender<()>,
}

impl Fronts {
    /// Binds the UDP endpoints that the link listens on. Zenoh handles endpoints with options
    /// itself.
    pub(crate) fn take(link: &LinkConfig) -> io::Result<Self> {
        let plain =
            |endpoint: &&String| endpoint.starts_with("udp/") && !endpoint.contains(['?', '#']);
        let mut fronts = Self { sockets: Vec::new(), places: Places::default() };
        for endpoint in link.listen.iter().filter(plain) {
            let place = endpoint.strip_prefix("udp/").unwrap_or(endpoint);
            let addresses: Vec<_> = place.to_socket_addrs()?.collect();
            let socket = std::net::UdpSocket::bind(&addresses[..])?;
            socket.set_nonblocking(true)?;
            fronts.sockets.push((endpoint.clone(), socket));
            fronts.places.0.insert(endpoint.clone(), free_port()?);
        }
        Ok(fronts)
    }

    /// Starts forwarding. `reopen` opens a new session of the link at other addresses and returns
    /// false on failure.
    pub(crate) fn stand(
        self,
        link: &str,
        reopen: impl Fn(&Places) -> bool + Send + Sync + 'static,
    ) -> io::Result<Option<Standing>> {
        if self.sockets.is_empty() {
            return Ok(None);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (alive, over) = watch::channel(());
        let behind = Arc::new(Behind {
            link: link.to_owned(),
            places: Mutex::new(self.places),
            reopen: Box::new(reopen),
        });
        let named = std::thread::Builder::new().name(format!("paceline-{link}-udp"));
        let sockets = self.sockets;
        named.spawn(move || {
            runtime.block_on(async {
                let mut halls = JoinSet::new();
                for (endpoint, socket) in sockets {
                    match Hall::new(endpoint, socket, behind.clone()) {
                        Ok(hall) => drop(halls.spawn(hall.serve(over.clone()))),
                        Err(error) => tracing::warn!("cannot listen on UDP: {error}"),
                    }
                }
                halls.join_all().await;
            });
        })?;
        Ok(Some(Standing { _alive: alive }))
    }
}

/// The state shared by all endpoints of a link.
struct Behind {
    link: String,
    places: Mutex<Places>,
    reopen: Box<dyn Fn(&Places) -> bool + Send + Sync>,
}

impl Behind {
    fn place(&self, endpoint: &str) -> Option<SocketAddr> {
        lock(&self.places).0.get(endpoint).copied()
    }

    /// Opens a new session of the link at other addresses. May block.
    fn reopen(&self) {
        let mut places = lock(&self.places);
        match places.anew() {
            Ok(others) if (self.reopen)(&others) => *places = others,
            Ok(_) => {}
            Err(error) => tracing::warn!("link '{}': {error}", self.link),
        }
    }
}

/// Returns an unused loopback port.
fn free_port() -> io::Result<SocketAddr> {
    std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// A remote address, and the socket that represents it towards Zenoh.
struct Peer {
    socket: Arc<UdpSocket>,
    answers: Arc<AtomicU32>,
    handed_on: u32,
    heard: Instant,
    /// The task that forwards answers; aborted with the peer.
    answering: tokio::task::AbortHandle,
}

impl Peer {
    fn is_stranger(&self) -> bool {
        self.answers.load(Ordering::Relaxed) < ANSWERS
    }

    /// Forwards a datagram, unless the previous one of a stranger has not been answered.
    async fn hand_on(&mut self, now: Instant, datagram: &[u8]) {
        if self.is_stranger() {
            if self.handed_on > self.answers.load(Ordering::Relaxed) {
                return;
            }
            self.handed_on += 1;
        }
        self.heard = now;
        // On the loopback interface the datagram has arrived, or is lost, when this returns.
        let _ = self.socket.send(datagram).await;
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.answering.abort();
    }
}

/// The forwarder of one endpoint.
struct Hall {
    public: Arc<UdpSocket>,
    endpoint: String,
    inner: SocketAddr,
    behind: Arc<Behind>,
    peers: BTreeMap<SocketAddr, Peer>,
    answers: JoinSet<()>,
    queue: Queue,
}

impl Hall {
    fn new(endpoint: String, socket: std::net::UdpSocket, behind: Arc<Behind>) -> io::Result<Self> {
        let inner = behind.place(&endpoint).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self {
            public: Arc::new(UdpSocket::from_std(socket)?),
            endpoint,
            inner,
            behind,
            peers: BTreeMap::new(),
            answers: JoinSet::new(),
            queue: Queue::new(inner.port()),
        })
    }

    async fn serve(mut self, mut over: watch::Receiver<()>) {
        let mut datagram = vec![0; DATAGRAM_MAX];
        let mut look = interval(LOOK_EVERY);
        loop {
            tokio::select! {
                received = self.public.recv_from(&mut datagram) => match received {
                    Ok((len, from)) => {
                        let bytes = datagram.get(..len).unwrap_or_default();
                        self.receive(from, bytes).await;
                    }
                    // A remote port is closed. The socket itself works.
                    Err(error) => tracing::debug!("{}: {error}", self.endpoint),
                },
                _ = look.tick() => self.look().await,
                Some(_) = self.answers.join_next(), if !self.answers.is_empty() => {}
                ended = over.changed() => if ended.is_err() {
                    return;
                },
            }
        }
    }

    async fn receive(&mut self, from: SocketAddr, datagram: &[u8]) {
        let now = Instant::now();
        if !self.peers.contains_key(&from) {
            if datagram.first().is_none_or(|kind| kind & INIT_MASK != INIT) {
                return;
            }
            match self.admit(now, from).await {
                Ok(Some(peer)) => drop(self.peers.insert(from, peer)),
                Ok(None) => return,
                Err(error) => return tracing::warn!("{}: {error}", self.endpoint),
            }
        }
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.hand_on(now, datagram).await;
        }
    }

    /// Creates the socket of a new address. If there are too many strangers, it replaces the one
    /// that has been silent longest. It never replaces a neighbour.
    async fn admit(&mut self, now: Instant, from: SocketAddr) -> io::Result<Option<Peer>> {
        let strangers = || self.peers.iter().filter(|(_, peer)| peer.is_stranger());
        let crowded = strangers().count() >= STRANGERS_MAX;
        let oldest = strangers().min_by_key(|(_, peer)| peer.heard).map(|(from, _)| *from);
        if crowded && let Some(oldest) = oldest {
            self.peers.remove(&oldest);
        }
        if self.peers.len() >= PEERS_MAX + STRANGERS_MAX {
            return Ok(None);
        }
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        socket.connect(self.inner).await?;
        let (socket, answers) = (Arc::new(socket), Arc::new(AtomicU32::new(0)));
        let (public, zenoh, count) = (self.public.clone(), socket.clone(), answers.clone());
        let answering = self.answers.spawn(async move {
            let mut answer = vec![0; DATAGRAM_MAX];
            while let Ok(len) = zenoh.recv(&mut answer).await {
                count.fetch_add(1, Ordering::Relaxed);
                let _ = public.send_to(answer.get(..len).unwrap_or_default(), from).await;
            }
        });
        Ok(Some(Peer { socket, answers, handed_on: 0, heard: now, answering }))
    }

    async fn look(&mut self) {
        let now = Instant::now();
        self.peers.retain(|_, peer| now.duration_since(peer.heard) < SILENT_MAX);
        if self.queue.is_stuck(now) {
            tracing::warn!(
                "link '{}': Zenoh stopped reading at {}, as it does after it rejects a peer; \
                 opening a new session",
                self.behind.link,
                self.endpoint
            );
            let behind = self.behind.clone();
            let _ = tokio::task::spawn_blocking(move || behind.reopen()).await;
            self.queue = Queue::new(self.inner.port());
        }
        // Another endpoint of the link may have caused the new session.
        if let Some(inner) = self.behind.place(&self.endpoint).filter(|inner| *inner != self.inner)
        {
            self.inner = inner;
            self.peers.clear();
            self.queue = Queue::new(inner.port());
        }
    }
}

#[cfg(test)]
mod tests;
