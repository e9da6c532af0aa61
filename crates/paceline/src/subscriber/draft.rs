//! The request of a subscription before it is declared: the setters check each value, and
//! [`Draft::check`] that the values go together.

use super::choice::Choice;
use crate::check::is_name;
use crate::error::{Contradiction, SubscribeError};
use crate::history::History;
use crate::limits::{AUDIO_CHANNELS, AUDIO_RATES, SIDE_MAX, millihertz};
use crate::shell::sink::Timed;
use paceline_media::audio::OpusFormat;
use paceline_proto::control::{IDLE_MIN, Offer, SubscriptionSpec};
use paceline_proto::form::Audio;
use paceline_proto::{Form, Pattern, Proxy, Rate, Size, Tag};
use std::num::{NonZeroU8, NonZeroU32};
use std::time::Duration;

/// The default length of a subscriber's queue, in samples.
const QUEUE_SAMPLES: usize = 64;
const QUEUE_SAMPLES_MAX: usize = 65_536;
/// The lowest bit rate of pictures and video.
const BITRATE_MIN: u32 = 1_000;

/// The settings of a subscription.
pub(super) struct Draft {
    pub(super) spec: SubscriptionSpec,
    pub(super) queue: usize,
    pub(super) history: Option<History>,
    /// A limit of the rate was set; the first one replaces the rate of the request that is changed.
    limited: bool,
    /// The delivery by time.
    timing: Option<Choice>,
}

impl Draft {
    pub(super) const fn new(spec: SubscriptionSpec) -> Self {
        Self { spec, queue: QUEUE_SAMPLES, history: None, limited: false, timing: None }
    }

    pub(super) fn every(&mut self, n: u32) -> Result<(), SubscribeError> {
        let every = NonZeroU32::new(n).ok_or(SubscribeError::EveryZero)?;
        self.limit(|rate| Rate { every, ..rate });
        Ok(())
    }

    /// Sets one limit of the rate.
    fn limit(&mut self, set: impl FnOnce(Rate) -> Rate) {
        let before = if self.limited { self.spec.form.rate } else { Rate::ALL };
        self.spec.form.rate = set(before);
        self.limited = true;
    }

    /// Sets both limits of the rate. Its bit rate is that of the form.
    pub(super) fn rate(&mut self, rate: Rate) {
        self.limit(|_| Rate { bits_per_s: None, ..rate });
    }

    pub(super) fn max_hz(&mut self, hertz: f64) -> Result<(), SubscribeError> {
        let millihertz = millihertz(hertz).ok_or(SubscribeError::Rate(hertz))?;
        self.limit(|rate| rate.at_most(millihertz));
        Ok(())
    }

    /// Replaces one value of the request by the first one offered, or the rate and the size.
    pub(super) fn offered(&mut self, offer: &Offer) -> Result<(), SubscribeError> {
        let Offer { max_millihertz, size, together, bitrate, within, loss, .. } = *offer;
        let millihertz = max_millihertz.and_then(|rate| u32::try_from(rate).ok());
        if let Some(rate) = millihertz.and_then(NonZeroU32::new) {
            self.spec.form.rate.max_millihertz = Some(rate);
            if let Some(size) = size.filter(|_| together) {
                self.size(size.width, size.height)?;
            }
        } else if let Some(size) = size {
            self.size(size.width, size.height)?;
        } else if bitrate.is_some() {
            self.spec.form.bitrate = bitrate;
        } else if let Some(within) = within {
            self.within(within.into())?;
        } else if loss.is_some() {
            self.spec.loss = loss;
        }
        Ok(())
    }

    pub(super) fn proxy(&mut self, proxy: Proxy) -> Result<(), SubscribeError> {
        if let Proxy::Node(name) = &proxy
            && !is_name(name)
        {
            return Err(SubscribeError::ProxyName(name.to_string()));
        }
        self.spec.proxy = proxy;
        Ok(())
    }

    pub(super) fn size(&mut self, width: u32, height: u32) -> Result<(), SubscribeError> {
        if width == 0 || height == 0 || width > SIDE_MAX || height > SIDE_MAX {
            return Err(SubscribeError::Size { width, height });
        }
        self.spec.form.size = Some(Size { width, height });
        Ok(())
    }

    pub(super) fn audio(&mut self, rate: u32, channels: u8) -> Result<(), SubscribeError> {
        if !AUDIO_RATES.contains(&rate) || !AUDIO_CHANNELS.contains(&channels) {
            return Err(SubscribeError::Audio { rate, channels });
        }
        self.spec.form.audio = Some(Audio { rate, channels });
        Ok(())
    }

    pub(super) fn bitrate(&mut self, bits_per_s: u32) -> Result<(), SubscribeError> {
        let bitrate = NonZeroU32::new(bits_per_s).filter(|it| it.get() >= BITRATE_MIN);
        self.spec.form.bitrate = Some(bitrate.ok_or(SubscribeError::Bitrate(bits_per_s))?);
        Ok(())
    }

    pub(super) fn quality(&mut self, quality: u8) -> Result<(), SubscribeError> {
        let quality = NonZeroU8::new(quality).filter(|it| it.get() <= 100);
        self.spec.form.quality = Some(quality.ok_or(SubscribeError::Quality)?);
        Ok(())
    }

    pub(super) fn with_tag(&mut self, tag: &str) -> Result<(), SubscribeError> {
        let tag = Tag::new(tag)?;
        if tag.is_private() {
            return Err(SubscribeError::Private(tag.to_string()));
        }
        self.spec.with = Some(tag);
        Ok(())
    }

    pub(super) fn idle(&mut self, time: Duration) -> Result<(), SubscribeError> {
        let idle = paceline_sched::Duration::from(time);
        if idle < IDLE_MIN {
            return Err(SubscribeError::Idle(time));
        }
        self.spec.idle = Some(idle);
        Ok(())
    }

    pub(super) fn within(&mut self, bound: Duration) -> Result<(), SubscribeError> {
        if bound.is_zero() {
            return Err(SubscribeError::ZeroWithin);
        }
        self.spec.within = Some(bound.into());
        Ok(())
    }

    pub(super) fn queue(&mut self, samples: usize) -> Result<(), SubscribeError> {
        if samples == 0 || samples > QUEUE_SAMPLES_MAX {
            return Err(SubscribeError::Queue(samples));
        }
        self.queue = samples;
        Ok(())
    }

    /// Sets the delivery by time.
    pub(super) fn time(&mut self, choice: Choice) -> Result<(), SubscribeError> {
        let other = choice.name();
        if let Some(one) = self.timing.as_ref().map(Choice::name).filter(|one| *one != other) {
            return Err(Contradiction { one, other }.into());
        }
        choice.check()?;
        self.spec.proves = choice.proves();
        self.timing = Some(choice);
        Ok(())
    }

    /// Returns the delivery by time.
    ///
    /// Measures the wake-ups of this host for a largest jitter.
    pub(super) fn take_method(&mut self, realtime: bool) -> Result<Option<Timed>, SubscribeError> {
        if let Some(choice) = &self.timing {
            choice.admit(realtime)?;
        }
        let within = self.spec.within.map(Into::into);
        self.timing.take().map(|choice| choice.into_method(within)).transpose()
    }

    /// Refuses a spare without a contract, or next to options that a second path cannot have.
    fn check_spare(&self) -> Result<(), SubscribeError> {
        let SubscriptionSpec { spare, idle, with, proxy, .. } = &self.spec;
        let at_end = matches!(proxy, Proxy::Publisher | Proxy::Subscriber);
        let others = [(idle.is_some(), "idle"), (with.is_some(), "with"), (!at_end, "proxy")];
        match others.into_iter().find(|(given, _)| *given) {
            _ if !spare => Ok(()),
            Some((_, "proxy")) => Err(SubscribeError::SpareWithProxy),
            Some((_, one)) => Err(Contradiction { one, other: "spare" }.into()),
            None if !self.spec.wants_contract() => Err(SubscribeError::SpareWithoutContract),
            None => Ok(()),
        }
    }

    /// Refuses options that exclude each other.
    pub(super) fn check(&self) -> Result<(), SubscribeError> {
        if let Some(choice) = &self.timing {
            choice.check_bound(self.spec.within.map(Into::into))?;
        }
        let Form { size, audio, bitrate, .. } = self.spec.form;
        if let (Some(Audio { rate, channels }), Some(bits)) = (audio, bitrate) {
            let checked = OpusFormat::new(rate, channels);
            let checked = checked.and_then(|_| OpusFormat::check_bits(bits.get()));
            checked.map_err(|error| SubscribeError::Opus(error.to_string()))?;
        }
        if let (Some(with), false) = (&self.spec.with, self.spec.wants_contract()) {
            return Err(SubscribeError::TiedWithoutContract(with.to_string()));
        }
        if self.spec.idle.is_some() && self.spec.with.is_some() {
            return Err(Contradiction { one: "with", other: "idle" }.into());
        }
        if self.spec.idle.is_some() && !self.spec.wants_contract() {
            return Err(SubscribeError::IdleWithoutContract);
        }
        self.check_spare()?;
        // A pattern with wildcards may match both pictures and sound.
        match self.spec.pattern.is_tag() && size.is_some() && audio.is_some() {
            true => Err(Contradiction { one: "size", other: "audio" }.into()),
            false => Ok(()),
        }
    }
}

/// Refuses an invalid pattern, and one of the system's.
pub(super) fn public_pattern(pattern: &str) -> Result<Pattern, SubscribeError> {
    let pattern = Pattern::new(pattern)?;
    if pattern.is_private() {
        return Err(SubscribeError::Private(pattern.to_string()));
    }
    Ok(pattern)
}
