//! The parts of a reservation request that a subscriber chooses beyond the delay bound.

use crate::sums;
use crate::support::{SOON, pair, wait_until};
use paceline::contract::{BestEffort, RefusalReason};
use paceline::{Capacity, SubscribeError, Subscriber, SubscriberEvent};
use std::time::{Duration, Instant};

const WITHIN: Duration = Duration::from_millis(200);

/// Waits for an event.
fn wait_for(subscriber: &Subscriber, what: &str, is: impl Fn(&SubscriberEvent) -> bool) {
    wait_until(what, || {
        std::iter::from_fn(|| subscriber.try_event()).any(|event| {
            println!("{event:?}");
            is(&event)
        })
    });
}

#[test]
fn an_idle_reservation_is_released_and_requested_again_by_the_next_sample() {
    let capacity = Capacity::from_bits_per_s(1_000_000).unwrap();
    let (robot, operator) = pair(|link| link.capacity(capacity));
    let mut alarm = robot.publisher("alarm").hz(20.0).bytes_max(1_000).declare().unwrap();
    let alarms = operator.subscriber("alarm").within(WITHIN).idle(Duration::from_secs(1));
    let mut alarms = alarms.declare().unwrap();
    assert!(alarm.wait_matching(SOON));
    let granted = |event: &SubscriberEvent| matches!(event, SubscriberEvent::Granted(_));
    wait_for(&alarms, "the path grants it", granted);
    let used = Instant::now();
    while used.elapsed() < Duration::from_secs(3) {
        alarm.put("drill").unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(alarms.try_event().is_none_or(|event| !matches!(event, SubscriberEvent::Withdrawn(_))));
    let last = Instant::now();
    let idle =
        |event: &SubscriberEvent| matches!(event, SubscriberEvent::BestEffort(_, BestEffort::Idle));
    wait_for(&alarms, "it is idle", idle);
    assert!(last.elapsed() > Duration::from_millis(700), "{:?}", last.elapsed());
    let reserved = || robot.status(SOON).iter().map(|node| node.reservations.len()).sum::<usize>();
    assert_eq!(reserved(), 0);
    while alarms.try_recv().is_some() {}
    alarm.put("fire").unwrap();
    assert_eq!(&alarms.recv_timeout(SOON).unwrap().payload[..], b"fire", "as best effort");
    wait_for(&alarms, "the sample requests it again", granted);
    sums::check(&[&robot, &operator]);
}

#[test]
fn an_idle_time_needs_a_second_and_a_contract() {
    let (_robot, operator) = pair(|link| link);
    for time in [Duration::ZERO, Duration::from_millis(999)] {
        let error = operator.subscriber("pose").within(WITHIN).idle(time).check().unwrap_err();
        assert!(matches!(error, SubscribeError::Idle(asked) if asked == time), "{error}");
        assert!(error.to_string().contains("must be at least 1 s"), "{error}");
    }
    let bare = operator.subscriber("pose").idle(Duration::from_secs(30)).check();
    assert!(matches!(bare.unwrap_err(), SubscribeError::IdleWithoutContract));
}

#[test]
fn both_directions_are_granted_or_neither() {
    let capacity = Capacity::from_bits_per_s(1_000_000).unwrap();
    let (robot, operator) = pair(|link| link.capacity(capacity));
    let camera = robot.publisher("camera").hz(10.0).bytes_max(2_000);
    let mut camera = camera.declare().unwrap();
    let mut commands = robot.subscriber("cmd").within(WITHIN).declare().unwrap();
    let pictures = operator.subscriber("camera").within(WITHIN).with_tag("cmd");
    let mut pictures = pictures.declare().unwrap();
    let opposite = |missing| {
        move |event: &SubscriberEvent| {
            matches!(event, SubscriberEvent::Refused(_, refusal)
                if refusal.reason == RefusalReason::Opposite { missing } && refusal.link == "cmd")
        }
    };
    wait_for(&pictures, "nobody publishes commands", opposite(true));
    // Commands that do not fit refuse both halves.
    let large = operator.publisher("cmd").hz(10.0).bytes_max(50_000).declare().unwrap();
    wait_for(&pictures, "the commands are refused", opposite(false));
    let capacity = |event: &SubscriberEvent| {
        matches!(event, SubscriberEvent::Refused(_, refusal)
            if refusal.reason == RefusalReason::Capacity)
    };
    wait_for(&commands, "the commands name the link", capacity);
    drop(large);
    let mut cmd = operator.publisher("cmd").hz(10.0).bytes_max(100).declare().unwrap();
    let granted = |event: &SubscriberEvent| matches!(event, SubscriberEvent::Granted(_));
    wait_for(&pictures, "pictures are granted", granted);
    wait_for(&commands, "and commands", granted);
    assert!(camera.wait_matching(SOON) && cmd.wait_matching(SOON));
    camera.put(vec![1; 2_000]).unwrap();
    cmd.put("left").unwrap();
    assert_eq!(pictures.recv_timeout(SOON).unwrap().payload.len(), 2_000);
    assert_eq!(&commands.recv_timeout(SOON).unwrap().payload[..], b"left");
    // The end of one half ends the other.
    drop(cmd);
    wait_for(&pictures, "the other half is gone", opposite(true));
    let reserved = || robot.status(SOON).iter().map(|node| node.reservations.len()).sum::<usize>();
    wait_until("nothing stays reserved", || reserved() == 0);
    sums::check(&[&robot, &operator]);
}

#[test]
fn an_opposite_stream_needs_a_valid_tag_and_a_contract_without_an_idle_time() {
    let (_robot, operator) = pair(|link| link);
    let error = operator.subscriber("camera").with_tag("cmd").check().unwrap_err();
    assert!(matches!(error, SubscribeError::TiedWithoutContract(ref tag) if tag == "cmd"));
    for tag in ["", "a/*", "@cmd"] {
        assert!(
            operator.subscriber("camera").within(WITHIN).with_tag(tag).check().is_err(),
            "{tag}"
        );
    }
    let both = operator.subscriber("camera").within(WITHIN).with_tag("cmd");
    let error = both.idle(Duration::from_secs(9)).check().unwrap_err();
    assert!(matches!(error, SubscribeError::Contradiction(_)), "{error}");
}

#[test]
fn a_publisher_requests_contracts_for_its_subscribers() {
    let capacity = Capacity::from_bits_per_s(1_000_000).unwrap();
    let (robot, operator) = pair(|link| link.capacity(capacity));
    let stop = robot.publisher("stop").hz(20.0).bytes_max(1_000).within(WITHIN).loss(1, 10);
    let mut stop = stop.declare().unwrap();
    let first = operator.subscriber("stop").declare().unwrap();
    let own = Duration::from_millis(90);
    let second = operator.subscriber("stop").within(own).declare().unwrap();
    let granted = |within: Duration| move |event: &SubscriberEvent| matches!(event, SubscriberEvent::Granted(grant) if grant.within == Some(within.into()));
    wait_for(&first, "the publisher requests it", granted(WITHIN));
    wait_for(&second, "a request of its own counts", granted(own));
    assert!(stop.wait_matching(SOON));
    stop.put("now").unwrap();
    drop((first, second));
    wait_until("nothing is reserved after the last subscriber", || {
        robot.status(SOON).iter().all(|node| node.reservations.is_empty())
    });
    // A refused request leaves best effort.
    let large = robot.publisher("map").hz(20.0).bytes_max(100_000).within(WITHIN);
    let mut large = large.declare().unwrap();
    let mut maps = operator.subscriber("map").declare().unwrap();
    let refused = |event: &SubscriberEvent| {
        matches!(event, SubscriberEvent::BestEffort(_, BestEffort::Refused))
    };
    wait_for(&maps, "it does not fit", refused);
    large.put("small").unwrap();
    assert_eq!(&maps.recv_timeout(SOON).unwrap().payload[..], b"small");
    let zero = robot.publisher("none").within(Duration::ZERO).declare().map(drop).unwrap_err();
    assert!(matches!(zero, paceline::PublishError::ZeroWithin), "{zero}");
    sums::check(&[&robot, &operator]);
}
