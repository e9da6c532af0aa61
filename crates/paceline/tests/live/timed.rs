//! Delivery by time: commands within an age limit, samples in the order of their times, and their spacing.

use crate::support::{SOON, isolated, pair, wait_until};
use paceline::delivery::{
    Actuation, Otherwise, Placement, TimeBuffering, TimedMethod, TimedStatus,
};
use paceline::status::DropReason;
use paceline::{
    Capacity, Node, PutOptions, RecvError, Sample, SubscribeError, SubscriberEvent, Timestamp,
};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_millis(100);

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn silence_starts_the_safe_action_once() {
    let node = isolated("one", []);
    let mut commands =
        node.subscriber("arm/*").fresh_within(LIMIT, Otherwise::Zero).declare().unwrap();
    let mut publisher = node.publisher("arm/velocity").declare().unwrap();
    assert!(publisher.wait_matching(SOON));
    assert!(
        matches!(commands.recv_timeout(millis(150)), Err(RecvError::Timeout)),
        "nothing to stop"
    );
    for round in 0..3 {
        let published = Instant::now();
        publisher.put(vec![7; 24]).unwrap();
        let command = commands.recv_timeout(SOON).unwrap();
        let Some(Actuation::Command { until }) = command.actuation else { panic!("{command:?}") };
        assert!(until <= Instant::now() + LIMIT && until >= published);
        let safe = commands.recv_timeout(SOON).unwrap();
        let silent_for = published.elapsed();
        assert_eq!(safe.actuation, Some(Actuation::Safe));
        assert_eq!((safe.payload.as_ref(), safe.seq), (&[0; 24][..], command.seq));
        assert!(silent_for >= LIMIT, "{silent_for:?}");
        println!("the safe action started {:?} after the limit", silent_for - LIMIT);
        let events: Vec<_> = std::iter::from_fn(|| commands.try_event()).collect();
        let silent = events.iter().filter(|event| matches!(event, SubscriberEvent::Silent(_)));
        assert_eq!(silent.count(), 1);
        let resumed: Vec<u64> = events
            .iter()
            .filter_map(|event| {
                let SubscriberEvent::Resumed(resumption) = event else { return None };
                Some(resumption.seq)
            })
            .collect();
        assert_eq!(resumed, if round == 0 { vec![] } else { vec![command.seq] });
    }
    assert!(matches!(commands.recv_timeout(millis(150)), Err(RecvError::Timeout)), "once");
    let decisions = commands.decisions();
    assert_eq!((decisions.released, decisions.stale, decisions.silences), (3, 0, 3));
    let timed = status_of(&node);
    let [timed] = timed.as_slice() else { panic!("{timed:?}") };
    assert_eq!((timed.method, timed.setting.as_str()), (TimedMethod::Fresh, "100ms:zero"));
    assert_eq!((timed.released, timed.refused, timed.silences), (3, 0, 3));
}

#[test]
fn a_command_that_waited_in_the_queue_is_stale() {
    let node = isolated("one", []);
    let (acts, acted) = channel();
    let otherwise = Otherwise::call(move |silence| acts.send(silence.seq).unwrap());
    let mut commands = node.subscriber("arm").fresh_within(LIMIT, otherwise).declare().unwrap();
    let mut publisher = node.publisher("arm").declare().unwrap();
    assert!(publisher.wait_matching(SOON));
    publisher.put(b"old".to_vec()).unwrap();
    std::thread::sleep(LIMIT);
    publisher.put(b"new".to_vec()).unwrap();
    let command = commands.recv_timeout(SOON).unwrap();
    assert_eq!(command.payload, "new");
    assert_eq!(commands.drops().of(DropReason::Stale), 1);
    assert_eq!(acted.recv_timeout(SOON), Ok(command.seq), "the function runs without a reader");
    assert_eq!(commands.missing(), 1);
}

#[test]
fn a_callback_gets_the_safe_action_too() {
    let node = isolated("one", []);
    let (got, seen) = channel();
    let deliver = move |sample: Sample| got.send(sample.actuation).unwrap();
    let builder = node.subscriber("arm").fresh_within(millis(20), Otherwise::Zero);
    let subscription = builder.callback(deliver).unwrap();
    let mut publisher = node.publisher("arm").declare().unwrap();
    assert!(publisher.wait_matching(SOON));
    publisher.put(vec![1]).unwrap();
    assert!(matches!(seen.recv_timeout(SOON), Ok(Some(Actuation::Command { .. }))));
    assert_eq!(seen.recv_timeout(SOON), Ok(Some(Actuation::Safe)));
    assert_eq!(subscription.decisions().silences, 1);
}

/// Returns the delivery by time of all subscriptions of a node.
fn status_of(node: &Node) -> Vec<TimedStatus> {
    let nodes = node.status(SOON);
    let own = nodes.into_iter().find(|status| status.id == node.id()).unwrap();
    own.subscriptions.into_iter().filter_map(|subscription| subscription.timed).collect()
}

/// Publishes until the ages are proved: the stamps of both nodes must have crossed the link.
fn prove(put: &mut impl FnMut(), fresh: &mut impl FnMut() -> bool) -> Duration {
    wait_until("a proved age", || {
        put();
        std::thread::sleep(millis(10));
        fresh()
    })
}

#[test]
fn round_trips_prove_the_age_over_links() {
    for capacity in [None, Some(Capacity::from_bits_per_s(2_000_000).unwrap())] {
        let (robot, operator) = pair(|link| match capacity {
            Some(capacity) => link.capacity(capacity),
            None => link,
        });
        let builder = robot.subscriber("arm").fresh_within(LIMIT, Otherwise::Hold);
        let mut commands = builder.declare().unwrap();
        let mut publisher = operator.publisher("arm").declare().unwrap();
        assert!(publisher.wait_matching(SOON));
        let mut put = || {
            publisher.put(vec![7; 24]).unwrap();
        };
        let took = prove(&mut put, &mut || commands.try_recv().is_some());
        println!("proved after {took:?}");
        let before = commands.decisions();
        let mut left = Vec::new();
        for _ in 0..100 {
            put();
            std::thread::sleep(millis(5));
            while let Some(command) = commands.try_recv() {
                let Some(Actuation::Command { until }) = command.actuation else { panic!() };
                left.push(until.saturating_duration_since(Instant::now()));
            }
        }
        wait_until("all decisions", || {
            while commands.try_recv().is_some() {}
            let decisions = commands.decisions();
            decisions.released + decisions.stale >= before.released + before.stale + 100
        });
        let decisions = commands.decisions();
        println!(
            "{decisions:?}, of 100 ms are left {:?} to {:?}",
            left.iter().min(),
            left.iter().max()
        );
        assert!(decisions.released > before.released, "{decisions:?}");
        assert_eq!(commands.drops().of(DropReason::Stale), decisions.stale);
    }
}

#[test]
fn samples_of_several_publishers_leave_in_the_order_of_their_times() {
    let node = isolated("one", []);
    let order = TimeBuffering::by_time(millis(40));
    let mut samples = node.subscriber("sensor/*").queue(1_000).ordered(order).declare().unwrap();
    let mut publishers: Vec<_> =
        (0..4).map(|n| node.publisher(&format!("sensor/{n}")).declare().unwrap()).collect();
    assert!(publishers.iter().all(|publisher| publisher.wait_matching(SOON)));
    for round in 0..50u8 {
        for publisher in &mut publishers {
            publisher.put(vec![round]).unwrap();
        }
    }
    let mut got = Vec::new();
    for _ in 0..200 {
        let sample = samples.recv_timeout(SOON).unwrap();
        assert!(sample.age >= millis(40), "{:?}", sample.age);
        assert!(matches!(sample.placement, Some(Placement::InOrder | Placement::Unknown)));
        got.push((sample.captured.nanos, sample.publisher));
    }
    assert!(got.is_sorted_by_key(|(nanos, _)| *nanos));
    let timed = status_of(&node);
    assert_eq!((timed[0].method, timed[0].released), (TimedMethod::Ordered, 200));
    assert_eq!(timed[0].setting, "time 40ms");
}

#[test]
fn spacing_is_that_of_the_capture_times() {
    let node = isolated("one", []);
    let (got, seen) = channel();
    let deliver = move |sample: Sample| got.send((Instant::now(), sample.captured.nanos)).unwrap();
    let depth = millis(30)..=millis(200);
    let _subscription = node.subscriber("audio").spacing(depth).callback(deliver).unwrap();
    let mut publisher = node.publisher("audio").declare().unwrap();
    assert!(publisher.wait_matching(SOON));
    for burst in 0..20u64 {
        for step in 0..4 {
            let nanos = 1_000_000_000 + (4 * burst + step) * 5_000_000;
            let captured = Some(Timestamp { nanos, error: Timestamp::UNKNOWN_ERROR });
            let options = PutOptions { captured, ..PutOptions::default() };
            publisher.put_with(vec![1], options).unwrap();
        }
        std::thread::sleep(millis(20));
    }
    let got: Vec<_> = (0..80).map(|_| seen.recv_timeout(SOON).unwrap()).collect();
    let mut errors: Vec<f64> = got
        .windows(2)
        .map(|pair| {
            let [(a, before), (b, after)] = pair else { panic!() };
            let wanted = (after - before) as f64 / 1e3;
            ((*b - *a).as_secs_f64() * 1e6 - wanted).abs()
        })
        .collect();
    errors.sort_by(f64::total_cmp);
    println!("spacing errors: median {:.0} us, p90 {:.0} us", errors[39], errors[70]);
    // Each burst of four samples would have spacings of 0 and 20 ms.
    assert!(errors[39] < 4_000.0, "{errors:?}");
}

#[test]
fn each_sample_is_delivered_at_its_bound() {
    let node = isolated("one", []);
    let (got, seen) = channel();
    let deliver = move |sample: Sample| got.send(sample.age).unwrap();
    let builder = node.subscriber("audio").within(millis(30)).max_jitter(millis(25));
    let subscription = builder.callback(deliver).unwrap();
    let mut publisher = node.publisher("audio").declare().unwrap();
    assert!(publisher.wait_matching(SOON));
    for _ in 0..10 {
        publisher.put(vec![1]).unwrap();
        let age = seen.recv_timeout(SOON).unwrap();
        assert!(age >= millis(30), "{age:?}");
    }
    let report = subscription.spacing_report().unwrap();
    println!("{report:?}");
    assert_eq!((report.released, report.doubt), (10, Some(Duration::ZERO)), "on one node");
    let timed = &status_of(&node)[0];
    assert_eq!((timed.method, timed.setting.as_str()), (TimedMethod::MaxJitter, "25ms"));
    assert_eq!(timed.bound, timed.wakeup);
}

#[test]
fn a_jitter_below_the_wake_ups_is_refused_with_an_achievable_one() {
    let node = isolated("one", []);
    let sub = || node.subscriber("audio").within(millis(30));
    let error = sub().max_jitter(Duration::from_nanos(1)).declare().err().unwrap();
    let SubscribeError::MaxJitterRefused { achievable, .. } = error else { panic!("{error}") };
    assert!(achievable > Duration::from_nanos(1));
    assert!(error.to_string().contains("is achievable at present"), "{error}");
    // Much more than that is granted, whatever else the machine does.
    sub().max_jitter(achievable * 100 + millis(50)).declare().unwrap();
}

#[test]
fn wrong_and_contradictory_requests_are_named() {
    let node = isolated("one", []);
    let sub = || node.subscriber("a");
    let hold = || TimeBuffering::by_time(millis(50));
    let spaced = millis(0)..=millis(10);
    let years = Duration::from_secs(100_000_000);
    for (builder, part) in [
        (sub().fresh_within(Duration::ZERO, Otherwise::Hold), "from 1 µs to 1 h"),
        (sub().fresh_within(years, Otherwise::Hold), "from 1 µs to 1 h"),
        (sub().ordered(TimeBuffering::by_time(years)), "from 1 µs to 60 s"),
        (sub().ordered(hold().entries(0)), "from 1 to 65536"),
        (sub().ordered(hold().factor(f64::NAN)), "0.5 to 1.0"),
        (sub().spacing(millis(20)..=millis(10)), "a range within 0 and 60 s"),
        (sub().spacing(millis(0)..=years), "a range within 0 and 60 s"),
        (sub().max_jitter(millis(2)), "add within"),
        (sub().within(millis(5)).max_jitter(Duration::ZERO), "above 0"),
        (sub().within(years).max_jitter(millis(2)), "at most 60 s"),
        (sub().ordered(hold()).spacing(spaced.clone()), "ordered and spacing are both set"),
        (sub().spacing(spaced).fresh_within(LIMIT, Otherwise::Hold), "spacing and fresh_within"),
    ] {
        let error: SubscribeError = builder.check().unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn samples_of_one_publisher_stay_in_order_on_a_busy_host() {
    const SAMPLES: u32 = 2_000;
    let (robot, operator) = pair(|link| link);
    let mut publisher = robot.publisher("imu").hz(1_000.0).declare().unwrap();
    let order = TimeBuffering::by_time(millis(30));
    let samples = operator.subscriber("imu").queue(4_000).ordered(order);
    let mut samples = samples.declare().unwrap();
    // The ages are proved by echoes, which are sometimes missing when the threads get no processor.
    let proves = operator.subscriber("imu").fresh_within(LIMIT, Otherwise::Zero).declare();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        assert!(publisher.wait_matching(SOON));
        crate::support::at_rate(1_000, SAMPLES, |_| {
            publisher.put(vec![7; 24]).unwrap();
        });
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let mut last = None;
    while let Ok(sample) = samples.recv_timeout(millis(500)) {
        assert!(last.is_none_or(|last| last < sample.seq), "{} after {last:?}", sample.seq);
        last = Some(sample.seq);
    }
    assert!(last.is_some_and(|last| last > u64::from(SAMPLES / 2)), "{last:?}");
    drop(proves);
}
