//! Seeds of films: those that the writer makes, and others box by box and tag by tag.

use crate::{Seed, with_cuts};
use paceline_media::film::{FilmFormat, FilmWriter};

/// The parameter sets of pictures of 16 x 16 pixels, and the slices of a key picture and of another one.
const SETS: &[u8] = b"\0\0\0\x01\x67\x42\xc0\x0a\xda\x7b\x01\x10\0\0\x03\0\x10\0\0\x03\x03\x20\xf1\x22\x6a\0\0\0\x01\x68\xce\x0f\xc8";
const KEY: &[u8] = b"\0\0\0\x01\x65\x88\x84\x21\x80\x80";
const OTHER: &[u8] = b"\0\0\0\x01\x41\x9a\x02\x23\x80\x80";
/// A block of AAC with an ADTS header.
const BLOCK: &[u8] = b"\xff\xf1\x4c\x80\x01\x7f\xfc\x01\x02\x03\x04";
/// A configuration of H.264 with these parameter sets.
const AVCC: &[u8] = b"\x01\x42\xc0\x0a\xff\xe1\0\x16\x67\x42\xc0\x0a\xda\x7b\x01\x10\0\0\x03\0\x10\0\0\x03\x03\x20\xf1\x22\x01\0\x04\x68\xce\x0f\xc8";

fn written(format: FilmFormat) -> Vec<u8> {
    let mut film = FilmWriter::new(format, 2).unwrap();
    let mut out = Vec::new();
    for (number, shown) in [0, 3, 1, 2].into_iter().enumerate() {
        let picture = if number == 0 { [SETS, KEY].concat() } else { OTHER.to_vec() };
        film.push(0, "video/h264", shown * 40_000_000, &picture).unwrap();
        film.push(1, "audio/aac", shown * 21_333_333, BLOCK).unwrap();
        if number == 2 {
            out.extend(film.part(false).unwrap());
        }
    }
    out.extend(film.part(true).unwrap());
    out
}

/// Returns a box.
fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len() + 8).unwrap();
    [&length.to_be_bytes()[..], kind, content].concat()
}

/// Returns a box of numbers, with a version and flags of 0.
fn table(kind: &[u8; 4], numbers: &[u32]) -> Vec<u8> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
    boxed(kind, &[&[0; 4][..], &bytes].concat())
}

/// Returns a film with sample tables, composition offsets and an edit list; its index is behind its data.
fn tables() -> Vec<u8> {
    let slices = [&KEY[3..], &OTHER[3..], &OTHER[3..]];
    let data: Vec<u8> =
        slices.iter().flat_map(|slice| [&[0, 0, 0, 6][..], &slice[1..]].concat()).collect();
    let ftyp = boxed(b"ftyp", b"isom\0\0\x02\0isomavc1");
    let begin = u32::try_from(ftyp.len() + 8).unwrap();
    let visual = [&[0; 6][..], &[0, 1], &[0; 16], &[0, 16, 0, 16], &[0; 50]].concat();
    let entry = boxed(b"avc1", &[visual, boxed(b"avcC", AVCC)].concat());
    let stbl = [
        boxed(b"stsd", &[&[0, 0, 0, 0, 0, 0, 0, 1][..], &entry].concat()),
        table(b"stts", &[1, 3, 1_000]),
        table(b"ctts", &[2, 1, 1_000, 2, 500]),
        table(b"stsc", &[1, 1, 3, 1]),
        table(b"stsz", &[0, 3, 10, 10, 10]),
        table(b"stco", &[1, begin]),
        table(b"stss", &[1, 1]),
    ];
    let stbl = boxed(b"stbl", &stbl.concat());
    let hdlr = boxed(b"hdlr", &[&[0; 8][..], b"vide", &[0; 13]].concat());
    let mdhd = table(b"mdhd", &[0, 0, 25_000, 3_000, 0x55c4_0000]);
    let mdia = boxed(b"mdia", &[mdhd, hdlr, boxed(b"minf", &stbl)].concat());
    let one = 0x1_0000;
    let tkhd = table(
        b"tkhd",
        &[0, 0, 1, 0, 120, 0, 0, 0, 0, one, 0, 0, 0, one, 0, 0, 0, 0x4000_0000, 16 * one, 16 * one],
    );
    let edts = boxed(b"edts", &table(b"elst", &[2, 10, u32::MAX, one, 120, 1_000, one]));
    let mvhd = table(
        b"mvhd",
        &[
            0,
            0,
            1_000,
            120,
            one,
            0x100_0000,
            0,
            0,
            one,
            0,
            0,
            0,
            one,
            0,
            0,
            0,
            0x4000_0000,
            0,
            0,
            0,
            0,
            0,
            0,
            2,
        ],
    );
    let moov = boxed(b"moov", &[mvhd, boxed(b"trak", &[tkhd, edts, mdia].concat())].concat());
    [ftyp, boxed(b"mdat", &data), moov].concat()
}

fn tag(kind: u8, time: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    let head = [kind, 0, 0, length, 0, 0, time, 0, 0, 0, 0];
    [&head[..], content, &[0, 0, 0, length + 11]].concat()
}

fn flv() -> Vec<u8> {
    let tags = [
        b"FLV\x01\x05\0\0\0\x09\0\0\0\0".to_vec(),
        tag(9, 0, &[b"\x17\0\0\0\0", AVCC].concat()),
        tag(8, 0, b"\xaf\0\x12\x10"),
        tag(9, 0, b"\x17\x01\0\0\x28\0\0\0\x06\x65\x88\x84\x21\x80\x80"),
        tag(8, 23, b"\xaf\x01\x01\x02\x03"),
        tag(9, 40, b"\x27\x01\0\0\0\0\0\0\x06\x41\x9a\x02\x23\x80\x80"),
    ];
    tags.concat()
}

/// Returns a program stream with a picture of MPEG-1 and a block of sound.
fn program() -> Vec<u8> {
    let pack = b"\0\0\x01\xba\x44\0\x04\0\x04\x01\0\0\x03\xf8";
    let picture = b"\0\0\x01\xb3\x01\0\x10\x15\0\0\0\x20\0\0\x01\0\0\x08\0\0\0\0\x01\x01\x11\x22";
    let pes = |id: u8, times: &[u8], content: &[u8]| {
        let length = u8::try_from(3 + times.len() + content.len()).unwrap();
        let flags = if times.is_empty() { 0 } else { 0x80 };
        [
            &[0, 0, 1, id, 0, length, 0x80, flags, u8::try_from(times.len()).unwrap()][..],
            times,
            content,
        ]
        .concat()
    };
    let time = b"\x21\0\x01\0\x03";
    let mut sound = b"\xff\xfd\x14\xc4".to_vec();
    sound.resize(104, 1);
    [
        &pack[..],
        &pes(0xe0, time, picture),
        &pes(0xe0, &[], &picture[12..]),
        &pes(0xc0, time, &sound),
        b"\0\0\x01\xb9",
    ]
    .concat()
}

pub(crate) fn seeds() -> Vec<Seed> {
    [
        with_cuts("film", "fragments", &written(FilmFormat::Mp4)),
        with_cuts("film", "clusters", &written(FilmFormat::Matroska)),
        with_cuts("film", "packets", &written(FilmFormat::MpegTs)),
        with_cuts("film", "tables", &tables()),
        with_cuts("film", "tags", &flv()),
        with_cuts("film", "program", &program()),
    ]
    .concat()
}
