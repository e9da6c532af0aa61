//! The fidelity of scaled video, and pictures within limits.

use openh264::OpenH264API;
use openh264::decoder::{DecodedYUV, Decoder, DecoderConfig, Flush};
use openh264::formats::YUVSource as _;
use paceline_media::h264::{Event, Limit, Transcoder, Want, key_bytes_min, split};
use paceline_media::{Format, Scaler, Size};

use crate::real::recording;
use crate::support::{MADE, Made, size};

/// Returns the luma of all pictures, in presentation order.
fn luma<'a>(units: impl IntoIterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let config = DecoderConfig::new().flush_after_decode(Flush::NoFlush);
    let mut decoder = Decoder::with_api_config(OpenH264API::from_source(), config).unwrap();
    let plane = |picture: &DecodedYUV<'_>| -> Vec<u8> {
        let ((width, height), (stride, _, _)) = (picture.dimensions(), picture.strides());
        picture.y().chunks(stride).take(height).flat_map(|row| &row[..width]).copied().collect()
    };
    let mut pictures = Vec::new();
    for unit in units {
        pictures.extend(decoder.decode(unit).unwrap().iter().map(plane));
    }
    pictures.extend(decoder.flush_remaining().unwrap().iter().map(plane));
    pictures
}

/// Returns the peak signal-to-noise ratio in decibels.
fn psnr(one: &[Vec<u8>], other: &[Vec<u8>]) -> f64 {
    assert_eq!(one.len(), other.len());
    let pairs = one.iter().flatten().zip(other.iter().flatten());
    let (sum, count) = pairs.fold((0.0, 0.0), |(sum, count), (a, b)| {
        (sum + f64::from(a.abs_diff(*b)).powi(2), count + 1.0)
    });
    10.0 * (255.0_f64.powi(2) * count / f64::max(sum, 1.0)).log10()
}

#[test]
fn small_pictures_of_a_film_have_bits_enough() {
    let test = "small_pictures_of_a_film_have_bits_enough";
    let Some(stream) = recording(test, "cisco_1280x720_bframes.264") else { return };
    let units: Vec<_> = split(&stream).map(Result::unwrap).take(200).collect();
    let source = luma(units.iter().map(|unit| unit.bytes));
    let from = size("1280x720");
    println!("| size | bits per pixel | PSNR |\n| --- | --- | --- |");
    for to in ["64x36", "80x46", "96x54", "160x90", "320x180"].map(size) {
        let mut scaler = Scaler::new();
        let small = |luma: &Vec<u8>| {
            let grey = [&luma[..], &vec![128; luma.len() / 2]].concat();
            let scaled = scaler.scale(&Format::I420(from, None), &grey, to).unwrap();
            scaled[..usize::try_from(to.pixels()).unwrap()].to_vec()
        };
        let reference: Vec<_> = source.iter().map(small).collect();
        let mut transcoder = Transcoder::new(Some(to), 30.0).unwrap();
        let mut coded = Vec::new();
        let mut event = |event| {
            if let Event::Coded { bytes, .. } = event {
                coded.push(bytes);
            }
        };
        for unit in &units {
            transcoder.push(unit.bytes, unit.class, &mut |_| Want::Yes, &mut event);
        }
        transcoder.flush(&mut |_| Want::Yes, &mut event);
        let bytes: usize = coded.iter().map(Vec::len).sum();
        #[expect(clippy::cast_precision_loss, reason = "displayed only")]
        let bits = bytes as f64 * 8.0 / (to.pixels() as f64 * coded.len() as f64);
        let psnr = psnr(&luma(coded.iter().map(Vec::as_slice)), &reference);
        println!("| {to} | {bits:.2} | {psnr:.1} dB |");
        assert!(psnr > 28.0, "{to}: {psnr}");
    }
}

/// Test cards at the least rate: every picture is coded, within its limit, and can be decoded.
#[test]
fn every_picture_fits_the_least_limit() {
    let units = Made { pictures: 60, bits: 8_000_000, ..MADE }.units();
    for (to, hz) in [("320x240", 10), ("160x120", 30), ("64x48", 5), ("16x16", 10), ("18x240", 1)] {
        let to: Size = size(to);
        let key = key_bytes_min(to);
        // Per picture, in thousandths of a byte.
        let refill = (key * 8_000 / 3).max(key * 500 + 40_000 * hz).div_ceil(hz);
        let full = refill * hz / 1_000 / 4 * 3;
        let mut left = full * 1_000;
        let mut transcoder = Transcoder::new(Some(to), 10.0).unwrap();
        let mut coded = Vec::new();
        for unit in &units {
            let now = left / 1_000;
            let class = crate::support::classify(unit).unwrap();
            let want = &mut |_| Want::Within(Limit { now, full });
            transcoder.push(unit, class, want, &mut |event| {
                let Event::Coded { bytes, .. } = event else { panic!("{to}: {event:?}") };
                assert!(bytes.len() as u64 <= now, "{to}: {} bytes of {now}", bytes.len());
                coded.push(bytes);
            });
            let bytes = coded.last().map_or(0, |bytes| bytes.len() as u64);
            left = (left - bytes * 1_000 + refill).min(full * 1_000);
        }
        assert_eq!(luma(coded.iter().map(Vec::as_slice)).len(), 60, "{to}");
    }
}
