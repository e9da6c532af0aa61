//! Idle links, counted on the wire by a relay between two nodes that delays everything.

use crate::support::{SOON, free_endpoint, isolated, pair, wait_until, wait_within};
use crate::trust::Authority;
use paceline::{Capacity, LinkConfig, Node, SubscriberEvent};
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// Above 25 ms of round trip, control frames answered control frames.
const DELAY: Duration = Duration::from_millis(30);
/// Until the nodes know each other and have compared their clocks.
const SETTLE: Duration = Duration::from_secs(4);
const COUNTED: Duration = Duration::from_secs(6);
/// The bounds each way, with the headers of IPv4 and TCP or UDP.
const BYTES_PER_S_MAX: u64 = 500;
const PACKETS_PER_S_MAX: u64 = 8;
const TCP_HEADERS: u64 = 52;
const UDP_HEADERS: u64 = 28;

/// The packets of both directions: their number and bytes.
#[derive(Default)]
struct Counted([(AtomicU64, AtomicU64); 2]);

impl Counted {
    fn now(&self) -> [(u64, u64); 2] {
        [0, 1].map(|way| {
            let (packets, bytes) = &self.0[way];
            (packets.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed))
        })
    }
}

/// Carries one direction until its source ends, with the delay of the path.
fn carry(
    (counted, way): (Arc<Counted>, usize),
    mut read: impl FnMut(&mut [u8]) -> io::Result<usize> + Send + 'static,
    mut write: impl FnMut(&[u8]) -> io::Result<()> + Send + 'static,
) {
    let (under_way, arriving) = mpsc::channel::<(Instant, Vec<u8>)>();
    spawn(move || {
        let mut room = vec![0; 65_536];
        while let Ok(bytes @ 1..) = read(&mut room) {
            counted.0[way].0.fetch_add(1, Ordering::Relaxed);
            counted.0[way].1.fetch_add(bytes as u64, Ordering::Relaxed);
            let packet = room.get(..bytes).unwrap_or_default().to_vec();
            if under_way.send((Instant::now() + DELAY, packet)).is_err() {
                return;
            }
        }
    });
    spawn(move || {
        for (at, packet) in arriving {
            sleep(at.saturating_duration_since(Instant::now()));
            if write(&packet).is_err() {
                return;
            }
        }
    });
}

/// Relays TCP connections to `far`; returns the address of the relay.
fn relay_tcp(far: &str, counted: &Arc<Counted>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = listener.local_addr().unwrap();
    let (far, counted) = (far.to_owned(), counted.clone());
    spawn(move || {
        for from in listener.incoming().map_while(Result::ok) {
            let Ok(to) = TcpStream::connect(&far) else { continue };
            for (way, one, other) in [(0, &from, &to), (1, &to, &from)] {
                let (mut one, mut other) = (one.try_clone().unwrap(), other.try_clone().unwrap());
                one.set_nodelay(true).unwrap();
                let end = other.try_clone().unwrap();
                let read = move |room: &mut [u8]| {
                    let bytes = one.read(room);
                    if !matches!(bytes, Ok(1..)) {
                        let _ = end.shutdown(Shutdown::Both);
                    }
                    bytes
                };
                carry((counted.clone(), way), read, move |bytes| other.write_all(bytes));
            }
        }
    });
    near.to_string()
}

/// Relays the datagrams of one client to `far`; returns the address of the relay.
fn relay_udp(far: &str, counted: &Arc<Counted>) -> String {
    let front = UdpSocket::bind("127.0.0.1:0").unwrap();
    let near = front.local_addr().unwrap();
    let back = UdpSocket::bind("127.0.0.1:0").unwrap();
    back.connect(far).unwrap();
    let counted = counted.clone();
    spawn(move || {
        let Ok((_, client)) = front.peek_from(&mut [0; 1]) else { return };
        front.connect(client).unwrap();
        for (way, one, other) in [(0, &front, &back), (1, &back, &front)] {
            let (one, other) = (one.try_clone().unwrap(), other.try_clone().unwrap());
            let write = move |bytes: &[u8]| other.send(bytes).map(drop);
            carry((counted.clone(), way), move |room| one.recv(room), write);
        }
    });
    near.to_string()
}

/// Two linked nodes, and the packets between them.
struct Case {
    name: &'static str,
    headers: u64,
    counted: Arc<Counted>,
    nodes: [Node; 2],
}

impl Case {
    fn new(authority: &Authority, name: &'static str, capacity: Option<u64>) -> Self {
        let (protocol, address) = (name.split(' ').next().unwrap(), free_endpoint());
        let address = address.trim_start_matches("tcp/");
        let counted = Arc::new(Counted::default());
        let near = match protocol {
            "quic" => relay_udp(address, &counted),
            _ => relay_tcp(address, &counted),
        };
        let link = |end: &str| {
            let link = LinkConfig::new("radio");
            let capacity = capacity.and_then(|bits| Capacity::from_bits_per_s(bits).ok());
            let link = capacity.map_or(link.clone(), |capacity| link.capacity(capacity));
            if protocol == "tcp" { link } else { authority.member(end, link) }
        };
        let listens = link("robot").listen(&format!("{protocol}/{address}"));
        let connects = link("operator").connect(&format!("{protocol}/{near}"));
        let open = |name, link| match protocol {
            "tcp" => isolated(name, [link]),
            _ => authority.node(name, link),
        };
        let nodes = [open("robot", listens), open("operator", connects)];
        let headers = if protocol == "quic" { UDP_HEADERS } else { TCP_HEADERS };
        Self { name, headers, counted, nodes }
    }

    fn is_up(&self) -> bool {
        self.nodes.iter().all(|node| node.nodes().len() == 2)
    }
}

#[test]
fn an_idle_link_costs_less_than_4_kbits_per_second() {
    let authority = Authority::new("idle");
    let of = |name, capacity| Case::new(&authority, name, capacity);
    let cases = [
        of("tcp", None),
        of("tcp paced", Some(2_000_000)),
        of("tls", None),
        of("tls paced", Some(2_000_000)),
        of("quic stream", None),
        of("quic datagrams", Some(2_000_000)),
    ];
    wait_until("all links are up", || cases.iter().all(Case::is_up));
    sleep(SETTLE);
    let before: Vec<_> = cases.iter().map(|case| case.counted.now()).collect();
    let began = Instant::now();
    sleep(COUNTED);
    let after: Vec<_> = cases.iter().map(|case| case.counted.now()).collect();
    let millis = u64::try_from(began.elapsed().as_millis()).unwrap();
    for ((case, before), after) in cases.iter().zip(before).zip(after) {
        for (before, after) in before.into_iter().zip(after) {
            let (packets, bytes) = (after.0 - before.0, after.1 - before.1);
            let bytes = bytes + packets * case.headers;
            let name = case.name;
            println!("{name}: {packets} packets, {bytes} bytes each way in {millis} ms");
            assert!(packets > 0, "{name}");
            assert!(packets * 1_000 <= PACKETS_PER_S_MAX * millis, "{name}: {packets} packets");
            assert!(bytes * 1_000 <= BYTES_PER_S_MAX * millis, "{name}: {bytes} bytes");
        }
        assert!(case.is_up(), "{}", case.name);
    }
}

#[test]
fn a_link_of_2400_bits_per_second_carries_a_contract_and_shows_when_it_is_down() {
    let capacity = Capacity::from_bits_per_s(2_400).unwrap();
    let (robot, operator) = pair(|link| link.capacity(capacity));
    let sensor = robot.publisher("sensor").hz(0.5).bytes_max(16);
    let mut sensor = sensor.declare().unwrap();
    let subscriber = operator.subscriber("sensor").within(Duration::from_secs(20)).queue(16);
    let mut subscriber = subscriber.declare().unwrap();
    let granted = || matches!(subscriber.try_event(), Some(SubscriberEvent::Granted(_)));
    wait_within("a grant", Duration::from_secs(60), granted);
    assert!(sensor.wait_matching(Duration::from_secs(20)));
    for seq in 0..3 {
        let published = Instant::now();
        sensor.put(vec![7; 16]).unwrap();
        let sample = subscriber.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!((sample.seq, sample.payload.len()), (seq, 16));
        // A contract covers no more samples than were declared.
        sleep(Duration::from_secs(2).saturating_sub(published.elapsed()));
    }
    let status = robot.status_of(&[robot.id()], SOON);
    let sent = status.iter().flat_map(|node| &node.links).flat_map(|link| &link.neighbours);
    let down_after: Vec<_> = sent.map(|sent| sent.down_after).collect();
    assert_eq!(down_after, [Duration::from_secs(150)]);
}
