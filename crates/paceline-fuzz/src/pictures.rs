//! Fuzz bodies for pictures, picture files, and the names of their formats.

use paceline_media::audio::AudioFormat;
use paceline_media::ros::{RosMessage, RosPicture};
use paceline_media::{
    Format, MediaError, Picture, PixelFormat, Scaler, Size, Y4mReader, Y4mWriter, jpeg as codec,
    mjpeg as file, ros as messages,
};

/// Pictures with more pixels are skipped: they take time and find nothing new.
const PIXELS_MAX: u64 = 1 << 20;

/// Checks the size, the pixels and scaled versions of a JPEG picture.
pub fn jpeg(data: &[u8]) {
    let Ok(size) = codec::dimensions(data) else {
        assert!(codec::decode(data, PixelFormat::I420).is_err());
        return;
    };
    if size.pixels() > PIXELS_MAX {
        return;
    }
    let planes = codec::decode(data, PixelFormat::I420);
    for decoded in [&planes, &codec::decode(data, PixelFormat::Rgb8)].into_iter().flatten() {
        assert_eq!(decoded.size(), size);
        let len = decoded.format().payload_len(size);
        assert_eq!(u64::try_from(decoded.bytes().len()), Ok(len));
    }
    let mut scaler = Scaler::new();
    let wider = Size { width: size.width + 1, ..size };
    let refused = scaler.scale(&Format::Jpeg, data, wider);
    assert!(refused.is_err(), "nothing is made larger");
    for divisor in [2, 7, 16_384] {
        let to =
            Size { width: (size.width / divisor).max(1), height: (size.height / divisor).max(1) };
        if to == size {
            continue;
        }
        let scaled = scaler.scale(&Format::Jpeg, data, to);
        assert_eq!(scaled.is_ok(), planes.is_ok(), "{size} to {to}: {:?}", scaled.err());
        if let Ok(scaled) = scaled {
            assert_eq!(codec::dimensions(&scaled), Ok(to));
        }
    }
}

/// Checks the size, the pixels and a scaled version of the picture in a message of ROS 2.
pub fn ros(data: &[u8]) {
    for message in [RosMessage::Image, RosMessage::CompressedImage] {
        let Ok(size) = messages::picture_size(message, data) else {
            // Bytes that begin like JPEG or PNG are returned as they are.
            let returned = messages::picture(message, data).is_ok();
            assert!(!returned || message == RosMessage::CompressedImage);
            continue;
        };
        if size.pixels() > PIXELS_MAX {
            continue;
        }
        let scalable = messages::is_scalable(message, data);
        let picture = messages::picture(message, data);
        match picture {
            Ok(RosPicture::Pixels(rgb)) => assert_eq!((rgb.size(), scalable), (size, Some(true))),
            // A coded picture is returned as it is, also one that cannot be decoded.
            Ok(RosPicture::Jpeg(_) | RosPicture::Png(_)) => {
                assert_eq!(message, RosMessage::CompressedImage);
            }
            Err(error) => assert_eq!(scalable, Some(false), "{error}"),
        }
        let (format, mut scaler) = (Format::Ros(message), Scaler::new());
        let wider = Size { width: size.width + 1, ..size };
        assert!(scaler.scale(&format, data, wider).is_err(), "nothing is made larger");
        let to = Size { width: size.width.div_ceil(2), height: size.height.div_ceil(3) };
        if let Ok(scaled) = scaler.scale(&format, data, to) {
            assert_eq!(scalable, Some(true));
            assert_eq!(messages::picture_size(message, &scaled), Ok(to));
            assert_eq!(scaler.scale(&format, &scaled, to), Ok(scaled.clone()), "it stays");
            // Encapsulation, stamp, and the length of the frame.
            assert_eq!(scaled.get(4..16), data.get(4..16), "the header stays");
        }
    }
}

/// Checks that the pieces of a file of JPEG pictures are whole, and contiguous except for damaged places.
pub fn mjpeg(data: &[u8]) {
    let mut split = file::split(data);
    let mut end = 0;
    while let Some(item) = split.next() {
        let Ok(picture) = item else {
            assert!(split.offset() > end, "an error stands for at least one byte");
            end = split.offset();
            continue;
        };
        assert!(picture.starts_with(&[0xff, 0xd8]) && picture.ends_with(&[0xff, 0xd9]));
        let begin = split.offset() - picture.len();
        assert!(begin >= end && data[end..begin].iter().all(|&byte| byte == 0));
        assert_eq!(&data[begin..split.offset()], picture);
        end = split.offset();
        let _ = codec::dimensions(picture);
    }
    assert!(data[end..].iter().all(|&byte| byte == 0), "nothing is left over");
}

/// Checks that an uncompressed video file survives a write and a second read unchanged.
pub fn y4m(data: &[u8]) {
    let Ok(reader) = Y4mReader::new(data) else { return };
    let writer = Y4mWriter::new(reader.size(), reader.rate()).unwrap();
    let mut out = Vec::new();
    writer.append_header(&mut out);
    let mut pictures: Vec<Picture<'_>> = Vec::new();
    for item in reader.clone() {
        match item {
            Ok(picture) => {
                writer.append_frame(&picture, &mut out).unwrap();
                pictures.push(picture);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    let again = Y4mReader::new(&out).unwrap();
    assert_eq!((again.size(), again.rate()), (reader.size(), reader.rate()));
    let again: Result<Vec<_>, MediaError> = again.collect();
    assert_eq!(again.as_deref(), Ok(&pictures[..]));
}

/// Checks that a parsed format or size prints as the text that parses to the same value.
pub fn encoding(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match text.parse::<Format>() {
        Ok(format) => {
            assert_eq!(format.to_string().parse(), Ok(format));
            let _ = format.picture_size(data);
        }
        Err(error) => assert!(error.to_string().len() < 1_000, "an error is one line"),
    }
    match text.parse::<AudioFormat>() {
        Ok(format) => assert_eq!(format.to_string().parse(), Ok(format)),
        Err(error) => assert!(error.to_string().len() < 1_000, "an error is one line"),
    }
    match text.parse::<Size>() {
        Ok(size) => assert_eq!((size.check(), size.to_string().parse()), (Ok(()), Ok(size))),
        Err(error) => assert!(error.to_string().len() < 1_000, "an error is one line"),
    }
}
