//! Samples from one byte to 64 MB over every transport, with and without a capacity. Every loss has
//! a reason.

use crate::radio::Radio;
use crate::sums;
use crate::support::{HostDir, SOON, free_endpoint, isolated, wait_until};
use crate::trust::{Authority, free_quic};
use paceline::{Capacity, Kind, LinkConfig, Node};

const KILOBYTE: usize = 1_000;
const MEGABYTE: usize = 1_000 * KILOBYTE;

/// Opens two nodes with a link from `connect` to `listen`.
fn nodes(listen: &str, connect: &str, capacity: Option<u64>) -> (Node, Node) {
    let shape = |link: LinkConfig| match capacity {
        Some(bits) => link.capacity(Capacity::from_bits_per_s(bits).unwrap()),
        None => link,
    };
    let near = isolated("near", [shape(LinkConfig::new("wire").listen(listen))]);
    let far = isolated("far", [shape(LinkConfig::new("wire").connect(connect))]);
    (near, far)
}

/// Publishes samples of these lengths, each once there is room, and expects all of them in order.
///
/// Each call for the same nodes needs its own tag: the publisher of an earlier call may still match
/// the subscription of that call.
fn all_arrive((near, far): &(Node, Node), tag: &str, lengths: &[usize]) {
    let publisher = far.publisher(tag).kind(Kind::Data);
    let mut publisher = publisher.declare().unwrap();
    let mut subscriber = near.subscriber(tag).queue(1_000).declare().unwrap();
    assert!(publisher.wait_matching(SOON));
    let mut got = Vec::new();
    for (n, length) in lengths.iter().enumerate() {
        publisher.put(vec![n.to_le_bytes()[0]; *length]).unwrap();
        wait_until("the sample arrives", || {
            got.extend(std::iter::from_fn(|| subscriber.try_recv()).map(|s| s.payload));
            got.len() > n
        });
    }
    for (n, (payload, length)) in got.iter().zip(lengths).enumerate() {
        assert_eq!(payload.len(), *length);
        assert!(payload.iter().all(|byte| *byte == n.to_le_bytes()[0]), "sample {n}");
    }
    sums::check(&[near, far]);
}

/// Publishes `samples` samples of `length` bytes at 50 Hz; each must arrive or have a drop reason.
fn each_has_a_reason((near, far): &(Node, Node), length: usize, samples: u64) -> u64 {
    let publisher = far.publisher("burst").kind(Kind::Data);
    let mut publisher = publisher.declare().unwrap();
    let mut subscriber = near.subscriber("burst").queue(1_000).declare().unwrap();
    assert!(publisher.wait_matching(SOON));
    crate::support::at_rate(50, u32::try_from(samples).unwrap(), |_| {
        publisher.put(vec![7; length]).unwrap();
    });
    sums::check(&[near, far]);
    let got = std::iter::from_fn(|| subscriber.try_recv()).count() as u64;
    println!("{length} bytes: {got} of {samples} arrived");
    got
}

const LENGTHS: [usize; 12] = [
    1,
    100,
    KILOBYTE,
    31_900,
    32_100,
    49_000,
    65_000,
    130_000,
    700 * KILOBYTE,
    MEGABYTE,
    4 * MEGABYTE,
    10 * MEGABYTE,
];

#[test]
fn samples_of_any_size_arrive_over_tcp() {
    let endpoint = free_endpoint();
    let nodes = nodes(&endpoint, &endpoint, None);
    all_arrive(&nodes, "each", &LENGTHS);
    all_arrive(&nodes, "one", &[64 * MEGABYTE; 1]);
    // The rate at which samples of this size used to be lost: half of 1 MB samples at 2 Hz.
    assert_eq!(each_has_a_reason(&nodes, MEGABYTE, 25), 25);
}

#[test]
fn samples_of_any_size_arrive_over_tcp_with_a_capacity() {
    for capacity in [90_000_000, 1_000_000_000] {
        let endpoint = free_endpoint();
        let nodes = nodes(&endpoint, &endpoint, Some(capacity));
        all_arrive(&nodes, "each", &LENGTHS[..10]);
        each_has_a_reason(&nodes, 300 * KILOBYTE, 50);
    }
}

#[test]
fn small_samples_as_fast_as_possible_are_counted_over_tcp() {
    for capacity in [None, Some(10_000_000), Some(1_000_000_000)] {
        let endpoint = free_endpoint();
        let (near, far) = nodes(&endpoint, &endpoint, capacity);
        let mut publisher = far.publisher("fast").declare().unwrap();
        let _subscriber = near.subscriber("fast").queue(100).declare().unwrap();
        assert!(publisher.wait_matching(SOON));
        for n in 0..20_000_usize {
            publisher.put(vec![1; 40 + n % 300]).unwrap();
        }
        sums::check(&[&near, &far]);
    }
}

#[test]
fn samples_of_any_size_arrive_over_a_unix_socket() {
    let dir = HostDir::new("large");
    std::fs::create_dir_all(dir.path()).unwrap();
    let endpoint = format!("unix/{}/large.sock", dir.path().display());
    let nodes = nodes(&endpoint, &endpoint, None);
    all_arrive(&nodes, "each", &LENGTHS);
    all_arrive(&nodes, "one", &[64 * MEGABYTE; 1]);
    assert_eq!(each_has_a_reason(&nodes, MEGABYTE, 25), 25);
}

/// Opens two members of one authority with a link over QUIC.
fn over_quic(authority: &Authority, capacity: Option<u64>) -> (Node, Node) {
    let endpoint = free_quic();
    let link = |name: &str| {
        let link = authority.member(name, LinkConfig::new("wire"));
        capacity.map_or(link.clone(), |bits| link.capacity_bits_per_s(bits))
    };
    let near = authority.node("near", link("near").listen(&endpoint));
    (near, authority.node("far", link("far").connect(&endpoint)))
}

#[test]
fn samples_are_delivered_or_have_a_reason_over_quic() {
    let authority = Authority::new("large");
    for capacity in [None, Some(50_000_000), Some(1_000_000_000)] {
        let nodes = over_quic(&authority, capacity);
        all_arrive(&nodes, "each", &LENGTHS[..9]);
        each_has_a_reason(&nodes, 100 * KILOBYTE, 50);
    }
}

#[test]
fn samples_arrive_over_quic_although_datagrams_are_lost() {
    let authority = Authority::new("lossy");
    let endpoint = free_quic();
    let radio = Radio::new(&endpoint);
    let link = |name: &str| {
        authority.member(name, LinkConfig::new("wire").capacity_bits_per_s(50_000_000))
    };
    let near = authority.node("near", link("near").listen(&endpoint));
    let far = authority.node("far", link("far").connect(&radio.endpoint()));
    let nodes = (near, far);
    radio.lose(50);
    all_arrive(&nodes, "each", &LENGTHS[..9]);
    each_has_a_reason(&nodes, 100 * KILOBYTE, 50);
}

#[test]
fn small_samples_as_fast_as_possible_are_counted_over_quic() {
    let authority = Authority::new("fast");
    for capacity in [None, Some(10_000_000), Some(1_000_000_000)] {
        let (near, far) = over_quic(&authority, capacity);
        let mut publisher = far.publisher("fast").declare().unwrap();
        let _subscriber = near.subscriber("fast").queue(100).declare().unwrap();
        assert!(publisher.wait_matching(SOON));
        for n in 0..20_000_usize {
            publisher.put(vec![1; 40 + n % 300]).unwrap();
        }
        sums::check(&[&near, &far]);
    }
}

/// Both ends prove their identity. A stranger with a certificate of another authority stays out.
#[test]
fn samples_of_any_size_arrive_over_tls() {
    let (authority, others) = (Authority::new("tls"), Authority::new("tls2"));
    let endpoint = free_endpoint().replace("tcp/", "tls/");
    let link = |name: &str| authority.member(name, LinkConfig::new("wire"));
    let near = authority.node("near", link("near").listen(&endpoint));
    let far = authority.node("far", link("far").connect(&endpoint));
    let foreign = others.member("foreign", LinkConfig::new("wire").connect(&endpoint));
    let foreign = isolated("foreign", [foreign]);
    let members = (near, far);
    all_arrive(&members, "each", &LENGTHS);
    assert_eq!((members.0.nodes().len(), foreign.nodes().len()), (2, 1));
    assert_eq!(each_has_a_reason(&members, MEGABYTE, 25), 25);
}
