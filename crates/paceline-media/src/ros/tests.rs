//! Messages written by another implementation of CDR, and by the one here.

use super::*;
use crate::{Format, PixelFormat, Scaler, TestCard, jpeg, png, read_card};
use proptest::prelude::*;

/// An `Image` of 3x2 pixels of rgb8 with rows of 12 bytes, 0 to 23, as the Python package rosbags 0.11 writes it.
const LITTLE: &str = "0001000000f1536515cd5b070700000063616d657261000002000000030000000500000072676238\
    000000000c00000018000000000102030405060708090a0b0c0d0e0f1011121314151617";
const BIG: &str = "000000006553f100075bcd150000000763616d65726100000000000200000003000000057267623800\
    0000000000000c00000018000102030405060708090a0b0c0d0e0f1011121314151617";
/// A `CompressedImage` of the bytes ff d8 ff d9, by the same program.
const COMPRESSED: &str = "0001000000f1536515cd5b070700000063616d6572610000050000006a70656700000000\
    04000000ffd8ffd9";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(char::is_ascii_hexdigit).collect();
    let byte = |pair: &[char; 2]| u8::from_str_radix(&String::from_iter(pair), 16).unwrap();
    digits.as_chunks().0.iter().map(byte).collect()
}

/// The fields of an `Image` that a test chooses.
#[derive(Clone, Debug)]
struct Fields {
    big: bool,
    frame: String,
    size: Size,
    encoding: &'static str,
    is_bigendian: u8,
    step: usize,
}

impl Fields {
    fn new(encoding: &'static str, (width, height): (u32, u32), row: usize) -> Self {
        let size = Size { width, height };
        Self { big: false, frame: "camera".to_owned(), size, encoding, is_bigendian: 0, step: row }
    }

    fn message(&self, data: &[u8]) -> Vec<u8> {
        let order = if self.big { cdr::Order::Big } else { cdr::Order::Little };
        let mut writer = cdr::Writer::new(order, &[0, u8::from(!self.big), 0, 0], 0);
        writer.number(1_700_000_000);
        writer.number(123_456_789);
        writer.text(&self.frame);
        writer.number(self.size.height);
        writer.number(self.size.width);
        writer.text(self.encoding);
        writer.byte(self.is_bigendian);
        writer.number(u32::try_from(self.step).unwrap());
        let mut out = writer.sequence(data.len());
        out.extend_from_slice(data);
        out
    }
}

fn scale(message: RosMessage, payload: &[u8], width: u32, height: u32) -> Result<Vec<u8>, String> {
    let to = Size { width, height };
    Scaler::new().scale(&Format::Ros(message), payload, to).map_err(|error| error.to_string())
}

#[test]
fn messages_of_another_implementation_are_read_and_written_as_it_does() {
    let fields = Fields::new("rgb8", (3, 2), 12);
    let data: Vec<u8> = (0..24).collect();
    for (hex, big) in [(LITTLE, false), (BIG, true)] {
        let payload = bytes(hex);
        assert_eq!(payload, Fields { big, ..fields.clone() }.message(&data));
        let size = picture_size(RosMessage::Image, &payload).unwrap();
        assert_eq!(size, Size { width: 3, height: 2 });
        let rgb: Vec<u8> = (0..9).chain(12..21).collect();
        let rgb = PictureBuf::new(PixelFormat::Rgb8, size, rgb).unwrap();
        assert_eq!(picture(RosMessage::Image, &payload), Ok(RosPicture::Pixels(rgb)));
        // One pixel: the mean of the picture without the padding, in the same header.
        let scaled = scale(RosMessage::Image, &payload, 1, 1).unwrap();
        let one = Fields { big, size: Size { width: 1, height: 1 }, step: 3, ..fields.clone() };
        assert_eq!(scaled, one.message(&[9, 10, 11]));
    }
    let payload = bytes(COMPRESSED);
    let message = Compressed::read(&payload).unwrap();
    assert_eq!(
        picture(RosMessage::CompressedImage, &payload),
        Ok(RosPicture::Jpeg(&[0xff, 0xd8, 0xff, 0xd9]))
    );
    assert_eq!(message.with_data(message.data), payload);
    assert_eq!(message.overhead() + message.data.len(), payload.len());
}

#[test]
fn every_encoding_is_scaled_to_its_mean() {
    // Two pixels, whose mean is the second row.
    let cases: [(&str, usize, &[u8], &[u8]); 9] = [
        ("mono8", 2, &[10, 20], &[15]),
        ("8UC1", 2, &[10, 20], &[15]),
        ("mono16", 4, &[0, 1, 0, 3], &[0, 2]),
        ("bgr8", 6, &[1, 2, 3, 3, 4, 5], &[2, 3, 4]),
        ("8UC3", 6, &[1, 2, 3, 3, 4, 5], &[2, 3, 4]),
        ("rgba8", 8, &[10, 20, 30, 255, 30, 40, 50, 255], &[20, 30, 40, 255]),
        ("bgra8", 8, &[10, 20, 30, 255, 30, 40, 50, 255], &[20, 30, 40, 255]),
        ("rgb16", 12, &[0, 1, 0, 2, 0, 3, 0, 3, 0, 4, 0, 5], &[0, 2, 0, 3, 0, 4]),
        (
            "bgra16",
            16,
            &[0, 1, 0, 2, 0, 3, 255, 255, 0, 3, 0, 4, 0, 5, 255, 255],
            &[0, 2, 0, 3, 0, 4, 255, 255],
        ),
    ];
    for (encoding, row, pixels, mean) in cases {
        for big in [false, true] {
            let fields = Fields { big, ..Fields::new(encoding, (2, 1), row) };
            let scaled = scale(RosMessage::Image, &fields.message(pixels), 1, 1).unwrap();
            let one = Fields { size: Size { width: 1, height: 1 }, step: mean.len(), ..fields };
            assert_eq!(scaled, one.message(mean), "{encoding}");
        }
    }
    // Four pixels of 4:2:2 become two.
    for (encoding, pixels, mean) in [
        ("uyvy", [100, 10, 200, 20, 110, 30, 210, 40], [105, 15, 205, 35]),
        ("yuv422", [100, 10, 200, 20, 110, 30, 210, 40], [105, 15, 205, 35]),
        ("yuyv", [10, 100, 20, 200, 30, 110, 40, 210], [15, 105, 35, 205]),
        ("yuv422_yuy2", [10, 100, 20, 200, 30, 110, 40, 210], [15, 105, 35, 205]),
    ] {
        let fields = Fields::new(encoding, (4, 1), 8);
        let scaled = scale(RosMessage::Image, &fields.message(&pixels), 2, 1).unwrap();
        let size = picture_size(RosMessage::Image, &scaled).unwrap();
        assert_eq!(size, Size { width: 2, height: 1 });
        let near = |(a, b): (&u8, &u8)| a.abs_diff(*b) <= 3;
        let made = &scaled[scaled.len() - 4..];
        assert!(made.iter().zip(&mean).all(near), "{encoding}: {made:?}, not {mean:?}");
    }
}

#[test]
fn samples_of_16_bits_have_the_order_that_the_message_states() {
    let fields = Fields { is_bigendian: 1, ..Fields::new("mono16", (2, 1), 4) };
    let scaled = scale(RosMessage::Image, &fields.message(&[1, 0, 3, 0]), 1, 1).unwrap();
    assert_eq!(scaled[scaled.len() - 2..], [2, 0]);
    let little = Fields { is_bigendian: 0, ..fields };
    let scaled = scale(RosMessage::Image, &little.message(&[0, 1, 0, 3]), 1, 1).unwrap();
    assert_eq!(scaled[scaled.len() - 2..], [0, 2]);
}

/// Returns a `CompressedImage` with these bytes.
fn compressed(big: bool, format: &str, data: &[u8]) -> Vec<u8> {
    let order = if big { cdr::Order::Big } else { cdr::Order::Little };
    let mut writer = cdr::Writer::new(order, &[0, u8::from(!big), 0, 0], 0);
    writer.number(5);
    writer.number(6);
    writer.text("head");
    writer.text(format);
    let mut out = writer.sequence(data.len());
    out.extend_from_slice(data);
    out
}

#[test]
fn a_compressed_picture_stays_readable_with_its_header() {
    let mut card = TestCard::new(Size { width: 320, height: 240 }).unwrap();
    let small = Size { width: 160, height: 120 };
    for big in [false, true] {
        let picture = card.draw(9, 0);
        let coded = [
            ("jpeg", jpeg::encode(&picture, 80).unwrap()),
            ("rgb8; png compressed bgr8", png::encode(&picture).unwrap()),
        ];
        for (name, data) in coded {
            let payload = compressed(big, name, &data);
            let scaled = scale(RosMessage::CompressedImage, &payload, 160, 120).unwrap();
            assert_eq!(picture_size(RosMessage::CompressedImage, &scaled), Ok(small));
            let inner = super::picture(RosMessage::CompressedImage, &scaled).unwrap();
            let (RosPicture::Jpeg(data) | RosPicture::Png(data)) = inner else { panic!("{name}") };
            assert_eq!(scaled, compressed(big, name, data), "only the picture differs");
            let decoded = if name == "jpeg" {
                jpeg::decode(data, PixelFormat::I420)
            } else {
                png::decode(data, PixelFormat::I420)
            };
            let reading = read_card(&decoded.unwrap().as_picture());
            assert_eq!(reading.map(|reading| reading.frame), Some(9), "{name}");
            // A limit counts the whole message.
            let mut scaler = Scaler::new();
            scaler.set_limit(Some(2_000));
            let format = Format::Ros(RosMessage::CompressedImage);
            let limited = scaler.scale(&format, &payload, small).unwrap();
            assert!(name != "jpeg" || limited.len() <= 2_000, "{}", limited.len());
        }
    }
    let h264 = compressed(false, "h264", &[0, 0, 0, 1, 0x67]);
    assert_eq!(is_scalable(RosMessage::CompressedImage, &h264), Some(false));
    let error = scale(RosMessage::CompressedImage, &h264, 1, 1).unwrap_err();
    assert!(error.contains("(\"h264\") is neither JPEG nor PNG; request the full size"), "{error}");
}

#[test]
fn invalid_messages_name_the_field_and_a_remedy() {
    let fields = Fields::new("rgb8", (4, 2), 12);
    let good = fields.message(&[0; 24]);
    let image = |fields: &Fields, data: usize| {
        let scaled = scale(RosMessage::Image, &fields.message(&vec![0; data]), 1, 1);
        scaled.unwrap_err()
    };
    for (error, part) in [
        (
            image(&Fields { step: 11, ..fields.clone() }, 22),
            "step is 11, must be at least 12 for 4 pixels of rgb8",
        ),
        (image(&fields, 23), "data has 23 bytes, must be step * height = 12 * 2"),
        (image(&fields, 36), "data has 36 bytes, must be step * height = 12 * 2"),
        (image(&Fields { size: Size { width: 0, height: 2 }, ..fields.clone() }, 24), "width is 0"),
        (
            image(&Fields { size: Size { width: 4, height: 70_000 }, ..fields.clone() }, 24),
            "height is 70000",
        ),
        (
            image(&Fields { encoding: "bayer_rggb8", ..fields.clone() }, 24),
            "pixels of encoding \"bayer_rggb8\" are not scaled; request the full size",
        ),
        (image(&Fields { encoding: "32FC1", ..fields.clone() }, 24), "\"32FC1\" are not scaled"),
        (
            image(
                &Fields { encoding: "yuyv", size: Size { width: 3, height: 2 }, ..fields.clone() },
                24,
            ),
            "a picture of 3x2 cannot be yuyv",
        ),
        (
            scale(RosMessage::Image, &[0, 3, 0, 0, 1], 1, 1).unwrap_err(),
            "its encapsulation is 0x0003, not plain CDR",
        ),
        (scale(RosMessage::Image, &good[..40], 1, 1).unwrap_err(), "it ends within its"),
        (
            scale(RosMessage::Image, &[&good[..], &[0; 4]].concat(), 1, 1).unwrap_err(),
            "4 bytes follow its last field",
        ),
        (
            scale(RosMessage::Image, &good, 5, 1).unwrap_err(),
            "size 5x1 is above the source size 4x2",
        ),
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert!(scale(RosMessage::Image, &[&good[..], &[0; 3]].concat(), 1, 1).is_ok(), "padding");
}

#[test]
fn a_message_that_is_cut_off_anywhere_is_an_error() {
    let fields = Fields::new("rgb8", (4, 2), 12);
    let good = fields.message(&[0; 24]);
    for message in [RosMessage::Image, RosMessage::CompressedImage] {
        let whole = match message {
            RosMessage::Image => good.clone(),
            RosMessage::CompressedImage => compressed(false, "jpeg", &[0xff, 0xd8]),
        };
        for cut in 0..whole.len() {
            let error = picture_size(message, &whole[..cut]).unwrap_err().to_string();
            assert!(
                error.starts_with(message.name()) && error.contains("it ends within"),
                "{error}"
            );
        }
    }
    // Kinds that are not scaled have a size all the same, which refusals name.
    let depth = Fields { encoding: "16UC1", ..fields }.message(&[0; 24]);
    assert_eq!(picture_size(RosMessage::Image, &depth), Ok(Size { width: 4, height: 2 }));
    assert_eq!(is_scalable(RosMessage::Image, &depth), Some(false));
    assert_eq!(is_scalable(RosMessage::Image, &good), Some(true));
    assert_eq!(is_scalable(RosMessage::Image, &good[1..]), None);
}

proptest! {
    /// Any frame name, padding and size: the header stays, and the pixels are those of the same picture without a message.
    #[test]
    fn an_image_is_scaled_as_its_pixels_are(
        frame in "[a-z/]{0,9}", big in any::<bool>(), padding in 0..9_usize,
        width in 1..40_u32, height in 1..30_u32, to in (0..100_u32, 0..100_u32), seed in any::<u8>(),
    ) {
        let row = width as usize * 3;
        let (rows, step) = (height as usize, row + padding);
        let pixels: Vec<u8> = (0..row * rows).map(|at| (at * 7).to_le_bytes()[0] ^ seed).collect();
        let padded: Vec<u8> = pixels.chunks(row).flat_map(|row| [row, &vec![255; padding]].concat()).collect();
        let fields = Fields { big, frame, ..Fields::new("rgb8", (width, height), step) };
        let to = Size { width: 1 + to.0 * (width - 1) / 100, height: 1 + to.1 * (height - 1) / 100 };
        let scaled = scale(RosMessage::Image, &fields.message(&padded), to.width, to.height).unwrap();
        let plain = Scaler::new().scale(&Format::Rgb8(fields.size), &pixels, to).unwrap();
        if to == fields.size {
            prop_assert_eq!(scaled, fields.message(&padded), "unchanged");
        } else {
            let made = Fields { size: to, step: to.width as usize * 3, ..fields };
            prop_assert_eq!(scaled, made.message(&plain));
        }
    }
}
