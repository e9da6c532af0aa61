//! Feedback to publishers about their subscriptions.

use crate::sums;
use crate::support::{SOON, at_rate, pair, wait_until};
use paceline::status::Feedback;
use paceline::{Capacity, PublisherEvent, SubscriberEvent};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

#[test]
fn a_publisher_is_notified_of_requests_grants_refusals_and_deliveries() {
    let capacity = Capacity::from_bits_per_s(2_000_000).unwrap();
    let (robot, operator) = pair(|link| link.capacity(capacity));
    let pose = robot.publisher("pose").hz(50.0).bytes_max(64);
    let mut pose = pose.declare().unwrap();
    let within = Duration::from_millis(100);
    let wish = || operator.subscriber("pose");
    let mut promised = wish().every(2).within(within).declare().unwrap();
    let impossible = wish().within(Duration::from_millis(2)).declare().unwrap();
    let own = robot.subscriber("pose").queue(128).declare().unwrap();
    let of = |all: &[Feedback], id| all.iter().find(|it| it.subscription == id).cloned();
    wait_until("one is granted, one is refused", || {
        let all = pose.feedback(SOON);
        let granted = of(&all, promised.id()).is_some_and(|it| it.grant.is_some());
        granted && of(&all, impossible.id()).is_some_and(|it| it.refusal.is_some())
    });
    at_rate(50, 100, |_| assert_eq!(pose.put(vec![7; 64]).unwrap().dropped, 0));
    let mut all = Vec::new();
    wait_until("sent samples are delivered", || {
        all = pose.feedback(SOON);
        let delivered = |id| of(&all, id).unwrap().measured.unwrap().delivered;
        delivered(own.id()) == 100 && delivered(promised.id()) == 50
    });
    assert_eq!(all.len(), 3);
    let far = of(&all, promised.id()).unwrap();
    assert_eq!((far.node.as_str(), far.period), ("operator", Some(Duration::from_millis(40))));
    assert_eq!(far.grant.unwrap().hops.len(), 1);
    let measured = far.measured.unwrap();
    assert_eq!((measured.bytes, measured.dropped), (50 * 64, 0));
    // Ages count when the program takes the samples.
    assert_eq!(measured.age_sum, Duration::ZERO);
    let ages: Duration = std::iter::from_fn(|| promised.try_recv()).map(|it| it.age).sum();
    all = pose.feedback(SOON);
    let measured = of(&all, promised.id()).unwrap().measured.unwrap();
    assert_eq!(measured.age_sum, ages);
    let told_no = of(&all, impossible.id()).unwrap();
    assert_eq!((told_no.grant, told_no.measured.unwrap().delivered), (None, 0));
    // An ended subscription is not listed, and an unreachable node does not exceed the timeout.
    drop(impossible);
    wait_until("it is gone", || pose.feedback(SOON).len() == 2);
    drop(promised);
    operator.close();
    let soon = Duration::from_millis(100);
    wait_until("only its own one is left", || pose.feedback(soon).len() == 1);
    let id = pose.id();
    drop(pose);
    wait_until("nobody publishes", || robot.feedback(id, SOON).is_empty());
    sums::check(&[&robot]);
}

#[test]
fn both_ends_are_notified_at_once_of_grants_refusals_and_ends() {
    let capacity = Capacity::from_bits_per_s(2_000_000).unwrap();
    let (robot, operator) = pair(|link| link.capacity(capacity));
    let pose = robot.publisher("pose").hz(50.0).bytes_max(64);
    let pose = pose.declare().unwrap();
    let (send, told) = channel();
    // The watch continues even if the receiver of the channel is dropped.
    let watch = pose.watch(move |rows| drop(send.send(rows.to_vec()))).unwrap();
    let next = || {
        let news = pose.news();
        pose.try_event().or_else(|| {
            assert!(news.wait_until(Instant::now() + SOON), "no notification arrives");
            pose.try_event()
        })
    };
    let event = || std::iter::repeat_with(next).flatten().next().unwrap();
    let watched = |of: &dyn Fn(&Feedback) -> bool| {
        let begun = Instant::now();
        while begun.elapsed() < SOON {
            if told.recv_timeout(SOON).unwrap().iter().any(of) {
                return true;
            }
        }
        false
    };
    let within = Duration::from_millis(100);
    let wish = || operator.subscriber("pose");
    let promised = wish().within(within).declare().unwrap();
    let PublisherEvent::Granted(grant) = event() else { panic!("it can be granted") };
    assert_eq!((grant.subscription, grant.hops.len()), (promised.id(), 1));
    assert!(watched(&|row| row.subscription == promised.id() && row.grant == Some(grant.clone())));
    assert!(watched(&|row| row.subscription == promised.id() && row.measured.is_some()));
    let impossible = wish().within(Duration::from_millis(2)).declare().unwrap();
    let PublisherEvent::Refused(refusal) = event() else { panic!("it cannot be granted") };
    assert_eq!(refusal.subscription, impossible.id());
    assert!(watched(&|row| row.subscription == impossible.id() && row.refusal.is_some()));
    // Change to best effort.
    let id = promised.id();
    promised.change(|asked| asked.as_published()).unwrap();
    assert_eq!(event(), PublisherEvent::Withdrawn(id));
    wait_until("its subscriber is notified, too", || {
        std::iter::from_fn(|| promised.try_event())
            .any(|event| event == SubscriberEvent::Withdrawn(pose.id()))
    });
    // Dropping the publisher ends its watch.
    drop(pose);
    while told.recv_timeout(SOON).is_ok() {}
    assert_eq!(told.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected));
    drop(watch);
}

#[test]
fn a_publisher_above_its_declared_rate_is_notified_and_others_stay_on_time() {
    let capacity = Capacity::from_bits_per_s(2_000_000).unwrap();
    let (robot, operator) = pair(|link| link.capacity(capacity));
    let declare = |tag| robot.publisher(tag).hz(20.0).bytes_max(64);
    let mut honest = declare("honest").declare().unwrap();
    let mut greedy = declare("greedy").declare().unwrap();
    let within = Duration::from_millis(200);
    let wish = |tag| operator.subscriber(tag).within(within).queue(256);
    let [mut kept, mut more] = ["honest", "greedy"].map(|tag| wish(tag).declare().unwrap());
    for publisher in [&honest, &greedy] {
        assert!(publisher.wait_matching(SOON));
    }
    at_rate(20, 60, |_| {
        assert_eq!(honest.put(vec![1; 64]).unwrap().dropped, 0);
        // Twice the capacity of the link.
        let _ = greedy.put(vec![2; 25_000]).unwrap();
    });
    let told = |publisher: &paceline::Publisher| {
        std::iter::from_fn(|| publisher.try_event())
            .filter_map(|event| {
                if let PublisherEvent::Excess(excess) = event { Some(excess) } else { None }
            })
            .last()
    };
    let mut long = 0;
    wait_until("it is notified of every sample", || {
        long = told(&greedy).map_or(long, |excess| excess.long);
        long == 60
    });
    assert_eq!(greedy.feedback(SOON)[0].excess.long, 60);
    assert_eq!((told(&honest), honest.feedback(SOON)[0].excess.long), (None, 0));
    wait_until("conforming samples all arrive", || {
        honest.feedback(SOON)[0].measured.is_some_and(|it| it.delivered == 60)
    });
    // The event names the node that queued the excess samples.
    let mut told = None;
    wait_until("its subscriber is notified", || {
        let events = std::iter::from_fn(|| more.try_event());
        let excess = |event| match event {
            SubscriberEvent::Excess { publisher, node, node_name, excess } => {
                Some((publisher, node, node_name, excess.long))
            }
            SubscriberEvent::Publishers(_)
            | SubscriberEvent::Refused(..)
            | SubscriberEvent::Granted(_)
            | SubscriberEvent::NoSpare(_)
            | SubscriberEvent::Withdrawn(_)
            | SubscriberEvent::BestEffort(..)
            | SubscriberEvent::Silent(_)
            | SubscriberEvent::Resumed(_)
            | SubscriberEvent::ChangeRefused { .. }
            | SubscriberEvent::Changed { .. }
            | SubscriberEvent::Adapted { .. }
            | SubscriberEvent::Warned(..) => None,
            _ => panic!("an unknown event"),
        };
        told = events.filter_map(excess).last().or(told.take());
        told == Some((greedy.id(), robot.id(), "robot".to_owned(), 60))
    });
    let events = std::iter::from_fn(|| kept.try_event());
    let blamed = events.filter(|event| matches!(event, SubscriberEvent::Excess { .. }));
    assert_eq!(blamed.count(), 0);
    // Some samples arrive nevertheless: none is dropped for its length.
    assert!(more.recv_timeout(SOON).is_ok() && kept.recv_timeout(SOON).is_ok());
    sums::check(&[&robot, &operator]);
}
