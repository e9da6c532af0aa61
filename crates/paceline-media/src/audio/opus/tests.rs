use super::packet::DURATIONS_US;
use super::*;
use crate::audio::format::{AudioFormat, Coding};
use proptest::prelude::*;

/// Samples of one second: silence, a loud tone, or noise.
#[derive(Clone, Copy, Debug)]
enum Source {
    Silence,
    Tone,
    Noise(u64),
}

impl Source {
    #[expect(clippy::cast_possible_truncation, reason = "at most full scale")]
    fn sample(self, frame: usize, rate: u32) -> i16 {
        match self {
            Self::Silence => 0,
            Self::Tone => {
                let turns = frame as f64 * 440.0 / f64::from(rate);
                ((turns * std::f64::consts::TAU).sin() * 12_000.0) as i16
            }
            Self::Noise(seed) => {
                let mixed = (frame as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9).to_le_bytes()[6..]
                    .first_chunk()
                    .map_or(0, |bytes| i16::from_le_bytes(*bytes))
            }
        }
    }

    /// Returns the frames `from..from + count`, the same in each channel.
    fn block(self, format: AudioFormat, from: usize, count: usize) -> Vec<u8> {
        let channels = usize::from(format.channels);
        let frames = from..from + count;
        let samples = frames.flat_map(|frame| vec![self.sample(frame, format.rate); channels]);
        samples.flat_map(i16::to_le_bytes).collect()
    }
}

fn pcm(rate: u32, channels: u8) -> AudioFormat {
    AudioFormat::new(Coding::S16le, rate, channels).unwrap()
}

/// Codes a second of blocks with this many frames; returns the packets.
fn packets(
    encoder: &mut OpusEncoder,
    source: Source,
    (from, frames): (AudioFormat, usize),
) -> Vec<Vec<u8>> {
    let count = from.rate as usize / frames;
    let block = |n| source.block(from, n * frames, frames);
    (0..count).map(|n| encoder.push(&block(n)).unwrap()).collect()
}

#[test]
fn every_packet_has_exactly_the_bytes_of_its_duration() {
    for rate in OPUS_RATES {
        for bits in [OPUS_BITS_MIN, 8_000, 16_000, 32_000, 96_000, OPUS_BITS_MAX] {
            for micros in DURATIONS_US {
                let from = pcm(rate, 2);
                let to = OpusFormat::new(rate, 1).unwrap();
                let frames =
                    usize::try_from(u64::from(rate) * u64::from(micros) / 1_000_000).unwrap();
                for source in [Source::Silence, Source::Tone, Source::Noise(7)] {
                    let mut encoder = OpusEncoder::new(from, to, bits).unwrap();
                    let all = packets(&mut encoder, source, (from, frames));
                    let mut decoder = OpusDecoder::new(to).unwrap();
                    for packet in all.iter().filter(|packet| !packet.is_empty()) {
                        let micros = opus_micros(packet).unwrap();
                        let bytes = u64::from(bits) * u64::from(micros) / 8_000_000;
                        assert_eq!(packet.len() as u64, bytes, "{rate} {bits} {source:?}");
                        let frames = u64::from(micros) * u64::from(rate) / 1_000_000;
                        assert_eq!(decoder.decode(packet).unwrap().len() as u64, frames * 2);
                    }
                    let whole = packets_micros(&all);
                    assert!(
                        (870_000..=1_000_000).contains(&whole),
                        "{whole} us of {rate} {bits} {micros}"
                    );
                }
            }
        }
    }
}

fn packets_micros(packets: &[Vec<u8>]) -> u32 {
    packets
        .iter()
        .filter(|packet| !packet.is_empty())
        .map(|packet| opus_micros(packet).unwrap())
        .sum()
}

/// Returns the ratio of the tone's energy to that of the difference, in dB, after the codec's delay.
fn quality(rate: u32, bits: u32, frames: usize) -> f64 {
    let from = pcm(rate, 1);
    let to = OpusFormat::new(rate, 1).unwrap();
    let mut encoder = OpusEncoder::new(from, to, bits).unwrap();
    let mut decoder = OpusDecoder::new(to).unwrap();
    let all = packets(&mut encoder, Source::Tone, (from, frames));
    let packets = all.iter().filter(|packet| !packet.is_empty());
    let bytes: Vec<u8> = packets.flat_map(|packet| decoder.decode(packet).unwrap()).collect();
    let heard: Vec<i16> =
        bytes.as_chunks().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
    let delay = (rate * OPUS_LOOK_AHEAD_US / 1_000) as usize / 1_000;
    let (mut signal, mut noise) = (0.0, 0.0);
    // The codec needs some packets to adapt.
    for frame in rate as usize / 4..heard.len() - delay {
        let sent = f64::from(Source::Tone.sample(frame, rate));
        signal += sent * sent;
        noise += (f64::from(heard[frame + delay]) - sent).powi(2);
    }
    10.0 * (signal / noise.max(1.0)).log10()
}

#[test]
fn a_tone_is_decoded_at_its_place() {
    for (rate, bits, frames, least) in
        [(48_000, 64_000, 960, 25.0), (48_000, 64_000, 3_072, 25.0), (48_000, 128_000, 123, 25.0)]
    {
        let quality = quality(rate, bits, frames);
        println!("{rate} Hz, {bits} bit/s, blocks of {frames}: {quality:.1} dB");
        assert!(quality >= least, "{quality} dB");
    }
}

#[test]
fn invalid_blocks_leave_the_encoder_unchanged() {
    let from = pcm(48_000, 2);
    let to = OpusFormat::new(48_000, 2).unwrap();
    let mut encoder = OpusEncoder::new(from, to, 32_000).unwrap();
    let text =
        |encoder: &mut OpusEncoder, block: &[u8]| encoder.push(block).unwrap_err().to_string();
    let odd = text(&mut encoder, &[0; 961]);
    assert!(odd.contains("holds 961 bytes, must be a multiple of 4, one frame of"), "{odd}");
    let long = text(&mut encoder, &vec![0; 5_761 * 4]);
    assert!(
        long.contains("holds 23044 bytes, must be at most 23040 for packets of 120 ms; send"),
        "{long}"
    );
    encoder.set_limit(Some(80));
    let large = text(&mut encoder, &vec![0; 961 * 4]);
    assert!(large.contains("must be at most 3840 for packets of 20 ms"), "{large}");
    assert_eq!(encoder.push(&[0; 960 * 4]).unwrap().len(), 80);
    encoder.set_limit(Some(9));
    assert!(text(&mut encoder, &[0; 4]).contains("at most 0 for packets of 0 ms"));
    assert_eq!(encoder.push(&[]).unwrap(), [0_u8; 0]);
    assert!(OpusEncoder::new(from, to, 5_999).is_err());
    assert!(OpusEncoder::new(from, OpusFormat { rate: 44_100, channels: 2 }, 6_000).is_err());
}

#[test]
fn sound_of_telephony_and_of_other_rates_is_coded() {
    for (coding, rate, channels) in
        [(Coding::Ulaw, 8_000, 1), (Coding::Alaw, 16_000, 2), (Coding::S16le, 44_100, 6)]
    {
        let from = AudioFormat::new(coding, rate, channels).unwrap();
        let mut encoder =
            OpusEncoder::new(from, OpusFormat::nearest(rate, channels), 24_000).unwrap();
        let block = vec![0x55; rate as usize / 50 * from.frame_bytes()];
        assert_eq!(encoder.bytes_for(&block), 60);
        for _ in 0..50 {
            assert_eq!(encoder.push(&block).unwrap().len(), 60);
        }
    }
}

#[test]
fn bad_packets_are_errors() {
    let mut decoder = OpusDecoder::new(OpusFormat::new(48_000, 2).unwrap()).unwrap();
    for packet in [&[][..], &[3], &[0x7f, 0x3f, 1], &[0xfe, 200, 1]] {
        let error = decoder.decode(packet).unwrap_err().to_string();
        assert!(error.starts_with("Opus packet of"), "{error}");
    }
    // One byte of silence is valid.
    assert_eq!(decoder.decode(&[0xf8]).unwrap().len(), 960 * 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Blocks of any lengths: no packet exceeds the limit or its prediction, and none of the sound is lost or delayed
    /// by more than 20 ms.
    #[test]
    fn no_packet_exceeds_the_limit(
        rate in prop::sample::select(vec![8_000_u32, 11_025, 16_000, 44_100, 48_000, 96_000]),
        bits in OPUS_BITS_MIN..=OPUS_BITS_MAX,
        limit in prop::option::of(prop::sample::select(DURATIONS_US.to_vec())),
        micros in prop::collection::vec(0_u64..130_000, 1..40),
        seed: u64,
    ) {
        let from = pcm(rate, 1);
        let to = OpusFormat::nearest(rate, 1);
        let mut encoder = OpusEncoder::new(from, to, bits).unwrap();
        let limit = limit.map(|micros| u64::from(bits) * u64::from(micros) / 8_000_000);
        encoder.set_limit(limit.map(|bytes| usize::try_from(bytes).unwrap()));
        let (mut at, mut coded, mut bytes) = (0, 0_u64, 0_u64);
        for micros in micros {
            let count = usize::try_from(u64::from(rate) * micros / 1_000_000).unwrap();
            let block = Source::Noise(seed).block(from, at, count);
            let most = encoder.bytes_for(&block);
            let Ok(packet) = encoder.push(&block) else { continue };
            at += count;
            prop_assert!(packet.len() <= most);
            prop_assert!(packet.len() as u64 <= limit.unwrap_or(u64::MAX));
            coded += opus_micros(&packet).map_or(0, u64::from);
            bytes += packet.len() as u64;
            let heard = at as u64 * 1_000_000 / u64::from(rate);
            prop_assert!(coded <= heard && heard <= coded + 20_500, "{coded} of {heard} us");
            prop_assert!(bytes <= u64::from(bits) * coded / 8_000_000);
        }
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(packets in prop::collection::vec(
        prop::collection::vec(any::<u8>(), 0..200), 1..20)) {
        let mut decoder = OpusDecoder::new(OpusFormat::new(48_000, 1).unwrap()).unwrap();
        for packet in packets {
            if let Ok(block) = decoder.decode(&packet) {
                prop_assert_eq!(block.len() as u64, u64::from(opus_micros(&packet).unwrap()) * 96 / 1_000);
            }
        }
    }
}
