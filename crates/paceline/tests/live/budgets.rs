//! Scaled streams keep the bit rate that admission reserved for them.

use crate::film::{decode, film};
use crate::support::{SOON, at_rate, pair, wait_until};
use paceline::contract::RefusalReason;
use paceline::status::DropReason;
use paceline::{Capacity, Encoding, Kind, Node, Publisher, Sample, Subscriber, SubscriberEvent};
use paceline_media::codec::Codec;
use paceline_media::{Size, TestCard, jpeg};
use std::time::Duration;

const HZ: u32 = 25;

/// A node with a publisher and a node with a subscriber, joined by a link of 2 Mbit/s.
fn thin() -> (Node, Node) {
    let capacity = Capacity::from_bits_per_s(2_000_000).unwrap();
    pair(|link| link.capacity(capacity))
}

/// Waits until the first subscription of a publisher has a contract, and returns its bytes per second.
fn granted(publisher: &Publisher, node: &Node) -> u64 {
    let mut reserved = 0;
    wait_until("the contract is granted", || {
        let feedback = publisher.feedback(SOON);
        let grant = feedback.first().and_then(|it| it.grant.as_ref());
        reserved = grant.map_or(0, |grant| grant.hops[0].bytes_per_s);
        reserved > 0
    });
    assert_eq!(node.name(), "operator");
    reserved
}

/// Returns the drops of the node's streams by reason.
fn drops(node: &Node) -> Vec<(DropReason, u64)> {
    let status = node.status(SOON);
    let links = status.iter().filter(|it| it.name == node.name()).flat_map(|it| &it.links);
    let counters: Vec<_> =
        links.flat_map(|link| &link.streams).map(|it| &it.counters.dropped).collect();
    let of = |reason| (reason, counters.iter().map(|drops| drops.of(reason)).sum());
    DropReason::ALL.into_iter().map(of).filter(|(_, count)| *count > 0).collect()
}

fn rest(subscriber: &mut Subscriber) -> Vec<Sample> {
    std::thread::sleep(Duration::from_millis(800));
    std::iter::from_fn(|| subscriber.try_recv()).collect()
}

/// The pictures of the recorded film, or of a generated one.
fn pictures() -> Vec<Vec<u8>> {
    let Some(folder) = std::env::var_os("PACELINE_DATA") else {
        println!("skipped: the recorded film (PACELINE_DATA is not set)");
        return film(1_280, 720, 200, 50);
    };
    let file = std::path::Path::new(&folder).join("video/cisco_1280x720_bframes.264");
    let stream = std::fs::read(file).unwrap();
    let units = Codec::H264.split(&stream).map(|unit| unit.unwrap().bytes.to_vec());
    units.take(200).collect()
}

#[test]
fn a_film_that_is_coded_again_keeps_its_bit_rate() {
    let (robot, operator) = thin();
    let pictures = pictures();
    let largest = pictures.iter().map(Vec::len).max().unwrap() as u64;
    let camera = robot.publisher("film").kind(Kind::VideoI).encoding(Encoding::new("video/h264"));
    let camera = camera.hz(f64::from(HZ)).bytes_max(largest);
    let mut camera =
        camera.picture_size(paceline::Size { width: 1_280, height: 720 }).declare().unwrap();
    let small = operator.subscriber("film").size(320, 180).bitrate(160_000);
    let small = small.within(Duration::from_millis(900)).queue(1_000);
    let mut small = small.declare().unwrap();
    let reserved = granted(&camera, &operator);
    assert!((20_000..40_000).contains(&reserved), "160 kbit/s and headers, not {reserved} bytes");
    let mut units = pictures.iter();
    at_rate(HZ, 200, |_| {
        camera.put(units.next().unwrap().clone()).unwrap();
    });
    let mut samples = rest(&mut small);
    let feedback = camera.feedback(SOON);
    // The decoder returns the last pictures at the end.
    assert!(camera.close(SOON));
    while samples.len() < 200
        && let Ok(sample) = small.recv_timeout(SOON)
    {
        samples.push(sample);
    }
    samples.extend(rest(&mut small));
    let bytes: usize = samples.iter().map(|sample| sample.payload.len()).sum();
    assert!(bytes <= 20_000 * 9, "{bytes} bytes in 8 s and a burst of one second");
    assert!(
        bytes >= 20_000 * 4,
        "{} pictures, {bytes} bytes: half of the bit rate at least",
        samples.len()
    );
    let shown = decode(samples.iter().map(|sample| &sample.payload[..]));
    assert!(shown.iter().all(|picture| picture.size == (320, 180)), "{shown:?}");
    let measured = feedback[0].measured.unwrap();
    // The test reads the samples long after their arrival.
    let late = measured.late - measured.overdue;
    let seqs: Vec<u64> = samples.iter().map(|sample| sample.seq).collect();
    assert_eq!(seqs, (0..200).collect::<Vec<_>>(), "no picture is left out: {:?}", drops(&robot));
    println!(
        "the 720p film at 320x180 and 160 kbit/s: {} of 200 pictures, {bytes} bytes in 8 s, {late} late, excess {:?}",
        samples.len(),
        feedback[0].excess
    );
    assert_eq!((feedback[0].excess.long, feedback[0].excess.early, late), (0, 0, 0));
}

#[test]
fn pictures_keep_the_bit_rate_by_their_quality_and_then_by_their_rate() {
    let (robot, operator) = thin();
    let mut card = TestCard::new(Size::new(640, 480).unwrap()).unwrap();
    let camera = robot.publisher("camera").encoding(Encoding::Jpeg).hz(f64::from(HZ));
    let mut camera = camera.declare().unwrap();
    // At 25 Hz 2,000 bytes per picture, and 200 bytes, which no quality reaches.
    let ask = |bits: u32| operator.subscriber("camera").size(160, 120).bitrate(bits).queue(1_000);
    let mut good = ask(400_000).within(Duration::from_millis(300)).declare().unwrap();
    let mut poor = ask(40_000).declare().unwrap();
    let refused = ask(40_000).within(Duration::from_millis(300)).declare().unwrap();
    camera.put(card.draw_jpeg(0, 0, 80).unwrap()).unwrap();
    wait_until("one has a contract", || {
        camera.feedback(SOON).iter().filter(|it| it.grant.is_some()).count() == 1
    });
    let mut reason = None;
    wait_until("a bit rate that no quality reaches is refused", || {
        while let Some(event) = refused.try_event() {
            if let SubscriberEvent::Refused(_, refusal) = event {
                reason = Some(refusal.reason);
            }
        }
        reason.is_some()
    });
    // 384 bytes, and 8 for each of 80 squares, at 25 Hz.
    assert_eq!(reason, Some(RefusalReason::BitRate { asked: 40_000, least: 204_800 }));
    drop(refused);
    for subscriber in [&mut good, &mut poor] {
        rest(subscriber);
    }
    at_rate(HZ, 100, |n| {
        camera.put(card.draw_jpeg(u64::from(n) + 1, 7, 80).unwrap()).unwrap();
    });
    let (good, few) = (rest(&mut good), rest(&mut poor));
    assert_eq!(good.len(), 100);
    for sample in &good {
        assert!(sample.payload.len() <= 2_000, "{} bytes", sample.payload.len());
        assert_eq!(jpeg::dimensions(&sample.payload).unwrap().width, 160);
    }
    let bytes: usize = few.iter().map(|sample| sample.payload.len()).sum();
    assert!(!few.is_empty() && few.len() < 50, "{} pictures", few.len());
    assert!(bytes <= 200 * 104, "{bytes} bytes in 4 s at 40 kbit/s");
    let status = robot.status(SOON);
    let link = &status.iter().find(|node| node.name == "robot").unwrap().links[0];
    // A busy scaler leaves out more pictures without a contract, for newer ones.
    let of = |reason| -> u64 {
        link.streams.iter().map(|stream| stream.counters.dropped.of(reason)).sum()
    };
    let (left_out, older) = (of(DropReason::OverBudget), of(DropReason::Superseded));
    let sent = few.len() as u64;
    assert!(left_out > 0 && left_out + older + sent >= 100, "{left_out}, {older}, {sent} sent");
}

#[test]
fn a_quality_also_applies_to_pictures_of_the_same_size() {
    let (robot, operator) = thin();
    let mut card = TestCard::new(Size::new(320, 240).unwrap()).unwrap();
    let camera = robot.publisher("camera").encoding(Encoding::Jpeg).hz(f64::from(HZ));
    let mut camera = camera.declare().unwrap();
    let mut poor = operator.subscriber("camera").quality(20).declare().unwrap();
    assert!(camera.wait_matching(SOON));
    let picture = card.draw_jpeg(1, 7, 90).unwrap();
    camera.put(picture.clone()).unwrap();
    let received = poor.recv_timeout(SOON).unwrap();
    assert!(received.payload.len() < picture.len() / 2, "{}", received.payload.len());
    assert_eq!(jpeg::dimensions(&received.payload).unwrap().width, 320);
}
