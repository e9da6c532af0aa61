//! Granted forms lose no picture, whatever it shows.
#![expect(
    clippy::cast_possible_truncation,
    clippy::wildcard_enum_match_arm,
    reason = "sources of noise are short, and other kinds of samples pass unchanged"
)]

use super::super::ring;
use super::*;
use crate::shell::port::{Announcements, RingEnd};
use crossbeam_queue::ArrayQueue;
use openh264::OpenH264API;
use openh264::encoder::{BitRate, Encoder, EncoderConfig, QpRange};
use openh264::formats::YUVSlices;
use paceline_media::{Picture, PixelFormat, jpeg, png};
use paceline_proto::control::PublisherSpec;
use paceline_proto::form::Audio;
use paceline_proto::{Encoding, Kind, Size, Tag, Timestamp};
use paceline_sched::Instant;
use paceline_sched::discipline::StreamIndex;
use std::num::NonZeroU32;

/// The period of all sources.
const PERIOD: Duration = Duration::from_millis(40);
/// The number of different source pictures, which repeat.
const SOURCES: usize = 40;

/// Random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.0 ^ self.0 >> 33) >> 7
    }

    fn from(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    /// Returns noise of one of four kinds: uniform, black and white, large squares of it, or next to nothing.
    fn noise(&mut self, size: Size, channels: usize) -> Vec<u8> {
        let (kind, cell) = (self.next() % 4, 1 + self.next() % 24);
        let width = u64::from(size.width) * channels as u64;
        let salt = self.next();
        let pixel = |at: u64| match kind {
            0 => Self(at ^ salt).next() as u8,
            1 => (Self(at ^ salt).next() % 2 * 255) as u8,
            2 => {
                let (x, y) = (at % width / channels as u64 / cell, at / width / cell);
                (Self((y << 20 | x) ^ salt).next() % 2 * 255) as u8
            }
            _ => (salt % 256) as u8,
        };
        (0..width * u64::from(size.height)).map(pixel).collect()
    }
}

/// A publisher of noise.
struct Source {
    spec: PublisherSpec,
    samples: Vec<Vec<u8>>,
}

/// The coders of pictures and video.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Coded {
    Jpeg,
    Png,
    Ros,
    Raw,
    H264,
}

fn media(size: Size) -> paceline_media::Size {
    paceline_media::Size::new(size.width, size.height).unwrap()
}

/// Returns a message of ROS 2 with a compressed picture.
fn ros(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0];
    for text in [&b"camera_optical_frame\0"[..], b"rgb8; png compressed\0"] {
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend((text.len() as u32).to_le_bytes());
        out.extend_from_slice(text);
    }
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend((data.len() as u32).to_le_bytes());
    out.extend_from_slice(data);
    out
}

/// Returns noise with the lowest of some quantizers at which openh264 encodes it: its buffer has room for about 12 bits
/// per pixel.
fn film(size: Size, random: &mut Random) -> Vec<Vec<u8>> {
    [28, 34, 40, 46].into_iter().find_map(|least| film_from(least, size, random)).unwrap()
}

fn film_from(least: u8, size: Size, random: &mut Random) -> Option<Vec<Vec<u8>>> {
    let config = EncoderConfig::new().qp(QpRange::new(least, 51)).skip_frames(false).num_threads(1);
    let config = config.bitrate(BitRate::from_bps(50_000_000));
    let mut encoder = Encoder::with_api_config(OpenH264API::from_source(), config).unwrap();
    let (width, height) = (size.width as usize, size.height as usize);
    let mut unit = |at: usize| {
        if at == 0 {
            encoder.force_intra_frame();
        }
        let noise = random.noise(Size { height: size.height / 2 * 3, ..size }, 1);
        let (luma, chroma) = noise.split_at(width * height);
        let (cb, cr) = chroma.split_at(width * height / 4);
        let picture =
            YUVSlices::new((luma, cb, cr), (width, height), (width, width / 2, width / 2));
        Some(encoder.encode(&picture).ok()?.to_vec())
    };
    (0..SOURCES).map(&mut unit).collect()
}

impl Source {
    fn new(coded: Coded, size: Size, random: &mut Random) -> Self {
        let mut picture = |_| {
            let noise = random.noise(size, 3);
            let picture = Picture::new(PixelFormat::Rgb8, media(size), &noise).unwrap();
            match coded {
                Coded::Jpeg => jpeg::encode(&picture, 90).unwrap(),
                Coded::Png => png::encode(&picture).unwrap(),
                Coded::Ros if random.next().is_multiple_of(2) => {
                    ros(&jpeg::encode(&picture, 90).unwrap())
                }
                Coded::Ros => ros(&png::encode(&picture).unwrap()),
                Coded::Raw | Coded::H264 => noise,
            }
        };
        let (kind, encoding) = match coded {
            Coded::Jpeg => (Kind::Picture, "image/jpeg".to_owned()),
            Coded::Png => (Kind::Picture, "image/png".to_owned()),
            Coded::Ros => {
                (Kind::Picture, "application/cdr;sensor_msgs/msg/CompressedImage".to_owned())
            }
            Coded::Raw => {
                let format = Format::Rgb8(media(size));
                (Kind::Picture, format.to_string())
            }
            Coded::H264 => (Kind::VideoI, "video/h264".to_owned()),
        };
        let samples: Vec<_> = match coded {
            Coded::H264 => film(size, random),
            _ => (0..SOURCES).map(&mut picture).collect(),
        };
        let spec = PublisherSpec {
            kind,
            encoding: Encoding::new(&encoding),
            period: Some(PERIOD),
            size: Some(size),
            bytes_max: samples.iter().map(|sample| sample.len() as u64).max(),
            ..PublisherSpec::new(Tag::new("noise").unwrap())
        };
        Self { spec, samples }
    }

    fn sample(&self, seq: u64) -> RawSample {
        let at = usize::try_from(seq).unwrap() % SOURCES;
        let kind = match self.spec.kind {
            Kind::VideoI if at > 0 => Kind::VideoP,
            kind => kind,
        };
        let published_at = Instant::ZERO + PERIOD.mul_div(seq + 100, 1);
        RawSample {
            seq,
            captured: Timestamp { nanos: published_at.as_nanos(), error: 0 },
            shift: 0,
            published_at,
            doubt: Duration::ZERO,
            kind,
            encoding: self.spec.encoding.clone(),
            payload: self.samples[at].clone().into(),
            attachment: None,
        }
    }
}

/// An output to a link, whose samples are counted.
fn output(places: &mut Places) -> RingEnd {
    let waker = Arc::default();
    let (ready, room) = (ArrayQueue::new(4), Event::new());
    let (port, end) = ring(StreamIndex(0), Arc::new(Announcements { ready, waker, room }));
    places.open(0, Port::Ring(port));
    end
}

/// Sends `pictures` pictures in a form under a contract; returns the bytes. Panics if one is missing, or if they
/// exceed the budget.
fn send(source: &Source, form: Form, pictures: u64) -> u64 {
    let budget = source.spec.budget(form).unwrap();
    let mut places = Places::new(GroupBudget::default());
    let mut end = output(&mut places);
    let mut worker = if source.spec.kind.is_video() {
        Worker::Video(Box::new(Video::new(form, Some(PERIOD), true)))
    } else {
        Worker::Pictures(Box::new(Pictures::new(form)))
    };
    // The bytes that a leaky bucket still takes, times 25.
    let burst = budget.envelope.map_or(budget.bytes_max, |it| it.burst()) * 25;
    let (mut left, mut sum, mut sent) = (burst, 0, 0);
    for seq in 0..pictures {
        let job = Job { sample: source.sample(seq), slots: 1, past: false };
        worker.serve(job, Some(budget), &mut places);
        if seq + 1 == pictures {
            worker.finish(&mut places);
        }
        left = (left + budget.envelope.map_or(burst, |it| it.bytes_per_s())).min(burst);
        while let Ok((_, sample)) = end.consumer.pop() {
            let bytes = sample.payload.len() as u64;
            assert!(
                bytes * 25 <= left,
                "{form} {seq}: {bytes} bytes of {} ({budget:?})",
                left / 25
            );
            (left, sum, sent) = (left - bytes * 25, sum + bytes, sent + 1);
        }
    }
    let drops = end.shared.drops.take();
    assert_eq!((sent, drops.total()), (pictures, 0), "{form} of {:?}: {drops:?}", source.spec.size);
    sum
}

/// Sends noise in random sizes and budgets; returns the pictures, the bytes, and the refused bit rates.
fn noise(coded: Coded, forms: u64, pictures: u64) -> (u64, u64, u64) {
    let mut random = Random(coded as u64 + 77);
    let (mut sums, mut done) = ((0, 0, 0), 0);
    while done < forms {
        let even = |side: u64| u32::try_from(side & !1).unwrap();
        let (width, height) = (random.from(32, 160), random.from(32, 128));
        let size = Size { width: even(width), height: even(height) };
        let source = Source::new(coded, size, &mut random);
        for _ in 0..8.min(forms - done) {
            let least = if coded == Coded::H264 { 16 } else { 2 };
            let mut side = |most: u32| even(random.from(least, u64::from(most)));
            let to = Size { width: side(size.width), height: side(size.height) };
            // Near the least bit rate in most cases.
            let bits = random.from(500, 1_500) + random.next() % 3 * 500;
            let form = Form { size: Some(to), ..Form::FULL };
            let form = source.spec.form_of(form);
            let least = source.spec.least_bitrate(form).unwrap_or(0);
            let bits = u32::try_from(least * bits / 1_000).ok().and_then(NonZeroU32::new);
            let limited = random.next().is_multiple_of(2);
            let form = source.spec.form_of(Form { bitrate: bits.filter(|_| limited), ..form });
            done += 1;
            if form.bitrate.is_some_and(|bits| u64::from(bits.get()) < least) {
                sums.2 += 1;
                continue;
            }
            sums.1 += send(&source, form, pictures);
            sums.0 += pictures;
        }
    }
    sums
}

#[test]
fn noise_fits_every_budget_that_is_granted() {
    for (coded, forms) in
        [(Coded::Jpeg, 40), (Coded::Png, 10), (Coded::Ros, 10), (Coded::Raw, 20), (Coded::H264, 24)]
    {
        let (pictures, bytes, refused) = noise(coded, forms, 60);
        println!("{coded:?}: {pictures} pictures, {bytes} bytes, {refused} bit rates refused");
        assert!(pictures > 0 && bytes > 0, "{coded:?}");
    }
}

fn a_thousand_fit(coded: Coded) {
    let (pictures, bytes, refused) = noise(coded, 200, 1_000);
    println!("{coded:?}: {pictures} pictures, {bytes} bytes, {refused} bit rates refused, 0 drops");
    assert_eq!(pictures + refused * 1_000, 200_000);
}

#[test]
#[ignore = "minutes: cargo xtask long runs it"]
fn a_thousand_pictures_of_noise_fit_every_budget_of_jpeg() {
    a_thousand_fit(Coded::Jpeg);
}

#[test]
#[ignore = "minutes: cargo xtask long runs it"]
fn a_thousand_pictures_of_noise_fit_every_budget_of_png() {
    a_thousand_fit(Coded::Png);
}

#[test]
#[ignore = "minutes: cargo xtask long runs it"]
fn a_thousand_pictures_of_noise_fit_every_budget_of_ros() {
    a_thousand_fit(Coded::Ros);
}

#[test]
#[ignore = "minutes: cargo xtask long runs it"]
fn a_thousand_pictures_of_noise_fit_every_budget_of_raw_pictures() {
    a_thousand_fit(Coded::Raw);
}

#[test]
#[ignore = "minutes: cargo xtask long runs it"]
fn a_thousand_pictures_of_noise_fit_every_budget_of_h264() {
    a_thousand_fit(Coded::H264);
}

/// Blocks of noise in any duration from 2.5 to 120 ms become packets within the budget of their bit rate.
#[test]
fn noise_as_sound_fits_its_bit_rate() {
    let mut random = Random(5);
    for _ in 0..40 {
        let rate = [8_000, 16_000, 44_100, 48_000][random.from(0, 3) as usize];
        let bits = random.from(6_000, 128_000);
        let frames = rate * random.from(3, 120) / 1_000;
        let encoding = format!("audio/pcm;format=s16le;rate={rate};channels=1");
        let spec = PublisherSpec {
            kind: Kind::Audio,
            encoding: Encoding::new(&encoding),
            period: Some(Duration::from_nanos(frames * 1_000_000_000 / rate)),
            bytes_max: Some(frames * 2),
            ..PublisherSpec::new(Tag::new("noise").unwrap())
        };
        let bitrate = NonZeroU32::new(u32::try_from(bits).unwrap());
        let form = spec.form_of(Form { bitrate, audio: None::<Audio>, ..Form::FULL });
        let (budget, mut places) = (spec.budget(form), Places::new(GroupBudget::default()));
        let mut end = output(&mut places);
        let mut sound = Sound::new(&form);
        for seq in 0..100 {
            let samples = (0..frames * 2).map(|_| random.next() as u8).collect::<Vec<_>>();
            let published_at = Instant::ZERO + spec.period.unwrap().mul_div(seq + 100, 1);
            let sample = RawSample {
                seq,
                captured: Timestamp { nanos: 0, error: 0 },
                shift: 0,
                published_at,
                doubt: Duration::ZERO,
                kind: Kind::Audio,
                encoding: spec.encoding.clone(),
                payload: samples.into(),
                attachment: None,
            };
            sound.serve(&Job { sample, slots: 1, past: false }, budget, &mut places);
            while let Ok((_, sample)) = end.consumer.pop() {
                assert!(sample.payload.len() as u64 <= budget.unwrap().bytes_max);
            }
        }
        assert_eq!(end.shared.drops.take().total(), 0, "{encoding}: {frames} frames, {bits} bit/s");
    }
}

/// The least budgets of the scheduler are those that the coders state.
#[test]
fn the_least_budgets_are_those_of_the_coders() {
    let mut random = Random(3);
    for coded in [Coded::Jpeg, Coded::Png, Coded::H264] {
        let size = Size { width: 64, height: 48 };
        let mut spec = Source::new(coded, size, &mut random).spec;
        for _ in 0..1_000 {
            let (width, height) = (random.from(1, 4_000) as u32, random.from(1, 2_000) as u32);
            spec.size = Some(Size { width, height });
            let (size, bits) = (media(spec.size.unwrap()), spec.least_bitrate(Form::FULL).unwrap());
            match coded {
                Coded::Jpeg => assert_eq!(bits, paceline_media::jpeg_bytes_min(size) * 8 * 25),
                Coded::Png => assert_eq!(bits, paceline_media::png_bytes_min(size) * 8 * 25),
                _ => {
                    let key = paceline_media::h264::key_bytes_min(size) * 8;
                    assert!(bits >= key * 8 / 3 && bits >= key / 2, "{size}: {bits}");
                }
            }
        }
    }
}
