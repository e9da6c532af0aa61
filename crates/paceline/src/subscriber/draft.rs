//! The request of a subscription before it is declared: the setters check each value, and
//! [`Draft::check`] that the values go together.

use super::choice::Choice;
use crate::check::is_name;
use crate::error::{Contradiction, SubscribeError};
use crate::history::History;
use crate::limits::{AUDIO_CHANNELS, AUDIO_RATES, SIDE_MAX, millihertz};
use crate::shell::sink::Timed;
use paceline_media::audio::OpusFormat;
use paceline_proto::control::{Elastic, IDLE_MIN, IMPORTANCE_MAX, Offer, SubscriptionSpec};
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
    /// The accepted reductions.
    pub(super) elastic: Elastic,
    pub(super) queue: usize,
    pub(super) history: Option<History>,
    /// A limit of the rate was set; the first one replaces the rate of the request that is changed.
    limited: bool,
    /// The delivery by time.
    timing: Option<Choice>,
}

impl Draft {
    pub(super) fn new(mut spec: SubscriptionSpec) -> Self {
        let elastic = match spec.elastic.take() {
            Some(elastic) => *elastic,
            None => Elastic::none(spec.form),
        };
        // A change of a reduced contract begins with the most again.
        spec.form = elastic.most;
        let queue = QUEUE_SAMPLES;
        Self { spec, elastic, queue, history: None, limited: false, timing: None }
    }

    /// Returns the request.
    pub(super) fn request(&self) -> SubscriptionSpec {
        let elastic = Some(self.reductions()).filter(Elastic::is_valid).map(Box::new);
        SubscriptionSpec { elastic, ..self.spec.clone() }
    }

    fn reductions(&self) -> Elastic {
        Elastic { most: self.spec.form, ..self.elastic.clone() }
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
        // An offer below the least that is accepted replaces it.
        if !self.reductions().is_valid() {
            self.elastic = Elastic::none(self.spec.form);
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
        self.elastic.sizes.clear();
        Ok(())
    }

    pub(super) fn or_size(&mut self, width: u32, height: u32) -> Result<(), SubscribeError> {
        if width == 0 || height == 0 || width > SIDE_MAX || height > SIDE_MAX {
            return Err(SubscribeError::Size { width, height });
        }
        self.elastic.sizes.push(Size { width, height });
        Ok(())
    }

    pub(super) fn min_hz(&mut self, hertz: f64) -> Result<(), SubscribeError> {
        let least = millihertz(hertz).ok_or(SubscribeError::Rate(hertz))?;
        self.elastic.min_millihertz = Some(least);
        Ok(())
    }

    pub(super) fn min_bitrate(&mut self, bits_per_s: u32) -> Result<(), SubscribeError> {
        let bitrate = NonZeroU32::new(bits_per_s).filter(|it| it.get() >= BITRATE_MIN);
        self.elastic.min_bitrate = Some(bitrate.ok_or(SubscribeError::Bitrate(bits_per_s))?);
        Ok(())
    }

    pub(super) const fn importance(&mut self, importance: u8) -> Result<(), SubscribeError> {
        if importance > IMPORTANCE_MAX {
            return Err(SubscribeError::Importance(importance));
        }
        self.spec.importance = importance;
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

    /// Refuses reductions that are no reductions, or that nothing can be reduced by.
    fn check_elastic(&self) -> Result<(), SubscribeError> {
        let elastic = self.reductions();
        let Elastic { most, min_millihertz, min_bitrate, ref sizes } = elastic;
        if min_millihertz.is_none() && min_bitrate.is_none() && sizes.is_empty() {
            return Ok(());
        }
        let wrong =
            |least: String, most, example| Err(SubscribeError::Elastic { least, most, example });
        let below = |least: Option<NonZeroU32>, most: Option<NonZeroU32>| {
            least.is_none_or(|least| most.is_some_and(|most| least < most))
        };
        if !below(min_millihertz, most.rate.max_millihertz) {
            let hertz = min_millihertz.map_or(0.0, |it| f64::from(it.get()) / 1_000.0);
            return wrong(format!("min_hz {hertz}"), "max_hz", "max_hz 30 and min_hz 5");
        }
        if !below(min_bitrate, most.bitrate) {
            let bits = min_bitrate.map_or(0, NonZeroU32::get);
            let example = "bitrate 2000000 and min_bitrate 300000";
            return wrong(format!("min_bitrate {bits}"), "bitrate", example);
        }
        if !elastic.is_valid() {
            let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
            let example = "640x480, then 320x240 and 160x120, 8 smaller sizes at most";
            return wrong(format!("smaller sizes {}", sizes.join(",")), "the size before", example);
        }
        match self.spec.wants_contract() {
            true if self.spec.with.is_some() => {
                Err(Contradiction { one: "with", other: "the least accepted" }.into())
            }
            // A lower step would have to be found for both paths together.
            true if self.spec.spare => {
                Err(Contradiction { one: "spare", other: "the least accepted" }.into())
            }
            true => Ok(()),
            false => Err(SubscribeError::ElasticWithoutContract),
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
        self.check_elastic()?;
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
