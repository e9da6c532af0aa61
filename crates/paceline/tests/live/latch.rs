//! Latched publishers: subscribers that join late receive the newest sample.

use crate::support::{SOON, free_endpoint, isolated, pair};
use paceline::{Capacity, LinkConfig, Node, Publisher, Subscriber};
use std::time::Duration;

fn latched(node: &Node, tag: &str) -> Publisher {
    node.publisher(tag).latch().declare().unwrap()
}

/// Returns the payloads of the next samples as text.
fn texts(subscriber: &mut Subscriber, count: usize) -> Vec<String> {
    let next = |_| subscriber.recv_timeout(SOON).expect("a sample").payload.to_vec();
    (0..count).map(next).map(|bytes| String::from_utf8(bytes).unwrap()).collect()
}

#[test]
fn late_subscribers_receive_the_newest_sample_once_and_later_ones_in_order() {
    let ends = [free_endpoint(), free_endpoint()];
    let thin = |name| LinkConfig::new(name).capacity(Capacity::from_bits_per_s(256_000).unwrap());
    let robot = isolated("robot", [thin("ab").listen(&ends[0])]);
    let relay = isolated("relay", [thin("ba").connect(&ends[0]), thin("bc").listen(&ends[1])]);
    let operator = isolated("operator", [thin("cb").connect(&ends[1])]);
    let mut map = latched(&robot, "robot/map");
    let mut mode = latched(&robot, "robot/mode");
    for n in 0..5 {
        map.put(format!("map {n}")).unwrap();
    }
    mode.put("idle").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    for node in [&robot, &relay, &operator, &operator] {
        // The value is older than this delay bound, which counts from the publication of later ones.
        let within = Duration::from_millis(200);
        let subscriber = node.subscriber("robot/map").within(within).declare();
        let mut subscriber = subscriber.unwrap();
        let first = subscriber.recv_timeout(SOON).unwrap();
        assert_eq!((&first.payload[..], first.seq, first.late), (&b"map 4"[..], 4, false));
        assert!(first.age >= Duration::from_millis(300), "{:?}", first.age);
    }
    let mut all = operator.subscriber("robot/*").declare().unwrap();
    let mut both = texts(&mut all, 2);
    both.sort();
    assert_eq!(both, ["idle", "map 4"]);
    mode.put("drive").unwrap();
    map.put("map 5").unwrap();
    let mut next = texts(&mut all, 2);
    next.sort();
    assert_eq!(next, ["drive", "map 5"]);
    assert!(all.recv_timeout(Duration::from_millis(300)).is_err(), "each arrives once");
}

#[test]
fn only_latched_publishers_keep_their_newest_sample() {
    let (robot, operator) = pair(|link| link);
    let mut plain = robot.publisher("robot/plain").declare().unwrap();
    let mut empty = latched(&robot, "robot/empty");
    plain.put("before").unwrap();
    let mut subscriber = operator.subscriber("robot/*").declare().unwrap();
    assert!(plain.wait_matching(SOON) && empty.wait_matching(SOON));
    assert!(subscriber.recv_timeout(Duration::from_millis(500)).is_err());
    empty.put("first").unwrap();
    assert_eq!(texts(&mut subscriber, 1), ["first"]);
    plain.put("after").unwrap();
    assert_eq!(texts(&mut subscriber, 1), ["after"]);
}
