//! Faults: the host's process ends, a neighbour crashes, a subscriber stops reading, malformed data
//! arrives.

use crate::rogue::Stranger;
use crate::sums;
use crate::support::{HostDir, SOON, free_endpoint, isolated, pair, wait_until};
use paceline::LinkConfig;
use paceline::status::DropReason;
use std::io::Write as _;
use std::time::Duration;

#[test]
fn another_process_takes_over_as_host_and_streams_continue() {
    let host = HostDir::new("takeover");
    let first = host.open("first");
    let (a, b) = (host.open("a"), host.open("b"));
    let mut publisher = a.publisher("x").declare().unwrap();
    let mut subscriber = b.subscriber("x").declare().unwrap();
    assert!(publisher.wait_matching(SOON));
    publisher.put("before").unwrap();
    assert_eq!(&subscriber.recv_timeout(SOON).unwrap().payload[..], b"before");
    drop(first);
    let took = wait_until("another process took over", || {
        publisher.put("after").unwrap();
        subscriber.recv_timeout(Duration::from_millis(20)).is_ok_and(|s| &s.payload[..] == b"after")
    });
    println!("streams continue after {took:?}");
}

#[test]
fn the_loss_and_return_of_a_neighbour_are_detected() {
    let endpoint = free_endpoint();
    let far = || isolated("far", [LinkConfig::new("radio").connect(&endpoint)]);
    let near = isolated("near", [LinkConfig::new("radio").listen(&endpoint)]);
    let mut publisher = near.publisher("x").declare().unwrap();
    for _ in 0..2 {
        let far = far();
        let mut subscriber = far.subscriber("x").declare().unwrap();
        assert!(publisher.wait_matching(SOON));
        wait_until("a sample gets through", || {
            publisher.put("x").unwrap();
            subscriber.recv_timeout(Duration::from_millis(20)).is_ok()
        });
        drop(subscriber);
        far.close();
        wait_until("the neighbour is lost", || near.nodes().len() == 1 && !publisher.matching());
    }
    sums::check(&[&near]);
}

#[test]
fn a_stalled_subscriber_loses_only_its_own_oldest_samples() {
    let (robot, operator) = pair(|link| link);
    let mut publisher = robot.publisher("x").declare().unwrap();
    let mut lazy = operator.subscriber("x").queue(4).declare().unwrap();
    let mut eager = operator.subscriber("*").queue(1_000).declare().unwrap();
    wait_until("both hear the publisher", || {
        publisher.put("x").unwrap();
        eager.recv_timeout(Duration::from_millis(20)).is_ok() && lazy.try_recv().is_some()
    });
    while lazy.try_recv().is_some() || eager.try_recv().is_some() {}
    let seqs: Vec<u64> = (0..100).map(|_| publisher.put_blocking("x").unwrap().seq).collect();
    let got: Vec<u64> = (0..100).map(|_| eager.recv_timeout(SOON).unwrap().seq).collect();
    assert_eq!(got, seqs);
    let kept: Vec<u64> = std::iter::from_fn(|| lazy.try_recv()).map(|s| s.seq).collect();
    assert_eq!(kept, seqs[96..]);
    assert_eq!(lazy.drops().of(DropReason::SubscriberFull), 96);
    assert_eq!(eager.drops().total(), 0);
    sums::check(&[&robot, &operator]);
}

#[test]
fn garbage_and_foreign_versions_on_the_wire_have_no_effect() {
    let endpoint = free_endpoint();
    let near = isolated("near", [LinkConfig::new("radio").listen(&endpoint)]);
    let far = isolated("far", [LinkConfig::new("radio").connect(&endpoint)]);
    let mut publisher = near.publisher("x").declare().unwrap();
    let mut subscriber = far.subscriber("x").declare().unwrap();
    assert!(publisher.wait_matching(SOON));
    let mut seed = 1u64;
    for n in 0..500usize {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut noise = seed.to_le_bytes().repeat(n % 40 + 1);
        noise[0] = if n % 3 == 0 { 1 } else { noise[0] };
        // Some as strangers, some in place of an introduction.
        let mut rogue = Stranger::connect(&endpoint, n as u64);
        rogue.send(&noise);
        noise[0] = b'P';
        let _ = Stranger::silent(&endpoint).write_all(&noise);
    }
    wait_until("the stream continues", || {
        publisher.put("x").unwrap();
        subscriber.recv_timeout(Duration::from_millis(20)).is_ok()
    });
    wait_until("both are known", || near.nodes().len() == 2);
    sums::check(&[&near, &far]);
}
