//! Measures coding and decoding of sound as Opus: the time per second of sound, and the bytes.
//!
//! `cargo run -p paceline-media --example opus`, with the number of seconds as an argument (20 by default).

use paceline_media::MediaError;
use paceline_media::audio::{AudioFormat, Coding, OpusDecoder, OpusEncoder, OpusFormat};
use std::time::{Duration, Instant};

#[expect(clippy::disallowed_methods, reason = "an example that measures")]
fn clock() -> Instant {
    Instant::now()
}

/// Returns one second of a tone with noise.
#[expect(clippy::cast_possible_truncation, reason = "below full scale")]
fn second(rate: u32, channels: u8) -> Vec<u8> {
    let mut random = 13_u64;
    let mut sample = |frame: u32| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        let noise = f64::from(u32::try_from(random >> 56).unwrap_or(0)) - 128.0;
        let turns = f64::from(frame) * 440.0 / f64::from(rate);
        ((turns * std::f64::consts::TAU).sin() * 8_000.0 + noise * 8.0) as i16
    };
    let frames = (0..rate).flat_map(|frame| vec![sample(frame); usize::from(channels)]);
    frames.flat_map(i16::to_le_bytes).collect()
}

/// Returns the milliseconds of coding and of decoding, the bytes and the packets, each per second of sound.
fn run(from: AudioFormat, bits: u32, frames: usize, seconds: u32) -> Result<[f64; 4], MediaError> {
    let to = OpusFormat::nearest(from.rate, from.channels);
    let mut encoder = OpusEncoder::new(from, to, bits)?;
    let mut decoder = OpusDecoder::new(to)?;
    let sound = second(from.rate, from.channels);
    let (mut coding, mut decoding) = (Duration::ZERO, Duration::ZERO);
    let (mut bytes, mut packets) = (0_u32, 0_u32);
    for block in (0..seconds).flat_map(|_| sound.chunks(frames * from.frame_bytes())) {
        let began = clock();
        let packet = encoder.push(block)?;
        coding += began.elapsed();
        if !packet.is_empty() {
            bytes += u32::try_from(packet.len()).unwrap_or(0);
            packets += 1;
            let began = clock();
            decoder.decode(&packet)?;
            decoding += began.elapsed();
        }
    }
    let millis = |time: Duration| time.as_secs_f64() * 1_000.0;
    let all = [millis(coding), millis(decoding), f64::from(bytes), f64::from(packets)];
    Ok(all.map(|total| total / f64::from(seconds)))
}

fn main() -> Result<(), MediaError> {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20);
    println!("sound       kbit/s  block ms  coding ms  decoding ms  bytes/s  packets/s");
    for (rate, channels, bits, frames) in [
        (8_000, 1, 12_000, 160),
        (16_000, 1, 24_000, 320),
        (48_000, 1, 32_000, 960),
        (48_000, 1, 32_000, 3_072),
        (48_000, 2, 96_000, 960),
        (48_000, 2, 510_000, 960),
        (44_100, 2, 96_000, 882),
    ] {
        let from = AudioFormat::new(Coding::S16le, rate, channels)?;
        let [coding, decoding, bytes, packets] = run(from, bits, frames, seconds)?;
        let block = f64::from(u32::try_from(frames).unwrap_or(0)) * 1_000.0 / f64::from(rate);
        println!(
            "{:11} {:6} {block:9.1} {coding:10.1} {decoding:12.1} {bytes:8.0} {packets:10.1}",
            format!("{rate}x{channels}"),
            bits / 1_000
        );
    }
    Ok(())
}
