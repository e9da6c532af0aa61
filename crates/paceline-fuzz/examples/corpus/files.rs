//! Seeds of PNG pictures, WAV files, audio blocks, flight logs, H.264 streams and recordings.

use crate::{Seed, with_cuts};
use paceline_media::audio::{AudioFormat, Coding, wav_header};
use paceline_media::ulog::ULog;
use paceline_media::{PictureBuf, PixelFormat, Size, png};
use paceline_record::{About, Compression, RecordedEvent, RecordedSample, Recording};

fn picture(width: u32, height: u32, format: PixelFormat) -> Vec<u8> {
    let mut picture = PictureBuf::grey(format, Size::new(width, height).unwrap()).unwrap();
    for (place, byte) in picture.bytes_mut().iter_mut().enumerate() {
        *byte = (place * 5).to_le_bytes()[0];
    }
    png::encode(&picture.as_picture()).unwrap()
}

fn wav(coding: Coding, channels: u8) -> Vec<u8> {
    let format = AudioFormat::new(coding, 8_000, channels).unwrap();
    let data: Vec<u8> = (0..96u8).collect();
    let mut out = wav_header(&format, 96);
    out.extend(data);
    out
}

/// Returns a PCM WAV file with the given header values.
fn pcm(tag: u16, bits: u16, frame: u16, data: &[u8], claimed: u32) -> Vec<u8> {
    let mut out = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0".to_vec();
    out.extend(tag.to_le_bytes());
    out.extend([1, 0]);
    out.extend(48_000u32.to_le_bytes());
    out.extend((48_000 * u32::from(frame)).to_le_bytes());
    out.extend(frame.to_le_bytes());
    out.extend(bits.to_le_bytes());
    out.extend(b"data");
    out.extend(claimed.to_le_bytes());
    out.extend(data);
    out
}

/// Returns one record of a log.
fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(body.len()).unwrap().to_le_bytes();
    [&len[..], &[kind], body].concat()
}

fn log(formats: &[&str], topics: &[(u8, u16, &str)], messages: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut out = b"ULog\x01\x12\x35\x01".to_vec();
    out.extend(1_000u64.to_le_bytes());
    out.extend(record(b'B', &[0; 40]));
    out.extend(formats.iter().flat_map(|format| record(b'F', format.as_bytes())));
    for (multi, id, name) in topics {
        let body = [&[*multi], &id.to_le_bytes()[..], name.as_bytes()].concat();
        out.extend(record(b'A', &body));
    }
    for (id, payload) in messages {
        out.extend(record(b'D', &[&id.to_le_bytes()[..], payload].concat()));
    }
    out
}

/// Returns a message with a timestamp and further fields.
fn fields(time: u64, rest: &[u8]) -> Vec<u8> {
    [&time.to_le_bytes()[..], rest].concat()
}

fn logs() -> Vec<(&'static str, Vec<u8>)> {
    let plain = "pose:uint64_t timestamp;float x;double y;uint8_t[4] _padding0;";
    let texts = "text:uint64_t timestamp;char[6] words;bool on;int8_t[3] small;";
    let outer = "outer:uint64_t timestamp;inner[2] both;int16_t n;";
    let inner = "inner:float x;uint32_t n;";
    let pose = |time| (0, fields(time, &[0, 0, 128, 63, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f]));
    let text = (1, fields(2_000, b"a\"b\n\0z\x01\x80\x7f\x01"));
    let nested = (2, fields(3_000, &[7; 18]));
    let both = [(0, 0, "pose"), (1, 3, "pose"), (0, 1, "text"), (0, 2, "outer")];
    let formats = [plain, texts, outer, inner];
    let deep = "a:uint64_t timestamp;b[9999] x;";
    let loops = ["a:uint64_t timestamp;b x;", "b:a y;"];
    vec![
        ("pose", log(&[plain], &both[..1], &[pose(1), pose(2), pose(40_000)])),
        ("all", log(&formats, &both, &[pose(1), text, nested, (3, fields(9, &[0; 12]))])),
        ("unknown", log(&[plain], &both[..1], &[(9, fields(1, &[0; 12])), pose(5)])),
        (
            "huge-array",
            log(&[deep, "b:float[9999] y;"], &[(0, 0, "a")], &[(0, fields(1, &[0; 90]))]),
        ),
        ("loop", log(&loops, &[(0, 0, "a")], &[(0, fields(1, &[0; 90]))])),
        ("short", log(&[plain], &both[..1], &[(0, vec![1; 9]), (0, vec![])])),
    ]
}

/// Returns hand-written H.264: parameter sets for 64x48, and slices with valid first bytes.
fn streams() -> Vec<(&'static str, Vec<u8>)> {
    let nal = |bytes: &[u8]| [&[0, 0, 0, 1], bytes].concat();
    let (sps, pps) = ([0x67, 0x42, 0, 0x0a, 0xda, 0x11, 0xe4], [0x68, 0xce, 0x38, 0x80]);
    let sets = [nal(&sps), nal(&pps)].concat();
    let (aud, sei) = (nal(&[9, 0x10]), nal(&[6, 5, 2, 1, 2, 0x80]));
    let i = nal(&[0x65, 0x88, 0x84, 1, 2, 0, 0, 3, 1, 0x80]);
    let p = nal(&[0x41, 0x9a, 0x24, 1, 2, 3, 0x80]);
    let b = nal(&[0x01, 0x9a, 0x44, 1, 2, 3, 0x80]);
    // The second slice of a picture begins at a later macroblock than the first.
    let more = [0, 0, 1, 0x65, 0x58, 0x84, 7, 7];
    let group = [&aud[..], &sets, &sei, &i, &more, &aud, &p, &aud, &b, &aud, &p].concat();
    vec![
        ("group", [&group[..], &group, &aud, &i].concat()),
        ("plain", [&sets[..], &i, &p, &b, &p, &i].concat()),
        ("sets", sets),
        ("no-sets", [&i[..], &p, &b].concat()),
        ("starts", [&[0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1][..], &p, &[0, 0, 0]].concat()),
    ]
}

/// Returns a recording of one sample of each of several kinds, and an event, in two chunks.
fn recording(compression: Compression) -> Vec<u8> {
    let mut recording = Recording::new(compression, "a");
    let mut bytes = Vec::new();
    let kinds: [(&str, &[u8]); 5] = [
        ("image/jpeg", &[0xff, 0xd8, 0xff, 0xd9]),
        ("audio/pcm;format=s16le;rate=8000;channels=1", &[1, 2, 3, 4]),
        ("text/plain", b"a line"),
        ("application/json", b"{\"a\":[1]}"),
        ("application/cdr", &[0, 1, 0, 0, 7]),
    ];
    for (number, (encoding, payload)) in (1u64..).zip(kinds) {
        let sample = RecordedSample {
            tag: "a/b",
            publisher: "0000000000000001.0",
            seq: number,
            encoding,
            captured_ns: number,
            came_ns: 10 - number,
            payload,
            attachment: None,
        };
        recording.sample(&sample, About::default).unwrap();
        if number == 2 {
            recording.flush();
            bytes.extend(recording.take());
        }
    }
    let left = RecordedEvent::Left { tag: "a/b".to_owned(), publisher: "1".to_owned() };
    recording.event(&left, 9).unwrap();
    bytes.extend(recording.finish());
    bytes
}

pub(crate) fn seeds() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for (name, bytes) in [
        ("small", picture(7, 5, PixelFormat::Rgb8)),
        ("wide", picture(40, 3, PixelFormat::I420)),
        ("one", picture(1, 1, PixelFormat::Rgb8)),
    ] {
        seeds.extend(with_cuts("png", name, &bytes));
    }
    let mut huge = picture(1, 1, PixelFormat::Rgb8);
    huge[16..24].copy_from_slice(&[0, 0, 0x40, 0, 0, 0, 0x10, 0]);
    seeds.push(("png", "huge".to_owned(), huge));
    for (name, coding, channels) in
        [("pcm", Coding::S16le, 2), ("ulaw", Coding::Ulaw, 1), ("alaw", Coding::Alaw, 3)]
    {
        seeds.extend(with_cuts("wav", name, &wav(coding, channels)));
    }
    for (name, bytes) in [
        ("bits-8", pcm(1, 8, 1, &[0, 127, 255], 3)),
        ("bits-24", pcm(1, 24, 3, &[1; 12], 12)),
        ("bits-32", pcm(1, 32, 4, &[0x80; 12], u32::MAX)),
        ("float", pcm(3, 32, 4, &[0, 0, 0xc0, 0x7f, 0, 0, 0x80, 0xff], 0)),
        ("odd-frame", pcm(1, 16, 3, &[1; 12], 12)),
    ] {
        seeds.push(("wav", name.to_owned(), bytes));
    }
    for (place, (rate, to)) in [(5, 3), (1, 5), (4, 5), (6, 0), (3, 3), (7, 1)].iter().enumerate() {
        let block: Vec<u8> = (0..=255).cycle().take(1_920).collect();
        let start = [u8::try_from(place % 3).unwrap(), *rate, *to, 2, 1];
        let mut bytes = start.to_vec();
        for len in [1_920u16, 4, 0, 640, 2, 7] {
            bytes.extend(len.to_le_bytes());
            bytes.extend(&block[..usize::from(len)]);
        }
        seeds.push(("sound", format!("rates-{place}"), bytes));
    }
    for (name, compression) in [("plain", Compression::None), ("lz4", Compression::Lz4)] {
        seeds.extend(with_cuts("recording", name, &recording(compression)));
    }
    for (name, bytes) in streams() {
        seeds.extend(with_cuts("h264", name, &bytes));
    }
    for (name, bytes) in logs() {
        let topics = ULog::parse(&bytes).unwrap().topics().len();
        assert!(topics > 0 || !matches!(name, "pose" | "all"), "{name} is a log without topics");
        seeds.extend(with_cuts("ulog", name, &bytes));
    }
    seeds
}
