//! Multicast on one network segment: a sender and two receivers behind a bridge, in network namespaces.

use crate::hosts::Hosts;
use crate::support::{SOON, at_rate, wait_until};
use crate::trust::Authority;
use paceline::Encoding;
use paceline::contract::Proxy;
use paceline::status::{LinkStatus, NodeId, StreamStatus};
use paceline::{Capacity, LinkConfig, Node, Pattern, Publisher, Subscriber};
use paceline_media::{Size, TestCard};
use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::time::Duration;

const RANGE: &str = "239.77.0.0/24:7400";
/// An address of the robot, and one on another network of the segment.
const ROBOT: &str = "10.77.0.1";
const ROBOT_APART: &str = "10.78.0.1";
const SAMPLE: usize = 30_000;
const HERTZ: u32 = 30;
/// Generous, because a busy machine stops threads for long.
const WITHIN: Duration = Duration::from_secs(1);

struct Segment {
    hosts: Hosts,
    authority: Authority,
    robot: Node,
    /// Dropped before the namespaces.
    receivers: Vec<Node>,
}

impl Segment {
    /// Opens a robot on host 0 and two receivers on the others. A camera's contract takes 8 Mbit/s per receiver.
    fn open(prefix: &str, range: Option<&str>, mbit: u64) -> Option<Self> {
        Self::open_at(prefix, range, mbit, &[ROBOT; 2])
    }

    /// Opens receivers that connect to the robot at these addresses.
    fn open_at(prefix: &str, range: Option<&str>, mbit: u64, robots: &[&str]) -> Option<Self> {
        let Some(hosts) = Hosts::segment(prefix, 1 + robots.len()) else {
            let thread = std::thread::current();
            let test = thread.name().unwrap_or("segment");
            println!("skipped: {test} (needs root and the command ip)");
            return None;
        };
        let authority = Authority::new(prefix);
        let link = |name: &str| {
            let link = LinkConfig::new("segment");
            let link = link.capacity(Capacity::from_bits_per_s(mbit * 1_000_000).unwrap());
            authority.member(
                name,
                range.map_or(link.clone(), |range| link.multicast(range.parse().unwrap())),
            )
        };
        (0..=robots.len())
            .for_each(|at| hosts.ip(at, &format!("addr add 10.78.0.{}/24 dev eth", at + 1)));
        let listening = link("robot").listen("quic/0.0.0.0:7600");
        let robot = hosts.inside(0, || authority.node("robot", listening));
        let receiver = |(at, address): (usize, &&str)| {
            let name = ["left", "right", "rear"][at];
            let connecting = link(name).connect(&format!("quic/{address}:7600"));
            hosts.inside(at + 1, || authority.node(name, connecting))
        };
        let receivers = robots.iter().enumerate().map(receiver).collect();
        Some(Self { hosts, authority, robot, receivers })
    }

    /// Declares a camera and a subscription with a contract at each receiver, and waits for their group.
    fn camera(&self) -> (Publisher, Vec<Subscriber>) {
        let camera = self.robot.publisher("camera").hz(f64::from(HERTZ)).bytes_max(SAMPLE as u64);
        let camera = camera.declare().unwrap();
        let pictures = self.subscribe("camera");
        assert!(camera.wait_matching(SOON));
        let all = pictures.len();
        wait_until("all streams have the group", || self.grouped() == (all, all));
        (camera, pictures)
    }

    fn subscribe(&self, tag: &str) -> Vec<Subscriber> {
        let ask = |node: &Node| node.subscriber(tag).within(WITHIN).queue(1_000).declare().unwrap();
        self.receivers.iter().map(ask).collect()
    }

    /// Returns the robot's link.
    fn link(&self) -> LinkStatus {
        let status = self.robot.status(SOON);
        let robot = status.into_iter().find(|node| node.name == "robot").unwrap();
        robot.links.into_iter().next().unwrap()
    }

    fn streams(&self) -> Vec<StreamStatus> {
        self.link().streams
    }

    /// Returns the numbers of streams with a group, and of all.
    fn grouped(&self) -> (usize, usize) {
        let streams = self.streams();
        (streams.iter().filter(|stream| stream.group.is_some()).count(), streams.len())
    }

    /// Returns the neighbours that receive the robot's groups.
    fn reached(&self) -> Vec<NodeId> {
        let hops = self.robot.network(&Pattern::new("**").unwrap()).hops;
        let mine = hops.into_iter().filter(|hop| hop.multicast && hop.from == self.robot.id());
        mine.map(|hop| hop.to).collect()
    }

    fn violations(&self) -> u64 {
        self.streams().iter().map(|stream| stream.counters.violations).sum()
    }
}

fn arrived(subscriber: &mut Subscriber) -> Vec<(u64, bool)> {
    let next = || subscriber.recv_timeout(Duration::from_millis(400)).ok();
    std::iter::from_fn(next).map(|sample| (sample.seq, sample.late)).collect()
}

/// Publishes `count` samples and checks that all arrive in time at all subscribers. Returns the bytes that the robot's
/// interface sent meanwhile, in samples.
fn publish(
    segment: &Segment,
    camera: &mut Publisher,
    pictures: &mut [Subscriber],
    count: u32,
) -> u64 {
    let before = segment.hosts.sent_bytes(0);
    // Each application takes its samples at once: one that reads later gets them late.
    let all = std::thread::scope(|scope| {
        let readers = pictures.iter_mut().map(|subscriber| scope.spawn(|| arrived(subscriber)));
        let readers: Vec<_> = readers.collect();
        at_rate(HERTZ, count, |_| _ = camera.put(vec![7; SAMPLE]).unwrap());
        readers.into_iter().map(|reader| reader.join().unwrap()).collect::<Vec<_>>()
    });
    let sent = (segment.hosts.sent_bytes(0) - before) / SAMPLE as u64;
    println!("{sent} samples on the wire of {count}");
    for got in all {
        let late = got.iter().filter(|(_, late)| *late).count();
        let numbers: Vec<u64> = got.into_iter().map(|(seq, _)| seq).collect();
        assert_eq!((numbers.len(), late), (count as usize, 0), "{numbers:?}");
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
    }
    sent
}

#[test]
fn a_segment_carries_a_stream_once_for_all_receivers_and_keeps_their_contracts() {
    let Some(segment) = Segment::open("pl-mc", Some(RANGE), 30) else { return };
    let (mut camera, mut pictures) = segment.camera();
    let sent = publish(&segment, &mut camera, &mut pictures, 60);
    assert!((60..90).contains(&sent), "{sent} samples on the wire");
    assert_eq!(segment.violations(), 0);

    // A stranger on the segment sends garbage to the group.
    let group = segment.streams()[0].group.unwrap();
    segment.hosts.inside(2, || {
        let socket = UdpSocket::bind("10.77.0.3:0").unwrap();
        for bytes in 0..1_400 {
            socket.send_to(&vec![0; bytes], group).unwrap();
        }
    });
    publish(&segment, &mut camera, &mut pictures, 10);

    // One port of the switch stops passing multicast: the streams are unicast again, without a lost sample.
    segment.hosts.pass_multicast(2, false);
    publish(&segment, &mut camera, &mut pictures, 30);
    wait_until("the group ends", || segment.grouped() == (0, 2));
    assert_eq!(segment.violations(), 0);
    drop(segment.authority);
}

/// Publishes samples while one member loses this part of all packets, and checks that none is missing or late.
fn publish_with_loss(percent: u32, count: u32) {
    let Some(segment) = Segment::open("pl-ml", Some(RANGE), 30) else { return };
    let (mut camera, mut pictures) = segment.camera();
    segment.hosts.lose(2, percent);
    publish(&segment, &mut camera, &mut pictures, count);
    let link = segment.link();
    println!(
        "{percent} % loss: {} frames lost, {} pieces retransmitted, {} windows violated",
        link.frames_dropped,
        link.repairs.repeated,
        segment.violations()
    );
    assert!(percent == 0 || link.repairs.repeated > 0, "nothing was lost");
    assert_eq!(segment.violations(), 0);
    drop(segment.authority);
}

#[test]
fn samples_that_one_member_loses_are_repaired_by_unicast() {
    publish_with_loss(5, 60);
}

#[test]
#[ignore = "half a minute: cargo xtask long runs it"]
fn a_minute_of_a_group_with_a_lossy_member() {
    for percent in [0, 1, 5, 10] {
        publish_with_loss(percent, 300);
    }
}

#[test]
fn auto_sends_a_segment_the_whole_stream_once_and_falls_back_without_multicast() {
    let Some(segment) = Segment::open("pl-ma", Some(RANGE), 30) else { return };
    let camera = segment.robot.publisher("camera").hz(f64::from(HERTZ)).bytes_max(SAMPLE as u64);
    let _camera = camera.declare().unwrap();
    let [left, right] = &segment.receivers[..] else { panic!("two receivers") };
    let _all = left.subscriber("camera").declare().unwrap();
    let half = right.subscriber("camera").every(2).proxy(Proxy::Auto).declare();
    let _half = half.unwrap();
    // The place of the thinned stream, and the number of hops with multicast.
    let state = || {
        let network = segment.robot.network(&Pattern::new("camera").unwrap());
        let thinned = network.streams.iter().find(|it| it.subscription.node == right.id());
        (thinned.map(|it| it.place), segment.reached().len())
    };
    wait_until("it is thinned at its subscriber", || state() == (Some(right.id()), 2));
    segment.hosts.pass_multicast(2, false);
    wait_until("it is thinned at the publisher", || state() == (Some(segment.robot.id()), 1));
    drop(segment.authority);
}

#[test]
fn a_member_that_leaves_does_not_end_the_group_of_the_others() {
    let Some(segment) = Segment::open_at("pl-mv", Some(RANGE), 60, &[ROBOT; 3]) else { return };
    let (mut camera, mut pictures) = segment.camera();
    pictures.pop();
    let sent = publish(&segment, &mut camera, &mut pictures, 30);
    assert!(sent < 50, "{sent} samples on the wire");
    wait_until("the others have the next group", || segment.grouped() == (2, 2));
    assert_eq!(segment.violations(), 0);
    drop(segment.authority);
}

#[test]
fn groups_are_sent_from_the_address_of_the_remaining_peers() {
    let robots = [ROBOT, ROBOT_APART];
    let Some(mut segment) = Segment::open_at("pl-mf", Some(RANGE), 30, &robots) else { return };
    let ids: Vec<NodeId> = segment.receivers.iter().map(Node::id).collect();
    wait_until("one address is used", || segment.reached().len() == 1);
    // Which of both connects first decides on the address.
    let first = segment.reached()[0];
    let at = ids.iter().position(|id| *id == first).unwrap();
    segment.receivers.remove(at).close();
    let other = ids[1 - at];
    wait_until("the other address is used", || segment.reached() == [other]);
    drop(segment.authority);
}

#[test]
fn streams_of_different_sizes_have_different_groups() {
    let Some(segment) = Segment::open("pl-ms", Some(RANGE), 30) else { return };
    let camera = segment.robot.publisher("camera").encoding(Encoding::Jpeg).hz(f64::from(HERTZ));
    let mut camera = camera.declare().unwrap();
    let whole = |node: &Node| node.subscriber("camera").queue(1_000).declare().unwrap();
    let small = |node: &Node| {
        let small = node.subscriber("camera").size(160, 120);
        small.queue(1_000).declare().unwrap()
    };
    let mut whole: Vec<Subscriber> = segment.receivers.iter().map(whole).collect();
    let mut small: Vec<Subscriber> = segment.receivers.iter().map(small).collect();
    assert!(camera.wait_matching(SOON));
    wait_until("all streams have groups", || segment.grouped() == (4, 4));
    let groups: BTreeSet<_> = segment.streams().iter().map(|stream| stream.group).collect();
    assert_eq!(groups.len(), 2, "{groups:?}");
    let mut card = TestCard::new(Size::new(640, 480).unwrap()).unwrap();
    at_rate(HERTZ, 20, |n| {
        _ = camera.put(card.draw_jpeg(u64::from(n), 0, 80).unwrap()).unwrap();
    });
    // A busy machine replaces best-effort pictures by newer ones.
    for subscriber in whole.iter_mut().chain(&mut small) {
        assert!(!arrived(subscriber).is_empty());
    }
    drop(segment.authority);
}

#[test]
fn without_multicast_on_the_path_streams_stay_unicast() {
    let Some(segment) = Segment::open("pl-mu", None, 30) else { return };
    let camera = segment.robot.publisher("camera").hz(f64::from(HERTZ)).declare();
    let mut camera = camera.unwrap();
    let ask = |node: &Node| node.subscriber("camera").queue(1_000).declare().unwrap();
    let mut pictures: Vec<Subscriber> = segment.receivers.iter().map(ask).collect();
    assert!(camera.wait_matching(SOON));
    wait_until("both streams are open", || segment.grouped() == (0, 2));
    let sent = publish(&segment, &mut camera, &mut pictures, 10);
    assert!(sent >= 20, "{sent} samples on the wire");
    drop(segment.authority);
}
