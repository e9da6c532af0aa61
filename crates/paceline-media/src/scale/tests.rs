use proptest::prelude::*;

use super::*;
use crate::jpeg::{Samples, Tables, encode_samples};
use crate::{PictureBuf, jpeg};

fn size(width: u32, height: u32) -> Size {
    Size::new(width, height).unwrap()
}

/// Returns a picture with a dark left half and a bright right half in every channel.
fn halves(format: PixelFormat, size: Size) -> PictureBuf {
    let mut picture = PictureBuf::grey(format, size).unwrap();
    let paint = |bytes: &mut [u8], width: usize| {
        for row in bytes.chunks_exact_mut(width) {
            let (left, right) = row.split_at_mut(width / 2);
            left.fill(50);
            right.fill(200);
        }
    };
    match format {
        PixelFormat::Rgb8 => paint(picture.bytes_mut(), size.width as usize * 3),
        PixelFormat::I420 => {
            let chroma_width = size.chroma().width as usize;
            let [luma, cb, cr] = picture.planes_mut().unwrap();
            paint(luma, size.width as usize);
            paint(cb, chroma_width);
            paint(cr, chroma_width);
        }
    }
    picture
}

#[test]
fn raw_pictures_keep_their_format_and_content() {
    let (from, mut scaler) = (size(64, 32), Scaler::new());
    for to in [size(16, 8), size(15, 7), size(64, 3), size(1, 1), size(5, 32)] {
        for (format, pixels) in
            [(Format::I420(from, None), PixelFormat::I420), (Format::Rgb8(from), PixelFormat::Rgb8)]
        {
            let source = halves(pixels, from);
            let bytes = scaler.scale(&format, source.bytes(), to).unwrap();
            assert_eq!(format.with_size(to).picture_size(&bytes), Ok(to));
            let picture = PictureBuf::new(pixels, to, bytes).unwrap();
            if to.width > 4 {
                let edge = |x| picture.as_picture().luma(x, 0);
                assert_eq!((edge(0), edge(to.width - 1)), (Some(50), Some(200)), "{to}");
            }
        }
    }
}

#[test]
fn jpeg_pictures_stay_jpeg() {
    let mut scaler = Scaler::new();
    let source = halves(PixelFormat::I420, size(128, 64));
    let payload = jpeg::encode(&source.as_picture(), 90).unwrap();
    for to in [size(32, 16), size(33, 17), size(1, 1), size(128, 1)] {
        let scaled = scaler.scale(&Format::Jpeg, &payload, to).unwrap();
        assert_eq!(jpeg::dimensions(&scaled), Ok(to));
    }
    let grey =
        encode_samples(size(40, 40), Samples::Grey, &[90; 1600], (90, Tables::Standard)).unwrap();
    let scaled = scaler.scale(&Format::Jpeg, &grey, size(10, 10)).unwrap();
    let picture = jpeg::decode(&scaled, PixelFormat::I420).unwrap();
    assert!(picture.as_picture().luma(5, 5).unwrap().abs_diff(90) <= 1);
    assert_eq!(scaled.windows(2).filter(|pair| pair == b"\xff\xc4").count(), 2, "still grey");
}

#[test]
fn quality_changes_the_length() {
    let mut scaler = Scaler::new();
    let payload = crate::TestCard::new(size(320, 240)).unwrap().draw_jpeg(1, 2, 90).unwrap();
    let mut len = |quality| {
        scaler.set_quality(quality).unwrap();
        scaler.scale(&Format::Jpeg, &payload, size(160, 120)).unwrap().len()
    };
    assert!(len(30) < len(80) && len(80) < len(100));
    assert_eq!(scaler.set_quality(0), Err(MediaError::Quality { quality: 0 }));
}

#[test]
fn the_same_size_is_a_copy() {
    let payload = jpeg::encode(&halves(PixelFormat::I420, size(20, 20)).as_picture(), 50).unwrap();
    assert_eq!(Scaler::new().scale(&Format::Jpeg, &payload, size(20, 20)), Ok(payload.clone()));
}

#[test]
fn a_png_of_the_same_size_fits_the_limit() {
    let noise: Vec<u8> = (0..64 * 48 * 3_u32)
        .map(|n| u8::try_from((n.wrapping_mul(2_654_435_761) >> 13) % 256).unwrap())
        .collect();
    let noise = crate::Picture::new(PixelFormat::Rgb8, size(64, 48), &noise).unwrap();
    let png = crate::png::encode(&noise).unwrap();
    let limit = usize::try_from(png_bytes_min(size(64, 48))).unwrap();
    assert!(png.len() > limit, "{} bytes", png.len());
    let mut scaler = Scaler::new();
    scaler.set_limit(Some(limit));
    let fitted = scaler.scale(&Format::Png, &png, size(64, 48)).unwrap();
    assert!(fitted.len() <= limit && Format::Png.picture_size(&fitted).unwrap() == size(64, 48));
    // One that fits is not coded again, whatever the quality of JPEG.
    scaler.set_quality(50).unwrap();
    scaler.set_limit(Some(png.len()));
    assert_eq!(scaler.scale(&Format::Png, &png, size(64, 48)).unwrap(), png);
}

#[test]
fn larger_sizes_are_refused_with_both_sizes() {
    let format = Format::I420(size(4, 4), None);
    for asked in [size(5, 4), size(4, 5), size(2, 6)] {
        let error = Scaler::new().scale(&format, &[0; 24], asked).unwrap_err();
        assert_eq!(error, MediaError::SizeAboveSource { asked, source_size: size(4, 4) });
        let message = error.to_string();
        assert!(message.contains("ask for at most 4 wide and 4 high"), "{message}");
    }
    let zero = Scaler::new().scale(&format, &[0; 24], Size { width: 0, height: 1 });
    assert_eq!(zero, Err(MediaError::Side { field: "width", value: "0".to_owned() }));
    let short = Scaler::new().scale(&format, &[0; 23], size(2, 2)).unwrap_err();
    assert!(short.to_string().starts_with("i420 picture of 4x4 holds 23 bytes"));
}

#[test]
fn an_error_does_not_spoil_the_scaler() {
    let mut scaler = Scaler::new();
    let good = jpeg::encode(&halves(PixelFormat::I420, size(32, 32)).as_picture(), 90).unwrap();
    let first = scaler.scale(&Format::Jpeg, &good, size(8, 8)).unwrap();
    assert!(scaler.scale(&Format::Jpeg, &good[..good.len() - 9], size(8, 8)).is_err());
    assert_eq!(scaler.scale(&Format::Jpeg, &good, size(8, 8)), Ok(first));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_payloads_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        (width, height) in (0_u32..40, 0_u32..40),
    ) {
        let (mut scaler, to) = (Scaler::new(), Size { width, height });
        for format in [Format::Jpeg, Format::I420(size(9, 9), None), Format::Rgb8(size(3, 3))] {
            let _ = scaler.scale(&format, &bytes, to);
        }
    }

    #[test]
    fn any_smaller_size_is_exact(w in 1_u32..70, h in 1_u32..70, pw in 1_u32..101, ph in 1_u32..101) {
        let (from, to) = (size(w, h), size((w * pw).div_ceil(100), (h * ph).div_ceil(100)));
        let grey = PictureBuf::grey(PixelFormat::I420, from).unwrap();
        let mut scaler = Scaler::new();
        let raw = scaler.scale(&Format::I420(from, None), grey.bytes(), to).unwrap();
        prop_assert!(raw.iter().all(|&sample| sample == 128));
        prop_assert_eq!(Format::I420(to, None).picture_size(&raw), Ok(to));
        let coded = jpeg::encode(&grey.as_picture(), 80).unwrap();
        let coded = scaler.scale(&Format::Jpeg, &coded, to).unwrap();
        prop_assert_eq!(jpeg::dimensions(&coded), Ok(to));
    }
}

/// Decodes a JPEG picture to gray with ffmpeg; `None` if it is not installed.
fn foreign_luma(payload: &[u8]) -> Option<Vec<u8>> {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-f", "mjpeg", "-i", "-", "-f", "rawvideo"]);
    command.args(["-pix_fmt", "gray", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().ok()?;
    child.stdin.take().unwrap().write_all(payload).unwrap();
    Some(child.wait_with_output().unwrap().stdout)
}

/// At the least limit, pictures of noise fit, and other decoders show the same as this one.
#[test]
fn jpeg_pictures_of_noise_fit_the_least_limit() {
    let (mut random, mut coarse) = (7_u64, 0);
    let mut next = |most: u32| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        u32::try_from(random >> 33).unwrap() % most
    };
    for round in 0..200 {
        let from = size(2 + next(127), 2 + next(127));
        let to = size(1 + next(from.width), 1 + next(from.height));
        let (cell, high) = (1 + next(24), 1 + next(255));
        let mut bytes = vec![0; area(from) * 3];
        let salt = next(u32::MAX);
        for (at, byte) in (0..).zip(&mut bytes) {
            let (x, y) = (at % (from.width * 3) / cell, at / (from.width * 3) / cell);
            let hash = (x ^ y.wrapping_mul(2_654_435_761) ^ salt).wrapping_mul(2_246_822_519);
            *byte = u8::try_from((hash >> 13) % 2 * high).unwrap();
        }
        let source = PictureBuf::new(PixelFormat::Rgb8, from, bytes).unwrap();
        let payload = jpeg::encode(&source.as_picture(), 95).unwrap();
        let limit = usize::try_from(jpeg_bytes_min(to)).unwrap();
        let mut scaler = Scaler::new();
        scaler.set_limit(Some(limit));
        let scaled = scaler.scale(&Format::Jpeg, &payload, to).unwrap();
        assert!(scaled.len() <= limit, "{from} to {to}: {} bytes of {limit}", scaled.len());
        assert_eq!(jpeg::dimensions(&scaled), Ok(to));
        let picture = jpeg::decode(&scaled, PixelFormat::I420).unwrap();
        // The tables of the standard alone have 420 bytes.
        coarse += usize::from(scaled.len() < 420);
        if round % 10 == 0
            && let Some(luma) = foreign_luma(&scaled)
        {
            let own = &picture.bytes()[..luma.len()];
            let worst = own.iter().zip(&luma).map(|(a, b)| a.abs_diff(*b)).max();
            // ffmpeg converts to the limited range.
            assert!(luma.len() == area(to) && worst <= Some(20), "{to}: {worst:?}");
        }
    }
    assert!(coarse > 20, "{coarse} of 200 have shorter tables");
}
