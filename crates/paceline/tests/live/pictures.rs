//! Spatial scaling of real JPEG pictures to the size that each subscriber requests.

use crate::sums;
use crate::support::{SOON, at_rate, pair, wait_until};
use paceline::Encoding;
use paceline::contract::Proxy;
use paceline_media::{Size, TestCard, jpeg, read_card_jpeg};
use std::time::Duration;

#[test]
fn each_subscriber_gets_its_requested_rate_and_size() {
    let (robot, operator) = pair(|link| link);
    let camera = robot.publisher("camera").encoding(Encoding::Jpeg).hz(30.0);
    let mut camera = camera.declare().unwrap();
    let ask = || operator.subscriber("camera").queue(1_000);
    let mut all = robot.subscriber("camera").queue(1_000).declare().unwrap();
    let quarter = || ask().max_hz(5.0).size(160, 120);
    let mut near = quarter().proxy(Proxy::Publisher).declare().unwrap();
    let mut far = quarter().proxy(Proxy::Subscriber).declare().unwrap();
    let mut ten = ask().max_hz(10.0).declare().unwrap();
    let mut card = TestCard::new(Size::new(640, 480).unwrap()).unwrap();
    let first = card.draw_jpeg(0, 0, 80).unwrap();
    // The outputs: one local, and over the link one scaled and one in full size, for the other proxy. That one
    // also carries the pictures at 10 Hz.
    wait_until("all three outputs are open", || {
        std::thread::sleep(Duration::from_millis(30));
        camera.put(first.clone()).unwrap();
        camera_outputs(&robot) == 3
    });
    std::thread::sleep(Duration::from_millis(200));
    for subscriber in [&mut all, &mut near, &mut far, &mut ten] {
        while subscriber.try_recv().is_some() {}
    }
    at_rate(30, 90, |n| {
        camera.put(card.draw_jpeg(u64::from(n) + 1, 7, 80).unwrap()).unwrap();
    });
    std::thread::sleep(Duration::from_millis(300));
    let mut counts = Vec::new();
    for (subscriber, size) in [
        (&mut all, (640, 480)),
        (&mut ten, (640, 480)),
        (&mut near, (160, 120)),
        (&mut far, (160, 120)),
    ] {
        let got: Vec<_> = std::iter::from_fn(|| subscriber.try_recv()).collect();
        for sample in &got {
            let found = jpeg::dimensions(&sample.payload).unwrap();
            assert_eq!((found.width, found.height), size);
            let card = read_card_jpeg(&sample.payload).unwrap().expect("the card can be read");
            assert_eq!((card.micros, sample.encoding.clone()), (7, Encoding::Jpeg));
        }
        assert!(got.windows(2).all(|pair| pair[0].seq < pair[1].seq));
        counts.push(got.len());
    }
    // The first picture may lie between two instants of the others.
    let mut thinned = counts[1..].iter().zip([30, 15, 15]);
    let due = |(got, due): (&usize, usize)| (due..=due + 1).contains(got);
    assert!(counts[0] == 90 && thinned.all(due), "{counts:?}");
    sums::check(&[&robot, &operator]);
}

fn camera_outputs(robot: &paceline::Node) -> usize {
    let status = robot.status(SOON);
    let robot = status.iter().find(|node| node.name == "robot").unwrap();
    let local = usize::from(robot.subscriptions[0].delivered > 0);
    local + robot.links[0].streams.iter().filter(|s| s.counters.sent > 0).count()
}

#[test]
fn a_corrupt_picture_is_dropped_with_a_reason_and_the_next_one_arrives() {
    let (robot, operator) = pair(|link| link);
    let camera = robot.publisher("camera").encoding(Encoding::Jpeg).declare();
    let mut camera = camera.unwrap();
    let mut small = operator.subscriber("camera").size(160, 120).declare().unwrap();
    let mut card = TestCard::new(Size::new(320, 240).unwrap()).unwrap();
    let good = card.draw_jpeg(1, 1, 80).unwrap();
    assert!(camera.wait_matching(SOON));
    let mut huge = good.clone();
    let frame = huge.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    huge[frame + 5..frame + 9].copy_from_slice(&[0xea, 0x60, 0xea, 0x60]); // 60,000 × 60,000
    for bad in [b"no picture".to_vec(), huge, good[..good.len() / 2].to_vec()] {
        camera.put(bad).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    camera.put(good).unwrap();
    let sample = small.recv_timeout(SOON).unwrap();
    assert_eq!(sample.seq, 3, "only the good one");
    wait_until("three drops are counted", || {
        let status = robot.status(SOON);
        let robot = status.iter().find(|node| node.name == "robot").unwrap();
        let drops = robot.links[0].streams.first().map(|stream| stream.counters.dropped);
        drops.is_some_and(|drops| drops.of(paceline::status::DropReason::CannotScale) == 3)
    });
    sums::check(&[&robot, &operator]);
}

/// Returns the refusal that a subscription receives within a time.
fn refusal(subscriber: &mut paceline::Subscriber, within: Duration) -> Option<String> {
    let until = std::time::Instant::now() + within;
    while std::time::Instant::now() < until {
        if let Some(paceline::SubscriberEvent::Refused(_, refusal)) = subscriber.try_event() {
            return Some(refusal.to_string());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

#[test]
fn pictures_that_fail_to_scale_are_refused_to_their_subscribers_and_later_ones() {
    let (robot, operator) = pair(|link| link);
    let camera = robot.publisher("camera").hz(30.0).bytes_max(50_000).encoding(Encoding::Jpeg);
    let mut camera =
        camera.picture_size(paceline::Size { width: 320, height: 240 }).declare().unwrap();
    let mut small = operator.subscriber("camera").size(160, 120).declare().unwrap();
    let whole = operator.subscriber("camera").declare().unwrap();
    assert!(camera.wait_matching(SOON));
    // The header is that of a picture, so nothing refuses it before the first attempt.
    let mut card = TestCard::new(Size::new(320, 240).unwrap()).unwrap();
    let mut broken = card.draw_jpeg(1, 1, 80).unwrap();
    broken.truncate(broken.len() / 2);
    let refused = std::thread::scope(|scope| {
        let publishes = scope.spawn(|| {
            for _ in 0..60 {
                camera.put(broken.clone()).unwrap();
                std::thread::sleep(Duration::from_millis(33));
            }
        });
        let refused = refusal(&mut small, Duration::from_secs(2));
        publishes.join().unwrap();
        refused
    });
    let reason = refused.expect("a refusal within 2 s");
    assert!(reason.contains("160x120") && reason.contains("failed"), "{reason}");
    let mut later = operator.subscriber("camera").size(80, 60).declare().unwrap();
    assert!(refusal(&mut later, SOON).is_some(), "a later request is refused at once");
    assert!(whole.missing() == 0, "the pictures themselves are delivered");
}
