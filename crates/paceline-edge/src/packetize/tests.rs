//! Units that are cut into packets, and put together again by the depacketizer.

use super::*;
use crate::depacketize::{Depacketizer, RtpEvent, RtpPacket};
use paceline_media::{Picture, PixelFormat, Size};
use proptest::prelude::*;

/// Returns the units that arrive.
fn round(format: TrackFormat, units: &[Vec<u8>], most: usize) -> Vec<Vec<u8>> {
    let packetizer = Packetizer::with_payload_max(format, most);
    let mut depacketizer = Depacketizer::new(format);
    let mut events = Vec::new();
    for (number, unit) in (0_i64..).zip(units) {
        for part in packetizer.cut(unit).unwrap() {
            assert!(part.payload.len() <= most.max(64), "{} of {most}", part.payload.len());
            let time = number * 90_000 + i64::from(part.after);
            let (marker, payload) = (part.marker, &part.payload[..]);
            depacketizer.push(&RtpPacket { time, marker, lost: 0, payload }, &mut events);
        }
    }
    let unit = |event| match event {
        RtpEvent::Unit { bytes, .. } => bytes,
        RtpEvent::Fault(fault) => panic!("{fault:?}"),
    };
    events.into_iter().map(unit).collect()
}

fn annexb(nals: &[Vec<u8>]) -> Vec<u8> {
    nals.iter().flat_map(|nal| [&[0, 0, 0, 1], &nal[..]].concat()).collect()
}

/// A block of AAC in ADTS at 48,000 Hz in stereo.
fn adts(body: &[u8]) -> Vec<u8> {
    let length = body.len() + 7;
    let [_, _, _, _, _, _, high, low] = (length << 5).to_be_bytes();
    let top = u8::try_from(length >> 11).unwrap();
    [&[0xff, 0xf1, 0x4c, 0x80 | top, high, low | 0x1f, 0xfc], body].concat()
}

fn jpeg(size: (u32, u32), quality: u8) -> Vec<u8> {
    let size = Size::new(size.0, size.1).unwrap();
    let count = usize::try_from(size.pixels() * 3).unwrap();
    let bytes: Vec<u8> = (0..count).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect();
    let picture = Picture::new(PixelFormat::Rgb8, size, &bytes).unwrap();
    paceline_media::jpeg::encode(&picture, quality).unwrap()
}

fn fault(unit: &[u8]) -> String {
    Packetizer::new(TrackFormat::Jpeg).cut(unit).unwrap_err().to_string()
}

#[test]
fn jpeg_pictures_arrive_with_the_same_pixels() {
    for (size, quality) in [((16, 16), 50), ((320, 240), 80), ((97, 55), 95), ((2_040, 16), 20)] {
        let unit = jpeg(size, quality);
        let found = round(TrackFormat::Jpeg, std::slice::from_ref(&unit), 1_380).remove(0);
        let pixels = |unit: &[u8]| {
            let picture = paceline_media::jpeg::decode(unit, PixelFormat::Rgb8).unwrap();
            let picture = picture.as_picture();
            let row = usize::try_from(picture.size().width).unwrap() * 3;
            let kept = usize::try_from(size.0).unwrap() * 3;
            // RTP states sides in units of 8 pixels.
            let rows = picture.bytes().chunks(row).take(usize::try_from(size.1).unwrap());
            rows.map(|row| row[..kept].to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(pixels(&found), pixels(&unit), "{size:?}");
    }
}

#[test]
fn jpeg_pictures_that_rtp_cannot_carry_have_a_reason_and_a_remedy() {
    let unit = jpeg((64, 64), 80);
    let with = |from: &[u8], to: &[u8]| {
        let at = unit.windows(from.len()).position(|bytes| bytes == from).unwrap();
        [&unit[..at], to, &unit[at + from.len()..]].concat()
    };
    assert!(fault(&with(&[0xff, 0xc0], &[0xff, 0xc2])).contains("progressive; request"));
    // The sampling of luma follows the size, the number of components and the first one's name.
    let frame = unit.windows(2).position(|bytes| bytes == [0xff, 0xc0]).unwrap();
    let mut other = unit.clone();
    other[frame + 11] = 0x11;
    assert!(fault(&other).contains("neither 4:2:0 nor 4:2:2"));
    // A code table in another order.
    assert!(
        fault(&with(&[4, 5, 6, 7, 8, 9, 10, 11], &[4, 6, 5, 7, 8, 9, 10, 11])).contains("ffmpeg")
    );
    assert!(fault(&jpeg((2_048, 16), 20)).contains("size=1920x1080"));
    assert!(fault(b"no picture").contains("does not begin"));
    for cut in [3, 30, 200, unit.len() / 2] {
        let cut = &unit[..cut];
        assert!(
            Packetizer::new(TrackFormat::Jpeg).cut(cut).is_err() || cut.len() > 300,
            "{}",
            cut.len()
        );
    }
}

#[test]
fn units_that_are_none_have_a_reason() {
    let cut = |format, unit: &[u8]| Packetizer::new(format).cut(unit).unwrap_err();
    assert_eq!(cut(TrackFormat::H264, &[]), PacketizeError::Empty);
    assert_eq!(cut(TrackFormat::H264, b"no start code"), PacketizeError::Empty);
    assert_eq!(cut(TrackFormat::H264, &[0, 0, 1, 0x7c, 1]), PacketizeError::Nal(28));
    assert_eq!(cut(TrackFormat::H265, &[0, 0, 1, 0x62, 1]), PacketizeError::Nal(49));
    let aac = TrackFormat::Aac { rate: 48_000, channels: 2 };
    assert!(matches!(cut(aac, b"nothing"), PacketizeError::Adts(_)));
    let block = adts(&[1, 2, 3]);
    assert!(matches!(cut(aac, &block[..9]), PacketizeError::Adts("it is cut off")));
}

#[test]
fn parameter_sets_travel_together_before_the_slices() {
    let unit = annexb(&[vec![9, 0xf0], vec![0x67, 1], vec![0x68, 2], vec![0x65, 0x88, 3]]);
    let parts = Packetizer::new(TrackFormat::H264).cut(&unit).unwrap();
    let payloads: Vec<&[u8]> = parts.iter().map(|part| &part.payload[..]).collect();
    assert_eq!(
        payloads,
        [&[0x78, 0, 2, 9, 0xf0, 0, 2, 0x67, 1, 0, 2, 0x68, 2][..], &[0x65, 0x88, 3]]
    );
    assert_eq!(parts.iter().map(|part| part.marker).collect::<Vec<_>>(), [false, true]);
}

/// NAL units of a picture: some before its slices, and slices of which the first one begins the picture.
fn nals(
    others: &'static [u8],
    slices: &'static [u8],
    second: &'static [u8],
) -> impl Strategy<Value = Vec<Vec<u8>>> {
    let bytes = || proptest::collection::vec(1_u8.., 1..400);
    let before = proptest::collection::vec((proptest::sample::select(others), bytes()), 0..5);
    let slice = proptest::collection::vec((proptest::sample::select(slices), bytes()), 1..4);
    (before, slice).prop_map(move |(before, slices)| {
        let nal = |(kind, body): (u8, Vec<u8>), begins: u8| {
            [&[kind], second, &[begins], &body[..]].concat()
        };
        let before = before.into_iter().map(|one| nal(one, 1));
        let slices = slices.into_iter().enumerate();
        before.chain(slices.map(|(at, one)| nal(one, if at == 0 { 0x88 } else { 0x08 }))).collect()
    })
}

proptest! {
    #[test]
    fn h264_arrives_unchanged(
        pictures in proptest::collection::vec(nals(&[0x67, 0x68, 0x06, 0x09], &[0x65, 0x41, 0x01], &[]), 1..6), most in 64_usize..500,
    ) {
        let units: Vec<Vec<u8>> = pictures.iter().map(|nals| annexb(nals)).collect();
        prop_assert_eq!(round(TrackFormat::H264, &units, most), units);
    }

    #[test]
    fn h265_arrives_unchanged(
        pictures in proptest::collection::vec(nals(&[0x40, 0x42, 0x44, 0x4e], &[0x26, 0x02, 0x00], &[1]), 1..6), most in 64_usize..500,
    ) {
        let units: Vec<Vec<u8>> = pictures.iter().map(|nals| annexb(nals)).collect();
        prop_assert_eq!(round(TrackFormat::H265, &units, most), units);
    }

    #[test]
    fn sound_arrives_unchanged(
        blocks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..700), 1..6), most in 64_usize..500,
    ) {
        let aac = TrackFormat::Aac { rate: 48_000, channels: 2 };
        let units: Vec<Vec<u8>> = blocks.iter().map(|block| adts(block)).collect();
        prop_assert_eq!(&round(aac, &units, most), &units);
        // Several blocks of one sample arrive one by one.
        prop_assert_eq!(&round(aac, &[units.concat()], most), &units);
        let even: Vec<Vec<u8>> = blocks.iter().map(|block| block.repeat(4)).collect();
        let all = even.concat();
        for format in [TrackFormat::L16 { rate: 8_000, channels: 2 }, TrackFormat::Pcmu { rate: 8_000, channels: 1 }] {
            prop_assert_eq!(&round(format, &even, most).concat(), &all);
        }
        let packets: Vec<Vec<u8>> = blocks.iter().map(|block| block[..block.len().min(most)].to_vec()).collect();
        prop_assert_eq!(&round(TrackFormat::Opus { channels: 2 }, &packets, most), &packets);
    }

    #[test]
    fn any_bytes_are_cut_or_refused(unit in proptest::collection::vec(any::<u8>(), 0..3_000), most in 0_usize..300) {
        for format in [
            TrackFormat::H264, TrackFormat::H265, TrackFormat::Jpeg, TrackFormat::Aac { rate: 48_000, channels: 2 },
            TrackFormat::Opus { channels: 1 }, TrackFormat::Pcma { rate: 8_000, channels: 7 }, TrackFormat::L16 { rate: 8_000, channels: 3 },
        ] {
            if let Ok(parts) = Packetizer::with_payload_max(format, most).cut(&unit) {
                prop_assert!(!parts.is_empty());
            }
        }
    }
}
