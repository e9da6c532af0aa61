use super::*;
use crate::status::{NetworkHealth, explain};
use paceline_proto::{DropReason, Drops, NodeId, PublisherId, Rate};
use std::num::{NonZeroU32, NonZeroU64};

const CAMERA: PublisherId = PublisherId { node: NodeId(1), index: 0 };
const PERIOD: Option<Duration> = Some(Duration::from_micros(33_333));

fn request(rate: Rate, within_ms: Option<u64>, loss: Option<&str>) -> HealthRequest {
    HealthRequest {
        rate,
        within: within_ms.map(Duration::from_millis),
        loss: loss.map(|loss| loss.parse().unwrap()),
        publishers: vec![(CAMERA, PERIOD)],
    }
}

fn max(hz: u32) -> Rate {
    Rate { max_millihertz: NonZeroU32::new(hz * 1_000), ..Rate::ALL }
}

/// Reads the counters of each second: delivered, gaps, late, and published samples per second.
fn read(request: &HealthRequest, seconds: &[(u64, u64, u64, u64)]) -> SubscriptionHealth {
    let mut window = HealthWindow::default();
    let mut reading = HealthReading { at: Duration::from_secs(100), ..HealthReading::default() };
    window.handle_reading(request.clone(), reading.clone());
    for (delivered, gaps, late, published) in seconds {
        reading.at += Duration::from_secs(1);
        reading.delivered += delivered;
        reading.gaps += gaps;
        reading.late += late;
        *reading.published.entry(CAMERA).or_default() += published;
        window.handle_reading(request.clone(), reading.clone());
    }
    window.health()
}

#[test]
fn best_effort_that_starves_is_short_while_it_happens() {
    let health = read(&request(Rate::ALL, None, None), &[(7, 23, 0, 30); 4]);
    assert_eq!((health.state, health.delivered, health.lost), (HealthState::Short, 28, 92));
    assert_eq!((health.requested, health.requested_millihertz), (Some(120), Some(30_000)));
    assert_eq!(health.delivered_millihertz, Some(7_000));
    assert_eq!(health.reason.as_deref(), Some("92 of 120 lost before this node"));
    assert_eq!(health.figures(), "28 of 120 in 4 s, 92 lost");
    // Within the first second.
    let first = read(&request(Rate::ALL, None, None), &[(7, 23, 0, 30)]);
    assert_eq!(first.state, HealthState::Short);
    let whole = read(&request(Rate::ALL, None, None), &[(30, 0, 0, 30); 4]);
    assert_eq!((whole.state, whole.lost, whole.reason), (HealthState::Served, 0, None));
}

#[test]
fn a_requested_rate_is_compared_with_the_published_samples() {
    let served = read(&request(max(10), None, None), &[(10, 0, 0, 30); 12]);
    assert_eq!((served.state, served.requested, served.lost), (HealthState::Served, Some(100), 0));
    let one_less = read(&request(max(10), None, None), &[(10, 0, 0, 30), (9, 0, 0, 30)]);
    assert_eq!((one_less.state, one_less.requested), (HealthState::Served, Some(19)));
    let short = read(&request(max(10), None, None), &[(5, 0, 0, 30); 12]);
    assert_eq!((short.state, short.requested, short.lost), (HealthState::Short, Some(100), 50));
    // A publisher that sends less than the limit.
    let slow = read(&request(max(10), None, None), &[(4, 0, 0, 4); 12]);
    assert_eq!((slow.state, slow.requested), (HealthState::Served, Some(40)));
    let half = Rate::every(NonZeroU32::new(2).unwrap());
    let some = read(&request(half, None, None), &[(15, 0, 0, 30); 3]);
    assert_eq!((some.state, some.requested), (HealthState::Served, Some(45)));
    let less = read(&request(half, None, None), &[(5, 0, 0, 30); 3]);
    assert_eq!((less.state, less.lost), (HealthState::Short, 30));
}

#[test]
fn a_contract_is_broken_beyond_its_tolerance_only() {
    let within = |loss| request(Rate::ALL, Some(20), loss);
    let tolerated = read(&within(Some("5/100")), &[(95, 5, 0, 100); 4]);
    assert_eq!((tolerated.state, tolerated.lost), (HealthState::Served, 20));
    let broken = read(&within(Some("5/100")), &[(80, 20, 0, 100); 4]);
    assert_eq!((broken.state, broken.broken_seconds), (HealthState::Broken, 4));
    let late = read(&within(None), &[(100, 0, 0, 100), (100, 0, 3, 100)]);
    assert_eq!((late.state, late.late, late.lost), (HealthState::Broken, 3, 0));
    assert_eq!(late.reason.as_deref(), Some("3 of 200 were older than 20 ms"));
    // It counts while it is in the window, and is remembered afterwards.
    let mut seconds = vec![(99, 1, 0, 100)];
    seconds.extend([(100, 0, 0, 100); 11]);
    let kept = read(&within(None), &seconds);
    assert_eq!((kept.state, kept.lost), (HealthState::Served, 0));
    assert_eq!(kept.broken_seconds, 10);
    assert_eq!(kept.broken_ago, Some(Duration::from_secs(2)));
}

#[test]
fn a_short_loss_beyond_the_tolerance_breaks_a_contract_whatever_the_mean() {
    let within = |loss| request(Rate::ALL, Some(20), loss);
    let mut seconds = vec![(10, 0, 0, 10); 8];
    let whole = read(&within(Some("1/10")), &seconds);
    assert_eq!(whole.state, HealthState::Served);
    seconds.push((3, 7, 0, 10));
    let broken = read(&within(Some("1/10")), &seconds);
    assert_eq!((broken.state, broken.lost, broken.requested), (HealthState::Broken, 7, Some(90)));
    let reason = "7 of 90 lost before this node: 7 of 10 missed within 1 s";
    assert_eq!(broken.reason.as_deref(), Some(reason));
    seconds.extend([(10, 0, 0, 10); 9]);
    assert_eq!(read(&within(Some("1/10")), &seconds).state, HealthState::Broken);
    seconds.push((10, 0, 0, 10));
    let after = read(&within(Some("1/10")), &seconds);
    assert_eq!((after.state, after.broken_seconds), (HealthState::Served, 10));
    // Late samples, and a requested rate that explains the loss of the window.
    seconds.push((10, 0, 5, 10));
    let late = read(&within(Some("1/10")), &seconds);
    let reason = "5 of 100 were older than 20 ms: 5 of 10 missed within 1 s";
    assert_eq!((late.state, late.reason.as_deref()), (HealthState::Broken, Some(reason)));
    let mut seconds = vec![(10, 0, 0, 30); 9];
    seconds.push((4, 0, 0, 30));
    let rate = read(&request(max(10), Some(20), Some("1/10")), &seconds);
    assert_eq!((rate.state, rate.lost), (HealthState::Broken, 0));
    assert_eq!(rate.reason.as_deref(), Some("6 of 10 missed within 1 s"));
}

#[test]
fn a_place_replaces_no_pause_as_the_reason() {
    let mut health = read(&request(max(10), None, None), &[(10, 0, 0, 30), (0, 0, 0, 0)]);
    health.lost_before = 0;
    let pause = health.reason.clone();
    assert!(pause.as_ref().unwrap().starts_with("no sample for"));
    health.set_place("on link 'radio' of 'robot'");
    assert_eq!(health.reason, pause);
}

#[test]
fn each_publisher_of_a_contract_may_use_its_tolerance() {
    // 20 streams of 1 Hz, each loses its first sample of a group of ten in the same second.
    let publishers = (0..20).map(|index| (PublisherId { node: NodeId(1), index }, None)).collect();
    let request = HealthRequest { publishers, ..request(Rate::ALL, Some(20), Some("1/10")) };
    let seconds = [(20, 0, 0, 20), (0, 20, 0, 20), (20, 0, 0, 20)];
    assert_eq!(read(&request, &seconds).state, HealthState::Served);
    let seconds = [(20, 0, 0, 20), (0, 20, 0, 20), (0, 20, 0, 20), (0, 20, 0, 20), (20, 0, 0, 20)];
    assert_eq!(read(&request, &seconds).state, HealthState::Broken);
}

#[test]
fn a_stream_that_stops_is_not_served() {
    let stopped = read(&request(Rate::ALL, None, None), &[(30, 0, 0, 30), (0, 0, 0, 0)]);
    assert_eq!((stopped.state, stopped.lost), (HealthState::Short, 30));
    assert_eq!(stopped.reason.as_deref(), Some("no sample for 1 s, and 30.0 Hz are declared"));
    let promised = read(&request(max(10), Some(200), None), &[(10, 0, 0, 30), (0, 0, 0, 0)]);
    assert_eq!(promised.state, HealthState::Short, "the publisher may pause");
    let none = HealthRequest { publishers: vec![(CAMERA, None)], ..request(max(10), None, None) };
    let silent = read(&none, &[(10, 0, 0, 30), (0, 0, 0, 0), (0, 0, 0, 0)]);
    assert_eq!((silent.state, silent.lost), (HealthState::Silent, 0), "it declares no rate");
    let never = read(&none, &[(0, 0, 0, 0)]);
    assert_eq!(never.state, HealthState::Silent, "nothing has arrived");
    let nobody = HealthRequest { publishers: Vec::new(), ..none };
    assert_eq!(read(&nobody, &[(0, 0, 0, 0)]).state, HealthState::NoPublisher);
}

#[test]
fn samples_that_wait_without_a_loss_are_not_served() {
    let (mut window, request) = (HealthWindow::default(), request(Rate::ALL, None, None));
    let mut reading = HealthReading { at: Duration::from_secs(9), ..HealthReading::default() };
    window.handle_reading(request.clone(), reading.clone());
    // 3 of 30 Hz arrive, and each second adds 0.9 s to their age.
    for second in 0..5_u32 {
        reading.at += Duration::from_secs(1);
        reading.delivered += 3;
        reading.youngest = Some(Duration::from_millis(40) + Duration::from_millis(900) * second);
        window.handle_reading(request.clone(), reading.clone());
        let state = if second == 0 { HealthState::Served } else { HealthState::Short };
        assert_eq!(window.health().state, state, "{second}");
    }
    let reason = "samples wait before this node: their age grew by 3.6 s";
    assert_eq!(window.health().reason.as_deref(), Some(reason));
    // The queue has become empty again.
    (reading.at, reading.youngest) =
        (reading.at + Duration::from_secs(1), Some(Duration::from_millis(45)));
    reading.delivered += 150;
    window.handle_reading(request.clone(), reading.clone());
    assert_eq!((window.health().state, window.health().reason), (HealthState::Served, None));
}

#[test]
fn samples_dropped_here_are_lost_and_named() {
    let (mut window, request) = (HealthWindow::default(), request(Rate::ALL, None, None));
    let mut reading = HealthReading { at: Duration::from_secs(9), ..HealthReading::default() };
    window.handle_reading(request.clone(), reading.clone());
    (reading.at, reading.delivered, reading.refused) = (Duration::from_secs(10), 20, 10);
    reading.dropped.add(DropReason::SubscriberFull, 10);
    window.handle_reading(request.clone(), reading.clone());
    let health = window.health();
    assert_eq!((health.state, health.lost, health.lost_before), (HealthState::Short, 10, 0));
    assert_eq!(health.reason.as_deref(), Some("10 of 30 dropped here (subscriber_full)"));
    // Nothing is read any more. That is no pause of the publisher.
    for _ in 0..4 {
        (reading.at, reading.refused) = (reading.at + Duration::from_secs(1), reading.refused + 30);
        reading.dropped.add(DropReason::SubscriberFull, 30);
        window.handle_reading(request.clone(), reading.clone());
    }
    let health = window.health();
    assert_eq!((health.requested, health.lost, health.lost_before), (Some(150), 130, 0));
    assert_eq!(health.reason.as_deref(), Some("130 of 150 dropped here (subscriber_full)"));
    // Another request starts a new window.
    window.handle_reading(HealthRequest { rate: max(5), ..request }, reading);
    assert_eq!(window.health().window, Duration::ZERO);
}

proptest::proptest! {
    #[test]
    fn the_figures_add_up(
        seconds in proptest::collection::vec((0..40u64, 0..40u64, 0..5u64), 1..20),
        hz in 0..40u32,
        within in proptest::option::of(1..500u64),
    ) {
        let rate = NonZeroU64::new(hz.into()).map_or(Rate::ALL, |_| max(hz));
        let all = rate == Rate::ALL;
        let seconds: Vec<_> = seconds
            .into_iter()
            .map(|(delivered, gaps, late)| {
                (delivered, if all { gaps } else { 0 }, late.min(delivered), delivered + gaps)
            })
            .collect();
        let health = read(&request(rate, within, None), &seconds);
        let SubscriptionHealth { state, requested, delivered, lost, late, .. } = health;
        proptest::prop_assert_eq!(requested, Some(delivered + lost));
        proptest::prop_assert!(late <= delivered && health.lost_before <= lost);
        proptest::prop_assert!(state != HealthState::Served || lost == 0, "green with a loss");
        proptest::prop_assert!(!state.is_failure() || health.reason.is_some());
        proptest::prop_assert!(within.is_none() || state != HealthState::Served || late == 0);
    }
}

#[test]
fn the_summary_names_every_failure() {
    let row = |pattern: &str, state| {
        let mut health = SubscriptionHealth::default();
        (health.state, health.label) = (state, String::new());
        (pattern.to_owned(), health)
    };
    let summary = |rows: Vec<(String, SubscriptionHealth)>| {
        let mut node = crate::status::NodeStatus::new(NodeId(2));
        node.name = "operator".to_owned();
        node.subscriptions =
            rows.into_iter().map(|(pattern, health)| subscription(pattern, health)).collect();
        NetworkHealth::of(&[node])
    };
    use HealthState::{Broken, Refused, Served, Short};
    let green = summary(vec![row("a", Served), row("b", Served)]);
    assert_eq!(
        (green.state, green.text.as_str()),
        (Served, "2 subscriptions are served as requested")
    );
    let mixed =
        summary(vec![row("a", Served), row("b", Broken), row("c", Refused), row("d", Short)]);
    assert_eq!(
        (mixed.state, mixed.text.as_str()),
        (
            Broken,
            "1 contract is broken now: operator b; 1 subscription gets less than requested: operator d; \
             1 subscription is refused: operator c; 1 other subscription is served as requested"
        )
    );
    assert_eq!(summary(Vec::new()).text, "no subscriptions yet");
}

#[test]
fn the_link_and_the_processor_are_named_as_reasons() {
    let mut health = read(&request(Rate::ALL, None, None), &[(7, 23, 0, 30); 4]);
    let mut operator = crate::status::NodeStatus::new(NodeId(2));
    operator.subscriptions = vec![subscription("camera".to_owned(), health.clone())];
    health = read(&request(Rate::ALL, Some(20), None), &[(30, 0, 9, 30); 4]);
    operator.subscriptions.push(subscription("steer".to_owned(), health));
    let mut dropped = Drops::default();
    dropped.add(DropReason::Superseded, 92);
    let counters =
        crate::status::LinkCounters { offered: 120, sent: 28, dropped, ..Default::default() };
    let stream = crate::status::StreamStatus {
        publisher: CAMERA,
        tag: None,
        form: paceline_proto::Form::FULL,
        hop: NodeId(2),
        contracted: false,
        contract: None,
        ages: crate::status::SummedAges::default(),
        counters,
        broken_ago: None,
        group: None,
    };
    let mut robot = crate::status::NodeStatus::new(NodeId(1));
    robot.name = "robot".to_owned();
    let (name, streams) = ("thin".to_owned(), vec![stream]);
    robot.links = vec![crate::status::LinkStatus { name, streams, ..Default::default() }];
    let mut nodes = [operator, robot];
    explain(&mut nodes);
    let reasons = |nodes: &[crate::status::NodeStatus]| {
        let rows = nodes[0].subscriptions.iter();
        rows.map(|row| row.health.reason.clone().unwrap()).collect::<Vec<_>>()
    };
    let camera = "92 of 120 lost on link 'thin' of 'robot' (superseded)";
    assert_eq!(reasons(&nodes), [camera, "36 of 120 were older than 20 ms"]);
    nodes[1].processor_wait = Some(crate::status::ProcessorWait { longest_us_per_s: 412_000 });
    explain(&mut nodes);
    let steer = "36 of 120 were older than 20 ms; the processor of 'robot' is busy: a thread waited 412 ms per second for it; \
                 try realtime = true, fewer scaled forms or less other load";
    assert_eq!(reasons(&nodes), [camera, steer], "a slow link is not the fault of the processor");
}

fn subscription(pattern: String, health: SubscriptionHealth) -> crate::status::SubscriptionStatus {
    crate::status::SubscriptionStatus {
        id: paceline_proto::SubscriptionId { node: NodeId(2), index: 0 },
        pattern,
        form: paceline_proto::Form::FULL,
        elastic: None,
        importance: 50,
        within: None,
        loss: None,
        proxy: paceline_proto::Proxy::Publisher,
        scaled_at: Vec::new(),
        publishers: vec![CAMERA],
        refusals: Vec::new(),
        delivered: 0,
        bytes: 0,
        rate_millihertz: 0,
        late: 0,
        overdue: 0,
        age_max: Duration::ZERO,
        age_mean: None,
        age_sum: Duration::ZERO,
        dropped: Drops::default(),
        jitter: Duration::ZERO,
        lost: 0,
        timed: None,
        players: None,
        health,
    }
}
