//! Clocks that step, and hours of slow abuse.

use crate::net::{Net, about, car, introduction, intruder, ms};
use paceline_objects::Interest;
use paceline_objects::packet::{Ownership, Packet};
use paceline_objects::participant::ParticipantSettings;
use paceline_sched::Duration;

const HOUR: i64 = 3_600_000_000_000;

/// Moves an object at 10 m/s for some time, and returns the greatest error of its replica at each second.
fn errors(net: &mut Net, object: paceline_objects::ObjectIndex, seconds: u64) -> Vec<f64> {
    let velocity = ("velocity", [10.0, 0.0, 0.0].into());
    let mut greatest = Vec::new();
    for _ in 0..seconds {
        let mut error = 0.0_f64;
        for _ in 0..10 {
            let x = 10.0
                * std::time::Duration::from(net.now.since(paceline_sched::Instant::ZERO))
                    .as_secs_f64();
            net.set(0, object, &[("position", [x, 0.0, 0.0].into()), velocity.clone()]);
            net.run(ms(100));
            let now = net.now;
            let known = net.peers[1].replicas().get("car/1").and_then(|car| car.motion());
            let [known, ..] = known.expect("a replica").position_at(now);
            error = error.max((known - x - 1.0).abs());
        }
        greatest.push(error);
    }
    greatest
}

#[test]
fn steps_of_clocks_neither_freeze_nor_fling_objects() {
    for peer in 0..2 {
        for step in [-24 * HOUR, -HOUR, -5_000_000_000, 5_000_000_000, HOUR, 24 * HOUR] {
            let mut net = Net::new(&[ParticipantSettings::default(); 2]);
            net.observe_all();
            let object = net.create(0, "car/1", "red");
            assert!(errors(&mut net, object, 3)[2] < 0.5, "before the step");
            net.skew[peer] += step;
            let after = errors(&mut net, object, 6);
            // At most the time after which a participant counts as silent.
            assert!(after.iter().all(|error| *error <= 31.0), "step {step} of {peer}: {after:?}");
            assert!(
                after[3..].iter().all(|error| *error < 0.5),
                "step {step} of {peer}: {after:?}"
            );
            net.paint(0, object, "blue");
            net.run(ms(500));
            net.check("car/1", 0, "blue");
            // And back.
            net.skew[peer] -= step;
            let after = errors(&mut net, object, 6);
            assert!(after.iter().all(|error| *error <= 31.0), "back {step} of {peer}: {after:?}");
            assert!(
                after[3..].iter().all(|error| *error < 0.5),
                "back {step} of {peer}: {after:?}"
            );
            assert!(!net.saw_end(1, "car/1"));
        }
    }
}

#[test]
fn objects_return_into_range_after_a_clock_was_set_back() {
    let mut net = Net::new(&[ParticipantSettings::default(); 2]);
    let object = net.create(0, "car/1", "red");
    net.set(0, object, &[("position", [0.0, 0.0, 0.0].into())]);
    let near = Interest::by_distance(&[(100.0, ms(50))]);
    net.peers[1].observe(Some(near)).expect("valid");
    net.look(1, [0.0; 3]);
    net.run(ms(1_000));
    for step in [HOUR, -2 * HOUR, -HOUR] {
        net.skew[0] += step;
        net.look(1, [10_000.0, 0.0, 0.0]);
        net.run(ms(1_000));
        assert_eq!(net.known(1, "car/1"), None);
        net.look(1, [0.0; 3]);
        net.run(ms(1_000));
        net.check("car/1", 0, "red");
    }
}

#[test]
fn a_time_stamp_at_the_end_of_time_freezes_nothing_of_others() {
    let mut net = Net::new(&[ParticipantSettings::default(); 2]);
    net.observe_all();
    net.hostile(&Packet::PeerDescription(about(intruder(1), 1, vec![car()])));
    let update = introduction(0, "car/1", Ownership::default());
    net.hostile_fragment_at(intruder(1), u64::MAX, vec![update]);
    net.run(ms(4_000));
    let object = net.create(0, "car/1", "red");
    net.run(ms(1_000));
    net.check("car/1", 0, "red");
    net.paint(0, object, "blue");
    net.run(ms(1_000));
    net.check("car/1", 0, "blue");
}

#[test]
fn a_host_that_was_suspended_finds_all_objects_again() {
    let mut net = Net::new(&[ParticipantSettings::default(); 3]);
    net.observe_all();
    net.create(0, "car/1", "red");
    net.run(ms(1_000));
    net.cut(2, true);
    net.run(Duration::from_secs(7_200));
    assert_eq!(net.known(2, "car/1"), None);
    net.cut(2, false);
    net.run(ms(3_000));
    net.check("car/1", 0, "red");
}

/// Participants of the hostile node join every half minute, leave something behind and are silent.
fn slow_abuse(hours: u64) {
    let settings =
        ParticipantSettings { state_bytes_max: 4 << 20, ..ParticipantSettings::default() };
    let mut net = Net::new(&[settings; 2]);
    net.observe_all();
    let object = net.create(0, "car/1", "red");
    net.run(ms(2_000));
    let mut number = 0_u32;
    let mut most = 0;
    net.run_with(Duration::from_secs(hours * 3_600), Duration::from_secs(30), |net| {
        number += 1;
        let peer = intruder(u64::from(number));
        let schemas = (0..20).map(|_| car()).collect();
        net.hostile(&Packet::PeerDescription(about(peer, 1, schemas)));
        let objects = (0..20).map(|object| {
            introduction(object, &format!("many/{number}/{object}"), Ownership::default())
        });
        net.hostile_fragment(peer, objects.collect());
        net.hostile_view(peer, Vec::new());
        most = most.max(net.peers[1].replicas().bytes());
        assert!(!net.saw_end(1, "car/1"));
        net.events.iter_mut().for_each(Vec::clear);
    });
    assert!(most < 100_000, "{most} bytes");
    net.run(Duration::from_secs(700));
    let used = net.peers[1].replicas().bytes();
    assert!(used < 6_000, "{used} bytes of one object and an interest");
    assert_eq!(net.peers[1].peers().count(), 1);
    net.paint(0, object, "blue");
    net.run(ms(1_500));
    net.check("car/1", 0, "blue");
    assert!(!net.saw_end(1, "car/1"));
}

#[test]
fn two_hours_of_slow_abuse_leave_nothing_behind() {
    slow_abuse(2);
}

#[test]
#[ignore = "takes minutes: cargo xtask long"]
fn a_thousand_quarters_of_an_hour_of_slow_abuse_leave_nothing_behind() {
    slow_abuse(250);
}
