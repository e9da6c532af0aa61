//! Sound at the rate and channels that each subscriber requests.

use crate::sums;
use crate::support::{SOON, pair, wait_until};
use paceline::status::DropReason;
use paceline::{Encoding, Kind, Sample, Subscriber};
use std::time::Duration;

const STEREO: &str = "audio/pcm;format=s16le;rate=48000;channels=2";

/// Returns 20 ms of a 400 Hz tone, the same in both channels.
#[expect(clippy::cast_possible_truncation, reason = "at most 12,000")]
fn block(number: usize) -> Vec<u8> {
    let level = |frame: usize| {
        let turns = frame as f64 * 400.0 / 48_000.0;
        ((turns * std::f64::consts::TAU).sin() * 12_000.0) as i16
    };
    let frames = number * 960..(number + 1) * 960;
    frames.flat_map(|frame| [level(frame); 2]).flat_map(i16::to_le_bytes).collect()
}

fn received(subscriber: &mut Subscriber) -> Vec<Sample> {
    std::iter::from_fn(|| subscriber.recv_timeout(Duration::from_millis(300)).ok()).collect()
}

#[test]
fn each_subscriber_gets_its_requested_rate_and_channels() {
    let (robot, operator) = pair(|link| link);
    let sound = robot.publisher("sound").encoding(Encoding::new(STEREO));
    let mut sound = sound.hz(50.0).declare().unwrap();
    let ask = || operator.subscriber("sound").queue(1_000);
    let mut all = ask().declare().unwrap();
    let mut phone = ask().audio(8_000, 1).declare().unwrap();
    let mut same = ask().audio(48_000, 2).declare().unwrap();
    wait_until("everybody hears the sound", || {
        let status = robot.status(SOON);
        let all = status.iter().flat_map(|node| &node.subscriptions);
        all.filter(|subscription| !subscription.publishers.is_empty()).count() == 3
    });
    for number in 0..50 {
        sound.put_blocking(block(number)).unwrap();
    }
    assert!(sound.close(SOON));
    for subscriber in [&mut all, &mut same] {
        let got = received(subscriber);
        assert_eq!(got.len(), 50);
        for (number, sample) in got.iter().enumerate() {
            assert_eq!((sample.kind, sample.encoding.as_str()), (Kind::Audio, STEREO));
            assert!(sample.payload == block(number));
        }
    }
    let got = received(&mut phone);
    assert!(got.windows(2).all(|pair| pair[0].seq + 1 == pair[1].seq));
    let phone = "audio/pcm;format=s16le;rate=8000;channels=1";
    assert!(got.iter().all(|sample| sample.encoding.as_str() == phone));
    let bytes: Vec<u8> = got.iter().flat_map(|sample| sample.payload.to_vec()).collect();
    let levels: Vec<i16> =
        bytes.chunks(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
    assert!((7_900..=8_000).contains(&levels.len()), "a second: {}", levels.len());
    // The tone must still have 400 Hz and about the same volume.
    let loud: Vec<i16> =
        levels.iter().copied().filter(|level| level.unsigned_abs() > 2_000).collect();
    let rises = loud.windows(2).filter(|pair| pair[0] < 0 && pair[1] > 0).count();
    assert!((395..=400).contains(&rises), "{rises}");
    let loudest = levels.iter().map(|level| level.unsigned_abs()).max();
    assert!(loudest.is_some_and(|level| (11_000..13_500).contains(&level)), "{loudest:?}");
    sums::check(&[&robot, &operator]);
}

#[test]
fn a_broken_block_is_dropped_with_a_reason_and_audio_continues() {
    let (robot, operator) = pair(|link| link);
    let sound = robot.publisher("sound").encoding(Encoding::new(STEREO));
    let mut sound = sound.declare().unwrap();
    let mut phone = operator.subscriber("sound").audio(8_000, 1).declare().unwrap();
    assert!(sound.wait_matching(SOON));
    for bytes in [block(0), vec![0; 961], block(1), block(2)] {
        sound.put_blocking(bytes).unwrap();
    }
    let seqs: Vec<u64> =
        (0..3).filter_map(|_| phone.recv_timeout(SOON).ok()).map(|s| s.seq).collect();
    assert_eq!(seqs, [0, 2, 3]);
    wait_until("the drop is counted", || {
        let status = robot.status(SOON);
        let robot = status.iter().find(|node| node.name == "robot").unwrap();
        let drops = robot.links[0].streams.first().map(|stream| stream.counters.dropped);
        drops.is_some_and(|drops| drops.of(DropReason::CannotScale) == 1)
    });
    sums::check(&[&robot, &operator]);
}

#[test]
fn impossible_audio_formats_are_refused() {
    let (robot, _operator) = pair(|link| link);
    for (rate, channels) in [(0, 1), (999, 1), (384_001, 1), (8_000, 0), (8_000, 9)] {
        let refused = robot.subscriber("sound").audio(rate, channels).check();
        let text = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(
            text.starts_with(&format!("audio {rate} Hz x {channels}: must be 1000 to")),
            "{text}"
        );
    }
}
