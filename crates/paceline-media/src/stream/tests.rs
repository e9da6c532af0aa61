use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::audio::{AudioFormat, Coding, OggOpus, OpusFormat, wav_header};
use crate::codec::{Codec, Units};
use crate::video::Class;
use crate::{FrameRate, PictureBuf, PixelFormat, Size, Y4mWriter, av1, h264, h265, jpeg};

/// A stream, its type and its samples.
struct Film {
    container: Container,
    bytes: Vec<u8>,
    samples: Vec<Vec<u8>>,
}

fn grey(width: u32, luma: u8) -> PictureBuf {
    let mut picture = PictureBuf::grey(PixelFormat::I420, Size::new(width, 6).unwrap()).unwrap();
    picture.bytes_mut()[0] = luma;
    picture
}

fn video(codec: Codec, bytes: Vec<u8>) -> Film {
    let mut samples: Vec<_> =
        codec.split(&bytes).map(|unit| unit.unwrap().bytes.to_vec()).collect();
    // The first picture gets the parameter sets that it lacks and loses those that it repeats.
    samples[0] = Units::new(codec).complete(&samples[0], Class::I).into_owned();
    Film { container: Container::Video(codec), bytes, samples }
}

fn ivf(units: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes =
        b"DKIF\0\0\x20\0AV01\x40\x01\xf0\0\x19\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    for (time, unit) in (0_u64..).zip(units) {
        bytes.extend(u32::try_from(unit.len()).unwrap().to_le_bytes());
        bytes.extend(time.to_le_bytes());
        bytes.extend(unit);
    }
    bytes
}

fn wav(format: AudioFormat, data: &[u8], stated: u32) -> Film {
    let block = pace_bytes(format);
    let bytes = [wav_header(&format, stated), data.to_vec()].concat();
    let samples = data.chunks(block).map(<[u8]>::to_vec).collect();
    Film { container: Container::Wav, bytes, samples }
}

fn pace_bytes(format: AudioFormat) -> usize {
    wav::pace(format.rate).0 * format.frame_bytes()
}

/// Returns the length of the two header pages of a stream of Opus.
fn ogg_headers() -> usize {
    OggOpus::new(OpusFormat::new(48_000, 1).unwrap()).unwrap().take().len()
}

/// Returns a stream of each type.
fn films() -> Vec<Film> {
    let jpegs: Vec<_> = (0..6)
        .map(|n| jpeg::encode(&grey(16 + 9 * u32::from(n), n).as_picture(), 80).unwrap())
        .collect();
    let pngs: Vec<_> =
        (0..6).map(|n| crate::png::encode(&grey(8, n).as_picture()).unwrap()).collect();
    let writer = Y4mWriter::new(Size::new(9, 6).unwrap(), FrameRate::new(25, 1).unwrap()).unwrap();
    let mut y4m = Vec::new();
    writer.append_header(&mut y4m);
    let raw: Vec<_> = (0..6).map(|n| grey(9, n)).collect();
    for picture in &raw {
        writer.append_frame(&picture.as_picture(), &mut y4m).unwrap();
    }
    let packets: Vec<_> = (0..6_u8).map(|n| vec![0b1111_1000, n, n]).collect();
    let mut ogg = OggOpus::new(OpusFormat::new(48_000, 1).unwrap()).unwrap();
    for packet in &packets {
        ogg.append(packet).unwrap();
    }
    let units = video(Codec::Av1, av1::tests::film(4)).samples;
    let stereo = AudioFormat::new(Coding::S16le, 8_000, 2).unwrap();
    let sound: Vec<u8> = (0..3_000_u16).map(|n| n.to_le_bytes()[0]).collect();
    vec![
        Film { container: Container::Jpeg, bytes: jpegs.concat(), samples: jpegs },
        Film { container: Container::Png, bytes: pngs.concat(), samples: pngs },
        Film {
            container: Container::Y4m,
            bytes: y4m,
            samples: raw.iter().map(|picture| picture.bytes().to_vec()).collect(),
        },
        Film { container: Container::Ogg, bytes: ogg.take(), samples: packets },
        Film { container: Container::Ivf, bytes: ivf(&units), samples: units },
        wav(stereo, &sound, 3_000),
        wav(stereo, &sound, u32::MAX),
        video(Codec::H264, h264::tests::film(2)),
        video(Codec::H265, h265::tests::film(2)),
        video(Codec::Av1, av1::tests::film(2)),
    ]
}

/// Reads a stream that arrives in parts of these lengths, again and again.
fn read(container: Container, bytes: &[u8], parts: &[usize]) -> (Vec<Vec<u8>>, Skipped) {
    let mut reader = StreamReader::new(container);
    let (mut samples, mut rest) = (Vec::new(), bytes);
    for part in parts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (now, later) = rest.split_at((*part).clamp(1, rest.len()));
        reader.push(now);
        while let Some(sample) = reader.poll().unwrap() {
            samples.push(sample);
        }
        rest = later;
    }
    reader.end();
    while let Some(sample) = reader.poll().unwrap() {
        samples.push(sample);
    }
    (samples, reader.skipped().clone())
}

#[test]
fn each_type_is_found_by_its_first_bytes_and_by_no_fewer() {
    for film in films() {
        assert_eq!(detect(&film.bytes, false), Detected::Container(film.container));
        let first = (0..film.bytes.len())
            .find(|&len| detect(&film.bytes[..len], false) != Detected::More)
            .unwrap();
        assert!(first > 0 && first <= 64, "{:?}: {first}", film.container);
        assert_eq!(detect(&film.bytes[..first], false), Detected::Container(film.container));
    }
}

#[test]
fn text_and_other_files_are_no_stream() {
    for other in [
        &b"hello\n"[..],
        b"{\"x\": 1}",
        b"RIFF\0\0\0\0AVI ",
        b"YUV4MPEG3 ",
        b"\0\0\0\x20ftypisom",
        b"\xff\xd8\n",
        b"\0hello",
        b"\x1aE\xdf\xa3",
        b"\x12\0\x01",
    ] {
        assert_eq!(detect(other, false), Detected::Other, "{}", other.escape_ascii());
    }
    // A line that begins like a type is text as soon as it differs.
    assert_eq!((detect(b"YUV", false), detect(b"YUV", true)), (Detected::More, Detected::Other));
    assert_eq!(
        (detect(b"RIFF is", false), detect(b"RIFF", true)),
        (Detected::More, Detected::Other)
    );
    assert_eq!(detect(b"RIFF is a file", false), Detected::Other);
    let slices = [&[0, 0, 1, 0x41, 9, 9][..]; 9].concat();
    assert_eq!((detect(&slices, false), detect(&slices, true)), (Detected::More, Detected::Other));
}

#[test]
fn a_sample_is_returned_with_its_last_byte_or_with_the_beginning_of_the_next() {
    for film in films() {
        let mut reader = StreamReader::new(film.container);
        let (mut samples, mut last) = (0, 0);
        for (at, byte) in film.bytes.iter().enumerate() {
            reader.push(&[*byte]);
            while let Some(sample) = reader.poll().unwrap() {
                assert_eq!(sample, film.samples[samples], "{:?} {samples}", film.container);
                (samples, last) = (samples + 1, at);
            }
        }
        let units = matches!(film.container, Container::Video(_));
        // Slices of these streams are so short that the next one is known by its successor.
        let missing = if units { 1..=3 } else { 0..=1 };
        assert!(missing.contains(&(film.samples.len() - samples)), "{:?}", film.container);
        assert!(units || film.container == Container::Wav || last == film.bytes.len() - 1);
        reader.pause();
        while reader.poll().unwrap().is_some() {
            samples += 1;
        }
        let paused = film.samples.len() - usize::from(film.container == Container::Wav);
        assert!(samples >= paused, "{:?}: {samples} at a pause", film.container);
        assert_eq!(reader.skipped().damage.places, 0);
    }
}

#[test]
fn the_range_of_y4m_is_a_part_of_its_media_type() {
    for (comment, range) in
        [("", ""), (" XCOLORRANGE=FULL", ";range=full"), (" XCOLORRANGE=LIMITED", ";range=limited")]
    {
        let mut reader = StreamReader::new(Container::Y4m);
        reader.push(format!("YUV4MPEG2 W2 H2 F25:1{comment}\nFRAME\n012345").as_bytes());
        let picture = reader.poll().unwrap().unwrap();
        let encoding = reader.properties(&picture).unwrap().encoding;
        assert_eq!(encoding, format!("video/raw;format=i420;width=2;height=2{range}"));
    }
}

#[test]
fn a_slice_is_known_by_its_header_before_its_end() {
    let mut reader = StreamReader::new(Container::Video(Codec::H264));
    reader.push(&h264::tests::film(1));
    while reader.poll().unwrap().is_some() {}
    // The last picture is returned when 64 bytes of the next one have arrived.
    let next: Vec<u8> = [&[0, 0, 1, 0x41, 0x9a, 0x13][..], &[0x55; 60]].concat();
    reader.push(&next[..60]);
    assert_eq!(reader.poll(), Ok(None));
    reader.push(&next[60..]);
    assert!(reader.poll().unwrap().is_none() || reader.is_open());
}

#[test]
fn open_and_64_bit_lengths_of_wav_files_are_read() {
    let mono = AudioFormat::new(Coding::S16le, 8_000, 1).unwrap();
    let sound = vec![7; 640];
    let header = wav_header(&mono, u32::MAX);
    let mut ds64 = [&b"ds64\x1c\0\0\0"[..], &[0; 8], &640_u64.to_le_bytes(), &[0; 12]].concat();
    let large = |ds64: &[u8], id: &[u8], tail: &[u8]| {
        [id, &[0xff; 4], b"WAVE", ds64, &header[12..], &sound, tail].concat()
    };
    for id in [b"RF64", b"BW64"] {
        let bytes = large(&ds64, id, b"LIST\x04\0\0\0abcd");
        assert_eq!(detect(&bytes, false), Detected::Container(Container::Wav));
        let (samples, skipped) = read(Container::Wav, &bytes, &[11]);
        assert_eq!((samples.concat(), skipped.damage.places), (sound.clone(), 0));
        assert_eq!(*crate::audio::read_wav(&bytes).unwrap().data, sound);
    }
    // A length of 0 was never written: the sound extends to the end.
    ds64[16..24].fill(0);
    let bytes = large(&ds64, b"RF64", b"");
    assert_eq!(read(Container::Wav, &bytes, &[99]).0.concat(), sound);
    assert_eq!(*crate::audio::read_wav(&bytes).unwrap().data, sound);
    // More than 4 GiB: only the beginning is there.
    ds64[16..24].copy_from_slice(&(5_u64 << 30).to_le_bytes());
    let (samples, skipped) = read(Container::Wav, &large(&ds64, b"RF64", b""), &[99]);
    assert_eq!((samples.concat(), skipped.damage.places), (sound.clone(), 0));
    for stated in [0, u32::MAX, 0x7fff_ffff] {
        for riff in [0, 36, u32::MAX] {
            let mut bytes = [wav_header(&mono, stated), sound.clone()].concat();
            bytes[4..8].copy_from_slice(&u32::to_le_bytes(riff));
            let (samples, skipped) = read(Container::Wav, &bytes, &[50]);
            assert_eq!(
                (samples.concat(), skipped.damage.places),
                (sound.clone(), 0),
                "{stated} {riff}"
            );
        }
    }
    let (samples, skipped) = read(Container::Wav, &wav(mono, &sound, 642).bytes, &[50]);
    let why = skipped.damage.first.unwrap().1;
    assert!(samples.concat() == sound && why.contains("2 bytes of it are missing"), "{why}");
}

#[test]
fn other_contents_of_containers_are_refused_with_a_fix() {
    let mut vp9 = ivf(&[vec![1, 2, 3]]);
    vp9[8..12].copy_from_slice(b"VP90");
    let mut reader = StreamReader::new(Container::Ivf);
    reader.push(&vp9);
    let why = reader.poll().unwrap_err().to_string();
    assert!(why.contains("contains VP90, not AV1; code it as AV1 or H.264"), "{why}");
    let mut reader = StreamReader::new(Container::Wav);
    reader.push(b"RIFF\0\0\0\0WAVEdata\x04\0\0\0abcd");
    assert!(reader.poll().unwrap_err().to_string().contains("the data comes before its format"));
}

#[test]
fn pictures_before_the_first_key_picture_are_counted_apart() {
    let film = video(Codec::H265, h265::tests::film(2));
    let begin = Codec::H265.split(&film.bytes).next().unwrap().unwrap().bytes.len();
    let (samples, skipped) = read(film.container, &film.bytes[begin..], &[7]);
    assert_eq!(samples.len(), film.samples.len() / 2);
    assert_eq!((skipped.early, skipped.damage.places), (film.samples.len() as u64 / 2 - 1, 0));
}

#[test]
fn raw_pictures_and_sound_are_cut_by_their_length() {
    let mut reader = StreamReader::raw("video/raw;format=rgb;width=2;height=1").unwrap();
    reader.push(b"abcdefghijklmn");
    assert_eq!(reader.poll().unwrap().unwrap(), b"abcdef");
    assert_eq!(reader.properties(b"abcdef").unwrap().size, Some(Size::new(2, 1).unwrap()));
    assert_eq!(reader.poll().unwrap().unwrap(), b"ghijkl");
    reader.end();
    assert_eq!((reader.poll(), reader.skipped().damage.bytes), (Ok(None), 2));
    let mut sound = StreamReader::raw("audio/pcmu;rate=8000;channels=1").unwrap();
    sound.push(&[1; 170]);
    assert_eq!(sound.poll().unwrap().unwrap().len(), 160);
    sound.end();
    assert_eq!(sound.poll().unwrap().unwrap().len(), 10);
    assert!(StreamReader::raw("image/jpeg").is_none() && StreamReader::raw("text/plain").is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_parts_in_which_a_stream_arrives_change_nothing(
        parts in proptest::collection::vec(1_usize..400, 1..8),
    ) {
        for film in films() {
            let (samples, skipped) = read(film.container, &film.bytes, &parts);
            prop_assert!(samples == film.samples, "{:?}", film.container);
            prop_assert_eq!(skipped, Skipped::default());
        }
    }

    #[test]
    fn a_stream_that_is_cut_keeps_its_whole_samples(
        parts in proptest::collection::vec(1_usize..400, 1..4),
        (from, upto) in (any::<Index>(), any::<Index>()),
    ) {
        for film in films() {
            let [from, upto] = [from, upto].map(|place| place.index(film.bytes.len()));
            let headless = matches!(film.container, Container::Jpeg | Container::Png | Container::Video(_));
            let (from, upto) = if headless { (from.min(upto), from.max(upto)) } else { (0, upto) };
            let mut reader = StreamReader::new(film.container);
            let cut = &film.bytes[from..upto];
            for part in cut.chunks(parts[0]) {
                reader.push(part);
                // The header of the stream may be cut off.
                while let Ok(Some(_)) = reader.poll() {}
            }
            if headless {
                let (samples, skipped) = read(film.container, cut, &parts);
                let lost = film.samples.len().saturating_sub(samples.len());
                let inside = samples.iter().filter(|sample| film.samples.contains(sample)).count();
                // The first picture of a video may have got parameter sets, and its last may be cut off. Sets that come
                // first between two slices, since the cut took the ones before, begin one: two halves.
                prop_assert!(inside + 4 >= samples.len(), "{:?}: {inside} of {}", film.container, samples.len());
                prop_assert!(lost == 0 || skipped.damage.places + skipped.early > 0 || from > 0 || upto < film.bytes.len());
            }
        }
    }

    #[test]
    fn damage_costs_the_samples_it_touches_and_no_more(
        parts in proptest::collection::vec(1_usize..400, 1..4),
        (at, len) in (any::<Index>(), 1_usize..30),
        noise in any::<u8>(),
    ) {
        for film in films() {
            if !matches!(
                film.container,
                Container::Jpeg | Container::Png | Container::Ogg | Container::Y4m | Container::Ivf
            ) {
                continue;
            }
            let mut bytes = film.bytes.clone();
            // The headers must be whole.
            let header = match film.container {
                Container::Ogg => ogg_headers(),
                Container::Ivf => 32,
                Container::Y4m => film.bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1,
                Container::Jpeg | Container::Png | Container::Video(_) | Container::Wav => 0,
            };
            let mut at = header + at.index(bytes.len() - header);
            let mut end = bytes.len();
            if film.container == Container::Jpeg {
                // A damaged length of a segment may hide 64 KiB, as a thumbnail does. So only coded data and marks are damaged.
                let find = |at, mark| bytes[at..].windows(2).position(|part| part == mark);
                at = find(at, b"\xff\xda").map_or(end - 9, |scan| at + scan + 14);
                end = find(at, b"\xff\xd8").map_or(end, |begin| at + begin + 2);
            }
            end = (at + len).min(end);
            bytes[at..end].fill(noise);
            let (samples, _) = read(film.container, &bytes, &parts);
            let whole = film.samples.iter().filter(|sample| samples.contains(sample)).count();
            // Thirty bytes touch two samples, or a whole page with three small ones. Reading of AV1 continues at the next of
            // its groups of three.
            let lost = if film.container == Container::Ivf { 6 } else { 3 };
            prop_assert!(whole + lost >= film.samples.len(), "{:?}: {whole}", film.container);
        }
    }

    #[test]
    fn a_damaged_video_goes_on_before_its_end(
        part in 1_usize..200,
        (at, len) in (any::<Index>(), 1_usize..30),
        noise in any::<u8>(),
    ) {
        for film in [
            video(Codec::H264, h264::tests::film(12)),
            video(Codec::H265, h265::tests::film(12)),
            video(Codec::Av1, av1::tests::film(12)),
        ] {
            let mut bytes = film.bytes.clone();
            let at = bytes.len() / 10 + at.index(bytes.len() / 5);
            bytes[at..at + len].fill(noise);
            let mut reader = StreamReader::new(film.container);
            let mut samples = Vec::new();
            for part in bytes.chunks(part) {
                reader.push(part);
                while let Some(sample) = reader.poll().unwrap() {
                    samples.push(sample);
                }
            }
            // A damaged length of up to 127 bytes may end where another unit of AV1 does. The last pictures are open.
            let kept = film.samples.len() / 3 - 4;
            let end = &film.samples[film.samples.len() - 4 - kept..film.samples.len() - 4];
            let found = samples.windows(end.len()).any(|part| part == end);
            prop_assert!(found, "{:?}: {} of {}", film.container, samples.len(), film.samples.len());
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        parts in proptest::collection::vec(1_usize..100, 1..4),
    ) {
        let all = films();
        for film in &all {
            let start = film.bytes.len().min(60);
            let bytes = [&film.bytes[..start], &bytes].concat();
            let mut reader = StreamReader::new(film.container);
            let mut taken = 0;
            for part in bytes.chunks(parts[0]) {
                reader.push(part);
                while let Ok(Some(sample)) = reader.poll() {
                    taken += sample.len();
                }
            }
            reader.end();
            while let Ok(Some(sample)) = reader.poll() {
                taken += sample.len();
            }
            prop_assert!(taken <= 4 * bytes.len() + 64);
        }
    }
}
