//! The QoS options shared by the commands that subscribe, observe or ask.

use crate::args;
use crate::exit;
use crate::stats::round3;
use paceline::contract::{IMPORTANCE_MAX, Rate};
use paceline::{LossTolerance, Node, Pattern, SubscriberBuilder};
use paceline_media::audio::{AudioFormat, OpusFormat};
use paceline_media::{Format, Size};
use std::time::Duration;

/// The requested rate, size, delay bound and loss tolerance.
#[derive(Debug, clap::Args)]
pub struct WishArgs {
    /// One sample in N; 1 is every sample
    #[arg(long, value_name = "N", value_parser = args::every)]
    pub every: Option<u32>,
    /// At most this many samples per second, evenly spaced; with --every, of those that remain
    #[arg(long, value_name = "HZ", value_parser = args::rate)]
    pub max_hz: Option<f64>,
    /// The contract may be reduced down to this rate, step by step, and is restored later
    #[arg(long, value_name = "HZ", value_parser = args::rate)]
    pub min_hz: Option<f64>,
    /// Picture size, at most the publisher's; smaller ones after it are accepted too: 640x480,320x240
    #[arg(long = "size", value_name = "WxH", value_parser = args::size, value_delimiter = ',')]
    pub sizes: Vec<Size>,
    /// Sample rate and channels of sound, such as 8000x1
    #[arg(long, value_name = "RATExCHANNELS", value_parser = args::audio)]
    pub audio: Option<(u32, u8)>,
    /// Bit rate of JPEG pictures, H.264 video and sound (coded as Opus), such as 500kbit; of other data, whole samples
    /// are left out. The second one of 2mbit..300kbit is accepted too
    #[arg(long, value_name = "RATE", value_parser = args::bitrates)]
    pub bitrate: Option<BitRates>,
    /// Highest quality of JPEG pictures, 1 to 100; 80 for scaled ones by default
    #[arg(long, value_name = "Q", value_parser = args::quality)]
    pub quality: Option<u8>,
    /// Delay bound from publish to delivery, such as 200ms
    #[arg(long, value_name = "TIME", value_parser = args::within)]
    pub within: Option<Duration>,
    /// Loss tolerance: in each window of Y samples at most X may be late or lost
    #[arg(long, value_name = "X/Y")]
    pub loss: Option<LossTolerance>,
    /// Importance of the contract, 0 to 100; 50 by default. Less important ones are reduced first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=i64::from(IMPORTANCE_MAX)))]
    pub importance: Option<u8>,
}

/// `--bitrate`: the requested bit rate, and the lowest one that is accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BitRates {
    /// The requested bits per second.
    pub most: u32,
    /// The accepted ones, if there are any.
    pub least: Option<u32>,
}

/// The requested rate.
#[derive(Clone, Copy, Debug)]
pub struct RequestedRate {
    /// `--max-hz`.
    pub max_hz: Option<f64>,
    /// `--every`.
    pub every: Option<u32>,
}

impl RequestedRate {
    /// Returns the rate of a form.
    pub fn of(rate: Rate) -> Self {
        Self { max_hz: rate.max_hz(), every: (rate.every.get() > 1).then_some(rate.every.get()) }
    }

    /// Returns this rate, or the rate of a form if none is requested.
    pub fn or(self, rate: Rate) -> Self {
        if self.max_hz.is_some() || self.every.is_some() { self } else { Self::of(rate) }
    }

    /// Describes the rate.
    pub fn words(self) -> String {
        match (self.every, self.max_hz.map(round3)) {
            (Some(n), Some(hz)) => format!("1 in {n}, at most {hz} Hz"),
            (Some(n), None) => format!("1 in {n}"),
            (None, Some(hz)) => format!("{hz} Hz"),
            (None, None) => "all".to_owned(),
        }
    }
}

impl WishArgs {
    /// Returns the requested rate.
    pub const fn requested_rate(&self) -> RequestedRate {
        RequestedRate { max_hz: self.max_hz, every: self.every }
    }

    /// Returns true if the options request a contract.
    pub const fn promises(&self) -> bool {
        self.within.is_some() || self.loss.is_some()
    }

    /// Returns true if the options request a rate, a picture size or a sound format.
    pub fn has_form(&self) -> bool {
        self.every.is_some() || self.max_hz.is_some() || !self.form_flags().is_empty()
    }

    /// Returns the requested picture size.
    pub fn size(&self) -> Option<Size> {
        self.sizes.first().copied()
    }

    /// Returns the requested bit rate.
    pub fn bits_per_s(&self) -> Option<u32> {
        self.bitrate.map(|rates| rates.most)
    }

    /// Returns true if the options only change the reductions that are accepted, or the importance.
    pub const fn is_elastic(&self) -> bool {
        self.min_hz.is_some() || self.importance.is_some()
    }

    /// Returns the given flags that apply to samples of certain types only.
    fn form_flags(&self) -> Vec<FormFlag> {
        let given = [
            (!self.sizes.is_empty(), FormFlag::Size),
            (self.bitrate.is_some(), FormFlag::Bitrate),
            (self.quality.is_some(), FormFlag::Quality),
            (self.audio.is_some(), FormFlag::Audio),
        ];
        given.into_iter().filter(|(given, _)| *given).map(|(_, flag)| flag).collect()
    }

    /// Checks that the publishers of a tag can serve the requested form.
    ///
    /// A pattern is not checked: it may match tags of several kinds.
    ///
    /// # Errors
    /// Returns a usage error for a picture size if the tag has no pictures, for a sound format if it has no sound, and
    /// for a bit rate that Opus lacks if it has only sound.
    pub fn check(&self, node: &Node, pattern: &Pattern) -> anyhow::Result<()> {
        let flags = self.form_flags();
        if !pattern.is_tag() || flags.is_empty() {
            return Ok(());
        }
        let sources = node.sources(pattern);
        let encodings: Vec<&str> = sources.iter().map(|source| source.encoding.as_str()).collect();
        let sound = |encoding: &&str| encoding.parse::<AudioFormat>().is_ok();
        if let Some(bits) = self.bits_per_s()
            && !encodings.is_empty()
            && encodings.iter().all(sound)
        {
            let checked = OpusFormat::check_bits(bits);
            checked.map_err(|error| exit::usage(format!("--bitrate: {error}")))?;
        }
        let wrong = contradiction(&flags, &encodings);
        wrong.map_or(Ok(()), |(flag, what)| {
            Err(exit::usage(format!("{flag}: {pattern} {what}; leave {flag} out")))
        })
    }

    /// Adds the options to a subscription.
    pub fn apply<'a>(&self, mut builder: SubscriberBuilder<'a>) -> SubscriberBuilder<'a> {
        if let Some(n) = self.every {
            builder = builder.every(n);
        }
        if let Some(hz) = self.max_hz {
            builder = builder.max_hz(hz);
        }
        if let Some(hz) = self.min_hz {
            builder = builder.min_hz(hz);
        }
        if let Some((size, smaller)) = self.sizes.split_first() {
            builder = builder.size(size.width, size.height);
            for size in smaller {
                builder = builder.or_size(size.width, size.height);
            }
        }
        if let Some((rate, channels)) = self.audio {
            builder = builder.audio(rate, channels);
        }
        if let Some(BitRates { most, least }) = self.bitrate {
            builder = builder.bitrate(most);
            if let Some(least) = least {
                builder = builder.min_bitrate(least);
            }
        }
        if let Some(quality) = self.quality {
            builder = builder.quality(quality);
        }
        if let Some(bound) = self.within {
            builder = builder.within(bound);
        }
        if let Some(loss) = self.loss {
            builder = builder.loss(loss.x(), loss.y());
        }
        if let Some(importance) = self.importance {
            builder = builder.importance(importance);
        }
        builder
    }
}

/// A flag that applies to samples of certain types only.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FormFlag {
    Size,
    Bitrate,
    Quality,
    Audio,
}

impl FormFlag {
    const fn name(self) -> &'static str {
        match self {
            Self::Size => "--size",
            Self::Bitrate => "--bitrate",
            Self::Quality => "--quality",
            Self::Audio => "--audio",
        }
    }

    /// Returns the samples that it applies to.
    const fn samples(self) -> &'static str {
        match self {
            Self::Size => "a picture",
            Self::Bitrate => "JPEG, H.264, plain sound, or data and pictures at their full size",
            Self::Quality => "image/jpeg",
            Self::Audio => "sound",
        }
    }

    /// Returns true if the flag applies to samples of `encoding`, with a picture size or without.
    fn fits(self, encoding: &str, with_size: bool) -> bool {
        let format = encoding.parse::<Format>();
        match self {
            Self::Size => format.is_ok(),
            Self::Bitrate => {
                let coded = format.is_ok_and(|it| it.has_quality() || it == Format::H264);
                let sound = encoding.parse::<AudioFormat>().is_ok();
                // Other data, and pictures that are not scaled, are left out as a whole.
                coded || sound || !with_size && !encoding.starts_with("audio/")
            }
            Self::Quality => format.is_ok_and(|it| it.has_quality()),
            Self::Audio => encoding.parse::<AudioFormat>().is_ok(),
        }
    }
}

/// Returns the flag that contradicts the encodings of all publishers of a tag, or another flag, with the reason.
fn contradiction(flags: &[FormFlag], encodings: &[&str]) -> Option<(&'static str, String)> {
    let pictures = |flag: &&FormFlag| matches!(flag, FormFlag::Size | FormFlag::Quality);
    if let (Some(other), true) = (flags.iter().find(pictures), flags.contains(&FormFlag::Audio)) {
        let other = other.name();
        let what = format!("is one tag with either pictures or sound, and {other} is for pictures");
        return Some((FormFlag::Audio.name(), what));
    }
    let first = encodings.first()?;
    let with_size = flags.contains(&FormFlag::Size);
    let fits = |flag: &FormFlag| encodings.iter().any(|encoding| flag.fits(encoding, with_size));
    let wrong = flags.iter().find(|flag| !fits(flag))?;
    Some((wrong.name(), format!("has the type {first}, which is not {}", wrong.samples())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_for_pictures_and_audio_for_sound() {
        let sound = "audio/pcm;format=s16le;rate=8000;channels=1";
        assert!(sound.parse::<AudioFormat>().is_ok());
        let (size, audio) = (FormFlag::Size, FormFlag::Audio);
        assert_eq!(contradiction(&[audio], &[sound]), None);
        assert_eq!(contradiction(&[size], &["image/jpeg"]), None);
        assert_eq!(contradiction(&[size], &[sound, "video/h264"]), None, "one of two");
        assert_eq!(contradiction(&[size], &[]), None, "no publisher yet");
        let flag =
            |flags: &[FormFlag], encodings: &[&str]| contradiction(flags, encodings).unwrap().0;
        assert_eq!(flag(&[audio], &["image/jpeg"]), "--audio");
        assert_eq!(flag(&[size], &["text/plain"]), "--size");
        assert_eq!(flag(&[size, audio], &[]), "--audio");
        let (bitrate, quality) = (FormFlag::Bitrate, FormFlag::Quality);
        assert_eq!(contradiction(&[size, bitrate], &["video/h264"]), None);
        assert_eq!(flag(&[size, bitrate], &["image/png"]), "--bitrate");
        assert_eq!(flag(&[bitrate, quality], &["video/h264"]), "--quality");
        assert_eq!(contradiction(&[bitrate, audio], &[sound]), None);
        assert_eq!(flag(&[bitrate, audio], &["image/jpeg"]), "--audio");
        assert_eq!(flag(&[quality, audio], &[sound]), "--audio");
        assert_eq!(contradiction(&[bitrate], &["image/png"]), None, "whole pictures");
        assert_eq!(contradiction(&[bitrate], &["application/octet-stream"]), None);
        assert_eq!(flag(&[bitrate], &["audio/opus;rate=48000;channels=1"]), "--bitrate");
    }
}
