//! Elastic contracts over a link whose capacity changes.

use crate::support::{at_rate, pair, wait_until, wait_within};
use paceline::contract::Cause;
use paceline::{Capacity, PublisherEvent, SubscriberEvent};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn mbit(mbit: u64) -> Capacity {
    Capacity::from_bits_per_s(mbit * 1_000_000).unwrap()
}

/// A camera of 2.6 Mbit/s next to steering at 100 Hz. The link falls from 5 to 1.5 Mbit/s and returns.
#[test]
fn a_camera_is_reduced_and_restored_and_steering_keeps_its_contract() {
    let (robot, operator) = pair(|link| link.capacity(mbit(5)));
    let mut camera = robot.publisher("camera").hz(30.0).bytes_max(10_000).declare().unwrap();
    let mut steering = robot.publisher("steering").hz(100.0).bytes_max(100).declare().unwrap();
    let within = Duration::from_millis(100);
    let steered = operator.subscriber("steering").within(within).loss(1, 10).importance(90);
    let mut steered = steered.queue(4_096).declare().unwrap();
    let pictures = operator.subscriber("camera").max_hz(30.0).min_hz(3.0).importance(20);
    let mut pictures = pictures.within(Duration::from_millis(200)).loss(1, 5).declare().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                at_rate(100, 30, |n| {
                    steering.put(vec![1; 100]).unwrap();
                    if n % 3 == 0 {
                        camera.put(vec![7; 10_000]).unwrap();
                    }
                });
            }
        });
        let mut last = None;
        let mut follow = |what: &str, time: u64, wanted: &dyn Fn(f64, &Cause) -> bool| {
            wait_within(what, Duration::from_secs(time), || {
                _ = pictures.try_recv();
                while let Some(event) = pictures.try_event() {
                    if let SubscriberEvent::Refused(_, refusal) = &event {
                        panic!("refused: {refusal}");
                    }
                    if let SubscriberEvent::Adapted { form, adaptation, .. } = event {
                        println!("{form}: {adaptation}");
                        last = Some((form.rate.max_hz().unwrap(), adaptation.cause));
                    }
                }
                last.as_ref().is_some_and(|(hertz, cause)| wanted(*hertz, cause))
            });
        };
        let granted = || operator.status(within).iter().any(|node| !node.subscriptions.is_empty());
        wait_until("the contracts are granted", granted);
        std::thread::sleep(Duration::from_secs(1));
        robot.set_capacity("radio", mbit(2)).unwrap();
        follow("the camera is reduced", 3, &|hertz, cause| {
            hertz < 20.0 && matches!(cause, Cause::Refused(_))
        });
        robot.set_capacity("radio", mbit(5)).unwrap();
        follow("the camera is restored", 15, &|hertz, cause| hertz > 29.0 && *cause == Cause::Room);
        stop.store(true, Ordering::Relaxed);
    });
    let granted = std::iter::from_fn(|| camera.try_event());
    let granted = granted.filter(|event| matches!(event, PublisherEvent::Granted(_))).count();
    assert!(granted >= 3, "the publisher is notified of each step: {granted}");
    while let Some(event) = steered.try_event() {
        assert!(!matches!(event, SubscriberEvent::Refused(..)), "{event:?}");
    }
    let seqs: Vec<u64> = std::iter::from_fn(|| steered.try_recv()).map(|it| it.seq).collect();
    println!("{} samples of steering", seqs.len());
    assert!(
        seqs.len() > 500 && seqs.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "none is missing"
    );
}
