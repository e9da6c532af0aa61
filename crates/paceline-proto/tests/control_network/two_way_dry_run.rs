//! Dry runs of contracts in both directions: they predict what the subscription gets, and reserve nothing.

use super::net::{Net, camera, id, link, promised};
use super::two_way::{NARROW, THIN, commands, row, tied};
use paceline_proto::control::{
    OppositeStream, PublisherSpec, Refusal, RefusalReason, SubscriptionSpec, TrafficTrial,
};
use paceline_proto::{Envelope, Proxy, PublisherId, Size, Tag};
use paceline_sched::Duration;

/// The answer of a dry run at node 2, the operator.
struct Answer {
    refusal: Option<Refusal>,
    opposite: Option<OppositeStream>,
}

fn ask(net: &mut Net, publisher: PublisherId, request: SubscriptionSpec) -> Answer {
    let before = net.held();
    let now = net.now;
    let number = net.nodes[2].survey(now, publisher, request).unwrap();
    net.drain(2);
    net.settle();
    let (survey, complete, _, refusal, _) = net.seen[2].surveyed.pop().unwrap();
    assert_eq!((survey, complete, net.held()), (number, true, before), "nothing is reserved");
    Answer { refusal, opposite: net.seen[2].opposite.take() }
}

/// The robot and the operator on both sides of a relay whose one link carries both directions.
fn star(carries: u64) -> Net {
    let mut net = Net::new(3);
    let air = || link("air", Some(carries));
    net.join_over(0, 1, link("up", Some(THIN)), air());
    net.join_over(1, 2, air(), link("down", Some(THIN)));
    net.settle();
    net
}

/// Compares a dry run with the subscription that follows. Returns the reason of the refusal, and whether the opposite
/// stream caused it. With `mutual`, the robot's subscription names the camera, so it reserves nothing alone.
fn compare(mut net: Net, bytes: u64, mutual: bool) -> Option<(RefusalReason, bool)> {
    let pictures = net.publish(0, camera("camera"));
    let cmd = net.publish(2, PublisherSpec { bytes_max: Some(bytes), ..commands() });
    let with = mutual.then(|| Tag::new("camera").unwrap());
    let steering = net.subscribe(0, SubscriptionSpec { with, ..promised("cmd") });
    net.settle();
    let Answer { refusal, opposite } = ask(&mut net, pictures, tied());
    let opposite = opposite.unwrap();
    assert_eq!(opposite.tag.as_str(), "cmd");
    let subscription = net.subscribe(2, tied());
    net.settle();
    if mutual {
        // The robot's pair asks again after its pause.
        net.run(Duration::from_secs(10));
    }
    let granted = [
        net.seen[2].granted.contains_key(&(subscription, pictures)),
        net.seen[0].granted.contains_key(&(steering, cmd)),
    ];
    assert_eq!(granted, [refusal.is_none(); 2], "{refusal:?}, {opposite:?}");
    let refusal = refusal?;
    let notified = net.seen[2].refused.last().unwrap();
    assert_eq!(
        (notified.node, &notified.link, notified.reason),
        (refusal.node, &refusal.link, refusal.reason)
    );
    let other = matches!(refusal.reason, RefusalReason::Opposite { missing: false });
    if other {
        let notified = net.seen[0].refused.last().unwrap();
        let found = opposite.refusal.unwrap();
        assert_eq!(
            (notified.node, &notified.link, notified.reason),
            (found.node, &found.link, found.reason)
        );
    }
    Some((refusal.reason, other))
}

#[test]
fn a_dry_run_of_both_halves_predicts_the_answer() {
    let (mut granted, mut own, mut others) = (0, 0, 0);
    for out in [NARROW, THIN] {
        for back in [NARROW, THIN] {
            for bytes in [100, 15_000, 50_000] {
                for net in [row([THIN, out], [back, THIN]), star(out + back)] {
                    match compare(net, bytes, false) {
                        None => granted += 1,
                        Some((_, false)) => own += 1,
                        Some((_, true)) => others += 1,
                    }
                }
            }
        }
    }
    assert!(granted > 3 && own > 3 && others > 3, "{granted}, {own}, {others}");
}

#[test]
fn both_halves_are_counted_on_a_link_that_carries_both() {
    // Each fits alone: a camera takes 300,000 bytes per second, these commands about 165,000.
    for mutual in [false, true] {
        assert_eq!(compare(row([THIN; 2], [THIN; 2]), 15_000, mutual), None);
        assert!(compare(star(THIN), 15_000, mutual).is_some(), "together they need more");
        assert_eq!(compare(star(2 * THIN), 15_000, mutual), None);
    }
}

/// Returns the number of trials of a growing camera that are granted beside the commands.
fn granted_trials(mutual: bool, request: SubscriptionSpec, command_bytes: u64) -> u32 {
    let mut net = star(THIN);
    let pictures = net.publish(0, camera("camera"));
    net.publish(2, PublisherSpec { bytes_max: Some(command_bytes), ..commands() });
    let with = mutual.then(|| Tag::new("camera").unwrap());
    net.subscribe(0, SubscriptionSpec { with, ..promised("cmd") });
    net.settle();
    let trial = |step: u64| TrafficTrial {
        period: Duration::from_millis(40),
        bytes_max: 500 * step,
        envelope: Envelope::declared(500 * step, 12_500 * step),
        within: Duration::from_millis(400),
    };
    net.nodes[2].survey_trials(net.now, pictures, request, (1..=40).map(trial).collect()).unwrap();
    net.drain(2);
    net.settle();
    let (.., fits) = net.seen[2].surveyed.pop().unwrap();
    let granted = fits.trailing_ones();
    assert_eq!(granted, fits.count_ones(), "larger pictures need more");
    granted
}

#[test]
fn trials_of_a_tied_request_are_for_its_own_half() {
    let beside = granted_trials(false, tied(), 15_000);
    assert!((1..40).contains(&beside), "{beside}");
    assert_eq!(granted_trials(true, tied(), 15_000), beside, "also if the other half leads");
    assert!(granted_trials(true, tied(), 100) > beside, "the other half counts");
    assert_eq!(granted_trials(true, tied(), 50_000), 0, "the other half fits nowhere");
}

#[test]
fn a_dry_run_names_a_missing_half() {
    let mut net = row([THIN; 2], [THIN; 2]);
    let pictures = net.publish(0, camera("camera"));
    net.settle();
    let missing = |answer: Answer| {
        let refusal = answer.refusal.unwrap();
        assert_eq!(refusal.reason, RefusalReason::Opposite { missing: true });
        assert_eq!((&refusal.link[..], answer.opposite), ("cmd", None));
    };
    missing(ask(&mut net, pictures, tied()));
    // Commands without a rate can have no contract.
    let cmd = net.publish(2, PublisherSpec { period: None, ..commands() });
    missing(ask(&mut net, pictures, tied()));
    net.subscribe(0, promised("cmd"));
    net.settle();
    let answer = ask(&mut net, pictures, tied());
    let refusal = answer.refusal.unwrap();
    assert_eq!((refusal.node, refusal.reason), (id(2), RefusalReason::Opposite { missing: false }));
    assert!(answer.opposite.unwrap().refusal.is_none(), "unknown traffic has no figures");
    net.update(cmd, commands());
    net.settle();
    assert!(ask(&mut net, pictures, tied()).refusal.is_none());
}

#[test]
fn a_dry_run_names_a_size_or_proxy_that_no_path_has() {
    let mut net = row([THIN; 2], [THIN; 2]);
    let pictures = net.publish(0, camera("camera"));
    net.settle();
    let reason = |net: &mut Net, request| ask(net, pictures, request).refusal.map(|it| it.reason);
    let mut large = promised("camera");
    large.form.size = Some(Size { width: 4_000, height: 3_000 });
    let above = reason(&mut net, large);
    assert!(matches!(above, Some(RefusalReason::SizeAboveSource { .. })), "{above:?}");
    let through =
        |name: &str| SubscriptionSpec { proxy: Proxy::Node(name.into()), ..promised("camera") };
    let nowhere = reason(&mut net, through("nowhere"));
    assert_eq!(nowhere, Some(RefusalReason::NoProxy { apart: false }));
}

#[test]
fn a_dry_run_counts_the_reservation_that_an_idle_request_does_not_share() {
    let mut net = row([THIN; 2], [THIN; 2]);
    let pictures = net.publish(0, camera("camera"));
    net.subscribe(2, promised("camera"));
    net.settle();
    assert!(ask(&mut net, pictures, promised("camera")).refusal.is_none(), "it is shared");
    let idle = SubscriptionSpec { idle: Some(Duration::from_secs(2)), ..promised("camera") };
    let predicted = ask(&mut net, pictures, idle.clone()).refusal;
    net.subscribe(2, idle);
    net.settle();
    let notified = net.seen[2].refused.last();
    assert_eq!(predicted.map(|it| it.reason), notified.map(|it| it.reason));
}
