//! Test videos: test cards encoded as H.264, and a reference decoder.

use openh264::OpenH264API;
use openh264::decoder::{DecodedYUV, Decoder, DecoderConfig, Flush};
use openh264::encoder::{BitRate, Encoder, EncoderConfig};
use openh264::formats::{YUVSlices, YUVSource as _};
use paceline_media::{Picture, PixelFormat, Size, TestCard, read_card};

/// Encodes test cards number 0, 1, … as access units; one in `every` can be decoded alone.
pub(crate) fn film(width: u32, height: u32, pictures: u64, every: u64) -> Vec<Vec<u8>> {
    let config = EncoderConfig::new()
        .bitrate(BitRate::from_bps(width * height * 10))
        .skip_frames(false)
        .num_threads(1);
    let mut encoder = Encoder::with_api_config(OpenH264API::from_source(), config).unwrap();
    let mut card = TestCard::new(Size::new(width, height).unwrap()).unwrap();
    let (width, height) = (width as usize, height as usize);
    let mut unit = |number: u64| {
        if number.is_multiple_of(every) {
            encoder.force_intra_frame();
        }
        let [luma, cb, cr] = card.draw(number, 7).planes().unwrap();
        let strides = (width, width / 2, width / 2);
        let picture = YUVSlices::new((luma, cb, cr), (width, height), strides);
        encoder.encode(&picture).unwrap().to_vec()
    };
    (0..pictures).map(&mut unit).collect()
}

/// A decoded picture.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Shown {
    pub(crate) size: (usize, usize),
    /// The number on its test card, if it is one.
    pub(crate) card: Option<u64>,
}

fn shown(picture: &DecodedYUV<'_>) -> Shown {
    let (width, height) = picture.dimensions();
    let (stride, _, _) = picture.strides();
    let rows = picture.y().chunks(stride).take(height);
    let luma: Vec<u8> = rows.flat_map(|row| &row[..width]).copied().collect();
    let side = |side: usize| u32::try_from(side).unwrap();
    let size = Size::new(side(width), side(height)).unwrap();
    let chroma = width.div_ceil(2) * height.div_ceil(2) * 2;
    let samples = [luma, vec![128; chroma]].concat();
    let card = read_card(&Picture::new(PixelFormat::I420, size, &samples).unwrap());
    Shown { size: (width, height), card: card.map(|card| card.frame) }
}

/// Decodes access units with the reference decoder; fails the test on an error.
pub(crate) fn decode<'a>(units: impl IntoIterator<Item = &'a [u8]>) -> Vec<Shown> {
    let config = DecoderConfig::new().flush_after_decode(Flush::NoFlush);
    let mut decoder = Decoder::with_api_config(OpenH264API::from_source(), config).unwrap();
    let mut pictures = Vec::new();
    for (place, unit) in units.into_iter().enumerate() {
        match decoder.decode(unit) {
            Ok(picture) => pictures.extend(picture.iter().map(shown)),
            Err(error) => panic!("unit {place}: {error}"),
        }
    }
    pictures.extend(decoder.flush_remaining().unwrap().iter().map(shown));
    pictures
}

/// Also checks a byte stream with ffmpeg, if it is installed.
pub(crate) fn check_with_ffmpeg(test: &str, stream: &[u8], pictures: usize) {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let args = ["-v", "error", "-f", "h264", "-i", "-", "-f", "framemd5", "-"];
    let mut command = Command::new("ffmpeg");
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut ffmpeg) = command.spawn() else {
        println!("skipped: {test} by ffmpeg (it is not installed)");
        return;
    };
    let mut stdin = ffmpeg.stdin.take().unwrap();
    let stream = stream.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&stream));
    let ended = ffmpeg.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "", "{test}");
    assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), pictures, "{test}");
}
