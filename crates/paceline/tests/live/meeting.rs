//! Discovery: nodes find each other, their publishers and their subscriptions.

use crate::sums;
use crate::support::{HostDir, SOON, free_endpoint, isolated, wait_until};
use paceline::{LinkConfig, Node, SubscriberEvent};
use std::time::Duration;

#[test]
fn two_processes_of_a_host_meet_without_configuration() {
    let host = HostDir::new("meet");
    let (a, b) = (host.open("a"), host.open("b"));
    let mut publisher = a.publisher("robot/pose").declare().unwrap();
    let mut subscriber = b.subscriber("robot/**").declare().unwrap();
    assert!(!publisher.matching());
    assert!(publisher.wait_matching(SOON));
    for n in 0..10u8 {
        assert_eq!(publisher.put(vec![n]).unwrap().taken, 1);
    }
    for n in 0..10u8 {
        let sample = subscriber.recv_timeout(SOON).unwrap();
        assert_eq!((sample.seq, &sample.payload[..]), (u64::from(n), &[n][..]));
        assert_eq!((sample.tag.as_str(), sample.publisher), ("robot/pose", publisher.id()));
        assert!(!sample.late);
    }
    let status = a.status(SOON);
    assert_eq!(status.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(status[0].publishers[0].published, 10);
    assert_eq!(status[1].subscriptions[0].delivered, 10);
    drop(subscriber);
    wait_until("it has no subscriber left", || !publisher.matching());
    assert_eq!(publisher.put(vec![0]).unwrap().taken, 0);
}

#[test]
fn delivery_within_a_node_needs_no_waiting() {
    let node = HostDir::new("alone").open("alone");
    for _ in 0..20 {
        let mut publisher = node.publisher("a").declare().unwrap();
        let mut subscriber = node.subscriber("a").declare().unwrap();
        assert!(publisher.matching());
        assert_eq!(publisher.put("first").unwrap().taken, 1);
        assert_eq!(&subscriber.recv_timeout(SOON).unwrap().payload[..], b"first");
    }
}

#[test]
fn publishers_and_subscriptions_keep_their_node_open() {
    let host = HostDir::new("kept");
    let mut publisher = host.open("kept").publisher("a").declare().unwrap();
    let heard = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let count = heard.clone();
    let subscription = host.open("other").subscriber("a").callback(move |_| {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    });
    let subscription = subscription.unwrap();
    assert!(publisher.wait_matching(SOON));
    publisher.put("x").unwrap();
    wait_until("it is received", || heard.load(std::sync::atomic::Ordering::Relaxed) == 1);
    drop(subscription);
    wait_until("it has no subscriber left", || !publisher.matching());
}

#[test]
fn many_processes_of_a_host_all_receive_from_each_other() {
    let host = HostDir::new("many");
    let nodes: Vec<Node> = (0..5).map(|n| host.open(&format!("n{n}"))).collect();
    wait_until("all five know each other", || nodes.iter().all(|node| node.nodes().len() == 5));
    let mut subscribers: Vec<_> =
        nodes.iter().map(|node| node.subscriber("a/*").declare().unwrap()).collect();
    let mut publisher = nodes[3].publisher("a/b").declare().unwrap();
    // One output per form and hop, not per subscriber: the local subscribers, and the host's node.
    wait_until("both directions are open", || publisher.put("now").unwrap().taken == 2);
    // Each path opens when its subscriber becomes known, so they do not open at the same moment.
    for subscriber in &mut subscribers {
        wait_until("every node receives it", || {
            publisher.put("now").unwrap();
            let heard = subscriber.recv_timeout(Duration::from_millis(20));
            heard.is_ok_and(|sample| &sample.payload[..] == b"now")
        });
    }
}

#[test]
fn samples_cross_three_hops_in_the_requested_form() {
    let ends = [free_endpoint(), free_endpoint(), free_endpoint()];
    let link = LinkConfig::new;
    let a = isolated("a", [link("ab").listen(&ends[0])]);
    let b = isolated("b", [link("ba").connect(&ends[0]), link("bc").listen(&ends[1])]);
    let c = isolated("c", [link("cb").connect(&ends[1]), link("cd").listen(&ends[2])]);
    let d = isolated("d", [link("dc").connect(&ends[2])]);
    wait_until("all four know each other", || {
        [&a, &b, &c, &d].iter().all(|node| node.nodes().len() == 4)
    });
    let mut publisher = a.publisher("x").hz(30.0).declare().unwrap();
    let mut full = d.subscriber("x").declare().unwrap();
    let mut third = d.subscriber("*").every(3).declare().unwrap();
    let took = wait_until("publisher known over three hops", || {
        publisher.matching() && matches!(full.try_event(), Some(SubscriberEvent::Publishers(_)))
    });
    assert!(took < Duration::from_secs(1));
    // One stream carries both. The subscribers may open one after the other.
    let heard = |it: &mut paceline::Subscriber| it.recv_timeout(Duration::from_millis(10)).is_ok();
    let (mut all, mut some) = (false, false);
    wait_until("both are served", || {
        publisher.put("open").unwrap();
        (all, some) = (all || heard(&mut full), some || heard(&mut third));
        all && some
    });
    std::thread::sleep(Duration::from_millis(100));
    while full.try_recv().is_some() || third.try_recv().is_some() {}
    let first = publisher.put("first").unwrap().seq;
    assert_eq!(full.recv_timeout(SOON).unwrap().seq, first);
    for n in 0..30u8 {
        publisher.put(vec![n; 100]).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    let seqs: Vec<u64> = (0..30).map(|_| full.recv_timeout(SOON).unwrap().seq).collect();
    assert_eq!(seqs, (first + 1..=first + 30).collect::<Vec<_>>());
    let thirds: Vec<u64> = (0..10).map(|_| third.recv_timeout(SOON).unwrap().seq).collect();
    // The pause before the first one counted in the captures of the declared rate.
    assert!(thirds.windows(2).skip(1).all(|pair| pair[1] - pair[0] == 3), "{thirds:?}");
    sums::check(&[&a, &b, &c, &d]);
}
