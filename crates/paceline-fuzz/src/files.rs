//! Fuzz bodies for PNG pictures, WAV files, audio blocks and ULog flight logs.

use crate::input::Input;
use paceline_media::audio::{
    AudioFormat, AudioScaler, CHANNELS_MAX, Coding, RATE_MAX, RATE_MIN, read_wav, wav_header,
};
use paceline_media::png as codec;
use paceline_media::ulog::ULog;
use paceline_media::{Format, PixelFormat, Scaler, Size};

/// Pictures with more pixels are skipped: they take time and find nothing new.
const PIXELS_MAX: u64 = 1 << 18;
/// Limits of one audio stream.
const BLOCKS_MAX: usize = 40;
const BLOCK_BYTES_MAX: usize = 4_000;
/// The longest JSON text of one message, in bytes.
const JSON_BYTES_MAX: usize = 1 << 20;

/// Checks the size, the pixels and a scaled version of a PNG picture.
///
/// The second pass repairs the checksums first. Otherwise damaged input would never get past them.
pub fn png(data: &[u8]) {
    check_png(data);
    check_png(&with_checksums(data));
}

fn check_png(data: &[u8]) {
    let Ok(size) = codec::dimensions(data) else {
        assert!(codec::decode(data, PixelFormat::Rgb8).is_err());
        return;
    };
    if size.pixels() > PIXELS_MAX {
        return;
    }
    let planes = codec::decode(data, PixelFormat::I420);
    let pixels = codec::decode(data, PixelFormat::Rgb8);
    assert_eq!(planes.is_ok(), pixels.is_ok(), "{:?} and {:?}", planes.err(), pixels.err());
    for decoded in [&planes, &pixels].into_iter().flatten() {
        assert_eq!(decoded.size(), size);
    }
    let wider = Size { width: size.width + 1, ..size };
    assert!(Scaler::new().scale(&Format::Png, data, wider).is_err(), "nothing is made larger");
    let half = Size { width: size.width.div_ceil(2), height: size.height.div_ceil(3) };
    if half != size
        && let Ok(scaled) = Scaler::new().scale(&Format::Png, data, half)
    {
        assert!(pixels.is_ok() && codec::dimensions(&scaled) == Ok(half));
        assert!(codec::decode(&scaled, PixelFormat::Rgb8).is_ok());
    }
    if let Ok(picture) = pixels {
        let again = codec::encode(&picture.as_picture()).unwrap();
        assert_eq!(codec::decode(&again, PixelFormat::Rgb8), Ok(picture));
    }
}

/// Returns the same chunks, each with its correct checksum.
fn with_checksums(data: &[u8]) -> Vec<u8> {
    let mut out = data.to_vec();
    let mut at = 8;
    while let Some(&[a, b, c, d]) = out.get(at..).and_then(|rest| rest.first_chunk()) {
        let len = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap();
        let Some(end) = at.checked_add(8).and_then(|begin| begin.checked_add(len)) else { break };
        let Some(sum) = out.get(at + 4..end).map(checksum) else { break };
        let Some(place) = out.get_mut(end..end + 4) else { break };
        place.copy_from_slice(&sum.to_be_bytes());
        at = end + 4;
    }
    out
}

/// Computes CRC-32 bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}

/// Checks that the audio of a WAV file survives a write and a second read unchanged.
pub fn wav(data: &[u8]) {
    let wav = match read_wav(data) {
        Ok(wav) => wav,
        Err(error) => return assert!(error.to_string().len() < 1_000, "an error is one line"),
    };
    assert_eq!(wav.format.check(), Ok(()));
    assert_eq!(wav.data.len() % wav.format.frame_bytes(), 0, "whole frames");
    assert!(wav.data.len() <= 2 * data.len(), "twice the file at most");
    assert_eq!(wav.format.to_string().parse(), Ok(wav.format));
    let len = u32::try_from(wav.data.len()).unwrap();
    let mut file = wav_header(&wav.format, len);
    file.extend_from_slice(&wav.data);
    // The written file may be empty: the reader then cannot know its end yet.
    let again = read_wav(&file).unwrap();
    assert_eq!((again.format, again.data), (wav.format, wav.data));
}

/// Checks that scaling audio blocks preserves their duration, whatever their lengths.
pub fn sound(data: &[u8]) {
    let mut input = Input::new(data);
    let rates = [RATE_MIN, 8_000, 11_025, 16_000, 44_100, 48_000, RATE_MAX, 0, RATE_MAX + 1];
    let coding = input.one_of(&[Coding::S16le, Coding::Ulaw, Coding::Alaw]);
    let (rate, to_rate) = (input.one_of(&rates), input.one_of(&rates));
    let channels = |input: &mut Input<'_>| input.below(CHANNELS_MAX + 2);
    let (from, to) = (channels(&mut input), channels(&mut input));
    let known = |rate, channels| AudioFormat::new(coding, rate, channels).is_ok();
    let format = AudioFormat { coding, rate, channels: from };
    let scaler = AudioScaler::new(format, to_rate, to);
    assert_eq!(scaler.is_ok(), known(rate, from) && known(to_rate, to));
    let Ok(mut scaler) = scaler else { return };
    let (mut frames_in, mut frames_out) = (0u64, 0u64);
    for _ in 0..BLOCKS_MAX {
        if input.is_empty() {
            break;
        }
        let len = usize::from(input.u16()) % BLOCK_BYTES_MAX;
        let block = input.take(len);
        match scaler.push(block) {
            Ok(out) => {
                let frame = scaler.output().frame_bytes();
                assert_eq!((block.len() % format.frame_bytes(), out.len() % frame), (0, 0));
                frames_in += (block.len() / format.frame_bytes()) as u64;
                frames_out += (out.len() / frame) as u64;
            }
            Err(_) => assert_ne!(block.len() % format.frame_bytes(), 0, "whole frames are taken"),
        }
        assert_eq!(
            frames_out,
            frames_in * u64::from(to_rate) / u64::from(rate),
            "as long as it was"
        );
    }
}

/// Checks that the topics and messages of a flight log agree, and that each message decodes to text or an
/// error.
pub fn ulog(data: &[u8]) {
    let Ok(log) = ULog::parse(data) else { return };
    let topics = log.topics();
    let mut counts = vec![(0u64, 0usize); topics.len()];
    let mut bytes = 0;
    for message in log.messages() {
        let (messages, longest) = &mut counts[message.topic];
        *messages += 1;
        *longest = message.payload.len().max(*longest);
        bytes += message.payload.len();
        if let Ok(text) = log.to_json(&message) {
            assert!(text.starts_with('{') && text.ends_with('}'), "{text}");
            assert!(text.len() <= JSON_BYTES_MAX && !text.contains('\n'));
        }
    }
    assert!(bytes <= data.len(), "messages are pieces of the log");
    for (topic, (messages, longest)) in topics.iter().zip(counts) {
        assert_eq!((topic.messages, topic.bytes_max), (messages, longest), "{}", topic.name);
        assert!(topic.hz >= 0.0 && topic.hz.is_finite() && topic.suffix().starts_with(&topic.name));
        let same = topics.iter().filter(|other| other.suffix() == topic.suffix());
        assert_eq!(same.count(), 1, "{} names one topic", topic.suffix());
    }
}
