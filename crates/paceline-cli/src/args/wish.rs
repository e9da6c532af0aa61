//! What is asked of the samples, for the commands that subscribe, look or ask.

use crate::args;
use paceline::{LossTolerance, SubscribeError, SubscriberBuilder};
use paceline_media::Size;
use std::time::Duration;

/// At which rate and size, how soon, and how much of it may miss.
#[derive(Debug, clap::Args)]
pub(crate) struct WishArgs {
    /// One sample in N; 1 is every sample
    #[arg(long, value_name = "N", value_parser = args::every)]
    pub(crate) every: Option<u32>,
    /// At most this many samples per second, evenly spread
    #[arg(long, value_name = "HZ", value_parser = args::rate, conflicts_with = "every")]
    pub(crate) max_hz: Option<f64>,
    /// Pictures of this size, at most the publisher's
    #[arg(long, value_name = "WxH", value_parser = args::size)]
    pub(crate) size: Option<Size>,
    /// Sound with this many samples per second and channels, such as 8000x1
    #[arg(long, value_name = "RATExCHANNELS", value_parser = args::audio)]
    pub(crate) audio: Option<(u32, u8)>,
    /// The delay bound in milliseconds, from publish to delivery
    #[arg(long, value_name = "MS", value_parser = args::within)]
    pub(crate) within: Option<Duration>,
    /// Of each Y samples at most X may be late or lost
    #[arg(long, value_name = "X/Y")]
    pub(crate) loss: Option<LossTolerance>,
}

impl WishArgs {
    /// True if a promise is asked for.
    pub(crate) const fn promises(&self) -> bool {
        self.within.is_some() || self.loss.is_some()
    }

    /// True if a rate, a size or a sound is asked for.
    pub(crate) const fn says_form(&self) -> bool {
        self.every.is_some() || self.max_hz.is_some() || self.size.is_some() || self.audio.is_some()
    }

    /// Asks for it.
    pub(crate) fn apply<'a>(
        &self,
        mut builder: SubscriberBuilder<'a>,
    ) -> Result<SubscriberBuilder<'a>, SubscribeError> {
        if let Some(n) = self.every {
            builder = builder.every(n)?;
        }
        if let Some(hz) = self.max_hz {
            builder = builder.max_hz(hz)?;
        }
        if let Some(size) = self.size {
            builder = builder.size(size.width, size.height)?;
        }
        if let Some((rate, channels)) = self.audio {
            builder = builder.audio(rate, channels)?;
        }
        if let Some(bound) = self.within {
            builder = builder.within(bound)?;
        }
        if let Some(loss) = self.loss {
            builder = builder.loss(loss.x(), loss.y())?;
        }
        Ok(builder)
    }
}
