use super::*;
use crate::{Format, MediaError, Scaler};

const READINGS: [CardReading; 4] = [
    CardReading { frame: 0, micros: 0 },
    CardReading { frame: 123_456, micros: 1_753_520_400_123_456 },
    CardReading { frame: 0x5555_aaaa_0f0f_3333, micros: 0xcccc_1234_5678_9abc },
    CardReading { frame: u64::MAX, micros: u64::MAX },
];

fn size(width: u32, height: u32) -> Size {
    Size::new(width, height).unwrap()
}

#[test]
fn readings_are_exact_at_every_scale_raw() {
    let mut scaler = Scaler::new();
    for from in [size(640, 480), size(1280, 720), size(320, 240), size(641, 363)] {
        let mut card = TestCard::new(from).unwrap();
        for reading in READINGS {
            let picture = card.draw(reading.frame, reading.micros);
            assert_eq!(read_card(&picture), Some(reading));
            for part in [1, 2, 3, 4] {
                let to = size(from.width / part, from.height / part);
                for (format, bytes) in [
                    (Format::I420(from, None), picture.bytes().to_vec()),
                    (Format::Rgb8(from), picture.to_rgb8().into_bytes()),
                ] {
                    let bytes = scaler.scale(&format, &bytes, to).unwrap();
                    let rgb = matches!(format, Format::Rgb8(_));
                    let pixels = if rgb { PixelFormat::Rgb8 } else { PixelFormat::I420 };
                    let scaled = Picture::new(pixels, to, &bytes).unwrap();
                    assert_eq!(read_card(&scaled), Some(reading), "{from} to {to} as {format}");
                }
            }
        }
    }
}

#[test]
fn readings_are_exact_at_every_scale_and_quality_jpeg() {
    let mut scaler = Scaler::new();
    for from in [size(640, 480), size(1280, 720), size(320, 240)] {
        let mut card = TestCard::new(from).unwrap();
        for reading in READINGS {
            for quality in [30, 80] {
                let payload = card.draw_jpeg(reading.frame, reading.micros, quality).unwrap();
                assert_eq!(read_card_jpeg(&payload), Ok(Some(reading)));
                scaler.set_quality(quality).unwrap();
                for to in [(2, 2), (4, 4), (4, 2), (3, 3)] {
                    let to = size(from.width / to.0, from.height / to.1);
                    let scaled = scaler.scale(&Format::Jpeg, &payload, to).unwrap();
                    let found = read_card_jpeg(&scaled);
                    assert_eq!(found, Ok(Some(reading)), "{from} to {to} at {quality}");
                }
            }
        }
    }
}

#[test]
fn the_smallest_card_can_be_halved() {
    let mut card = TestCard::new(SIZE_MIN).unwrap();
    let payload = card.draw_jpeg(9, 8, 80).unwrap();
    let scaled = Scaler::new().scale(&Format::Jpeg, &payload, size(80, 60)).unwrap();
    assert_eq!(read_card_jpeg(&scaled), Ok(Some(CardReading { frame: 9, micros: 8 })));
    let error = TestCard::new(size(159, 120)).unwrap_err();
    assert_eq!(error, MediaError::CardSize { size: size(159, 120), min: SIZE_MIN });
    assert_eq!(
        error.to_string(),
        "test card size 159x120 is below 160x120; choose at least 160 wide and 120 high"
    );
    assert!(TestCard::new(Size { width: 20_000, height: 200 }).is_err());
}

#[test]
fn a_card_costs_about_as_much_as_a_camera_scene() {
    let mut card = TestCard::new(size(640, 480)).unwrap();
    for frame in [0, 17, 1_000_003] {
        let len = card.draw_jpeg(frame, 1_753_520_400_123_456, 80).unwrap().len();
        assert!((30_000..45_000).contains(&len), "{len}");
    }
}

#[test]
fn a_card_depends_on_its_numbers_only() {
    let mut used = TestCard::new(size(322, 243)).unwrap();
    used.draw(u64::MAX, u64::MAX);
    let mut fresh = TestCard::new(size(322, 243)).unwrap();
    assert_eq!(used.draw(3, 4), fresh.draw(3, 4));
    let bars = 322 * 100;
    let before = fresh.draw(3, 4).bytes()[..bars].to_vec();
    assert_ne!(before, fresh.draw(4, 4).bytes()[..bars], "the bars move");
}

#[test]
fn other_pictures_are_not_cards() {
    for value in [0, 128, 255] {
        let mut picture = PictureBuf::grey(PixelFormat::I420, size(320, 240)).unwrap();
        picture.bytes_mut().fill(value);
        assert_eq!(read_card(&picture.as_picture()), None);
    }
    let tiny = PictureBuf::grey(PixelFormat::Rgb8, size(1, 1)).unwrap();
    assert_eq!(read_card(&tiny.as_picture()), None);
    assert!(read_card_jpeg(b"no").is_err());
}

#[test]
fn time_of_day_wraps_after_a_day() {
    assert_eq!(time_of_day(45_296_789_999), "12:34:56.789");
    assert_eq!(time_of_day(86_400_000_000), "00:00:00.000");
}
