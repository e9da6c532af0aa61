//! The QoS options shared by the commands that subscribe, observe or ask.

use crate::{args, exit};
use paceline::{LossTolerance, Node, Pattern, SubscriberBuilder};
use paceline_media::audio::AudioFormat;
use paceline_media::{Format, Size};
use std::time::Duration;

/// The requested rate, size, delay bound and loss tolerance.
#[derive(Debug, clap::Args)]
pub(crate) struct WishArgs {
    /// One sample in N; 1 is every sample
    #[arg(long, value_name = "N", value_parser = args::every)]
    pub(crate) every: Option<u32>,
    /// At most this many samples per second, evenly spaced
    #[arg(long, value_name = "HZ", value_parser = args::rate, conflicts_with = "every")]
    pub(crate) max_hz: Option<f64>,
    /// Picture size, at most the publisher's
    #[arg(long, value_name = "WxH", value_parser = args::size)]
    pub(crate) size: Option<Size>,
    /// Sample rate and channels of sound, such as 8000x1
    #[arg(long, value_name = "RATExCHANNELS", value_parser = args::audio)]
    pub(crate) audio: Option<(u32, u8)>,
    /// Delay bound from publish to delivery, such as 200ms
    #[arg(long, value_name = "TIME", value_parser = args::within)]
    pub(crate) within: Option<Duration>,
    /// Loss tolerance: in each window of Y samples at most X may be late or lost
    #[arg(long, value_name = "X/Y")]
    pub(crate) loss: Option<LossTolerance>,
}

/// The requested rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskedRate {
    /// `--max-hz`.
    pub(crate) max_hz: Option<f64>,
    /// `--every`.
    pub(crate) every: Option<u32>,
}

impl WishArgs {
    /// Returns the requested rate.
    pub(crate) const fn asked_rate(&self) -> AskedRate {
        AskedRate { max_hz: self.max_hz, every: self.every }
    }

    /// Returns true if the options request a contract.
    pub(crate) const fn promises(&self) -> bool {
        self.within.is_some() || self.loss.is_some()
    }

    /// Returns true if the options request a rate, a picture size or a sound format.
    pub(crate) const fn has_form(&self) -> bool {
        self.every.is_some() || self.max_hz.is_some() || self.size.is_some() || self.audio.is_some()
    }

    /// Checks that the publishers of a tag can serve the requested form.
    ///
    /// A pattern is not checked: it may match tags of several kinds.
    ///
    /// # Errors
    /// Returns a usage error for a picture size if the tag has no pictures, and for a sound format
    /// if it has no sound.
    pub(crate) fn check(&self, node: &Node, pattern: &Pattern) -> anyhow::Result<()> {
        if !pattern.is_tag() || self.size.is_none() && self.audio.is_none() {
            return Ok(());
        }
        let sources = node.sources(pattern);
        let encodings: Vec<&str> = sources.iter().map(|source| source.encoding.as_str()).collect();
        let wrong = contradiction(self.size.is_some(), self.audio.is_some(), &encodings);
        wrong.map_or(Ok(()), |(flag, what)| {
            Err(exit::usage(format!("{flag}: {pattern} {what}; leave {flag} out")))
        })
    }

    /// Adds the options to a subscription.
    pub(crate) fn apply<'a>(&self, mut builder: SubscriberBuilder<'a>) -> SubscriberBuilder<'a> {
        if let Some(n) = self.every {
            builder = builder.every(n);
        }
        if let Some(hz) = self.max_hz {
            builder = builder.max_hz(hz);
        }
        if let Some(size) = self.size {
            builder = builder.size(size.width, size.height);
        }
        if let Some((rate, channels)) = self.audio {
            builder = builder.audio(rate, channels);
        }
        if let Some(bound) = self.within {
            builder = builder.within(bound);
        }
        if let Some(loss) = self.loss {
            builder = builder.loss(loss.x(), loss.y());
        }
        builder
    }
}

/// Returns the flag that contradicts the encodings of all publishers of a tag, with the reason.
/// Also returns a flag if both flags contradict each other.
fn contradiction(size: bool, audio: bool, encodings: &[&str]) -> Option<(&'static str, String)> {
    if size && audio {
        let what = "is one tag with either pictures or sound, and --size is for pictures";
        return Some(("--audio", what.to_owned()));
    }
    let first = encodings.first()?;
    let fits = |encoding: &&str| match audio {
        true => encoding.parse::<AudioFormat>().is_ok(),
        false => encoding.parse::<Format>().is_ok(),
    };
    if !size && !audio || encodings.iter().any(fits) {
        return None;
    }
    Some(match audio {
        true => ("--audio", format!("has the type {first}, which is not sound")),
        false => ("--size", format!("has the type {first}, which is not a picture")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_for_pictures_and_audio_for_sound() {
        let sound = "audio/pcm;format=s16le;rate=8000;channels=1";
        assert!(sound.parse::<AudioFormat>().is_ok());
        assert_eq!(contradiction(false, true, &[sound]), None);
        assert_eq!(contradiction(true, false, &["image/jpeg"]), None);
        assert_eq!(contradiction(true, false, &[sound, "video/h264"]), None, "one of two");
        assert_eq!(contradiction(true, false, &[]), None, "no publisher yet");
        let flag =
            |size, audio, encodings: &[&str]| contradiction(size, audio, encodings).unwrap().0;
        assert_eq!(flag(false, true, &["image/jpeg"]), "--audio");
        assert_eq!(flag(true, false, &["text/plain"]), "--size");
        assert_eq!(flag(true, true, &[]), "--audio");
    }
}
