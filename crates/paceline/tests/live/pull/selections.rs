//! Every kind of selection, from one buffer and from several.

use super::{all, fill, history, holding, meets, publish, seqs};
use crate::sums;
use crate::support::{SOON, isolated, pair, wait_until};
use paceline::pull::{LimitsError, PullError};
use paceline::{Node, SubscribeError};
use std::time::Duration;

#[test]
fn a_publisher_buffers_its_samples_and_each_selection_returns_its_part() {
    let (robot, operator) = pair(|link| link);
    let mut log = holding(&robot, "robot/log", 50);
    publish(&mut log, 0..100);
    assert_eq!(log.buffer().unwrap().len(), 50);
    meets(&operator, 1);
    let pull = || operator.pull("robot/log");
    assert_eq!(seqs(pull()), [99], "the newest if nothing is said");
    assert_eq!(seqs(pull().newest(3)), [97, 98, 99]);
    assert_eq!(seqs(pull().nth(1)), [99]);
    assert_eq!(seqs(pull().nth(50)), [50]);
    assert_eq!(seqs(pull().seq(60..=63)), [60, 61, 62, 63]);
    assert_eq!(seqs(pull().seq(0..=51)), [50, 51], "what is left of it");
    assert_eq!(seqs(pull().newest(100)), (50..100).collect::<Vec<_>>());
    assert_eq!(seqs(pull().seq(50..=99).every(10)), [50, 60, 70, 80, 90]);
    let (got, summary) = all(pull().seq(60..=99));
    assert!(got.iter().all(|sample| sample.payload == sample.seq.to_string()), "{got:?}");
    assert!(got.iter().all(|sample| sample.tag.as_str() == "robot/log"));
    assert!(got.iter().all(|sample| sample.publisher == log.id() && sample.age < SOON));
    assert!(got.windows(2).all(|pair| pair[0].captured < pair[1].captured));
    assert_eq!((summary.nodes[0].name.as_str(), summary.nodes[0].delivered), ("robot", 40));
    let (first, last) = (got[0].captured.nanos, got[9].captured.nanos);
    assert_eq!(seqs(pull().time(first..=last)), (60..70).collect::<Vec<_>>());
    assert_eq!(seqs(robot.pull("robot/log").newest(2)), [98, 99], "from itself");
    sums::check(&[&robot, &operator]);
}

#[test]
fn pulled_samples_keep_their_age_and_capture_time() {
    let (robot, operator) = pair(|link| link);
    let mut log = holding(&robot, "log", 10);
    publish(&mut log, 0..1);
    std::thread::sleep(Duration::from_millis(300));
    meets(&operator, 1);
    let (got, _) = all(operator.pull("log"));
    assert!(got[0].age >= Duration::from_millis(300), "{:?}", got[0].age);
    assert!(!got[0].late);
    sums::check(&[&robot, &operator]);
}

#[test]
fn a_pull_selects_one_publisher_or_all() {
    let (robot, operator) = pair(|link| link);
    let (mut one, mut other) = (holding(&robot, "t", 10), holding(&robot, "t", 10));
    publish(&mut one, 0..5);
    publish(&mut other, 0..3);
    meets(&operator, 1);
    let pull = || operator.pull("t").newest(2);
    let (got, _) = all(pull());
    let keys: Vec<_> = got.iter().map(|sample| (sample.publisher, sample.seq)).collect();
    assert_eq!(keys, [(one.id(), 3), (one.id(), 4), (other.id(), 1), (other.id(), 2)]);
    assert_eq!(seqs(pull().publisher(other.id())), [1, 2]);
    let nobody = paceline::status::PublisherId { index: 77, ..one.id() };
    let error = pull().publisher(nobody).run().unwrap_err().to_string();
    assert!(error.contains(&format!("nothing of publisher {nobody}")), "{error}");
    sums::check(&[&robot, &operator]);
}

#[test]
fn two_buffers_of_a_tag_form_one_history() {
    let (robot, operator) = pair(|link| link);
    let mut log = holding(&robot, "log", 4);
    publish(&mut log, 0..1);
    let kept = operator.buffer("**").samples(100).declare().unwrap();
    assert!(kept.is_empty());
    wait_until("the buffer receives the publisher", || {
        publish(&mut log, 0..1);
        std::thread::sleep(Duration::from_millis(20));
        kept.len() > 5
    });
    let first = seqs(operator.pull("log").seq(0..=u64::MAX));
    assert!(first.windows(2).all(|pair| pair[0] < pair[1]), "no sample twice: {first:?}");
    let newest = *first.last().unwrap();
    let three = seqs(operator.pull("log").newest(3));
    assert_eq!(three, [newest - 2, newest - 1, newest], "of both, not of each");
    let (got, summary) = all(operator.pull("log").newest(3).from("robot"));
    assert_eq!((got.len(), summary.nodes[0].name.as_str()), (3, "robot"));
    let by_id = operator.pull("log").from(&robot.id().to_string());
    assert_eq!(all(by_id).1.nodes[0].id, robot.id());
    sums::check(&[&robot, &operator]);
}

#[test]
fn a_subscriber_buffers_its_received_samples() {
    let (robot, operator) = pair(|link| link);
    let mut log = robot.publisher("log").declare().unwrap();
    let few = operator.subscriber("log").every(2).history(history(10));
    let mut few = few.declare().unwrap();
    assert!(log.wait_matching(SOON));
    publish(&mut log, 0..10);
    for _ in 0..5 {
        few.recv_timeout(SOON).unwrap();
    }
    let got = seqs(robot.pull("log").newest(10));
    assert_eq!(got, [0, 2, 4, 6, 8]);
    drop(few);
    wait_until("the buffer is gone", || {
        matches!(robot.pull("log").run(), Err(PullError::NoBuffer(_)))
    });
    sums::check(&[&robot, &operator]);
}

#[test]
fn impossible_pulls_are_refused_with_the_alternatives() {
    let node = isolated("robot", []);
    let error = node.pull("log").run().unwrap_err().to_string();
    assert!(error.contains("no node buffers 'log'") && error.contains("--history"), "{error}");
    let mut log = holding(&node, "log", 10);
    let pull = || node.pull("log");
    let told = |error: PullError| error.to_string();
    let error = told(pull().run().unwrap_err());
    assert!(error.contains("empty"), "{error}");
    publish(&mut log, 0..30);
    for (pull, parts) in [
        (pull().seq(3..=7), ["expired", "20 to 29"]),
        (pull().seq(40..=50), ["did not arrive yet", "20 to 29"]),
        (pull().time(1..=2), ["expired", "20 to 29"]),
        (pull().nth(11), ["fewer are buffered", "20 to 29"]),
        (pull().from("nobody"), ["no node 'nobody'", "robot"]),
    ] {
        let error = told(pull.run().unwrap_err());
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    #[expect(clippy::reversed_empty_ranges, reason = "that is refused")]
    for (error, part) in [
        (pull().seq(7..=3), "swap"),
        (pull().time(2..=1), "swap"),
        (pull().newest(0), "from 1"),
        (pull().nth(0), "from 1"),
        (pull().every(0), "every 0"),
        (pull().max_hz(0.0), "rate 0"),
        (pull().size(0, 1), "size 0x1"),
        (pull().timeout(Duration::ZERO), "timeout 0"),
    ] {
        let checked = error.check().unwrap_err();
        let error = error.run().unwrap_err();
        assert_eq!(checked, error);
        assert!(error.is_usage() && error.to_string().contains(part), "{error}");
    }
    sums::check(&[&node]);
}

#[test]
fn empty_and_terabyte_buffers_are_refused() {
    let node = isolated("robot", []);
    let buffer = || node.buffer("a");
    for (refused, expected) in [
        (buffer().samples(0), LimitsError::Samples(0)),
        (buffer().bytes(0), LimitsError::Bytes(0)),
        (buffer().bytes(1_000_000_000_000), LimitsError::Bytes(1_000_000_000_000)),
        (buffer().samples(2_000_000), LimitsError::Samples(2_000_000)),
    ] {
        let Err(SubscribeError::Limits(found)) = refused.declare() else { panic!("{expected}") };
        assert_eq!(found, expected);
    }
    assert!(buffer().age(Duration::ZERO).declare().is_err());
}

#[test]
fn a_buffer_is_also_bounded_by_bytes_and_age() {
    let node = isolated("robot", []);
    let mut log = node.publisher("log").declare().unwrap();
    let small = node.buffer("log").bytes(25).declare().unwrap();
    let short = Duration::from_millis(400);
    let short = node.buffer("log").age(short).declare().unwrap();
    fill(&mut log, 10, 10);
    assert_eq!((small.len(), small.bytes()), (2, 20));
    assert_eq!(short.len(), 10);
    wait_until("age advances without samples", || short.is_empty());
    assert_eq!(small.len(), 2);
    sums::check(&[&node]);
}

#[test]
fn the_status_hides_pull_traffic_and_shows_buffers() {
    let (robot, operator) = pair(|link| link);
    let mut log = holding(&robot, "log", 10);
    publish(&mut log, 0..20);
    meets(&operator, 1);
    let mut pulled = operator.pull("log").newest(10).run().unwrap();
    assert!(pulled.next().is_some());
    let status = |node: &Node| {
        let all = node.status(SOON);
        (all.iter().find(|n| n.name == "robot").unwrap().clone(), all)
    };
    wait_until("the buffer is shown with its times", || {
        status(&operator).0.buffers.iter().any(|buffer| buffer.oldest_ns.is_some())
    });
    let (shown, every) = status(&operator);
    let buffer = &shown.buffers[0];
    assert_eq!((buffer.pattern.as_str(), buffer.samples, buffer.bytes), ("log", 10, 20));
    assert_eq!(buffer.samples_max, 10);
    assert!(buffer.oldest_ns < buffer.newest_ns);
    let hidden = |node: &paceline::status::NodeStatus| {
        node.publishers.iter().all(|p| !p.tag.as_str().starts_with('@'))
            && node.subscriptions.iter().all(|s| !s.pattern.starts_with('@'))
            && node.links.iter().all(|link| link.streams.is_empty())
    };
    assert!(every.iter().all(hidden), "{every:?}");
    sums::check(&[&robot, &operator]);
}
