use std::io::Write as _;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;
use crate::{MediaError, PictureBuf, PixelFormat, SIDE_MAX, Size};

fn size(width: u32, height: u32) -> Size {
    Size::new(width, height).unwrap()
}

/// Returns a smooth picture, which JPEG compresses well.
fn gradient(size: Size) -> PictureBuf {
    let mut picture = PictureBuf::grey(PixelFormat::I420, size).unwrap();
    let (width, height) = (size.width as usize, size.height as usize);
    let chroma_width = size.chroma().width as usize;
    let [luma, cb, cr] = picture.planes_mut().unwrap();
    for (at, out) in luma.iter_mut().enumerate() {
        *out = u8::try_from(40 + (at % width * 90 / width) + (at / width * 90 / height)).unwrap();
    }
    for (at, (cb, cr)) in cb.iter_mut().zip(cr).enumerate() {
        *cb = u8::try_from(90 + at % chroma_width * 80 / chroma_width).unwrap();
        *cr = 255 - *cb;
    }
    picture
}

fn grey_jpeg(size: Size) -> Vec<u8> {
    let samples = vec![77; usize::try_from(size.pixels()).unwrap()];
    encode_samples(size, Samples::Grey, &samples, (90, Tables::Standard)).unwrap()
}

/// Returns a header without a picture.
fn header(width: u16, height: u16) -> Vec<u8> {
    let mut out = vec![0xff, 0xd8, 0xff, 0xc0, 0, 17, 8];
    out.extend(height.to_be_bytes());
    out.extend(width.to_be_bytes());
    out.extend([3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1, 0xff, 0xda, 0, 2, 0xff, 0xd9]);
    out
}

fn distance(a: &[u8], b: &[u8]) -> u8 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max().unwrap()
}

#[test]
fn pictures_round_trip_at_even_odd_and_tiny_sizes() {
    for size in [size(64, 48), size(33, 17), size(17, 34), size(1, 1), size(2, 1), size(1, 9)] {
        let picture = gradient(size);
        let bytes = encode(&picture.as_picture(), 95).unwrap();
        assert_eq!(dimensions(&bytes), Ok(size));
        let back = decode(&bytes, PixelFormat::I420).unwrap();
        let far = distance(back.bytes(), picture.bytes());
        assert!(far < 24, "{size}: {far}");
        let rgb = decode(&bytes, PixelFormat::Rgb8).unwrap();
        let again = encode(&rgb.as_picture(), 95).unwrap();
        let luma = usize::try_from(size.pixels()).unwrap();
        let again = decode(&again, PixelFormat::I420).unwrap();
        assert!(distance(&again.bytes()[..luma], &picture.bytes()[..luma]) < 24, "{size}");
    }
}

#[test]
fn chroma_passes_through_unchanged() {
    let size = size(32, 32);
    let mut picture = PictureBuf::grey(PixelFormat::I420, size).unwrap();
    let [_, cb, cr] = picture.planes_mut().unwrap();
    cb.fill(60);
    cr.fill(200);
    let bytes = encode(&picture.as_picture(), 100).unwrap();
    let back = decode(&bytes, PixelFormat::I420).unwrap();
    assert!(distance(back.bytes(), picture.bytes()) <= 1);
}

#[test]
fn grey_pictures_decode_to_both_formats() {
    for size in [size(40, 30), size(7, 5), size(1, 1)] {
        let bytes = grey_jpeg(size);
        let picture = decode(&bytes, PixelFormat::I420).unwrap();
        let [luma, cb, cr] = picture.as_picture().planes().unwrap();
        assert!(luma.iter().all(|&sample| sample.abs_diff(77) <= 1));
        assert!(cb.iter().chain(cr).all(|&sample| sample == 128));
        let rgb = decode(&bytes, PixelFormat::Rgb8).unwrap();
        assert!(rgb.bytes().iter().all(|&sample| sample.abs_diff(77) <= 1));
    }
}

#[test]
fn cmyk_and_progressive_pictures_decode() {
    use jpeg_encoder::{ColorType, Encoder};
    for colour in [ColorType::Cmyk, ColorType::CmykAsYcck] {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, 90);
        encoder.set_sampling_factor(jpeg_encoder::SamplingFactor::F_1_1);
        encoder.encode(&[200; 20 * 10 * 4], 20, 10, colour).unwrap();
        assert_eq!(decode(&bytes, PixelFormat::I420).unwrap().size(), size(20, 10));
    }
    // The decoder panics on this one, so it must not receive it.
    let (mut bytes, samples) = (Vec::new(), [200; 20 * 10 * 4]);
    let mut encoder = Encoder::new(&mut bytes, 90);
    encoder.set_sampling_factor(jpeg_encoder::SamplingFactor::F_2_2);
    encoder.encode(&samples, 20, 10, ColorType::CmykAsYcck).unwrap();
    let message = decode(&bytes, PixelFormat::I420).unwrap_err().to_string();
    assert!(message.starts_with("jpeg picture has sampling factors"), "{message}");

    let picture = gradient(size(50, 40)).as_picture().to_rgb8();
    let (mut plain, mut progressive) = (Vec::new(), Vec::new());
    Encoder::new(&mut plain, 90).encode(picture.bytes(), 50, 40, ColorType::Rgb).unwrap();
    let mut encoder = Encoder::new(&mut progressive, 90);
    encoder.set_progressive(true);
    encoder.encode(picture.bytes(), 50, 40, ColorType::Rgb).unwrap();
    let decode = |bytes: &[u8]| decode(bytes, PixelFormat::I420).unwrap();
    assert!(distance(decode(&plain).bytes(), decode(&progressive).bytes()) < 4);
}

#[test]
fn quality_is_checked() {
    let picture = gradient(size(32, 32));
    let len = |quality| encode(&picture.as_picture(), quality).map(|bytes| bytes.len());
    assert!(len(1).unwrap() < len(100).unwrap());
    for quality in [0, 101, 255] {
        assert_eq!(len(quality), Err(MediaError::Quality { quality }));
    }
}

#[test]
fn huge_headers_are_refused_before_allocation() {
    let refused = |bytes: &[u8]| {
        let error = dimensions(bytes).unwrap_err();
        assert_eq!(decode(bytes, PixelFormat::I420), Err(error.clone()));
        error.to_string()
    };
    assert!(refused(&header(60_000, 60_000)).starts_with("width is 60000, must be"));
    assert!(refused(&header(16_384, 16_384)).contains("268435456 pixels"));
    assert!(refused(&header(0, 4)).starts_with("width is 0"));
    // Valid, but 30 bytes cannot contain it.
    let side = u16::try_from(SIDE_MAX).unwrap();
    let bytes = header(side, 4096);
    assert_eq!(dimensions(&bytes), Ok(size(SIDE_MAX, 4096)));
    let message = decode(&bytes, PixelFormat::I420).unwrap_err().to_string();
    assert!(message.contains("bytes cannot hold a picture of 16384x4096"), "{message}");
}

#[test]
fn unsupported_kinds_are_named_and_keep_their_size() {
    let changed = |at: usize, value: u8| {
        let mut bytes = header(8, 8);
        bytes[at] = value;
        bytes
    };
    for (bytes, part) in [
        (changed(3, 0xc3), "jpeg picture is of type SOF3"),
        (changed(3, 0xc9), "jpeg picture is of type SOF9 (lossless or arithmetic)"),
        (changed(6, 12), "jpeg picture has 12 bits per sample"),
        (changed(13, 0x50), "jpeg picture has sampling factors [50, 11, 11], not 4:4:4"),
        (changed(16, 0x22), "jpeg picture has sampling factors [22, 22, 11]"),
    ] {
        assert_eq!(dimensions(&bytes), Ok(size(8, 8)), "it is published whole");
        assert_eq!(is_decodable(&bytes), Some(false));
        let message = decode(&bytes, PixelFormat::I420).unwrap_err().to_string();
        assert!(message.starts_with(part), "{message}");
    }
    assert_eq!(is_decodable(&header(8, 8)), Some(true));
    let refused = |at, value| dimensions(&changed(at, value)).unwrap_err().to_string();
    assert!(refused(3, 0xd9).contains("no frame header before this"));
    assert!(refused(11, 2).contains("length does not match"));
    assert!(refused(11, 4).contains("length does not match"));
    assert!(refused(5, 1).contains("segment length is 1"));
    assert!(refused(2, 7).contains("found 07 where a marker must be"));
    assert_eq!(is_decodable(&changed(2, 7)), None);
}

#[test]
fn the_orientation_survives_scaling() {
    let plain = encode(&gradient(size(40, 24)).as_picture(), 80).unwrap();
    for value in 2..=8 {
        let mut turned = plain.clone();
        let tiff = b"II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0";
        let tiff = [&tiff[..], &[value, 0, 0, 0, 0, 0, 0, 0]].concat();
        let exif = [&[0xff, 0xe1, 0, 34][..], b"Exif\0\0", &tiff].concat();
        turned.splice(20..20, exif);
        assert!(decode(&turned, PixelFormat::I420).is_ok());
        let small =
            crate::Scaler::new().scale(&crate::Format::Jpeg, &turned, size(20, 12)).unwrap();
        assert_eq!(dimensions(&small), Ok(size(20, 12)));
        assert!(decode(&small, PixelFormat::I420).is_ok());
        let read = |bytes| crate::markers::exif(bytes).and_then(crate::exif::Orientation::read);
        assert!(read(&turned).is_some() && read(&small) == read(&turned), "{value}");
    }
    let small = crate::Scaler::new().scale(&crate::Format::Jpeg, &plain, size(20, 12)).unwrap();
    assert_eq!(crate::markers::exif(&small), None);
}

#[test]
fn endless_headers_are_bounded() {
    let mut bytes = vec![0xff, 0xd8];
    for _ in 0..40 {
        bytes.extend([0xff, 0xe2, 0xff, 0xff]);
        bytes.resize(bytes.len() + 0xfffd, 0);
    }
    let message = dimensions(&bytes).unwrap_err().to_string();
    assert!(message.contains("has no frame header in its first 1048576 bytes"), "{message}");
}

#[test]
fn every_truncation_is_an_error() {
    for bytes in [encode(&gradient(size(40, 24)).as_picture(), 80).unwrap(), grey_jpeg(size(9, 9))]
    {
        for cut in 0..bytes.len() {
            let at = MediaError::JpegTruncated { begin: 0, at: cut, len: cut };
            assert_eq!(decode(&bytes[..cut], PixelFormat::I420), Err(at.clone()), "{cut}");
            let found = dimensions(&bytes[..cut]);
            assert!(found.is_ok() || found == Err(at));
        }
        let longer = [&bytes[..], b"rest"].concat();
        assert!(decode(&longer, PixelFormat::I420).is_ok());
    }
}

#[test]
fn missing_blocks_never_change_the_size() {
    let size = size(64, 64);
    let mut bytes = encode(&gradient(size).as_picture(), 90).unwrap();
    let middle = bytes.len() - 60;
    bytes.drain(middle..middle + 50);
    if let Ok(picture) = decode(&bytes, PixelFormat::I420) {
        assert_eq!(picture.size(), size);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(decode(&bytes, PixelFormat::I420).is_err());
        bytes.splice(0..0, header(48, 32).into_iter().take(21));
        prop_assert_eq!(dimensions(&bytes), Ok(size(48, 32)));
        let _ = decode(&bytes, PixelFormat::Rgb8);
    }

    #[test]
    fn damaged_pictures_never_panic(
        hits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        progressive in any::<bool>(),
        factor in 0_usize..5,
        restart in 0_u16..4,
    ) {
        use jpeg_encoder::{ColorType, Encoder, SamplingFactor as F};
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, 85);
        encoder.set_progressive(progressive);
        encoder.set_restart_interval(restart);
        encoder.set_sampling_factor([F::F_1_1, F::F_2_1, F::F_1_2, F::F_2_2, F::F_4_1][factor]);
        let picture = gradient(size(45, 37)).as_picture().to_rgb8();
        encoder.encode(picture.bytes(), 45, 37, ColorType::Rgb).unwrap();
        prop_assert!(decode(&bytes, PixelFormat::I420).is_ok());
        for (at, value) in hits {
            *at.get_mut(&mut bytes) = value;
        }
        for format in [PixelFormat::I420, PixelFormat::Rgb8] {
            if let Ok(picture) = decode(&bytes, format) {
                prop_assert_eq!(Ok(picture.size()), dimensions(&bytes));
            }
        }
    }
}

/// Returns a picture that ffmpeg codes and its samples as ffmpeg decodes them; `None` without ffmpeg.
fn coded_by_ffmpeg(pixels: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let run = |args: &[&str], input: &[u8]| {
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg.args(["-v", "error"]).args(args).args(["-pix_fmt", pixels, "-"]);
        let mut ffmpeg = ffmpeg.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        ffmpeg.stdin.take().unwrap().write_all(input).unwrap();
        Some(ffmpeg.wait_with_output().unwrap().stdout)
    };
    let card = ["-f", "lavfi", "-i", "testsrc=size=161x123", "-frames:v", "1", "-q:v", "2"];
    let coded = run(&[&card[..], &["-f", "mjpeg"]].concat(), b"")?;
    let decoded = run(&["-f", "mjpeg", "-i", "-", "-f", "rawvideo"], &coded)?;
    Some((coded, decoded))
}

#[test]
fn the_sampling_factors_of_ffmpeg_are_decoded() {
    for (pixels, factors, chroma_width) in
        [("yuvj422p", [0x22, 0x12, 0x12], 81), ("yuvj444p", [0x12; 3], 161)]
    {
        let Some((coded, planes)) = coded_by_ffmpeg(pixels) else {
            println!(
                "skipped: the_sampling_factors_of_ffmpeg_are_decoded (ffmpeg is not installed)"
            );
            return;
        };
        let header = coded.windows(2).position(|mark| mark == [0xff, 0xc0]).unwrap();
        let found = [11, 14, 17].map(|at| coded[header + at]);
        assert_eq!(found, factors, "ffmpeg codes {pixels} with other factors");
        assert_eq!(is_decodable(&coded), Some(true));
        let mut samples = Vec::new();
        assert_eq!(decode_samples(&coded, &mut samples), Ok((size(161, 123), Samples::Ycbcr)));
        let (width, height) = (161, 123);
        for (number, sample) in samples.chunks(3).enumerate() {
            let (x, y) = (number % width, number / width);
            assert!(sample[0].abs_diff(planes[number]) <= 1, "{pixels} luma at {x},{y}");
            // The decoder interpolates between samples of chroma.
            let row = |plane: usize| {
                let at = width * height + (plane * height + y) * chroma_width;
                &planes[at..at + chroma_width]
            };
            let at = if chroma_width == width { x } else { x / 2 };
            for (plane, sample) in sample[1..].iter().enumerate() {
                let near = &row(plane)[at.saturating_sub(1)..(at + 2).min(chroma_width)];
                let (low, high) = (near.iter().min().unwrap(), near.iter().max().unwrap());
                let kept = (low.saturating_sub(4)..=high.saturating_add(4)).contains(sample);
                assert!(kept, "{pixels} chroma at {x},{y}: {sample} of {near:?}");
            }
        }
    }
}
