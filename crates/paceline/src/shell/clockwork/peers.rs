//! The sockets of a clock.

use super::stamp;
use crate::address::resolve_address;
use crate::shell::clock;
use crate::time::Clock;
use crate::time::config::address_of;
use paceline_time::clock::service::ServerFacts;
use paceline_time::ntp::keys::NtpKeys;
use paceline_time::server::{NtpServer, ServerCounters};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::mpsc::{Receiver, sync_channel};

/// The size of the buffer for a packet with its extension fields. The rest of a longer packet is cut off, which makes
/// it malformed.
pub(super) const BYTES_MAX: usize = 1_280;
/// The time for which answers are awaited without sleeping, in nanoseconds.
pub(super) const SPIN: u64 = 300_000;
/// The number of requests that are answered before the clock's own work continues.
const BATCH: usize = 64;
/// The interval in which the name of a server that does not answer is resolved again, in nanoseconds.
const RESOLVE_EVERY: u64 = 60_000_000_000;

/// Returns a random number.
pub(super) fn random() -> u64 {
    getrandom::u64().unwrap_or_else(|_| clock::raw())
}

/// A server, with a socket whose port is random.
#[derive(Debug)]
pub(super) struct Peer {
    name: String,
    socket: Option<UdpSocket>,
    /// The address of the name, while it is being resolved.
    resolving: Option<Receiver<Option<SocketAddr>>>,
    /// The instant of the raw clock at which the name may be resolved again.
    renew_at: u64,
}

impl Peer {
    /// Opens a socket to `name`, which is `HOST:PORT`, with or without a key, as soon as its address is known.
    pub(super) fn new(name: &str) -> Self {
        let renew_at = clock::raw().saturating_add(RESOLVE_EVERY);
        let host = address_of(name);
        let (socket, resolving) = match host.parse() {
            Ok(address) => (connect(host, address), None),
            // A name, or a zone with the name of an interface.
            Err(_) => (None, resolve(host)),
        };
        Self { name: name.to_owned(), socket, resolving, renew_at }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Opens the socket if the address has become known. Resolves the name again if the server is dead, at most once per
    /// minute.
    pub(super) fn renew(&mut self, raw: u64, is_dead: bool) {
        if let Some(found) = self.resolving.as_ref().and_then(|address| address.try_recv().ok()) {
            self.resolving = None;
            self.socket = found.and_then(|address| connect(&self.name, address));
        }
        if raw >= self.renew_at && (is_dead || self.socket.is_none()) {
            *self = Self::new(&self.name);
        }
    }

    /// Sends a request; returns true if it left.
    pub(super) fn send(&self, bytes: &[u8]) -> bool {
        // The first error of a connected socket may be that of the last packet.
        self.socket
            .as_ref()
            .is_some_and(|socket| socket.send(bytes).or_else(|_| socket.send(bytes)).is_ok())
    }

    /// Receives an answer and the instant of the raw clock at which it arrived, without waiting.
    pub(super) fn receive<'b>(&self, buffer: &'b mut [u8]) -> Option<(&'b [u8], u64)> {
        let packet = stamp::receive(self.socket.as_ref()?, buffer)?;
        buffer.get(..packet.length).map(|bytes| (bytes, packet.raw))
    }
}

/// Resolves a name on a thread of its own, because that may take long.
fn resolve(name: &str) -> Option<Receiver<Option<SocketAddr>>> {
    let (reply, address) = sync_channel(1);
    let name = name.to_owned();
    let find = move || {
        let found = resolve_address(&name).map(|all| all.first().copied());
        if let Err(error) = &found {
            crate::warn_limited!("clock: cannot resolve {name}: {error}; retrying once per minute");
        }
        let _ = reply.send(found.ok().flatten());
    };
    let named = std::thread::Builder::new().name("paceline-resolve".to_owned());
    named.spawn(find).ok().map(|_| address)
}

/// Opens a socket whose port is random.
fn connect(name: &str, address: SocketAddr) -> Option<UdpSocket> {
    let open = || -> std::io::Result<UdpSocket> {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(address)?;
        socket.set_nonblocking(true)?;
        stamp::enable(&socket);
        Ok(socket)
    };
    open()
        .inspect_err(|error| {
            crate::warn_limited!("clock: cannot reach {name}: {error}; retrying once per minute")
        })
        .ok()
}

/// The socket at which the node serves time.
#[derive(Debug)]
pub(super) struct Listener {
    address: String,
    socket: UdpSocket,
    server: NtpServer,
}

impl Listener {
    /// Listens at `address`, and authenticates clients by `keys`.
    pub(super) fn bind(address: &str, keys: NtpKeys) -> Result<Self, String> {
        let open = || {
            let found = resolve_address(address)?;
            let socket = UdpSocket::bind(found.as_slice()).map_err(|error| error.to_string())?;
            socket.set_nonblocking(true).map_err(|error| error.to_string())?;
            Ok::<_, String>(socket)
        };
        let socket = open().map_err(|why| {
            format!(
                "clock: cannot serve at '{address}': {why}; use an address of this host and a free port, above 1023 \
                 without root"
            )
        })?;
        stamp::enable(&socket);
        Ok(Self { address: address.to_owned(), socket, server: NtpServer::new(keys) })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) const fn counters(&self) -> ServerCounters {
        self.server.counters()
    }

    /// Answers waiting requests.
    pub(super) fn answer(&mut self, own: &Clock, facts: &ServerFacts) {
        let mut buffer = [0; BYTES_MAX];
        for _ in 0..BATCH {
            let Some(packet) = stamp::receive(&self.socket, &mut buffer) else { return };
            let Some(client) = packet.from else { continue };
            let received = own.at(packet.raw);
            let bytes = buffer.get(..packet.length).unwrap_or_default();
            let now = (received, own.now());
            let answer = self.server.answer(bytes, client.ip(), clock::raw(), facts, now);
            if let Some(answer) = answer {
                let _ = self.socket.send_to(&answer, client);
            }
        }
    }
}

/// Waits for `nanos`, or for a packet. Returns true if the clock must stop.
pub(super) fn wait(
    stopped: &UnixStream,
    (listener, neighbours): (Option<&Listener>, Option<&UnixDatagram>),
    peers: &[Peer],
    nanos: u64,
) -> bool {
    let sockets = peers.iter().filter_map(|peer| peer.socket.as_ref());
    let sockets = sockets.chain(listener.map(|listener| &listener.socket));
    let mut files = vec![PollFd::new(stopped, PollFlags::IN)];
    files.extend(sockets.map(|socket| PollFd::new(socket, PollFlags::IN)));
    files.extend(neighbours.map(|socket| PollFd::new(socket, PollFlags::IN)));
    let timeout = Timespec {
        tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or_default(),
    };
    let _ = poll(&mut files, Some(&timeout));
    files.first().is_some_and(|file| !file.revents().is_empty())
}
