//! Pulls of video and sound at other rates and sizes: every sample arrives and can be decoded.

use super::{all, history, meets, seqs};
use crate::film::{decode, film};
use crate::sums;
use crate::support::{pair, wait_until};
use paceline::pull::{MissingReason, PullBuilder};
use paceline::{Encoding, Kind, Node, Publisher, Sample};

/// Declares a publisher of H.264 with a buffer of all its samples.
fn camera(node: &Node) -> Publisher {
    let camera = node.publisher("camera").encoding(Encoding::new("video/h264"));
    camera.hz(30.0).history(history(1_000)).declare().unwrap()
}

/// Returns the numbers on the test cards of the samples, each of which must be decodable.
fn cards(got: &[Sample], size: (usize, usize)) -> Vec<u64> {
    let pictures = decode(got.iter().map(|sample| &*sample.payload));
    assert_eq!(pictures.len(), got.len(), "each sample is one picture");
    assert_eq!(got.first().map(|sample| sample.kind), Some(Kind::VideoI));
    assert!(pictures.iter().all(|picture| picture.size == size));
    pictures.iter().map(|picture| picture.card.expect("the card can be read")).collect()
}

fn complete(pull: PullBuilder<'_>) -> Vec<Sample> {
    let (got, summary) = all(pull);
    assert_eq!(summary.missing, [], "{summary:?}");
    got
}

#[test]
fn video_is_pulled_in_full_thinned_or_scaled_and_can_be_decoded() {
    let (robot, operator) = pair(|link| link);
    let mut camera = camera(&robot);
    for unit in film(320, 240, 90, 30) {
        camera.put(unit).unwrap();
    }
    meets(&operator, 1);
    let pull = || operator.pull("camera").seq(0..=u64::MAX);
    let (large, small) = ((320, 240), (160, 120));
    let every = |step: usize| (0..90).step_by(step).collect::<Vec<u64>>();
    assert_eq!(cards(&complete(pull()), large), every(1));
    // All pictures depend on others, so the rate requires re-encoding.
    assert_eq!(cards(&complete(pull().every(3)), large), every(3));
    assert_eq!(cards(&complete(pull().size(160, 120)), small), every(1));
    let both = pull().every(5).size(160, 120);
    assert_eq!(cards(&complete(both), small), every(5));
    // Decoding starts at the last independent picture before the selection; delivery does not.
    let part = operator.pull("camera").seq(40..=44).size(160, 120);
    assert_eq!(cards(&complete(part), small), (30..=44).collect::<Vec<_>>());
    sums::check(&[&robot, &operator]);
}

#[test]
fn an_unscalable_picture_is_reported_with_the_reason() {
    let (robot, operator) = pair(|link| link);
    let stills = robot.publisher("stills").encoding(Encoding::new("image/jpeg"));
    let mut stills = stills.kind(Kind::Picture).history(history(10)).declare().unwrap();
    stills.put(b"no picture".to_vec()).unwrap();
    meets(&operator, 1);
    wait_until("it is held", || stills.buffer().unwrap().len() == 1);
    let (got, summary) = all(operator.pull("stills").size(16, 16));
    assert!(got.is_empty());
    let reason = &summary.missing[0].reason;
    assert!(matches!(reason, MissingReason::CannotScale(_)), "{reason}");
    assert_eq!(seqs(operator.pull("stills")), [0], "as it is held it comes");
    sums::check(&[&robot, &operator]);
}

#[test]
fn a_damaged_picture_is_reported_and_the_video_continues() {
    let (robot, operator) = pair(|link| link);
    let mut camera = camera(&robot);
    let mut units = film(320, 240, 30, 10);
    let half = units[13].len() / 2;
    units[13].truncate(half);
    for unit in units {
        camera.put(unit).unwrap();
    }
    meets(&operator, 1);
    let pull = operator.pull("camera").seq(0..=u64::MAX);
    let (got, summary) = all(pull.size(160, 120));
    let cards = cards(&got, (160, 120));
    assert!(cards.starts_with(&(0..10).collect::<Vec<_>>()), "{cards:?}");
    assert!(cards.ends_with(&(20..30).collect::<Vec<_>>()), "{cards:?}");
    let told = |reason: &MissingReason| matches!(reason, MissingReason::CannotScale(_));
    assert!(!summary.missing.is_empty());
    assert!(summary.missing.iter().all(|missing| told(&missing.reason)), "{summary:?}");
    sums::check(&[&robot, &operator]);
}

#[test]
fn audio_is_pulled_at_another_rate() {
    let (robot, operator) = pair(|link| link);
    let format = "audio/pcm;format=s16le;rate=48000;channels=2";
    let sound = robot.publisher("sound").encoding(Encoding::new(format));
    let mut sound = sound.kind(Kind::Audio).history(history(100)).declare().unwrap();
    for _ in 0..50 {
        sound.put(vec![7; 960 * 4]).unwrap();
    }
    meets(&operator, 1);
    let pull = || operator.pull("sound").newest(50);
    assert!(complete(pull()).iter().all(|block| block.payload.len() == 3_840));
    let got = complete(pull().audio(8_000, 1));
    assert_eq!(got.len(), 50);
    assert!(got.iter().all(|block| block.payload.len() == 320), "20 ms of 8 kHz each");
    assert_eq!(got[0].encoding.as_str(), "audio/pcm;format=s16le;rate=8000;channels=1");
    let refused = pull().audio(1, 1).check().unwrap_err();
    assert!(refused.is_usage() && refused.to_string().contains("audio 1 Hz x 1"), "{refused}");
    sums::check(&[&robot, &operator]);
}
