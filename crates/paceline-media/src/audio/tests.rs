use std::f64::consts::TAU;

use proptest::prelude::*;

use super::*;
use crate::MediaError;

fn format(coding: Coding, rate: u32, channels: u8) -> AudioFormat {
    AudioFormat::new(coding, rate, channels).unwrap()
}

/// Returns a tone at half of full scale, the same in all channels.
fn tone(format: AudioFormat, hz: f64, frames: u32) -> Vec<u8> {
    let sample = |n: u32| {
        let level = 0.5 * (TAU * hz * f64::from(n) / f64::from(format.rate)).sin();
        let text = format!("{:.0}", level * 32_767.0);
        let sample: i16 = text.parse().unwrap();
        match format.coding {
            Coding::S16le => sample.to_le_bytes().to_vec(),
            Coding::Ulaw => vec![g711::to_ulaw(sample)],
            Coding::Alaw => vec![g711::to_alaw(sample)],
        }
    };
    (0..frames).flat_map(|n| sample(n).repeat(usize::from(format.channels))).collect()
}

/// Returns the first channel as numbers.
fn samples(format: AudioFormat, bytes: &[u8]) -> Vec<f64> {
    let first = |frame: &[u8]| match format.coding {
        Coding::S16le => i16::from_le_bytes([frame[0], frame[1]]),
        Coding::Ulaw => g711::from_ulaw(frame[0]),
        Coding::Alaw => g711::from_alaw(frame[0]),
    };
    bytes.chunks(format.frame_bytes()).map(|frame| f64::from(first(frame))).collect()
}

fn scaled(from: AudioFormat, to: (u32, u8), sound: &[u8], block: usize) -> Vec<u8> {
    let mut scaler = AudioScaler::new(from, to.0, to.1).unwrap();
    sound.chunks(block).flat_map(|block| scaler.push(block).unwrap()).collect()
}

/// Measures a tone in `samples`.
///
/// Returns its amplitude; its delay in samples, of at most one period, against a sine that began with
/// the first sample; and the power of everything else.
fn measure(samples: &[f64], hz: f64, rate: f64) -> (f64, f64, f64) {
    let count = samples.len() as f64;
    let (mut sine, mut cosine) = (0.0, 0.0);
    for (n, sample) in samples.iter().enumerate() {
        let phase = TAU * hz * n as f64 / rate;
        sine += 2.0 / count * sample * phase.sin();
        cosine += 2.0 / count * sample * phase.cos();
    }
    let rest: f64 = samples
        .iter()
        .enumerate()
        .map(|(n, sample)| {
            let phase = TAU * hz * n as f64 / rate;
            (sample - sine * phase.sin() - cosine * phase.cos()).powi(2)
        })
        .sum();
    let delay = (-cosine).atan2(sine).rem_euclid(TAU) / TAU / hz * rate;
    (sine.hypot(cosine), delay, (rest / count).sqrt())
}

const RATES: [(u32, u32); 9] = [
    (48_000, 16_000),
    (48_000, 44_100),
    (44_100, 48_000),
    (48_000, 8_000),
    (8_000, 48_000),
    (16_000, 8_000),
    (44_100, 8_000),
    (11_025, 8_000),
    (96_000, 48_000),
];

#[test]
fn a_tone_stays_a_tone_with_the_documented_delay() {
    for (from, to) in RATES {
        let source = format(Coding::S16le, from, 1);
        // Its period is longer than the delay, so the phase determines the delay.
        let hz = f64::from(from.min(to)) / 50.0;
        let sound = tone(source, hz, from);
        let out = scaled(source, (to, 1), &sound, from as usize / 50 * source.frame_bytes());
        let out = samples(format(Coding::S16le, to, 1), &out);
        // A whole number of periods, behind the beginning.
        let begin = to as usize / 10;
        let window = &out[begin..begin + 10 * to as usize / 20];
        let (amplitude, _, noise) = measure(window, hz, f64::from(to));
        assert!((amplitude / 16_383.5 - 1.0).abs() < 0.002, "{from} to {to}: {amplitude}");
        let decibel = 20.0 * (amplitude / 2_f64.sqrt() / noise).log10();
        assert!(decibel > 75.0, "{from} to {to}: {decibel} dB above noise");
        let shift = begin as f64 * hz / f64::from(to) % 1.0;
        let (_, delay, _) = measure(window, hz, f64::from(to));
        let delay = (delay + shift * f64::from(to) / hz) % (f64::from(to) / hz);
        let frames = delay * f64::from(from.min(to)) / f64::from(to);
        assert!((32.0..38.0).contains(&frames), "{from} to {to}: {frames} frames of the lower");
    }
}

#[test]
fn frequencies_above_the_lower_rate_are_removed() {
    for (from, to, hz) in
        [(48_000, 8_000, 5_000.0), (48_000, 16_000, 9_500.0), (44_100, 8_000, 7_000.0)]
    {
        let source = format(Coding::S16le, from, 1);
        let out = scaled(source, (to, 1), &tone(source, hz, from), 1920);
        let out = samples(format(Coding::S16le, to, 1), &out);
        let loudest = out.iter().skip(1_000).fold(0.0_f64, |max, sample| max.max(sample.abs()));
        assert!(loudest < 16.0, "{from} to {to}: {loudest} of 16383");
    }
}

#[test]
fn every_block_keeps_its_duration() {
    for (from, to) in RATES {
        for channels in [1, 2, 6] {
            let source = format(Coding::S16le, from, channels);
            let mut scaler = AudioScaler::new(source, to, channels).unwrap();
            let target = scaler.output();
            let block = vec![0; from as usize / 50 * source.frame_bytes()];
            let mut total = 0_u64;
            for n in 1..=100 {
                let out = scaler.push(&block).unwrap().len() / target.frame_bytes();
                let even = to % 50 == 0 && from % 50 == 0;
                assert!(out == to as usize / 50 || !even, "{from} to {to}: {out}");
                total += out as u64;
                let frames = n * (u64::from(from) / 50);
                assert_eq!(total, frames * u64::from(to) / u64::from(from), "{from} to {to}");
            }
        }
    }
}

#[test]
fn blocks_of_any_length_give_the_same_audio() {
    let source = format(Coding::S16le, 44_100, 2);
    let sound = tone(source, 441.0, 20_000);
    let once = scaled(source, (16_000, 1), &sound, sound.len());
    for frames in [1, 7, 441, 882, 5_000] {
        let pieces = scaled(source, (16_000, 1), &sound, frames * 4);
        assert_eq!(pieces.len(), once.len());
        let far = samples(format(Coding::S16le, 16_000, 1), &pieces)
            .iter()
            .zip(samples(format(Coding::S16le, 16_000, 1), &once))
            .fold(0.0_f64, |max, (a, b)| max.max((a - b).abs()));
        assert!(far <= 1.0, "{frames}: {far}");
    }
}

#[test]
fn hours_of_audio_neither_drift_nor_accumulate() {
    let source = format(Coding::Ulaw, 1_009, 1);
    let mut scaler = AudioScaler::new(source, 1_013, 1).unwrap();
    let block = vec![0xff; 100_900];
    // 100 s at once, for three hours.
    for _ in 0..108 {
        assert_eq!(scaler.push(&block).unwrap().len(), 101_300);
    }
}

#[test]
fn extreme_ratios_work_within_their_bounds() {
    let fast = format(Coding::Alaw, RATE_MAX, 8);
    let mut scaler = AudioScaler::new(fast, RATE_MIN, 1).unwrap();
    let silence = vec![g711::to_alaw(8); 7_680 * 8];
    for _ in 0..5 {
        assert_eq!(scaler.push(&silence).unwrap().len(), 20);
    }
    let slow = format(Coding::Alaw, RATE_MIN, 1);
    let mut scaler = AudioScaler::new(slow, RATE_MAX, 8).unwrap();
    assert_eq!(scaler.push(&[0xd5; 20]).unwrap().len(), 61_440);
    let error = scaler.push(&[0xd5; 400]).unwrap_err().to_string();
    assert_eq!(
        error,
        "block of sound would become 1228800 bytes, must be at most 1048576; send shorter blocks, 20 ms are usual"
    );
    assert_eq!(scaler.push(&[0xd5; 20]).unwrap().len(), 61_440, "it continues");
}

#[test]
fn channels_are_mixed_in_every_coding() {
    for coding in [Coding::S16le, Coding::Ulaw, Coding::Alaw] {
        let one = |sample: i16| match coding {
            Coding::S16le => sample.to_le_bytes().to_vec(),
            Coding::Ulaw => vec![g711::to_ulaw(sample)],
            Coding::Alaw => vec![g711::to_alaw(sample)],
        };
        // Levels that each coding can represent.
        let [left, right] = match coding {
            Coding::S16le => [1_000, -3_001],
            Coding::Ulaw => [8_316, -8_316],
            Coding::Alaw => [264, 264],
        };
        let frame = [one(left), one(right)].concat();
        let mut down = AudioScaler::new(format(coding, 8_000, 2), 8_000, 1).unwrap();
        let middle = i16::midpoint(left, right);
        let found = samples(down.output(), &down.push(&frame).unwrap());
        assert!((found[0] - f64::from(middle)).abs() <= 1.0, "{coding:?}: {found:?}");
        let mut up = AudioScaler::new(format(coding, 8_000, 1), 8_000, 3).unwrap();
        assert_eq!(up.push(&one(left)).unwrap(), one(left).repeat(3));
        assert_eq!(up.output(), format(coding, 8_000, 3));
    }
}

#[test]
fn the_same_format_is_a_copy() {
    let source = format(Coding::Alaw, 8_000, 1);
    let mut scaler = AudioScaler::new(source, 8_000, 1).unwrap();
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(scaler.push(&all), Ok(all.clone()));
    assert_eq!(scaler.push(&[]), Ok(Vec::new()));
    assert_eq!(AudioScaler::new(source, 48_000, 2).unwrap().push(&[]), Ok(Vec::new()));
}

#[test]
fn wrong_blocks_and_formats_are_refused() {
    let source = format(Coding::S16le, 8_000, 2);
    let mut scaler = AudioScaler::new(source, 16_000, 1).unwrap();
    assert_eq!(
        scaler.push(&[0; 7]).unwrap_err().to_string(),
        "block of sound holds 7 bytes, must be a multiple of 4, one frame of audio/pcm;format=s16le;rate=8000;channels=2; cut blocks between frames"
    );
    let error = scaler.push(&vec![0; BLOCK_MAX + 4]).unwrap_err().to_string();
    assert!(error.starts_with("block of sound holds 1048580 bytes, must be at most 1048576"));
    assert_eq!(scaler.push(&vec![0; BLOCK_MAX]).unwrap().len(), BLOCK_MAX);
    for (rate, channels, part) in [
        (999, 1, "rate is 999"),
        (0, 1, "rate is 0"),
        (8_000, 0, "channels is 0"),
        (8_000, 9, "channels is 9"),
    ] {
        let error = AudioScaler::new(source, rate, channels).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        let literal = AudioFormat { coding: Coding::Ulaw, rate, channels };
        assert!(AudioScaler::new(literal, 8_000, 1).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_stream_keeps_its_exact_duration(
        (from, to) in (1_000_u32..60_000, 1_000_u32..60_000),
        (inputs, outputs) in (1_u8..9, 1_u8..9),
        blocks in proptest::collection::vec(0_usize..1_200, 1..6),
    ) {
        let source = format(Coding::Ulaw, from, inputs);
        let mut scaler = AudioScaler::new(source, to, outputs).unwrap();
        let (mut before, mut after) = (0_u64, 0_u64);
        for frames in blocks {
            let block: Vec<u8> = (0..frames * usize::from(inputs)).map(|n| n.to_le_bytes()[0]).collect();
            before += frames as u64;
            let out = scaler.push(&block);
            if let Err(MediaError::AudioBlock { .. }) = out {
                return Ok(());
            }
            after += (out.unwrap().len() / usize::from(outputs)) as u64;
            prop_assert_eq!(after, before * u64::from(to) / u64::from(from));
        }
    }
}
