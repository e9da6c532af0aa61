//! Packets that name participants of other nodes.

use crate::net::{HOSTILE, Net, Random, about, end, keeps, ms, view};
use paceline_objects::packet::{Fate, Fragment, Packet, UpdateClass};
use paceline_objects::participant::{ParticipantSettings, ReceivedPacket, WorldEvent};
use paceline_objects::{ObjectIndex, PeerId};
use paceline_sched::Duration;

/// Returns packets that would end the participation of another one, or its objects.
fn forgeries(victim: PeerId, number: u32) -> Vec<Packet> {
    let mut farewell = view(victim, number, Vec::new());
    farewell.leaving = true;
    let fragment = |run, number, updates| {
        let (owner, sent) = (victim, u64::MAX);
        Packet::Fragment(Fragment {
            owner,
            run,
            number,
            position: 0,
            count: 1,
            sent,
            error: 0,
            updates,
        })
    };
    vec![
        Packet::ObserverView(farewell),
        Packet::PeerDescription(about(victim, u32::MAX, Vec::new())),
        fragment(1, number + 10_000, vec![end(0, Fate::Deleted)]),
        fragment(number, 0, Vec::new()),
    ]
}

#[test]
fn packets_of_other_nodes_change_nothing_and_are_counted() {
    let mut net = Net::new(&[ParticipantSettings::default(); 3]);
    net.observe_all();
    net.create(0, "car/1", "red");
    net.run(ms(1_000));
    let victim = net.id(0);
    let mut number = 1_000_000;
    net.run_with(ms(3_000), ms(50), |net| {
        number += 1;
        for packet in forgeries(victim, number) {
            net.inject(victim, &packet.encode());
            // Also on a channel of the hostile node.
            net.inject(PeerId::of_node(HOSTILE, 1), &packet.encode());
        }
    });
    net.check("car/1", 0, "red");
    for peer in 1..3 {
        assert!(!net.saw_end(peer, "car/1"));
        assert!(net.peers[peer].counts().forged >= 60 * 8);
        let left = net.events[peer].iter().any(|event| matches!(event, WorldEvent::Left(..)));
        assert!(!left, "nobody left");
    }
}

#[test]
fn a_participant_is_not_captured_at_those_who_join_later() {
    let mut net = Net::new(&[ParticipantSettings::default(); 2]);
    net.create(0, "car/1", "red");
    net.run(ms(500));
    let victim = net.id(0);
    // The late joiner receives the packets of the hostile node long before those of the victim.
    net.cut(0, true);
    let late = net.join(ParticipantSettings::default());
    net.observe_all();
    net.run_with(ms(1_000), ms(50), |net| {
        let packets = [
            Packet::PeerDescription(about(victim, 1, Vec::new())),
            Packet::ObserverView(view(victim, 1, Vec::new())),
        ];
        for packet in packets {
            net.inject_to(late, victim, &packet.encode());
        }
    });
    assert_eq!(net.peers[late].peers().count(), 1);
    net.cut(0, false);
    net.run(ms(3_000));
    net.check("car/1", 0, "red");
}

#[test]
fn five_hundred_participants_of_one_node_and_a_restarted_one_are_genuine() {
    let mut net = Net::new(&[ParticipantSettings::default()]);
    net.observe_all();
    let time = paceline_objects::participant::WorldTime { now: net.now, stamp: 1, error: 255 };
    for number in 0..500 {
        let peer = PeerId::of_node(7, number);
        for packet in [
            Packet::PeerDescription(about(peer, 1, Vec::new())),
            Packet::ObserverView(view(peer, 1, Vec::new())),
        ] {
            let received = ReceivedPacket {
                bytes: &packet.encode(),
                class: UpdateClass::BestEffort,
                age: Duration::from_millis(1),
                node: 7,
                channel: Some(peer),
            };
            net.peers[0].receive(&received, time).expect("genuine");
        }
    }
    assert_eq!(net.peers[0].peers().count(), 500);
    assert_eq!(net.peers[0].counts().forged, 0);
    assert_eq!(net.peers[0].counts().too_many, 0);
    // A program that was restarted has another participant, of the same or another node.
    net.run(ms(4_000));
    let again = net.join_as(PeerId::of_node(7, 1_000), ParticipantSettings::default());
    net.create(again, "car/1", "red");
    net.run(ms(2_000));
    net.check("car/1", again, "red");
}

/// Replays and alters the packets of honest participants, next to their work.
fn altered(seed: u64, time: Duration) {
    let mut net = Net::new(&[keeps(); 3]);
    net.observe_all();
    let mut random = Random(seed | 1);
    let objects: Vec<_> =
        (0..3).map(|peer| net.create(peer, &format!("car/{peer}"), "0")).collect();
    let mut version = 0_u32;
    net.run_with(time, ms(20), |net| {
        let peer = random.below(3);
        version += 1;
        net.paint(peer, objects[peer], &format!("{version}"));
        for _ in 0..4 {
            let Some(mut bytes) = net.heard.get(random.below(net.heard.len().max(1))).cloned()
            else {
                continue;
            };
            for _ in 0..random.below(4) {
                let at = random.below(bytes.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = u8::try_from(random.below(256)).expect("a byte");
                }
            }
            if random.below(2) == 0 && bytes.len() > 18 {
                // As a participant of the hostile node.
                bytes.splice(2..18, PeerId::of_node(HOSTILE, 1).0.to_le_bytes());
            }
            let named = Packet::sender(&bytes).unwrap_or_default();
            net.inject(named, &bytes);
        }
    });
    for (peer, object) in objects.iter().enumerate() {
        net.paint(peer, *object, "last");
    }
    net.run(ms(3_000));
    for peer in 0..3 {
        net.check(&format!("car/{peer}"), peer, "last");
        assert_eq!(net.owned(peer, &format!("car/{peer}")), Some(ObjectIndex(0)));
    }
}

#[test]
fn altered_packets_disturb_nobody() {
    (1..5).for_each(|seed| altered(seed, ms(20_000)));
}

#[test]
#[ignore = "takes minutes: cargo xtask long"]
fn a_thousand_runs_with_altered_packets_disturb_nobody() {
    (1..1_001).for_each(|seed| altered(seed * 7_919, ms(30_000)));
}
