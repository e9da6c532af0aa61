//! Video, whose pictures depend on each other, at the rate and size that each subscriber requests.

use crate::film::{Shown, check_with_ffmpeg, decode, film};
use crate::sums;
use crate::support::{HostDir, SOON, at_rate, free_endpoint, isolated, pair, wait_until};
use paceline::status::DropReason;
use paceline::{
    Encoding, Kind, LinkConfig, Node, PublishError, Publisher, Sample, Subscriber,
    SubscriberBuilder,
};
use std::time::Duration;

fn camera(node: &Node, hertz: f64) -> Publisher {
    let camera = node.publisher("camera").encoding(Encoding::new("video/h264"));
    camera.hz(hertz).declare().unwrap()
}

fn ask(node: &Node) -> SubscriberBuilder<'_> {
    node.subscriber("camera").queue(2_000)
}

/// Waits until `node` has the path of the camera open for `subscriptions` subscriptions.
fn wait_heard(node: &Node, subscriptions: usize) {
    wait_until("every subscriber receives the camera", || {
        let status = node.status(SOON);
        let all = status.iter().flat_map(|node| &node.subscriptions);
        all.filter(|subscription| !subscription.publishers.is_empty()).count() == subscriptions
    });
}

/// Publishes units like a camera, but never faster than they are scaled: a full link sheds video.
fn play(camera: &mut Publisher, units: &[Vec<u8>]) {
    at_rate(60, u32::try_from(units.len()).unwrap(), |number| {
        camera.put_blocking(units[number as usize].clone()).unwrap();
    });
}

fn received(subscriber: &mut Subscriber) -> Vec<Sample> {
    std::iter::from_fn(|| subscriber.recv_timeout(Duration::from_millis(300)).ok()).collect()
}

/// Decodes the delivered samples, and checks the properties that hold for every delivered video.
fn shown(got: &[Sample]) -> Vec<Shown> {
    let pictures = shown_of(got);
    assert_eq!(pictures.len(), got.len(), "each sample is one picture");
    pictures
}

/// As [`shown`], for a video that may be re-encoded from some picture on.
///
/// There a new video begins, and a decoder may not output pictures that it still delays.
fn shown_of(got: &[Sample]) -> Vec<Shown> {
    assert!(got.windows(2).all(|pair| pair[0].seq < pair[1].seq));
    assert!(got.windows(2).all(|pair| pair[0].captured <= pair[1].captured));
    assert_eq!(got.first().map(|sample| sample.kind), Some(Kind::VideoI));
    assert!(got.iter().all(|sample| sample.encoding.as_str() == "video/h264"));
    decode(got.iter().map(|sample| &*sample.payload))
}

fn cards(pictures: &[Shown]) -> Vec<u64> {
    pictures.iter().map(|picture| picture.card.expect("the card can be read")).collect()
}

#[test]
fn each_subscriber_gets_its_requested_rate_and_size() {
    let (robot, operator) = pair(|link| link);
    let mut camera = camera(&robot, 30.0);
    let mut local = ask(&robot).declare().unwrap();
    let mut all = ask(&operator).declare().unwrap();
    let mut half = ask(&operator).every(2).declare().unwrap();
    let mut ten = ask(&operator).max_hz(10.0).declare().unwrap();
    let mut small = ask(&operator).size(160, 120).declare().unwrap();
    let third = || ask(&operator).every(3).size(160, 120);
    let mut near = third().declare().unwrap();
    let mut far = third().proxy(paceline::contract::Proxy::Subscriber).declare().unwrap();
    wait_heard(&robot, 7);
    let units = film(320, 240, 90, 30);
    play(&mut camera, &units);
    assert!(camera.close(SOON));
    for subscriber in [&mut local, &mut all] {
        let got = received(subscriber);
        assert!(got.iter().map(|sample| &*sample.payload).eq(units.iter().map(|unit| &**unit)));
        assert_eq!(cards(&shown(&got)), (0..90).collect::<Vec<_>>());
        let kinds = got.iter().map(|sample| sample.kind == Kind::VideoI);
        assert!(kinds.enumerate().all(|(place, alone)| alone == (place % 30 == 0)));
    }
    // Reference pictures may be up to three ahead of the rate before the video is re-encoded. As many due
    // ones are then left out.
    for (subscriber, step, least) in [(&mut half, 2, 45), (&mut ten, 3, 30)] {
        let got = cards(&shown(&received(subscriber)));
        assert!((least..=least + 3).contains(&got.len()), "{got:?}");
        let rest = &got[got.len() - least + 8..];
        assert!(rest.windows(2).all(|pair| pair[1] - pair[0] == step), "{got:?}");
    }
    for (subscriber, step) in [(&mut small, 1), (&mut near, 3), (&mut far, 3)] {
        let pictures = shown(&received(subscriber));
        assert_eq!(cards(&pictures), (0..90).step_by(step).collect::<Vec<_>>());
        assert!(pictures.iter().all(|picture| picture.size == (160, 120)));
    }
    sums::check(&[&robot, &operator]);
}

#[test]
fn a_late_subscriber_begins_with_an_independent_picture() {
    let (robot, operator) = pair(|link| link);
    let mut camera = camera(&robot, 30.0);
    let mut first = ask(&operator).declare().unwrap();
    wait_heard(&robot, 1);
    let mut units = film(320, 240, 60, 20);
    // Parameter sets that were published once are prepended to each independent picture.
    let slice =
        units[20].windows(5).position(|bytes| bytes[..4] == [0, 0, 0, 1] && bytes[4] & 31 == 5);
    let whole = std::mem::take(&mut units[20]);
    units[20] = whole[slice.unwrap()..].to_vec();
    play(&mut camera, &units[..10]);
    let mut late = [
        ask(&operator).declare().unwrap(),
        ask(&operator).every(2).declare().unwrap(),
        ask(&operator).size(160, 120).declare().unwrap(),
        ask(&robot).declare().unwrap(),
    ];
    wait_heard(&robot, 5);
    play(&mut camera, &units[10..]);
    assert!(camera.close(SOON));
    assert_eq!(cards(&shown(&received(&mut first))), (0..60).collect::<Vec<_>>());
    for (place, subscriber) in late.iter_mut().enumerate() {
        let got = received(subscriber);
        assert_eq!(got[0].seq, 0, "subscriber {place} begins with the current group");
        let cards = cards(&shown(&got));
        assert!(cards.contains(&20) || cards.contains(&21), "subscriber {place}: {cards:?}");
        // One in two are the even pictures, or the odd ones after a first group that was longer by one.
        let even = place == 1 && !cards.contains(&21);
        assert_eq!((cards[0], cards.last()), (0, Some(&(59 - u64::from(even)))));
    }
    sums::check(&[&robot, &operator]);
}

#[test]
fn subscribers_of_one_form_share_the_work() {
    let endpoint = free_endpoint();
    let robot = isolated("robot", [LinkConfig::new("radio").listen(&endpoint)]);
    let operator = |name| isolated(name, [LinkConfig::new("radio").connect(&endpoint)]);
    let (one, two) = (operator("one"), operator("two"));
    let mut camera = camera(&robot, 30.0);
    let small = |node| ask(node).size(160, 120).declare().unwrap();
    let mut first = small(&one);
    wait_heard(&robot, 1);
    let units = film(320, 240, 50, 20);
    play(&mut camera, &units[..30]);
    let mut second = small(&two);
    wait_heard(&robot, 2);
    play(&mut camera, &units[30..]);
    assert!(camera.close(SOON));
    let (first, second) = (received(&mut first), received(&mut second));
    assert_eq!(cards(&shown(&first)), (0..50).collect::<Vec<_>>());
    // The second subscriber first receives pictures of the current group, and then an independent picture
    // that the encoder creates for it. The first one receives the same. The encoder may already have
    // picture 30 for the first subscriber.
    let created = second.iter().rposition(|sample| sample.kind == Kind::VideoI).unwrap();
    let begins = second[created].seq;
    assert!((30..=31).contains(&begins), "{begins}");
    let cards = cards(&shown(&second));
    let before = u64::try_from(created).unwrap();
    assert_eq!(cards, (0..before).chain(begins..50).collect::<Vec<_>>());
    let payload = |sample: &Sample| (sample.seq, sample.kind, sample.payload.clone());
    let begins = usize::try_from(begins).unwrap();
    assert!(first[begins..].iter().map(payload).eq(second[created..].iter().map(payload)));
    sums::check(&[&robot]);
}

#[test]
fn a_slow_reader_gets_only_decodable_pictures() {
    let host = HostDir::new("slow");
    let node = host.open("robot");
    let mut camera = camera(&node, 30.0);
    let mut slow = node.subscriber("camera").queue(25).declare().unwrap();
    for unit in film(320, 240, 60, 10) {
        camera.put(unit).unwrap();
    }
    // The last 25, numbers 35 to 59, are queued; the first independent one among them is number 40.
    let got: Vec<_> = std::iter::from_fn(|| slow.try_recv()).collect();
    assert_eq!(cards(&shown(&got)), (40..60).collect::<Vec<_>>());
    let drops = slow.drops();
    assert_eq!(drops.of(DropReason::SubscriberFull), 35);
    assert_eq!(drops.of(DropReason::Undecodable), 5);
    sums::check(&[&node]);
}

#[test]
fn invalid_access_units_are_refused_with_an_explanation() {
    let host = HostDir::new("unit");
    let node = host.open("robot");
    let mut camera = camera(&node, 30.0);
    let units = film(320, 240, 2, 1);
    for bad in [Vec::new(), b"no video".to_vec(), vec![0, 0, 0, 1]] {
        let refused = camera.put(bad).unwrap_err();
        assert!(matches!(refused, PublishError::NoAccessUnit { .. }), "{refused}");
        let text = refused.to_string();
        assert!(
            text.contains("publish one coded picture per sample") && text.contains("00 00 01"),
            "{text}"
        );
    }
    assert_eq!(camera.put(units[0].clone()).unwrap().seq, 0);
    let opaque = node.publisher("other").encoding(Encoding::new("video/h264"));
    let mut opaque = opaque.kind(Kind::Data).declare().unwrap();
    opaque.put(b"no video".to_vec()).unwrap();
}

#[test]
fn a_damaged_picture_is_dropped_with_a_reason_and_the_video_continues() {
    let (robot, operator) = pair(|link| link);
    let mut camera = camera(&robot, 30.0);
    let mut small = ask(&operator).size(160, 120).declare().unwrap();
    wait_heard(&robot, 1);
    let mut units = film(320, 240, 30, 10);
    let half = units[13].len() / 2;
    units[13].truncate(half);
    play(&mut camera, &units);
    let got: Vec<_> = (0..20).filter_map(|_| small.recv_timeout(SOON).ok()).collect();
    let cards = cards(&shown(&got));
    assert_eq!(cards[..10], (0..10).collect::<Vec<_>>());
    assert!(cards.windows(2).all(|pair| pair[0] < pair[1]), "{cards:?}");
    wait_until("the loss is counted", || {
        let status = robot.status(SOON);
        let robot = status.iter().find(|node| node.name == "robot").unwrap();
        let drops = robot.links[0].streams.first().map(|stream| stream.counters.dropped);
        drops.is_some_and(|drops| drops.of(DropReason::CannotScale) > 0)
    });
    sums::check(&[&robot, &operator]);
}

/// Every rate and size of a real video at once.
#[test]
fn real_video_is_decodable_in_every_form() {
    let test = "real_video_is_decodable_in_every_form";
    let Some(folder) = std::env::var_os("PACELINE_DATA") else {
        println!("skipped: {test} (PACELINE_DATA is not set)");
        return;
    };
    let path = std::path::Path::new(&folder).join("video/cisco_1280x720_bframes.264");
    let stream = std::fs::read(path).unwrap();
    let units: Vec<_> =
        paceline_media::h264::split(&stream).map(|unit| unit.unwrap().bytes.to_vec()).collect();
    let host = HostDir::new("real");
    let (robot, viewer) = (host.open("robot"), host.open("viewer"));
    let mut camera = camera(&robot, 30.0);
    let mut subscribers = Vec::new();
    for size in [None, Some((640, 360)), Some((320, 180))] {
        for (every, max_hz, wanted) in [
            (None, None, 300),
            (Some(2), None, 150),
            (None, Some(10.0), 100),
            (None, Some(5.0), 50),
        ] {
            let mut asked = ask(&viewer);
            asked = every.into_iter().fold(asked, |asked, n| asked.every(n));
            asked = max_hz.into_iter().fold(asked, |asked, hz| asked.max_hz(hz));
            if let Some((width, height)) = size {
                asked = asked.size(width, height);
            }
            subscribers.push((size.unwrap_or((1_280, 720)), wanted, asked.declare().unwrap()));
        }
    }
    wait_heard(&robot, subscribers.len());
    play(&mut camera, &units);
    assert!(camera.close(Duration::from_secs(120)));
    for ((width, height), wanted, subscriber) in &mut subscribers {
        let got = received(subscriber);
        let pictures = shown_of(&got);
        println!("{width}x{height}, {wanted} wanted: {} arrived", got.len());
        let held = if *width == 1_280 { 2 } else { 0 };
        assert!(pictures.len() + held >= got.len(), "{} of {}", pictures.len(), got.len());
        let size = (*width as usize, *height as usize);
        assert!(pictures.iter().all(|picture| picture.size == size));
        assert!((*wanted..=*wanted + 3).contains(&got.len()), "{width}x{height}: {}", got.len());
        let stream: Vec<u8> = got.iter().flat_map(|sample| sample.payload.to_vec()).collect();
        check_with_ffmpeg(test, &stream, got.len());
    }
}
