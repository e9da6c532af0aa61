//! Contracts in both directions, of which both are granted, or neither.

use super::net::{Net, all, camera, id, link, promised};
use paceline_proto::control::{HopInfo, PublisherSpec, RefusalReason, SubscriptionSpec};
use paceline_proto::{Form, Kind, PublisherId, SubscriptionId, Tag};
use paceline_sched::Duration;

/// Carries one camera with its headers, but not two.
pub(crate) const THIN: u64 = 400_000;
/// Carries commands, but no camera.
pub(crate) const NARROW: u64 = 100_000;

/// A robot with a camera, and an operator who steers it: nodes 0 and 2 of a row.
struct Pair {
    net: Net,
    camera: PublisherId,
    commands: PublisherId,
    pictures: SubscriptionId,
    steering: SubscriptionId,
}

/// Returns commands of 100 bytes, 10 per second.
pub(crate) fn commands() -> PublisherSpec {
    PublisherSpec {
        period: Some(Duration::from_millis(100)),
        bytes_max: Some(100),
        kind: Kind::Data,
        ..PublisherSpec::new(Tag::new("cmd").unwrap())
    }
}

pub(crate) fn tied() -> SubscriptionSpec {
    SubscriptionSpec { with: Some(Tag::new("cmd").unwrap()), ..promised("camera") }
}

/// Returns a row of three nodes. `out` is the capacity toward the operator, `back` toward the robot.
pub(crate) fn row(out: [u64; 2], back: [u64; 2]) -> Net {
    let mut net = Net::new(3);
    for hop in 0..2 {
        let name = format!("link{hop}");
        net.join_over(hop, hop + 1, link(&name, Some(out[hop])), link(&name, Some(back[hop])));
    }
    net.settle();
    net
}

fn pair(out: [u64; 2], back: [u64; 2], command: PublisherSpec) -> Pair {
    let mut net = row(out, back);
    let camera = net.publish(0, camera("camera"));
    let commands = net.publish(2, command);
    let steering = net.subscribe(0, promised("cmd"));
    let pictures = net.subscribe(2, tied());
    net.settle();
    Pair { net, camera, commands, pictures, steering }
}

impl Pair {
    fn is_granted(&self) -> [bool; 2] {
        let picture = self.net.seen[2].granted.contains_key(&(self.pictures, self.camera));
        let steer = self.net.seen[0].granted.contains_key(&(self.steering, self.commands));
        [picture, steer]
    }

    fn flows(&self) -> [bool; 2] {
        let sends = |node, publisher| !self.net.outputs(node, publisher, Form::FULL).is_empty();
        [sends(0, self.camera), sends(2, self.commands)]
    }

    fn assert_both(&self) {
        assert_eq!((self.is_granted(), self.flows()), ([true, true], [true, true]));
        assert_eq!(self.net.held(), [2, 2, 2]);
    }

    fn assert_neither(&self) {
        assert_eq!((self.is_granted(), self.flows()), ([false, false], [false, false]));
        assert_eq!(self.net.held(), [0, 0, 0], "nothing stays reserved");
    }
}

#[test]
fn both_halves_are_granted_and_no_sample_leaves_before() {
    let mut net = row([THIN; 2], [THIN; 2]);
    let camera = net.publish(0, camera("camera"));
    let commands = net.publish(2, commands());
    net.subscribe(0, promised("cmd"));
    net.subscribe(2, tied());
    let sends = |net: &Net, node, publisher| !net.outputs(node, publisher, Form::FULL).is_empty();
    let reserved = |net: &Net| net.held() == [2, 2, 2];
    net.settle_looking(|net| {
        if sends(net, 0, camera) || sends(net, 2, commands) && sends(net, 0, commands) {
            assert!(reserved(net), "{:?}", net.held());
        }
    });
    assert!(reserved(&net) && sends(&net, 0, camera) && sends(&net, 2, commands));
    net.run(Duration::from_secs(30));
    assert!(reserved(&net), "they stay");
    net.assert_delivered();
}

#[test]
fn a_refusal_of_either_half_releases_both_and_names_the_other_half() {
    let large = PublisherSpec { bytes_max: Some(50_000), ..commands() };
    for hop in 0..2 {
        // The camera does not fit toward the operator.
        let mut out = [THIN; 2];
        out[hop] = NARROW;
        let mut net = pair(out, [THIN; 2], commands());
        net.assert_neither();
        let [refusal] = &net.net.seen[2].refused[..] else {
            panic!("{:?}", net.net.seen[2].refused)
        };
        assert_eq!((refusal.node, refusal.reason), (id(hop), RefusalReason::Capacity));
        let [refusal] = &net.net.seen[0].refused[..] else {
            panic!("{:?}", net.net.seen[0].refused)
        };
        assert_eq!(refusal.reason, RefusalReason::Opposite { missing: false });
        assert_eq!(refusal.link, "camera");
        net.check_refused_for_long();
        // The commands do not fit toward the robot.
        let mut net = pair([THIN; 2], [THIN; 2], large.clone());
        net.assert_neither();
        let [refusal] = &net.net.seen[0].refused[..] else {
            panic!("{:?}", net.net.seen[0].refused)
        };
        assert_eq!((refusal.node, refusal.reason), (id(2), RefusalReason::Capacity));
        let [refusal] = &net.net.seen[2].refused[..] else {
            panic!("{:?}", net.net.seen[2].refused)
        };
        assert_eq!(refusal.reason, RefusalReason::Opposite { missing: false });
        assert_eq!((&refusal.link[..], refusal.node), ("cmd", id(2)));
        net.check_refused_for_long();
        // Smaller commands fit.
        let commands_id = net.commands;
        net.net.update(commands_id, commands());
        net.net.run(Duration::from_secs(10));
        net.assert_both();
    }
}

impl Pair {
    /// Both stay refused while they are retried, and each attempt ends with nothing reserved.
    fn check_refused_for_long(&mut self) {
        let (mut free, notified) =
            (0, self.net.seen.iter().map(|seen| seen.notified.len()).sum::<usize>());
        for _ in 0..40 {
            self.net.run(Duration::from_millis(250));
            assert_eq!((self.is_granted(), self.flows()), ([false, false], [false, false]));
            free += usize::from(self.net.held() == [0, 0, 0]);
        }
        assert_eq!(free, 40);
        let after = self.net.seen.iter().map(|seen| seen.notified.len()).sum::<usize>();
        assert_eq!(after, notified, "retries notify nobody");
    }
}

#[test]
fn a_lost_half_ends_both_and_both_recover() {
    let mut net = pair([THIN; 2], [THIN; 2], commands());
    net.assert_both();
    net.net.part(1, 2);
    net.net.run(Duration::from_secs(1));
    net.assert_neither();
    net.net.join_over(1, 2, link("link1", Some(THIN)), link("link1", Some(THIN)));
    net.net.run(Duration::from_secs(3));
    net.assert_both();
    // A link that becomes smaller in one direction ends both.
    for (node, next) in [(2, 1), (0, 1)] {
        let info = |bytes| link(if node == 2 { "link1" } else { "link0" }, Some(bytes));
        net.net.nodes[node].handle_hop_up(net.net.now, id(next), info(900));
        net.net.drain(node);
        net.net.run(Duration::from_secs(1));
        net.assert_neither();
        net.net.nodes[node].handle_hop_up(net.net.now, id(next), info(THIN));
        net.net.drain(node);
        net.net.run(Duration::from_secs(10));
        net.assert_both();
    }
}

#[test]
fn the_end_of_one_half_ends_the_other_and_a_missing_half_is_named() {
    let mut net = pair([THIN; 2], [THIN; 2], commands());
    net.assert_both();
    // The robot no longer takes commands: pictures have no other half.
    let steering = net.steering;
    net.net.unsubscribe(steering);
    net.net.settle();
    net.assert_neither();
    let refusal = net.net.seen[2].refused.last().unwrap();
    assert_eq!(refusal.reason, RefusalReason::Opposite { missing: true });
    assert_eq!(refusal.link, "cmd");
    // The reason changes with the other half.
    let (small, commands) = (commands(), net.commands);
    net.net.update(commands, PublisherSpec { bytes_max: Some(50_000), ..small.clone() });
    let large = net.net.subscribe(0, promised("cmd"));
    net.net.run(Duration::from_secs(3));
    let last = net.net.seen[2].refused.last().unwrap().reason;
    assert_eq!(last, RefusalReason::Opposite { missing: false });
    assert_eq!(net.net.seen[0].refused.last().unwrap().reason, RefusalReason::Capacity);
    net.net.unsubscribe(large);
    net.net.update(commands, small);
    net.net.run(Duration::from_secs(3));
    // A best-effort subscription is no contract.
    net.net.subscribe(0, all("cmd"));
    net.net.run(Duration::from_secs(3));
    assert_eq!(net.net.held(), [0, 0, 0]);
    net.steering = net.net.subscribe(0, promised("cmd"));
    net.net.run(Duration::from_secs(3));
    net.assert_both();
    // Without the tied subscription the commands stand alone.
    let pictures = net.pictures;
    net.net.unsubscribe(pictures);
    net.net.run(Duration::from_secs(3));
    assert_eq!(net.net.held(), [1, 1, 1]);
    assert!(net.is_granted()[1]);
}

#[test]
fn two_subscriptions_may_name_each_other() {
    let mut net = row([THIN; 2], [THIN; 2]);
    let camera_id = net.publish(0, camera("camera"));
    let commands = net.publish(2, commands());
    let back = Some(Tag::new("camera").unwrap());
    let steering = net.subscribe(0, SubscriptionSpec { with: back, ..promised("cmd") });
    let pictures = net.subscribe(2, tied());
    net.settle();
    let net = Pair { net, camera: camera_id, commands, pictures, steering };
    net.assert_both();
}

#[test]
fn the_opposite_stream_may_belong_to_another_process_of_the_host() {
    // The operator's host has a node and two processes: one shows pictures, one sends commands.
    let mut net = Net::new(4);
    net.join_over(0, 1, link("radio", Some(THIN)), link("radio", Some(THIN)));
    for (process, own) in [(2, true), (3, false)] {
        let hop = HopInfo { own, ..link("host", None) };
        net.join_over(1, process, hop.clone(), HopInfo { own: true, ..hop });
    }
    net.settle();
    let camera = net.publish(0, camera("camera"));
    let steering = net.subscribe(0, promised("cmd"));
    let pictures = net.subscribe(2, tied());
    let commands = net.publish(3, commands());
    net.run(Duration::from_secs(1));
    assert!(net.seen[2].granted.is_empty(), "the host does not confirm that process");
    let hop = HopInfo { own: true, ..link("host", None) };
    net.nodes[1].handle_hop_up(net.now, id(3), hop);
    net.drain(1);
    net.run(Duration::from_secs(4));
    assert!(net.seen[2].granted.contains_key(&(pictures, camera)));
    assert!(net.seen[0].granted.contains_key(&(steering, commands)));
    net.part(1, 3);
    net.run(Duration::from_secs(1));
    assert_eq!(net.held(), [0; 4], "the end of that process ends both");
}
