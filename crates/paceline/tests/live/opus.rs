//! Sound that is coded as Opus keeps the bit rate that admission reserved for it.

use crate::sums;
use crate::support::{SOON, at_rate, pair, wait_until};
use paceline::contract::Proxy;
use paceline::status::DropReason;
use paceline::{Capacity, Encoding, Kind, Node, Publisher, Sample, Subscriber};
use paceline_media::audio::{OpusDecoder, OpusFormat};
use std::time::Duration;

const STEREO: &str = "audio/pcm;format=s16le;rate=48000;channels=2";
const MONO: &str = "audio/opus;rate=48000;channels=1";
/// The declared rate of the tests' publishers, which is the rate of their blocks.
const HZ: u32 = 50;

/// A node with a publisher and a node with a subscriber, joined by a link of 300 kbit/s: too little for the blocks.
fn thin() -> (Node, Node) {
    let capacity = Capacity::from_bits_per_s(300_000).unwrap();
    pair(|link| link.capacity(capacity))
}

/// Returns a block of stereo noise with this many frames.
fn noise(number: u32, frames: usize) -> Vec<u8> {
    let mut random = u64::from(number) * 7_919 + 13;
    let mut sample = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        [random.to_le_bytes()[6], random.to_le_bytes()[7]]
    };
    (0..frames * 2).flat_map(|_| sample()).collect()
}

fn mic(node: &Node, hz: f64) -> Publisher {
    node.publisher("mic").encoding(Encoding::new(STEREO)).hz(hz).declare().unwrap()
}

fn rest(subscriber: &mut Subscriber) -> Vec<Sample> {
    std::iter::from_fn(|| subscriber.recv_timeout(Duration::from_millis(800)).ok()).collect()
}

/// Returns the samples that the link's streams dropped for `reason`.
fn dropped(node: &Node, reason: DropReason) -> u64 {
    let status = node.status(SOON);
    let own = status.iter().find(|status| status.id == node.id()).unwrap();
    own.links[0].streams.iter().map(|stream| stream.counters.dropped.of(reason)).sum()
}

/// Returns the milliseconds of decoded sound.
fn decoded_ms(samples: &[Sample]) -> usize {
    let format: OpusFormat = samples[0].encoding.as_str().parse().unwrap();
    let mut decoder = OpusDecoder::new(format).unwrap();
    let bytes: usize = samples.iter().map(|it| decoder.decode(&it.payload).unwrap().len()).sum();
    bytes / decoder.output().frame_bytes() / 48
}

/// Grants 32 kbit/s to blocks with this many frames, and returns the samples after the first block.
fn granted(frames: usize, hz: f64, millis: u32) -> Vec<Sample> {
    let (robot, operator) = thin();
    let mut mic = mic(&robot, hz);
    let asked = operator.subscriber("mic").audio(48_000, 1).bitrate(32_000).queue(1_000);
    let mut heard = asked.within(Duration::from_millis(900)).declare().unwrap();
    mic.put(noise(0, frames)).unwrap();
    let mut reserved = 0;
    wait_until("the contract is granted", || {
        let feedback = mic.feedback(SOON);
        let grant = feedback.first().and_then(|it| it.grant.as_ref());
        reserved = grant.map_or(0, |grant| grant.hops[0].bytes_per_s);
        reserved > 0
    });
    assert!((4_000..12_000).contains(&reserved), "32 kbit/s and headers, not {reserved} bytes");
    rest(&mut heard);
    let micros = u32::try_from(frames * 1_000 / 48).unwrap();
    let began = std::time::Instant::now();
    for n in 1..=millis * 1_000 / micros {
        mic.put(noise(n, frames)).unwrap();
        let next = began + Duration::from_micros(u64::from(micros * n));
        std::thread::sleep(next.saturating_duration_since(std::time::Instant::now()));
    }
    let samples = rest(&mut heard);
    let feedback = mic.feedback(SOON);
    let measured = feedback[0].measured.unwrap();
    let excess = feedback[0].excess;
    // The test reads the samples long after their arrival.
    let late = measured.late - measured.overdue;
    let bytes: usize = samples.iter().map(|it| it.payload.len()).sum();
    println!(
        "blocks of {frames} frames: {} samples, {bytes} bytes in {millis} ms, reserved {reserved} bytes/s, {late} late",
        samples.len(),
    );
    assert_eq!((excess.long, excess.early, late), (0, 0, 0));
    assert_eq!(dropped(&robot, DropReason::OverBudget), 0);
    sums::check(&[&robot, &operator]);
    samples
}

#[test]
fn sound_keeps_its_bit_rate_on_a_link_that_is_too_thin_for_it() {
    let samples = granted(960, 50.0, 3_000);
    assert_eq!(samples.len(), 150);
    for sample in &samples {
        assert_eq!((sample.kind, sample.encoding.as_str()), (Kind::Audio, MONO));
        assert_eq!(sample.payload.len(), 80);
    }
    assert_eq!(decoded_ms(&samples), 3_000);
}

#[test]
fn blocks_of_any_duration_keep_the_bit_rate() {
    // 64 ms: packets of 60 and 80 ms.
    let samples = granted(3_072, 15.625, 3_200);
    assert_eq!(samples.len(), 50);
    let sizes = |bytes: usize| samples.iter().filter(|it| it.payload.len() == bytes).count();
    assert_eq!((sizes(240) + sizes(320), sizes(320) > 8), (50, true));
    // Less than 20 ms wait for the next block, and some of the first block came before.
    assert!((3_180..=3_220).contains(&decoded_ms(&samples)), "{} ms", decoded_ms(&samples));
}

#[test]
fn sound_that_is_published_too_fast_is_dropped_with_a_reason() {
    let (robot, operator) = thin();
    let mut mic = mic(&robot, f64::from(HZ));
    let mut heard = operator.subscriber("mic").bitrate(32_000).queue(1_000).declare().unwrap();
    assert!(mic.wait_matching(SOON));
    mic.put(noise(0, 960)).unwrap();
    assert_eq!(heard.recv_timeout(SOON).unwrap().payload.len(), 80);
    // Four times as fast as it plays.
    at_rate(HZ * 4, 400, |n| {
        mic.put(noise(n, 960)).unwrap();
    });
    let samples = rest(&mut heard);
    let bytes: usize = samples.iter().map(|it| it.payload.len()).sum();
    // 2 s at the bit rate, and the burst of a second; the test machine may pause.
    assert!((8_000..24_000).contains(&bytes), "{bytes} bytes");
    wait_until("the drops are counted", || {
        dropped(&robot, DropReason::OverBudget) + samples.len() as u64 == 400
    });
    sums::check(&[&robot, &operator]);
}

#[test]
fn invalid_blocks_are_dropped_and_the_sound_continues() {
    let (robot, operator) = thin();
    let mut mic = robot.publisher("mic").encoding(Encoding::new(STEREO)).declare().unwrap();
    let mut heard = operator.subscriber("mic").bitrate(24_000).declare().unwrap();
    assert!(mic.wait_matching(SOON));
    // The second ends inside a frame, the third is longer than any packet.
    for block in [noise(0, 960), vec![0; 961], noise(1, 9_600), noise(2, 960)] {
        mic.put_blocking(block).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    let seqs: Vec<u64> = rest(&mut heard).iter().map(|it| it.seq).collect();
    assert_eq!(seqs, [0, 3]);
    wait_until("the drops are counted", || dropped(&robot, DropReason::CannotScale) == 2);
    sums::check(&[&robot, &operator]);
}

#[test]
fn short_blocks_wait_for_a_packet_with_sound() {
    let (robot, operator) = pair(|link| link);
    let mut mic = mic(&robot, 400.0);
    let asked = operator.subscriber("mic").audio(16_000, 1).bitrate(6_000).queue(1_000);
    let mut heard = asked.declare().unwrap();
    assert!(mic.wait_matching(SOON));
    at_rate(400, 400, |n| {
        mic.put_blocking(noise(n, 120)).unwrap();
    });
    let samples = rest(&mut heard);
    // A packet of 20 ms for eight blocks of 2.5 ms.
    assert_eq!(samples.len(), 50);
    assert!(samples.iter().all(|it| it.payload.len() == 15));
    sums::check(&[&robot, &operator]);
}

#[test]
fn a_bit_rate_alone_keeps_the_rate_and_the_channels_as_far_as_opus_has_them() {
    let (robot, operator) = pair(|link| link);
    for (tag, from, to) in [
        ("cd", "audio/pcm;format=s16le;rate=44100;channels=6", "audio/opus;rate=48000;channels=2"),
        ("phone", "audio/pcmu;rate=8000;channels=1", "audio/opus;rate=8000;channels=1"),
        ("coded", MONO, MONO),
    ] {
        let mut sound = robot.publisher(tag).encoding(Encoding::new(from)).declare().unwrap();
        let mut heard = operator.subscriber(tag).bitrate(24_000).declare().unwrap();
        assert!(sound.wait_matching(SOON));
        sound.put(vec![0; 10_584]).unwrap();
        sound.put(vec![0; 160]).unwrap();
        let sample = heard.recv_timeout(SOON).unwrap();
        assert_eq!((sample.kind, sample.encoding.as_str()), (Kind::Audio, to), "{tag}");
    }
}

#[test]
fn a_subscribers_node_can_code_the_sound() {
    let (robot, operator) = pair(|link| link);
    let mut mic = mic(&robot, f64::from(HZ));
    let asked = operator.subscriber("mic").audio(48_000, 1).bitrate(32_000);
    let mut heard = asked.proxy(Proxy::Subscriber).declare().unwrap();
    assert!(mic.wait_matching(SOON));
    at_rate(HZ, 20, |n| {
        mic.put(noise(n, 960)).unwrap();
    });
    let samples = rest(&mut heard);
    assert_eq!(samples.len(), 20);
    assert!(samples.iter().all(|it| it.encoding.as_str() == MONO && it.payload.len() == 80));
}

#[test]
fn a_pattern_with_the_bit_rate_of_video_codes_sound_as_well_as_possible() {
    let (robot, operator) = pair(|link| link);
    let mut mic = mic(&robot, f64::from(HZ));
    let mut heard = operator.subscriber("*").bitrate(4_000_000).declare().unwrap();
    assert!(mic.wait_matching(SOON));
    mic.put(noise(0, 960)).unwrap();
    assert_eq!(heard.recv_timeout(SOON).unwrap().payload.len(), 1_275, "510 kbit/s");
}

#[test]
fn sound_formats_and_bit_rates_that_opus_lacks_are_refused() {
    let (robot, _operator) = pair(|link| link);
    for (rate, channels, bits, text) in [
        (44_100, 1, 32_000, "rate of Opus is 44100, must be 8000, 12000, 16000, 24000 or 48000"),
        (48_000, 3, 32_000, "channels of Opus is 3, must be 1 or 2; choose 2 for"),
        (48_000, 1, 5_999, "bit rate of Opus is 5999, must be from 6000 to 510000 (bit/s); choose"),
        (48_000, 1, 510_001, "bit rate of Opus is 510001"),
    ] {
        let refused = robot.subscriber("mic").audio(rate, channels).bitrate(bits).check();
        let error = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn the_bit_rate_of_running_sound_changes() {
    let (robot, operator) = thin();
    let mut mic = mic(&robot, f64::from(HZ));
    let asked = operator.subscriber("mic").bitrate(32_000).queue(1_000);
    let mut heard = asked.within(Duration::from_millis(200)).declare().unwrap();
    assert!(mic.wait_matching(SOON));
    let mut sizes = Vec::new();
    let play = |mic: &mut Publisher| {
        at_rate(HZ, 50, |n| {
            mic.put(noise(n, 960)).unwrap();
        });
    };
    play(&mut mic);
    sizes.extend(rest(&mut heard).last().map(|it| it.payload.len()));
    heard.change(|wish| wish.bitrate(16_000)).unwrap();
    play(&mut mic);
    sizes.extend(rest(&mut heard).last().map(|it| it.payload.len()));
    assert_eq!(sizes, [80, 40]);
    sums::check(&[&robot, &operator]);
}
