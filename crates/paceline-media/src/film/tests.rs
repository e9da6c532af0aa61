//! Films that are written and read again, cut and damaged.

use super::{
    FilmAccess, FilmCodec, FilmDemuxer, FilmDetected, FilmFormat, FilmSample, FilmSamples,
    FilmTrack, FilmTurn, FilmUnit, FilmWriter, TimeBase,
};
use crate::audio::AacFormat;
use crate::codec::Codec;
use proptest::prelude::*;

/// The parameter sets of pictures of 16 x 16 pixels.
const SETS: &[u8] = b"\0\0\0\x01\x67\x42\xc0\x0a\xda\x7b\x01\x10\0\0\x03\0\x10\0\0\x03\x03\x20\xf1\x22\x6a\0\0\0\x01\x68\xce\x0f\xc8";

const WRITTEN: [FilmFormat; 3] = [FilmFormat::Mp4, FilmFormat::Matroska, FilmFormat::MpegTs];
const PERIOD_NS: i64 = 40_000_000;
/// The time of a tick of Matroska.
const MILLI_NS: i64 = 1_000_000;

fn picture(key: bool, number: u8) -> Vec<u8> {
    let slice: &[u8] = if key { &[0x65, 0x88, 0x84, 0x21] } else { &[0x41, 0x9a, 0x02, 0x23] };
    let body = [b"\0\0\0\x01", slice, &[number | 0x80; 40]].concat();
    if key { [SETS, &body].concat() } else { body }
}

fn block(number: u8) -> Vec<u8> {
    let format = AacFormat::read(&[0x11, 0x90]).unwrap();
    format.block(&[number | 1; 30]).unwrap()
}

/// Writes pictures in the order of a pyramid, and sound, in two parts.
fn written(format: FilmFormat, pictures: usize) -> Vec<u8> {
    let mut film = FilmWriter::new(format, 2).unwrap();
    let mut out = Vec::new();
    // I0 P3 B1 B2 P6 B4 B5.
    let order = (0..pictures).map(|at| match at % 3 {
        1 => at + 2,
        0 if at > 0 => at - 1,
        0 => 0,
        _ => at - 1,
    });
    let order: Vec<i64> = order.map(|at| i64::try_from(at).unwrap()).collect();
    for (number, shown) in order.iter().enumerate() {
        let bytes = picture(number == 0, u8::try_from(number % 64).unwrap());
        film.push(0, "video/h264", 7_000_000_000 + shown * PERIOD_NS, &bytes).unwrap();
        let sound = 7_000_000_000 + i64::try_from(number).unwrap() * 21_333_333;
        film.push(1, "audio/aac", sound, &block(9)).unwrap();
        if number == pictures / 2 {
            out.extend(film.part(false).unwrap());
        }
    }
    out.extend(film.part(true).unwrap());
    assert_eq!(film.left_out(), 0);
    out
}

/// Reads a film in parts of `step` bytes. Returns its units, and whether it has damage or an error.
fn read(bytes: &[u8], access: FilmAccess, step: usize) -> (Vec<FilmUnit>, Option<FilmDemuxer>) {
    let FilmDetected::Film(format) = FilmFormat::detect(bytes, true) else {
        return (Vec::new(), None);
    };
    let mut demuxer = FilmDemuxer::new(format, access);
    let mut units = Vec::new();
    let mut rounds = 0;
    loop {
        rounds += 1;
        assert!(rounds < 100 * (bytes.len() + 100), "no progress");
        loop {
            match demuxer.poll() {
                Ok(Some(unit)) => units.push(unit),
                Ok(None) => break,
                Err(_) => return (units, None),
            }
            assert!(units.len() < 100_000);
        }
        let Some(want) = demuxer.wanted() else { return (units, Some(demuxer)) };
        let at = usize::try_from(want.at).unwrap_or(usize::MAX);
        let rest = bytes.get(at..).unwrap_or_default();
        match rest.get(..step.min(rest.len())) {
            Some(part) if !part.is_empty() => demuxer.push(part),
            _ => demuxer.end(),
        }
    }
}

#[test]
fn written_films_are_read_with_their_order_and_times() {
    for format in WRITTEN {
        let bytes = written(format, 40);
        for (access, step) in
            [(FilmAccess::Seek, 1_000), (FilmAccess::Pipe, 1), (FilmAccess::Pipe, 77)]
        {
            let (units, demuxer) = read(&bytes, access, step);
            let demuxer = demuxer.expect("no error");
            assert!(demuxer.damage().is_empty(), "{format:?}: {}", demuxer.damage());
            let own: Vec<_> = units.iter().filter(|unit| unit.track == 0).collect();
            assert_eq!((own.len(), units.len()), (40, 80), "{format:?}");
            let tick = demuxer.tracks()[0].tick;
            let first = tick.nanos(own[0].shown);
            let mut samples = FilmSamples::new(&demuxer.tracks()[0]).unwrap();
            let mut last = i64::MIN;
            for (number, unit) in own.iter().enumerate() {
                let shown = match number % 3 {
                    1 => number + 2,
                    0 if number == 0 => 0,
                    _ => number - 1,
                };
                let expected = i64::try_from(shown).unwrap() * PERIOD_NS;
                assert!(
                    (tick.nanos(unit.shown) - first - expected).abs() <= MILLI_NS,
                    "{format:?}: {number}"
                );
                if let Some(decode) = unit.decode {
                    assert!(
                        decode > last && decode <= unit.shown,
                        "{format:?}: {number}: {decode}"
                    );
                    last = decode;
                }
                let FilmSample::Sample { bytes, key } = samples.take(unit).unwrap() else {
                    panic!("{number} is early")
                };
                assert_eq!(key, number == 0);
                let picture = picture(key, u8::try_from(number % 64).unwrap());
                assert!(bytes.ends_with(&picture), "{format:?}: {number}");
            }
            let mut sound = FilmSamples::new(&demuxer.tracks()[1]).unwrap();
            for unit in units.iter().filter(|unit| unit.track == 1) {
                let bytes = block(9);
                assert_eq!(sound.take(unit), Ok(FilmSample::Sample { bytes, key: true }));
            }
        }
    }
}

#[test]
fn a_film_that_ends_anywhere_has_the_units_before_its_end() {
    for format in WRITTEN {
        let bytes = written(format, 12);
        let (whole, _) = read(&bytes, FilmAccess::Pipe, 500);
        let mut most = 0;
        for cut in 0..bytes.len() {
            let (units, _) = read(&bytes[..cut], FilmAccess::Pipe, 500);
            let whole_units =
                units.iter().zip(&whole).take_while(|(one, other)| one == other).count();
            // The end of the last picture of a byte stream is not stated.
            assert!(units.len() - whole_units <= 2, "{format:?} at {cut}");
            most = most.max(whole_units);
        }
        assert!(most + 2 >= whole.len(), "{format:?}: {most} of {}", whole.len());
    }
}

#[test]
fn presentation_times_are_right_also_if_the_first_part_shows_no_reordering() {
    let mut film = FilmWriter::new(FilmFormat::Mp4, 1).unwrap();
    let mut out = Vec::new();
    for (number, shown) in [0, 1, 4, 2, 3, 7, 5, 6].into_iter().enumerate() {
        film.push(0, "video/h264", shown * PERIOD_NS, &picture(number == 0, 1)).unwrap();
        if number == 1 {
            out.extend(film.part(false).unwrap());
        }
    }
    out.extend(film.part(true).unwrap());
    let (units, _) = read(&out, FilmAccess::Seek, 500);
    let shown: Vec<i64> = units.iter().map(|unit| unit.shown).collect();
    assert_eq!(shown, [0, 1, 4, 2, 3, 7, 5, 6].map(|shown| shown * 3_600));
    let decode: Vec<i64> = units.iter().map(|unit| unit.decode.unwrap()).collect();
    assert!(
        decode.is_sorted() && decode.iter().zip(&shown).all(|(decode, shown)| decode <= shown),
        "{decode:?}"
    );
}

#[test]
fn samples_of_another_type_are_refused() {
    let mut film = FilmWriter::new(FilmFormat::Mp4, 1).unwrap();
    film.push(0, "video/h264", 0, &picture(true, 1)).unwrap();
    let error = film.push(0, "image/jpeg", 1, b"").unwrap_err().to_string();
    assert!(error.contains("image/jpeg behind samples of another type"), "{error}");
    for (format, encoding) in
        [(FilmFormat::MpegTs, "audio/pcmu;rate=8000;channels=1"), (FilmFormat::Mp4, "text/plain")]
    {
        let mut film = FilmWriter::new(format, 1).unwrap();
        let error = film.push(0, encoding, 0, &[1; 9]).unwrap_err().to_string();
        assert!(error.contains(encoding) && error.contains(format.name()), "{error}");
    }
    assert!(FilmWriter::new(FilmFormat::Flv, 1).is_err());
    let mut late = FilmWriter::new(FilmFormat::Matroska, 1).unwrap();
    late.push(0, "video/h264", 0, &picture(false, 1)).unwrap();
    assert_eq!((late.left_out(), late.part(true)), (1, Ok(Vec::new())));
}

#[test]
fn the_orientation_of_pictures_passes_from_film_to_film() {
    for degrees in [90, 180, 270] {
        let turn = FilmTurn { degrees, other: false };
        let track = FilmTrack {
            id: 1,
            codecs: vec![FilmCodec::Video { codec: Codec::H264, lengths: None, sets: Vec::new() }],
            tick: TimeBase::MILLIS,
            size: None,
            turn,
        };
        let mut samples = FilmSamples::new(&track).unwrap();
        let unit = |key| FilmUnit {
            track: 0,
            entry: 0,
            shown: 0,
            decode: None,
            bytes: picture(key, 1),
            key,
            outside: false,
        };
        for format in [FilmFormat::Mp4, FilmFormat::Matroska] {
            let mut film = FilmWriter::new(format, 1).unwrap();
            for number in 0..3 {
                let FilmSample::Sample { bytes, .. } = samples.take(&unit(true)).unwrap() else {
                    panic!()
                };
                film.push(0, "video/h264", number * PERIOD_NS, &bytes).unwrap();
            }
            let (units, demuxer) = read(&film.part(true).unwrap(), FilmAccess::Seek, 500);
            assert_eq!(units.len(), 3);
            assert_eq!(demuxer.unwrap().tracks()[0].turn, turn, "{format:?}");
        }
    }
}

#[test]
fn g711_is_written_into_mp4() {
    for (encoding, coding) in [
        ("audio/pcmu;rate=8000;channels=1", "audio/pcmu;rate=8000;channels=1"),
        ("audio/pcma;rate=16000;channels=2", "audio/pcma;rate=16000;channels=2"),
    ] {
        let mut film = FilmWriter::new(FilmFormat::Mp4, 2).unwrap();
        film.push(0, "video/h264", 0, &picture(true, 1)).unwrap();
        let block: Vec<u8> = (0..=255).chain(0..64).collect();
        film.push(1, encoding, 0, &block).unwrap();
        let (units, demuxer) = read(&film.part(true).unwrap(), FilmAccess::Seek, 500);
        let tracks = demuxer.unwrap();
        let mut samples = FilmSamples::new(&tracks.tracks()[1]).unwrap();
        assert_eq!(samples.encoding(), coding);
        let mut heard = Vec::new();
        for unit in units.iter().filter(|unit| unit.track == 1) {
            let FilmSample::Sample { bytes, .. } = samples.take(unit).unwrap() else { panic!() };
            heard.extend(bytes);
        }
        assert_eq!(heard, block);
    }
}

proptest! {
    #[test]
    fn damaged_films_are_read_to_their_end(
        number in 0..3_usize,
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        step in 1..2_000_usize,
    ) {
        let mut bytes = written(WRITTEN[number], 12);
        for (place, byte) in places {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        for access in [FilmAccess::Seek, FilmAccess::Pipe] {
            let (units, demuxer) = read(&bytes, access, step);
            if let Some(demuxer) = demuxer {
                for unit in &units {
                    if let Ok(mut samples) = FilmSamples::new(&demuxer.tracks()[unit.track]) {
                        let _ = samples.take(unit);
                    }
                }
            }
        }
    }
}
