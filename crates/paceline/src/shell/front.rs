//! Takes the datagrams of a link that listens on UDP, and hands them to Zenoh.
//!
//! Zenoh reads all datagrams of a listener on one task, and that task waits for the reader of each peer. Of a peer that was
//! turned away nobody reads any more; where two of its datagrams followed each other closely the task waits for ever, and
//! nothing takes it off its port. So Zenoh listens on a port of this host alone, and this thread stands before it. Of a new
//! address it hands on one datagram, and the next only after Zenoh has answered that one, until both handshakes are
//! answered: whoever is turned away is never answered. Should Zenoh's task wait for ever all the same, which shows in the
//! socket's queue, the link gets a new session on another port, behind the same address.

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

/// Addresses that have been answered twice: neighbours, as far as Zenoh knows.
const PEERS_MAX: usize = 1_024;
/// Addresses that have not.
const STRANGERS_MAX: usize = 64;
/// Answers after which all datagrams of an address are handed on.
const ANSWERS: u32 = 2;
/// An address that sends nothing for so long is forgotten.
const SILENT_MAX: Duration = Duration::from_secs(10);
/// How often that is looked at, and Zenoh's queue.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Larger than any datagram.
const DATAGRAM_MAX: usize = 65_536;

/// The first byte of the message by which a Zenoh session begins: its kind, and no flag of an answer.
const INIT: u8 = 0x01;
const INIT_MASK: u8 = 0x3f;

/// Where Zenoh listens for each UDP endpoint of a link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(BTreeMap<String, SocketAddr>);

impl Places {
    /// The link as Zenoh is to open it.
    pub(crate) fn behind(&self, link: &LinkConfig) -> LinkConfig {
        let mut link = link.clone();
        for endpoint in &mut link.listen {
            if let Some(inner) = self.0.get(endpoint) {
                *endpoint = format!("udp/{inner}");
            }
        }
        link
    }

    /// Others for the same endpoints.
    fn anew(&self) -> io::Result<Self> {
        let ports = self.0.keys().map(|endpoint| Ok((endpoint.clone(), free_port()?)));
        ports.collect::<io::Result<_>>().map(Self)
    }
}

/// The sockets of the UDP endpoints that a link listens on.
pub(crate) struct Fronts {
    sockets: Vec<(String, std::net::UdpSocket)>,
    pub(crate) places: Places,
}

/// The thread of a front; it ends when this is dropped.
pub(crate) struct Standing {
    _alive: watch::Sender<()>,
}

impl Fronts {
    /// Takes the places of the UDP endpoints that a link listens on. An endpoint with options is left to Zenoh.
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

    /// Starts handing on. `reopen` opens the link's session anew at other places; false if that failed.
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
                        Err(error) => tracing::warn!("listening on UDP: {error}"),
                    }
                }
                halls.join_all().await;
            });
        })?;
        Ok(Some(Standing { _alive: alive }))
    }
}

/// What is behind all fronts of a link.
struct Behind {
    link: String,
    places: Mutex<Places>,
    reopen: Box<dyn Fn(&Places) -> bool + Send + Sync>,
}

impl Behind {
    fn place(&self, endpoint: &str) -> Option<SocketAddr> {
        lock(&self.places).0.get(endpoint).copied()
    }

    /// Opens the link's session at other places; it may wait.
    fn reopen(&self) {
        let mut places = lock(&self.places);
        match places.anew() {
            Ok(others) if (self.reopen)(&others) => *places = others,
            Ok(_) => {}
            Err(error) => tracing::warn!("link '{}': {error}", self.link),
        }
    }
}

/// A port of this host that nobody uses now.
fn free_port() -> io::Result<SocketAddr> {
    std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// An address that sends, and the socket that stands for it before Zenoh.
struct Peer {
    socket: Arc<UdpSocket>,
    answers: Arc<AtomicU32>,
    handed_on: u32,
    heard: Instant,
    /// Ends with the peer.
    answering: tokio::task::AbortHandle,
}

impl Peer {
    fn is_stranger(&self) -> bool {
        self.answers.load(Ordering::Relaxed) < ANSWERS
    }

    /// Hands a datagram on, unless the one before it was not answered.
    async fn hand_on(&mut self, now: Instant, datagram: &[u8]) {
        if self.is_stranger() {
            if self.handed_on > self.answers.load(Ordering::Relaxed) {
                return;
            }
            self.handed_on += 1;
        }
        self.heard = now;
        // Within the host a datagram is at its place when this returns, or lost there.
        let _ = self.socket.send(datagram).await;
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.answering.abort();
    }
}

/// Where datagrams come in and go out again.
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
                    // Some peer's port is closed; that is no fault of the socket.
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

    /// A socket for a new address. The stranger that is silent for longest makes room; a neighbour never does.
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
                "link '{}': Zenoh reads nothing at {} any more, as happens when a peer is turned away; the link gets a \
                 new session",
                self.behind.link,
                self.endpoint
            );
            let behind = self.behind.clone();
            let _ = tokio::task::spawn_blocking(move || behind.reopen()).await;
            self.queue = Queue::new(self.inner.port());
        }
        // Also where another endpoint of the link was the one.
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
