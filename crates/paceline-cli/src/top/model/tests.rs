use super::*;
use crate::status::example::status as test_status;
use paceline::status::{DropReason, NodeStatus};

/// A reading after this many seconds; the robot sends 5 pictures of 10,000 bytes per second.
fn reading(seconds: u64) -> Vec<NodeStatus> {
    let mut status = test_status();
    for node in &mut status {
        node.at += Duration::from_secs(seconds);
        for link in &mut node.links {
            link.at += Duration::from_secs(seconds);
            link.wire_bytes += seconds * 60_000;
            for stream in &mut link.streams {
                stream.counters.sent += seconds * 5;
                stream.counters.offered += seconds * 6;
                stream.counters.bytes += seconds * 50_000;
                stream.counters.dropped.add(DropReason::DeadlineMissed, seconds);
                stream.ages.entered += seconds * 6;
                stream.ages.entered_age += Duration::from_millis(seconds * 6 * 5);
                stream.ages.left_age += Duration::from_millis(seconds * 5 * 25);
            }
        }
        for subscription in &mut node.subscriptions {
            subscription.delivered += seconds * 5;
            subscription.bytes += seconds * 50_000;
            subscription.age_mean = Some(Duration::from_millis(30));
            subscription.late += seconds;
        }
    }
    status
}

/// The model after readings at these seconds.
pub(crate) fn model(readings: &[(u64, Vec<NodeStatus>)]) -> Model {
    let start = Instant::now();
    let mut model = Model::default();
    for (second, status) in readings {
        model.take(StatusDocument::new(status.clone()), start + Duration::from_secs(*second), 2);
    }
    model
}

/// The model after readings at 0 s and 2 s.
pub(crate) fn two() -> Model {
    model(&[(0, reading(0)), (2, reading(2))])
}

/// The same model after another reading without the robot.
pub(crate) fn without_robot() -> Model {
    let mut rest = reading(3);
    rest.retain(|node| node.name != "robot");
    model(&[(0, reading(0)), (2, reading(2)), (3, rest)])
}

#[test]
fn rates_and_means_are_differences_of_two_readings() {
    let view = two().view(Order::Bits, false);
    let row = &view.streams[0];
    assert!((row.rate_hz - 5.0).abs() < 1e-9);
    assert_eq!(
        (row.bits_per_s, row.delay_us, row.bound_us),
        (400_000, Some(20_000), Some(190_000))
    );
    assert_eq!(row.dropped.iter().collect::<Vec<_>>(), [(DropReason::DeadlineMissed, 2)]);
    assert_eq!((row.late, row.violations), (0, Some(0)));
    assert_eq!(view.links[0].used, Some(480_000));
    let row = &view.subscriptions[0];
    assert!((row.rate_hz - 4.7).abs() < 1e-9, "the rate of its health");
    assert_eq!((row.bits_per_s, row.delay_us, row.late), (400_000, Some(30_000), 1));
}

#[test]
fn rates_are_of_the_time_between_the_counts_and_not_between_the_answers() {
    // The first answers were delayed, so the second readings follow immediately.
    let start = Instant::now();
    let mut model = Model::default();
    model.take(StatusDocument::new(reading(0)), start, 2);
    model.take(StatusDocument::new(reading(4)), start + Duration::from_millis(1_000), 2);
    let view = model.view(Order::Bits, false);
    assert_eq!((view.links[0].used, view.streams[0].bits_per_s), (Some(480_000), 400_000));
    assert_eq!(view.subscriptions[0].bits_per_s, 400_000);
}

#[test]
fn a_stream_that_replaces_another_has_its_own_counts() {
    let with = |second: u64, sent: &[u64]| {
        let mut status = reading(second);
        let robot = status.iter_mut().find(|node| node.name == "robot").unwrap();
        let streams = &mut robot.links[0].streams;
        let stream = streams.remove(0);
        streams.extend(sent.iter().map(|&sent| {
            let counters =
                paceline::status::LinkCounters { sent, offered: sent, ..stream.counters };
            StreamStatus { counters, ..stream.clone() }
        }));
        status
    };
    let rates = |before: &[u64], now: &[u64]| {
        let view = model(&[(0, with(0, before)), (1, with(1, now))]).view(Order::Tag, false);
        let mut rates: Vec<String> =
            view.streams.iter().map(|row| format!("{:.1}", row.rate_hz)).collect();
        rates.sort();
        rates
    };
    assert_eq!(rates(&[1_000, 5], &[1_002, 8]), ["2.0", "3.0"]);
    assert_eq!(rates(&[5, 1_000], &[8, 1_002]), ["2.0", "3.0"], "in any order");
    assert_eq!(rates(&[1_000], &[1_002, 8]), ["0.0", "2.0"], "the new stream has no rate yet");
}

#[test]
fn bits_per_second_from_bytes() {
    assert_eq!(bits_per_s(125_000, 0.5), 2_000_000);
    assert_eq!(bits_per_s(u64::MAX, 0.0), 1_000_000_000_000_000_000);
}

#[test]
fn one_reading_has_no_rates() {
    let view = model(&[(0, reading(7))]).view(Order::Bits, false);
    let row = &view.streams[0];
    assert_eq!((row.bits_per_s, row.delay_us), (0, None));
    assert!(row.rate_hz.abs() < 1e-9);
}

#[test]
fn a_restarted_counter_gives_no_huge_drop() {
    let view = model(&[(0, reading(9)), (1, reading(1))]).view(Order::Bits, false);
    let row = &view.streams[0];
    assert!(row.rate_hz < 100.0, "{row:?}");
    assert!(total(&row.dropped) < 10, "{row:?}");
}

#[test]
fn a_node_that_does_not_answer_is_gone_and_then_forgotten() {
    let gone = without_robot();
    let view = gone.view(Order::Bits, false);
    assert_eq!((view.nodes, &view.gone[..]), (1, &["robot".to_owned()][..]));
    assert!(view.links[0].gone && view.links[0].used.is_none());
    assert!(view.streams[0].gone && view.streams[0].bits_per_s == 0);
    assert!(!view.subscriptions[0].gone);
    let mut rest = reading(9);
    rest.retain(|node| node.name != "robot");
    let later = model(&[(0, reading(0)), (2, reading(2)), (3, rest.clone()), (13, rest)]);
    let view = later.view(Order::Bits, false);
    assert!(view.gone.is_empty() && view.links.is_empty() && view.streams.is_empty());
}

#[test]
fn rows_are_sorted_by_any_column_in_both_orders() {
    let base = two().view(Order::Tag, false).streams.remove(0);
    let row = |tag: &str, rate_hz: f64, bits_per_s: u64, late: u64| Row {
        tag: tag.to_owned(),
        rate_hz,
        bits_per_s,
        late,
        delay_us: (late > 0).then_some(late),
        ..base.clone()
    };
    let sorted = |order: Order, turned: bool| {
        let mut rows = [row("b", 1.0, 30, 0), row("a", 3.0, 10, 2), row("c", 2.0, 20, 1)];
        sort(&mut rows, order, turned);
        rows.map(|row| row.tag).concat()
    };
    assert_eq!((sorted(Order::Tag, false), sorted(Order::Tag, true)), ("abc".into(), "cba".into()));
    assert_eq!(
        (sorted(Order::Rate, false), sorted(Order::Bits, false)),
        ("acb".into(), "bca".into())
    );
    assert_eq!(
        (sorted(Order::Late, false), sorted(Order::Delay, false)),
        ("acb".into(), "acb".into())
    );
    assert_eq!(sorted(Order::Drops, false), "abc", "equal rows are sorted by name");
    assert_eq!(Order::Drops.moved(1), Order::Tag);
    assert_eq!("late".parse(), Ok(Order::Late));
    assert!("latest".parse::<Order>().is_err());
}
