use proptest::prelude::*;

use super::*;
use crate::{ColourRange, PictureBuf, PixelFormat, Size};

fn file(size: Size, frames: u8) -> Vec<u8> {
    let writer = Y4mWriter::new(size, FrameRate::new(30_000, 1001).unwrap()).unwrap();
    let mut out = Vec::new();
    writer.append_header(&mut out);
    let mut picture = PictureBuf::grey(PixelFormat::I420, size).unwrap();
    for frame in 0..frames {
        picture.bytes_mut().fill(frame);
        writer.append_frame(&picture.as_picture(), &mut out).unwrap();
    }
    out
}

fn refused(bytes: &[u8]) -> String {
    Y4mReader::new(bytes).unwrap_err().to_string()
}

#[test]
fn files_round_trip_also_at_odd_sizes() {
    for size in [Size { width: 4, height: 2 }, Size { width: 3, height: 5 }] {
        let bytes = file(size, 3);
        let reader = Y4mReader::new(&bytes).unwrap();
        assert_eq!((reader.size(), reader.rate().to_string()), (size, "30000:1001".to_owned()));
        let samples: Vec<_> = reader.map(|item| item.unwrap().bytes()[0]).collect();
        assert_eq!(samples, [0, 1, 2]);
    }
}

#[test]
fn the_range_of_the_samples_is_read_and_written_as_ffmpeg_does() {
    let size = Size { width: 4, height: 2 };
    let writer = Y4mWriter::new(size, FrameRate::new(25, 1).unwrap()).unwrap();
    for (range, text) in [
        (None, "C420jpeg\n"),
        (Some(ColourRange::Full), "C420jpeg XCOLORRANGE=FULL\n"),
        (Some(ColourRange::Limited), "C420jpeg XCOLORRANGE=LIMITED\n"),
    ] {
        let mut out = Vec::new();
        writer.with_range(range).append_header(&mut out);
        assert!(out.ends_with(text.as_bytes()), "{}", out.escape_ascii());
        assert_eq!(Y4mReader::new(&out).unwrap().range(), range);
    }
}

#[test]
fn headers_of_other_writers_are_read() {
    let header = b"YUV4MPEG2 W2 H2 F25:1 Ip A0:0 C420mpeg2 XYSCSS=420MPEG2\nFRAME Xa\n012345";
    assert_eq!(Y4mReader::new(header).unwrap().count(), 1);
    let bare = b"YUV4MPEG2 H2 W2  F25:1\n";
    assert_eq!(Y4mReader::new(bare).unwrap().count(), 0);
}

#[test]
fn invalid_headers_name_the_field_and_a_fix() {
    for (text, part) in [
        ("", "no line of at most 1024 bytes that begins with YUV4MPEG2; pass the bytes of a .y4m"),
        ("YUV4MPEG2 W2 H2 F25:1", "no line of at most"),
        ("YUV4MPEG22 W2 H2 F25:1\n", "no line of at most"),
        ("YUV4MPEG2 W2 H2\n", "frame rate (F) is missing; begin with"),
        ("YUV4MPEG2 W2 H2 F25\n", "frame rate is \"25\", must be NUM:DEN"),
        ("YUV4MPEG2 W2 H2 F0:1\n", "frame rate is 0:1"),
        ("YUV4MPEG2 W0 H2 F25:1\n", "width is \"0\""),
        ("YUV4MPEG2 W99999 H2 F25:1\n", "width is \"99999\""),
        ("YUV4MPEG2 W2 H2 F25:1 Cmono\n", "chroma format is \"mono\", must be 420,"),
        ("YUV4MPEG2 W2 H2 F25:1 C420p10\n", "with ffmpeg: -pix_fmt yuv420p"),
        ("YUV4MPEG2 W2 H2 F25:1 It\n", "interlacing is \"t\", must be p"),
        ("YUV4MPEG2 W2 H2 F25:1 Z\n", "parameter \"Z\" is not known"),
    ] {
        let message = refused(text.as_bytes());
        assert!(message.contains(part), "{text}: {message}");
    }
    assert!(refused(b"YUV4MPEG2 W2 H2 F25:1 X\xff\n").contains("not text"));
    assert!(refused(&[b"YUV4MPEG2 X".as_slice(), &[b'a'; 5000]].concat()).contains("no line"));
}

#[test]
fn every_truncation_is_reported() {
    let bytes = file(Size { width: 4, height: 2 }, 2);
    let begin = file(Size { width: 4, height: 2 }, 1).len();
    for cut in begin + 1..bytes.len() {
        let mut reader = Y4mReader::new(&bytes[..cut]).unwrap();
        assert!(reader.next().unwrap().is_ok());
        let message = reader.next().unwrap().unwrap_err().to_string();
        assert!(message.starts_with(&format!("y4m frame 1 at byte {begin}: ")), "{message}");
        assert!(message.ends_with("up to and including its last frame"), "{message}");
        assert!(reader.next().is_none());
    }
    let message = Y4mReader::new(b"YUV4MPEG2 W2 H2 F25:1\nFRAMES\n012345").unwrap().next();
    assert!(message.unwrap().unwrap_err().to_string().contains("does not begin with FRAME"));
}

#[test]
fn other_pictures_are_not_written() {
    let size = Size { width: 4, height: 2 };
    let writer = Y4mWriter::new(size, FrameRate { num: 25, den: 1 }).unwrap();
    let rgb = PictureBuf::grey(PixelFormat::Rgb8, size).unwrap();
    let mut out = Vec::new();
    let message = writer.append_frame(&rgb.as_picture(), &mut out).unwrap_err().to_string();
    assert!(message.starts_with("y4m frame is rgb of 4x2, must be i420 of 4x2"), "{message}");
    assert!(out.is_empty());
    assert!(Y4mWriter::new(size, FrameRate { num: 25, den: 0 }).is_err());
}

#[test]
fn times_are_exact() {
    let rate = FrameRate::new(30_000, 1001).unwrap();
    assert_eq!(
        (rate.micros_at(0), rate.micros_at(1), rate.micros_at(30_000)),
        (0, 33_366, 1_001_000_000)
    );
    assert_eq!(FrameRate { num: 1, den: u32::MAX }.micros_at(u64::MAX), u64::MAX);
}

proptest! {
    #[test]
    fn random_bytes_never_panic(
        text in "YUV4MPEG2( [WHFCIAX][0-9:x]{0,6}){0,6}\n",
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = Y4mReader::new(&bytes).map(Iterator::count);
        let file = [text.as_bytes(), &bytes].concat();
        if let Ok(reader) = Y4mReader::new(&file) {
            prop_assert!(reader.count() <= 200);
        }
    }
}
