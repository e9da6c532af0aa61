mod writer;

use proptest::prelude::*;

use super::*;
use crate::{Format, MediaError, Picture, PictureBuf, PixelFormat, Scaler, Size};
use writer::{Kind, chunk, stored};

fn size(width: u32, height: u32) -> Size {
    Size::new(width, height).unwrap()
}

/// Returns a picture with a different colour in each pixel.
fn picture(size: Size) -> PictureBuf {
    let samples = (0..size.pixels() * 3).map(|at| u8::try_from(at * 37 % 251).unwrap()).collect();
    PictureBuf::new(PixelFormat::Rgb8, size, samples).unwrap()
}

fn kind(colour: u8, bits: u8, interlaced: bool) -> Kind {
    Kind { width: 13, height: 11, colour, bits, interlaced, chunks: Vec::new() }
}

/// Returns the expected result of decoding a stored sample.
fn to_8_bits(sample: u16, bits: u8) -> u8 {
    match bits {
        16 => sample.to_be_bytes()[0],
        _ => u8::try_from(sample * 255 / ((1 << bits) - 1)).unwrap(),
    }
}

fn weighted(colour: u8, alpha: u8) -> u8 {
    u8::try_from((u32::from(colour) * u32::from(alpha) + 127) / 255).unwrap()
}

/// All valid combinations of colour type and depth.
const KINDS: [(u8, u8); 15] = [
    (0, 1),
    (0, 2),
    (0, 4),
    (0, 8),
    (0, 16),
    (2, 8),
    (2, 16),
    (3, 1),
    (3, 2),
    (3, 4),
    (3, 8),
    (4, 8),
    (4, 16),
    (6, 8),
    (6, 16),
];

fn sample(bits: u8) -> impl Fn(u32, u32, u32) -> u16 {
    move |x, y, c| u16::try_from((x * 7919 + y * 104_729 + c * 31_337) % (1 << bits)).unwrap()
}

#[test]
fn pictures_round_trip_without_loss() {
    for size in [size(64, 48), size(33, 17), size(1, 1), size(1, 9), size(9, 1)] {
        let picture = picture(size);
        let bytes = encode(&picture.as_picture()).unwrap();
        assert_eq!(dimensions(&bytes), Ok(size));
        assert_eq!(Format::Png.picture_size(&bytes), Ok(size));
        assert_eq!(decode(&bytes, PixelFormat::Rgb8), Ok(picture));
        let i420 = decode(&bytes, PixelFormat::I420).unwrap();
        let again = decode(&encode(&i420.as_picture()).unwrap(), PixelFormat::Rgb8).unwrap();
        assert_eq!(again, i420.as_picture().to_rgb8());
    }
}

#[test]
fn every_kind_of_picture_decodes() {
    for (colour, bits) in KINDS {
        for interlaced in [false, true] {
            let mut kind = kind(colour, bits, interlaced);
            let colours = 1_u16 << bits.min(8);
            let entry = |n: u16| [n * 5 % 256, 255 - n * 3 % 256, n].map(|v| v.to_le_bytes()[0]);
            if colour == 3 {
                kind.chunks.push((b"PLTE", (0..colours).flat_map(entry).collect()));
            }
            let (stored, channels) = (sample(bits), kind.channels());
            let bytes = kind.file(&stored);
            let found = decode(&bytes, PixelFormat::Rgb8).unwrap();
            for (at, pixel) in found.bytes().chunks(3).enumerate() {
                let (x, y) = (u32::try_from(at).unwrap() % 13, u32::try_from(at).unwrap() / 13);
                let values: Vec<u8> = match colour {
                    3 => entry(stored(x, y, 0)).to_vec(),
                    _ => (0..channels).map(|c| to_8_bits(stored(x, y, c), bits)).collect(),
                };
                let expected = match *values {
                    [grey] => [grey; 3],
                    [grey, alpha] => [weighted(grey, alpha); 3],
                    [r, g, b] => [r, g, b],
                    [r, g, b, alpha] => [r, g, b].map(|colour| weighted(colour, alpha)),
                    _ => unreachable!(),
                };
                assert_eq!(pixel, expected, "colour {colour}, {bits} bits, {x} {y}");
            }
        }
    }
}

#[test]
fn transparent_colours_become_alpha() {
    let mut grey = kind(0, 8, false);
    grey.chunks.push((b"tRNS", vec![0, 200]));
    let found = decode(&grey.file(|x, _, _| if x == 3 { 200 } else { 90 }), PixelFormat::I420);
    let found = found.unwrap();
    let luma = |x| found.as_picture().luma(x, 0);
    assert_eq!((luma(2), luma(3)), (Some(90), Some(0)));

    let mut palette = kind(3, 8, false);
    palette.chunks.push((b"PLTE", vec![255, 255, 255, 255, 255, 255]));
    palette.chunks.push((b"tRNS", vec![128]));
    let found = decode(&palette.file(|x, _, _| u16::from(x > 3)), PixelFormat::Rgb8).unwrap();
    assert_eq!((found.bytes()[0], found.bytes()[3 * 12]), (128, 255));
}

/// Returns the colour type and the bits per sample in a file's header.
fn header_of(bytes: &[u8]) -> (u8, u8) {
    (bytes[25], bytes[24])
}

#[test]
fn scaled_pictures_keep_their_kind() {
    let mut scaler = Scaler::new();
    let to = size(5, 4);
    for (colour, bits) in KINDS {
        let mut kind = kind(colour, bits, bits == 8);
        if colour == 3 {
            kind.chunks.push((b"PLTE", [9, 8, 7].repeat(1 << bits)));
        }
        let level = (1_u32 << bits) - 1;
        let bytes = kind.file(|_, _, _| u16::try_from(level).unwrap());
        let scaled = scaler.scale(&Format::Png, &bytes, to).unwrap();
        assert_eq!(dimensions(&scaled), Ok(to));
        let expected = (if colour == 3 { 2 } else { colour }, bits.max(8));
        assert_eq!(header_of(&scaled), expected, "colour {colour}, {bits} bits");
        let mut samples = Vec::new();
        let (_, found) = decode_samples(&scaled, &mut samples).unwrap();
        assert_eq!(samples.len(), 20 * found.per_pixel());
        if colour == 3 {
            assert_eq!(samples, [9, 8, 7].repeat(20));
        } else {
            assert!(samples.iter().all(|&sample| sample == 255), "colour {colour}, {bits} bits");
        }
    }
}

#[test]
fn sixteen_bits_survive_scaling() {
    let depth = kind(0, 16, false);
    let bytes = depth.file(|_, _, _| 12_345);
    let scaled = Scaler::new().scale(&Format::Png, &bytes, size(4, 4)).unwrap();
    let mut samples = Vec::new();
    decode_samples(&scaled, &mut samples).unwrap();
    assert_eq!(samples, 12_345_u16.to_be_bytes().repeat(16));
}

#[test]
fn transparent_pixels_do_not_colour_their_neighbours() {
    for bits in [8, 16] {
        let full = if bits == 8 { 255 } else { 65_535 };
        let mut picture = kind(6, bits, false);
        (picture.width, picture.height) = (8, 8);
        // Columns alternate between red and transparent, and blue and opaque.
        let bytes = picture.file(|x, _, c| match (x % 2, c) {
            (0, 0) | (1, 2 | 3) => full,
            _ => 0,
        });
        let scaled = Scaler::new().scale(&Format::Png, &bytes, size(4, 4)).unwrap();
        let mut samples = Vec::new();
        let (_, kind) = decode_samples(&scaled, &mut samples).unwrap();
        for pixel in samples.chunks(kind.per_pixel()) {
            let high: Vec<u8> = pixel.iter().step_by(kind.per_pixel() / 4).copied().collect();
            assert_eq!((high[0], high[1]), (0, 0), "{high:?}");
            assert!(high[2] >= 254 && high[3].abs_diff(128) < 40, "{high:?}");
        }
    }
}

#[test]
fn scaling_copies_the_same_size_and_refuses_a_larger_one() {
    let bytes = encode(&picture(size(20, 10)).as_picture()).unwrap();
    let mut scaler = Scaler::new();
    assert_eq!(scaler.scale(&Format::Png, &bytes, size(20, 10)), Ok(bytes.clone()));
    let error = scaler.scale(&Format::Png, &bytes, size(21, 10)).unwrap_err();
    assert!(matches!(error, MediaError::SizeAboveSource { .. }));
    let good = scaler.scale(&Format::Png, &bytes, size(7, 3)).unwrap();
    assert!(scaler.scale(&Format::Png, &bytes[..bytes.len() - 20], size(7, 3)).is_err());
    assert_eq!(scaler.scale(&Format::Png, &bytes, size(7, 3)), Ok(good));
}

#[test]
fn invalid_pictures_are_refused() {
    let message = |bytes: &[u8]| dimensions(bytes).unwrap_err().to_string();
    let bytes = encode(&picture(size(5, 5)).as_picture()).unwrap();
    assert!(message(&[]).starts_with("no png picture: found \"\", must begin with 89 50 4e 47"));
    assert!(message(b"\xff\xd8\xff\xe0").starts_with("no png picture: found \"ff d8 ff e0\""));
    assert!(message(&bytes[..3]).contains("cut off at byte 3"));
    for at in 0..8 {
        let mut wrong = bytes.clone();
        wrong[at] ^= 0x20;
        assert!(matches!(dimensions(&wrong), Err(MediaError::NotPng { .. })), "{at}");
    }
    for (at, value, part) in [
        (11, 14, "its first chunk is not an IHDR of 13 bytes"),
        (12, b'J', "its first chunk is not an IHDR"),
        (24, 3, "colour type 2 with 3 bits per sample is not valid in png"),
        (24, 1, "colour type 2 with 1 bits"),
        (25, 1, "colour type 1 with 8 bits"),
        (25, 7, "colour type 7"),
    ] {
        let mut wrong = bytes.clone();
        wrong[at] = value;
        assert!(message(&wrong).contains(part), "{}", message(&wrong));
    }
    let mut empty = bytes.clone();
    empty[16..20].fill(0);
    assert!(message(&empty).starts_with("width is 0, must be"));
}

#[test]
fn every_truncation_is_an_error() {
    for bytes in
        [encode(&picture(size(5, 5)).as_picture()).unwrap(), kind(6, 16, true).file(sample(16))]
    {
        for len in 0..bytes.len() {
            let result = decode(&bytes[..len], PixelFormat::Rgb8);
            let expected = match len {
                0 => matches!(result, Err(MediaError::NotPng { .. })),
                _ => matches!(
                    result,
                    Err(MediaError::PngTruncated { .. } | MediaError::PngCorrupt { .. })
                ),
            };
            assert!(expected, "{len} of {}: {result:?}", bytes.len());
        }
        let more = [&bytes[..], b"more"].concat();
        assert_eq!(decode(&more, PixelFormat::Rgb8), decode(&bytes, PixelFormat::Rgb8));
    }
}

#[test]
fn every_changed_bit_is_an_error() {
    let small = encode(&picture(size(4, 3)).as_picture()).unwrap();
    for at in 0..small.len() {
        for bit in 0..8 {
            let mut wrong = small.clone();
            wrong[at] ^= 1 << bit;
            assert!(decode(&wrong, PixelFormat::Rgb8).is_err(), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn damage_with_a_valid_checksum_is_an_error() {
    let whole = stored(&[0, 1, 2, 3, 0, 4, 5, 6]);
    let file = |data: &[u8]| {
        let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
        chunk(&mut out, b"IHDR", &[0, 0, 0, 1, 0, 0, 0, 2, 8, 2, 0, 0, 0]);
        chunk(&mut out, b"IDAT", data);
        chunk(&mut out, b"IEND", &[]);
        out
    };
    assert_eq!(decode(&file(&whole), PixelFormat::Rgb8).unwrap().bytes(), [1, 2, 3, 4, 5, 6]);
    let short = stored(&[0, 1, 2, 3]);
    let filter = stored(&[9, 1, 2, 3, 0, 4, 5, 6]);
    let mut sum = whole.clone();
    *sum.last_mut().unwrap() ^= 1;
    for (name, data) in [
        ("empty", &[][..]),
        ("too short", &short),
        ("unknown filter", &filter),
        ("wrong sum", &sum),
        ("cut", &whole[..9]),
        ("no zlib", &whole[1..]),
    ] {
        let result = decode(&file(data), PixelFormat::Rgb8);
        assert!(matches!(result, Err(MediaError::PngCorrupt { .. })), "{name}: {result:?}");
    }
    let mut no_palette = kind(3, 8, false).file(|_, _, _| 0);
    assert!(decode(&no_palette, PixelFormat::Rgb8).is_err());
    no_palette.truncate(8 + 25);
    chunk(&mut no_palette, b"IEND", &[]);
    assert!(decode(&no_palette, PixelFormat::Rgb8).is_err());
}

/// Returns an RGBA header with this depth, and `len` bytes that are not pixels.
fn promise(width: u32, height: u32, bits: u8, len: usize) -> Vec<u8> {
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    let [width, height] = [width, height].map(u32::to_be_bytes);
    chunk(&mut out, b"IHDR", &[&width[..], &height, &[bits, 6, 0, 0, 0]].concat());
    chunk(&mut out, b"IDAT", &vec![0; len]);
    chunk(&mut out, b"IEND", &[]);
    out
}

#[test]
fn decompression_bombs_are_refused_before_allocation() {
    let message = |bytes: &[u8]| decode(bytes, PixelFormat::Rgb8).unwrap_err().to_string();
    let huge = promise(60_000, 60_000, 8, 10);
    assert!(message(&huge).starts_with("width is 60000, must be a whole number from 1 to"));
    assert_eq!(dimensions(&huge).unwrap_err().to_string(), message(&huge));
    let wide = promise(16_384, 16_384, 8, 10);
    assert!(message(&wide).starts_with("size 16384x16384 has 268435456 pixels, must be"));
    let thin = promise(8_192, 8_192, 8, 100_000);
    assert!(message(&thin).contains("bytes cannot hold a picture of 8192x8192"));
    // It would be accepted if cut to 8 bits.
    let deep = promise(8_192, 8_192, 16, 600_000);
    let mut samples = Vec::new();
    let error = decode_samples(&deep, &mut samples).unwrap_err().to_string();
    assert!(error.starts_with("png picture of 8192x8192 takes 536870912 bytes"), "{error}");
    for bytes in [huge, wide, thin, deep] {
        assert!(decode_samples(&bytes, &mut samples).is_err());
        assert_eq!(samples.capacity(), 0);
    }
    // Pixels for many pictures in a picture of one pixel.
    let mut fat = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut fat, b"IHDR", &[0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]);
    chunk(&mut fat, b"IDAT", &stored(&[0; 1 << 20]));
    chunk(&mut fat, b"IEND", &[]);
    let _ = decode_samples(&fat, &mut samples);
    assert!(samples.capacity() < 64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arbitrary_bytes_never_panic_nor_allocate_much(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        (width, height) in (0_u32..70_000, 0_u32..70_000),
        (bits, colour, interlaced) in (0_u8..18, 0_u8..8, 0_u8..3),
    ) {
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        let [width, height] = [width, height].map(u32::to_be_bytes);
        chunk(&mut file, b"IHDR", &[&width[..], &height, &[bits, colour, 0, 0, interlaced]].concat());
        chunk(&mut file, b"IDAT", &bytes);
        let mut samples = Vec::new();
        for bytes in [&bytes, &file] {
            let _ = decode_samples(bytes, &mut samples);
            prop_assert!(samples.capacity() <= 32 * 1032 * bytes.len());
        }
    }

    #[test]
    fn no_damage_panics(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..9),
        which in 0..KINDS.len(),
    ) {
        let (colour, bits) = KINDS[which];
        let mut bytes = kind(colour, bits, bits > 2).file(sample(bits));
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let _ = decode(&bytes, PixelFormat::I420);
        let _ = Scaler::new().scale(&Format::Png, &bytes, size(3, 3));
    }

    #[test]
    fn any_size_round_trips(width in 1_u32..70, height in 1_u32..70) {
        let source = picture(size(width, height));
        let bytes = encode(&source.as_picture()).unwrap();
        let found = decode(&bytes, PixelFormat::Rgb8).unwrap();
        prop_assert!(Picture::new(PixelFormat::Rgb8, size(width, height), found.bytes()).is_ok());
        prop_assert_eq!(found, source);
    }
}
