//! A bounded number of connections, shared fairly between the clients that open them.
//!
//! Each stage of a connection has slots of its own, up to the stage of members, which have shown their right to be
//! served. When a stage is full, the oldest connection of the client with the most of them is closed. So one client
//! cannot keep others out, silent connections cannot keep those out that send something, and strangers cannot keep
//! members out.

use rustls::ServerConfig;
use rustls::server::Acceptor;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

/// The client that a connection counts for.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Client {
    /// The owner of a unix socket.
    Owner,
    /// An IPv4 address, or the first 64 bits of an IPv6 address: one host owns all addresses of such a prefix.
    Address(IpAddr),
    /// The owner of the token with this number.
    Token(usize),
}

impl Client {
    /// Returns the client at this address.
    pub fn at(address: SocketAddr) -> Self {
        Self::Address(match address.ip().to_canonical() {
            IpAddr::V4(ip) => ip.into(),
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        })
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner => f.write_str("the owner of the socket"),
            Self::Address(IpAddr::V4(ip)) => ip.fmt(f),
            Self::Address(IpAddr::V6(ip)) => write!(f, "{ip}/64"),
            Self::Token(number) => write!(f, "token {}", number.saturating_add(1)),
        }
    }
}

/// The largest numbers of connections in one stage: of all clients, and of one.
#[derive(Clone, Copy, Debug)]
pub struct SlotLimit {
    /// All connections of the stage.
    pub all: usize,
    /// The connections of one client.
    pub each: usize,
}

/// The largest numbers of connections.
#[derive(Clone, Copy, Debug)]
pub struct SlotLimits {
    /// Connections that have sent no complete message.
    pub silent: SlotLimit,
    /// Connections within a TLS handshake; also, separately, encrypted ones without an admitted request.
    pub pending: SlotLimit,
    /// Connections that have shown their right to be served.
    pub members: SlotLimit,
    /// Members that follow events; fewer than all `members`.
    pub followers: usize,
}

impl SlotLimits {
    /// The limits of a server: at most 384 connections, well below the usual limit of 1,024 open files. One client can
    /// use half of the slots of strangers: enough for many users behind one address.
    pub const USUAL: Self = Self {
        silent: SlotLimit { all: 192, each: 96 },
        pending: SlotLimit { all: 64, each: 32 },
        members: SlotLimit { all: 64, each: 64 },
        followers: 16,
    };
}

/// The stages of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// It has sent no complete message. A client that means to be served leaves this stage at once.
    Silent,
    /// It has begun a TLS handshake.
    Greeted,
    /// It has ended the TLS handshake, and sent no request that was admitted.
    Encrypted,
    Member,
}

/// One connection.
struct Seat {
    client: Client,
    stage: Stage,
    /// The order of arrival, or of the last request of a member.
    since: u64,
    follows: bool,
    /// Dropping it closes the connection.
    _open: oneshot::Sender<()>,
}

#[derive(Default)]
struct Seats {
    last: u64,
    all: BTreeMap<u64, Seat>,
}

/// All connections of a server.
pub struct Slots {
    limits: SlotLimits,
    seats: Mutex<Seats>,
}

/// The slot of one connection; dropping it frees the slot.
pub struct Slot {
    slots: Arc<Slots>,
    id: u64,
}

impl Slots {
    /// Creates slots with these limits.
    pub fn new(limits: SlotLimits) -> Arc<Self> {
        Arc::new(Self { limits, seats: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a new connection, if necessary in place of an older one. The receiver resolves when this connection must be
    /// closed in turn.
    pub fn enter(self: &Arc<Self>, client: Client) -> (Slot, oneshot::Receiver<()>) {
        let mut seats = self.lock();
        let (open, ended) = oneshot::channel();
        let id = seats.next();
        let seat = Seat { client, stage: Stage::Silent, since: id, follows: false, _open: open };
        seats.insert(id, seat, self.limits.silent);
        (Slot { slots: self.clone(), id }, ended)
    }
}

impl Slot {
    /// Performs a TLS handshake, and moves the connection to the next stages.
    ///
    /// # Errors
    /// Returns the error of the handshake.
    pub async fn encrypt<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        config: Arc<ServerConfig>,
    ) -> io::Result<TlsStream<S>> {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        self.advance(Stage::Greeted, None);
        let stream = hello.into_stream(config).await?;
        self.advance(Stage::Encrypted, None);
        Ok(stream)
    }

    /// Counts this connection as a member's from its newest request on.
    pub fn admit(&self, client: Client) {
        self.advance(Stage::Member, Some(client));
    }

    fn advance(&self, stage: Stage, client: Option<Client>) {
        let mut seats = self.slots.lock();
        let since = seats.next();
        let Some(seat) = seats.all.remove(&self.id) else { return };
        let client = client.unwrap_or(seat.client);
        let limits = &self.slots.limits;
        let limit = if stage == Stage::Member { limits.members } else { limits.pending };
        seats.insert(self.id, Seat { client, stage, since, follows: false, ..seat }, limit);
    }

    /// Counts this connection as one that follows events. Returns false if too many do. A client that has fewer
    /// followers than another takes a slot from that one.
    pub fn follow(&self) -> bool {
        let mut seats = self.slots.lock();
        let Some(client) = seats.all.get(&self.id).map(|seat| seat.client) else { return false };
        let mut followers: BTreeMap<Client, Vec<(u64, u64)>> = BTreeMap::new();
        for (id, seat) in seats.all.iter().filter(|(_, seat)| seat.follows) {
            followers.entry(seat.client).or_default().push((seat.since, *id));
        }
        if followers.values().map(Vec::len).sum::<usize>() >= self.slots.limits.followers {
            let own = followers.get(&client).map_or(0, Vec::len);
            let most = followers.into_values().max_by_key(Vec::len).unwrap_or_default();
            // Equal shares stay as they are: otherwise two pages would displace each other for ever.
            if most.len() <= own + 1 {
                return false;
            }
            if let Some((_, oldest)) = most.iter().min() {
                seats.all.remove(oldest);
            }
        }
        if let Some(seat) = seats.all.get_mut(&self.id) {
            seat.follows = true;
        }
        true
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.lock().all.remove(&self.id);
    }
}

impl Seats {
    const fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Adds a connection to its stage, if necessary in place of an older one.
    fn insert(&mut self, id: u64, seat: Seat, limit: SlotLimit) {
        let Seat { client, stage, .. } = seat;
        let mut clients: BTreeMap<Client, usize> = BTreeMap::new();
        for other in self.all.values().filter(|other| other.stage == stage) {
            *clients.entry(other.client).or_default() += 1;
        }
        if clients.get(&client).is_some_and(|own| *own >= limit.each) {
            self.close_oldest(stage, |it| it == client);
        } else if clients.values().sum::<usize>() >= limit.all {
            // Followers stay, so a client that has only followers has nothing to close.
            let mut loose: BTreeMap<Client, usize> = BTreeMap::new();
            for other in self.all.values().filter(|it| it.stage == stage && !it.follows) {
                *loose.entry(other.client).or_default() += 1;
            }
            let most = loose.values().max().copied();
            self.close_oldest(stage, |it| loose.get(&it).copied() == most);
        }
        self.all.insert(id, seat);
    }

    /// Closes the oldest connection of these clients. Followers stay: they have a limit of their own.
    fn close_oldest(&mut self, stage: Stage, takes: impl Fn(Client) -> bool) {
        let here = |seat: &Seat| seat.stage == stage && !seat.follows && takes(seat.client);
        let candidates = self.all.iter().filter(|(_, seat)| here(seat));
        let Some((_, id)) = candidates.map(|(id, seat)| (seat.since, *id)).min() else { return };
        if let Some(Seat { client, .. }) = self.all.remove(&id) {
            match stage {
                Stage::Member => tracing::debug!("too many connections: one of {client} is closed"),
                Stage::Silent | Stage::Greeted | Stage::Encrypted => paceline::warn_limited!(
                    "too many connections without an admitted request: the oldest of {client} is closed"
                ),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot::error::TryRecvError;

    const LIMITS: SlotLimits = SlotLimits {
        silent: SlotLimit { all: 6, each: 4 },
        pending: SlotLimit { all: 6, each: 4 },
        members: SlotLimit { all: 6, each: 6 },
        followers: 3,
    };

    struct Open(Slot, oneshot::Receiver<()>);

    impl Open {
        fn is_open(&mut self) -> bool {
            self.1.try_recv() == Err(TryRecvError::Empty)
        }
    }

    fn at(text: &str) -> Client {
        Client::at(text.parse().unwrap())
    }

    fn enter(slots: &Arc<Slots>, client: Client) -> Open {
        let (slot, ended) = slots.enter(client);
        Open(slot, ended)
    }

    fn open(all: &mut [Open]) -> Vec<usize> {
        let numbered = all.iter_mut().enumerate();
        numbered.filter_map(|(number, one)| one.is_open().then_some(number)).collect()
    }

    #[test]
    fn clients_are_addresses_and_prefixes_of_ipv6() {
        assert_eq!(at("192.0.2.1:1"), at("192.0.2.1:2"));
        assert_eq!(at("[::ffff:192.0.2.1]:1"), at("192.0.2.1:1"));
        assert_ne!(at("192.0.2.1:1"), at("192.0.2.2:1"));
        assert_eq!(at("[2001:db8::1]:1"), at("[2001:db8::ffff:2]:1"));
        assert_ne!(at("[2001:db8::1]:1"), at("[2001:db8:0:1::1]:1"));
        assert_eq!(at("[2001:db8::1]:1").to_string(), "2001:db8::/64");
    }

    #[test]
    fn a_client_at_its_limit_loses_its_own_oldest_connection() {
        let slots = Slots::new(LIMITS);
        let mut other = enter(&slots, at("192.0.2.2:1"));
        let mut all: Vec<_> = (0..20).map(|_| enter(&slots, at("192.0.2.1:1"))).collect();
        assert_eq!(open(&mut all), [16, 17, 18, 19]);
        assert!(other.is_open());
    }

    #[test]
    fn a_full_room_closes_the_oldest_connection_of_the_client_with_the_most() {
        let slots = Slots::new(LIMITS);
        let mut first = enter(&slots, at("192.0.2.2:1"));
        let mut many: Vec<_> = (0..4).map(|_| enter(&slots, at("192.0.2.1:1"))).collect();
        let mut others: Vec<_> =
            (3..6).map(|n| enter(&slots, at(&format!("192.0.2.{n}:1")))).collect();
        assert_eq!((open(&mut many), open(&mut others)), (vec![2, 3], vec![0, 1, 2]));
        assert!(first.is_open());
        // A freed slot is used again.
        many.pop();
        let mut next = enter(&slots, at("192.0.2.6:1"));
        assert!(next.is_open() && first.is_open() && others.iter_mut().all(Open::is_open));
        // With one connection per client, the oldest of all is closed.
        let mut last = enter(&slots, at("192.0.2.7:1"));
        assert!(last.is_open() && !first.is_open());
    }

    #[test]
    fn strangers_close_no_connection_of_a_member() {
        let slots = Slots::new(LIMITS);
        let mut members: Vec<_> = (0..6).map(|_| enter(&slots, at("192.0.2.1:1"))).collect();
        assert_eq!(open(&mut members), [2, 3, 4, 5]);
        let mut members = members.split_off(2);
        for member in &members {
            member.0.admit(Client::Token(0));
        }
        let mut strangers: Vec<_> = (0..20).map(|_| enter(&slots, at("192.0.2.1:1"))).collect();
        assert_eq!((open(&mut members).len(), open(&mut strangers).len()), (4, 4));
    }

    #[test]
    fn a_member_with_many_connections_loses_those_without_requests_first() {
        let slots = Slots::new(LIMITS);
        let member = |token| {
            let one = enter(&slots, at("192.0.2.1:1"));
            one.0.admit(Client::Token(token));
            one
        };
        let mut other = member(1);
        let mut all: Vec<_> = (0..5).map(|_| member(0)).collect();
        assert!(all[0].0.follow());
        all[1].0.admit(Client::Token(0));
        let mut next = member(2);
        assert_eq!(open(&mut all), [0, 1, 3, 4], "the longest without a request is closed");
        assert!(other.is_open() && next.is_open());
    }

    #[test]
    fn followers_are_shared_and_equal_shares_stay() {
        let slots = Slots::new(LIMITS);
        let member = |token| {
            let one = enter(&slots, at("192.0.2.1:1"));
            one.0.admit(Client::Token(token));
            one
        };
        let mut all: Vec<_> = (0..3).map(|_| member(0)).collect();
        assert!(all.iter().all(|one| one.0.follow()));
        let same = member(0);
        assert!(!same.0.follow(), "the client has all of them already");
        drop(same);
        let (other, next) = (member(1), member(1));
        assert!(other.0.follow());
        assert_eq!(open(&mut all), [1, 2]);
        assert!(!next.0.follow(), "equal shares would change for ever");
        // Another request on the connection ends the stream of events.
        other.0.admit(Client::Token(1));
        assert!(next.0.follow());
    }

    #[test]
    fn silent_connections_close_none_that_is_further() {
        let slots = Slots::new(LIMITS);
        let client = at("192.0.2.1:1");
        let mut all: Vec<_> = (0..3).map(|_| enter(&slots, client)).collect();
        for (one, stage) in all.iter().zip([Stage::Greeted, Stage::Encrypted, Stage::Member]) {
            one.0.advance(stage, None);
        }
        let mut silent: Vec<_> = (0..20).map(|_| enter(&slots, client)).collect();
        assert_eq!((open(&mut all), open(&mut silent)), (vec![0, 1, 2], vec![16, 17, 18, 19]));
        // A later stage has the same rule.
        silent[16..].iter().for_each(|one| one.0.advance(Stage::Greeted, None));
        assert_eq!((open(&mut all), open(&mut silent)), (vec![1, 2], vec![16, 17, 18, 19]));
    }
}
