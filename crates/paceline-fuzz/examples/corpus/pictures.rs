//! Pictures and files of pictures, by our own encoders.

use crate::{Seed, with_cuts};
use paceline_media::{FrameRate, PictureBuf, PixelFormat, Size, TestCard, Y4mWriter, jpeg};

fn size(width: u32, height: u32) -> Size {
    Size::new(width, height).unwrap()
}

fn grey(width: u32, height: u32, format: PixelFormat) -> Vec<u8> {
    let mut picture = PictureBuf::grey(format, size(width, height)).unwrap();
    for (place, byte) in picture.bytes_mut().iter_mut().enumerate() {
        *byte = (place * 7).to_le_bytes()[0];
    }
    jpeg::encode(&picture.as_picture(), 60).unwrap()
}

/// A frame header that promises a picture, and nothing behind it.
fn promise(kind: u8, sides: [u8; 4], sampling: u8) -> Vec<u8> {
    let [h1, h0, w1, w0] = sides;
    let table = [1, sampling, 0, 2, 0x11, 1, 3, 0x11, 1];
    let start = [0xff, 0xd8, 0xff, kind, 0, 17, 8, h1, h0, w1, w0, 3];
    [&start[..], &table, &[0xff, 0xda, 0, 2, 0xff, 0xd9]].concat()
}

fn y4m(width: u32, height: u32) -> Vec<u8> {
    let size = size(width, height);
    let writer = Y4mWriter::new(size, FrameRate::new(30_000, 1_001).unwrap()).unwrap();
    let picture = PictureBuf::grey(PixelFormat::I420, size).unwrap();
    let mut out = Vec::new();
    writer.append_header(&mut out);
    for _ in 0..3 {
        writer.append_frame(&picture.as_picture(), &mut out).unwrap();
    }
    out
}

pub(crate) fn seeds() -> Vec<Seed> {
    let card = TestCard::new(size(160, 120)).unwrap().draw_jpeg(7, 1_000_000, 30).unwrap();
    let small = grey(17, 9, PixelFormat::I420);
    let rgb = grey(24, 16, PixelFormat::Rgb8);
    let mut seeds = with_cuts("jpeg", "card", &card);
    seeds.extend(with_cuts("jpeg", "small", &small));
    seeds.extend(with_cuts("jpeg", "rgb", &rgb));
    let promises = [
        ("huge", promise(0xc0, [0x40, 0, 0x40, 0], 0x22)),
        ("wide", promise(0xc2, [0, 1, 0xff, 0xff], 0x44)),
        ("empty-side", promise(0xc0, [0, 0, 0, 9], 0x11)),
        ("odd-sampling", promise(0xc1, [0, 9, 0, 9], 0x31)),
        ("lossless", promise(0xc3, [0, 9, 0, 9], 0x11)),
    ];
    for (name, bytes) in &promises {
        seeds.push(("jpeg", format!("promise-{name}"), bytes.clone()));
        seeds.push(("mjpeg", format!("promise-{name}"), bytes.clone()));
    }
    let zeros = [0; 5];
    let file = [&small[..], &zeros, &rgb, &small, &zeros].concat();
    seeds.extend(with_cuts("mjpeg", "three", &file));
    seeds.push((
        "mjpeg",
        "stuffing".to_owned(),
        vec![
            0xff, 0xd8, 0xff, 0xda, 0, 2, 1, 0xff, 0, 0xff, 0xd0, 2, 0xff, 0xff, 0xd7, 0xff, 0xff,
            0xd9,
        ],
    ));
    seeds.extend(with_cuts("y4m", "odd", &y4m(5, 3)));
    seeds.extend(with_cuts("y4m", "even", &y4m(8, 4)));
    let heads = [
        "YUV4MPEG2 W2 H2 F25:1\nFRAME\n012345",
        "YUV4MPEG2 W99999 H1 F1:1\n",
        "YUV4MPEG2 W16384 H4096 F0:1 C420mpeg2\nFRAME\n",
        "YUV4MPEG2\n",
        "YUV4MPEG2 W2 H2 F25:1 Im\n",
    ];
    for (place, head) in heads.iter().enumerate() {
        seeds.push(("y4m", format!("head-{place}"), head.as_bytes().to_vec()));
    }
    let words = [
        "image/jpeg",
        "video/raw;format=i420;width=640;height=480",
        "640x480",
        "video/raw; height=480 ;width=640; format=rgb",
        "99999999999999999999x1",
        "16384x16384",
        "audio/pcm;format=s16le;rate=48000;channels=2",
        "audio/pcma;rate=8000;channels=1",
        "image/png",
        "0x0",
    ];
    for (place, word) in words.iter().enumerate() {
        seeds.push(("encoding", format!("word-{place}"), word.as_bytes().to_vec()));
    }
    seeds
}
