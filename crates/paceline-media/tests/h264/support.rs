//! Test streams, and a plain decoder for checking the results.

use openh264::OpenH264API;
use openh264::decoder::{DecodedYUV, Decoder, DecoderConfig, Flush};
use openh264::encoder::{BitRate, Encoder, EncoderConfig, Profile, RateControlMode};
use openh264::formats::{YUVSlices, YUVSource};
use paceline_media::h264::{Class, Classifier, Event, Transcoder, split};
use paceline_media::{Picture, PixelFormat, Size, TestCard, read_card};

pub(crate) fn size(text: &str) -> Size {
    text.parse().unwrap()
}

/// The encoding parameters of a generated stream.
#[derive(Clone, Copy)]
pub(crate) struct Made {
    pub(crate) size: &'static str,
    pub(crate) pictures: u64,
    /// The pictures from one I picture to the next.
    pub(crate) every: u64,
    /// The bytes per slice, if pictures are cut into slices.
    pub(crate) slice: Option<u32>,
    pub(crate) bits: u32,
    pub(crate) profile: Profile,
}

pub(crate) const MADE: Made = Made {
    size: "320x240",
    pictures: 30,
    every: 10,
    slice: None,
    bits: 2_000_000,
    profile: Profile::Baseline,
};

impl Made {
    /// Returns test cards number 0, 1, .. as units.
    pub(crate) fn units(self) -> Vec<Vec<u8>> {
        let mut config = EncoderConfig::new()
            .profile(self.profile)
            .rate_control_mode(RateControlMode::Bitrate)
            .bitrate(BitRate::from_bps(self.bits))
            .skip_frames(false)
            .num_threads(1);
        if let Some(bytes) = self.slice {
            config = config.max_slice_len(bytes);
        }
        let api = OpenH264API::from_source();
        let mut encoder = Encoder::with_api_config(api, config).unwrap();
        let mut card = TestCard::new(size(self.size)).unwrap();
        let (width, height) = sides(card.size());
        let mut unit = |number: u64| {
            if number.is_multiple_of(self.every) {
                encoder.force_intra_frame();
            }
            let [luma, cb, cr] = card.draw(number, number * 40_000).planes().unwrap();
            let strides = (width, width / 2, width / 2);
            let picture = YUVSlices::new((luma, cb, cr), (width, height), strides);
            encoder.encode(&picture).unwrap().to_vec()
        };
        (0..self.pictures).map(&mut unit).collect()
    }
}

pub(crate) fn sides(size: Size) -> (usize, usize) {
    (size.width as usize, size.height as usize)
}

/// A decoded picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) size: Size,
    /// The number in its test card.
    pub(crate) card: Option<u64>,
    /// The checksum of its luma.
    pub(crate) sum: u64,
}

fn shown(picture: &DecodedYUV<'_>) -> Shown {
    let (width, height) = picture.dimensions();
    let (stride, _, _) = picture.strides();
    let luma: Vec<u8> =
        picture.y().chunks(stride).take(height).flat_map(|row| &row[..width]).copied().collect();
    let fnv = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let sum = luma.iter().fold(0xcbf2_9ce4_8422_2325, fnv);
    let side = |side: usize| u32::try_from(side).unwrap();
    let size = Size::new(side(width), side(height)).unwrap();
    let samples = [luma, vec![128; width * height / 2]].concat();
    let card = read_card(&Picture::new(PixelFormat::I420, size, &samples).unwrap());
    Shown { size, card: card.map(|reading| reading.frame), sum }
}

/// Decodes units with a plain decoder. Returns pictures in presentation order, and the number of units
/// that it rejected.
pub(crate) fn decode<'a>(units: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Shown>, usize) {
    let config = DecoderConfig::new().flush_after_decode(Flush::NoFlush);
    let mut decoder = Decoder::with_api_config(OpenH264API::from_source(), config).unwrap();
    let (mut pictures, mut refused) = (Vec::new(), 0);
    for unit in units {
        match decoder.decode(unit) {
            Ok(picture) => pictures.extend(picture.iter().map(shown)),
            Err(_) => refused += 1,
        }
    }
    pictures.extend(decoder.flush_remaining().unwrap().iter().map(shown));
    (pictures, refused)
}

/// The results of a stream in a transcoder.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) events: Vec<Event>,
    /// The numbers with which `wanted` was called.
    pub(crate) asked: Vec<u64>,
}

impl Output {
    pub(crate) fn coded(&self) -> Vec<(Class, &[u8])> {
        let coded = self.events.iter().filter_map(|event| match event {
            Event::Coded { class, bytes } => Some((*class, bytes.as_slice())),
            Event::Passed | Event::OverLimit | Event::Failed(_) => None,
        });
        coded.collect()
    }

    pub(crate) fn failed(&self) -> Vec<String> {
        let failed = self.events.iter().filter_map(|event| match event {
            Event::Failed(error) => Some(error.to_string()),
            Event::Passed | Event::OverLimit | Event::Coded { .. } => None,
        });
        failed.collect()
    }

    /// Returns the decoded pictures of the encoded units.
    pub(crate) fn shown(&self) -> Vec<Shown> {
        let (pictures, refused) = decode(self.coded().into_iter().map(|(_, bytes)| bytes));
        assert_eq!(refused, 0);
        pictures
    }
}

/// Pushes units and flushes at the end; checks that each unit has one event.
pub(crate) fn transcode<'a>(
    transcoder: &mut Transcoder,
    units: impl IntoIterator<Item = &'a [u8]>,
    wanted: impl Fn(u64) -> bool,
) -> Output {
    let (mut events, mut asked, mut pushed) = (Vec::new(), Vec::new(), 0);
    let mut want = |number| {
        asked.push(number);
        wanted(number).into()
    };
    for unit in units {
        let class = classify(unit).unwrap_or(Class::P);
        transcoder.push(unit, class, &mut want, &mut |event| events.push(event));
        pushed += 1;
        assert!(events.len() <= pushed, "more events than units");
    }
    transcoder.flush(&mut want, &mut |event| events.push(event));
    assert_eq!(events.len(), pushed, "one event for each unit");
    Output { events, asked }
}

/// Returns the class of a unit without any unit before it.
pub(crate) fn classify(unit: &[u8]) -> Result<Class, paceline_media::MediaError> {
    Classifier::new().classify(unit)
}

pub(crate) fn classes<'a>(units: impl IntoIterator<Item = &'a [u8]>) -> String {
    let letter = |unit: &[u8]| match classify(unit).unwrap() {
        Class::I => 'I',
        Class::P => 'P',
        Class::B => 'B',
        Class::Leading => 'L',
    };
    units.into_iter().map(letter).collect()
}

/// Returns the units of a complete stream.
pub(crate) fn cut(stream: &[u8]) -> Vec<&[u8]> {
    split(stream).map(|unit| unit.unwrap().bytes).collect()
}

pub(crate) fn slices(units: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    units.iter().map(Vec::as_slice)
}
