//! The traffic of scaled samples, and the time that scaling takes.

use super::least::ROS_FIELDS;
use super::spec::{PublisherSpec, SubscriptionSpec};
use crate::bits::BitLimit;
use crate::envelope::Envelope;
use crate::form::{Form, Rate, ScaledForm, Size};
use paceline_sched::Duration;

/// The period that planners assume of a publisher whose rate is unknown.
const PERIOD_ASSUMED: Duration = Duration::from_millis(100);
/// The default bit rate that is reserved for coded video: one bit for this number of pixels, and of pixels more in each
/// picture, because small ones have more detail per pixel. The encoder aims at two fifths of it; the rest is for pictures
/// with much detail or motion.
const PIXELS_PER_BIT: u128 = 4;
const PIXELS_MORE: u128 = 10_000;
/// The period of video whose rate is unknown.
const PERIOD_UNKNOWN: Duration = Duration::from_nanos(33_333_333);
/// The range of periods for which the default bit rate is proportional to the rate.
const PERIODS: (Duration, Duration) = (Duration::from_nanos(16_666_667), Duration::from_secs(1));
/// The part of a delay bound that scaling may always use: at least the time or one part in the number, but at most
/// one part in the second number.
const TAKES: (Duration, u64, u64) = (Duration::from_millis(5), 10, 4);

/// The durations of packets of Opus, in microseconds.
const PACKETS_US: [u64; 9] =
    [2_500, 5_000, 10_000, 20_000, 40_000, 60_000, 80_000, 100_000, 120_000];
/// The smallest packet of Opus in bytes: shorter sound waits for more.
const PACKET_MIN: u64 = 10;
/// The part of the bit rate of sound that is reserved for sound cards whose clocks are fast.
const SOUND_FAST: u64 = 256;

/// The traffic of the samples in one form. Samples that are coded again are made to fit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FormBudget {
    /// The largest payload of a sample in bytes.
    pub bytes_max: u64,
    /// The traffic over longer times; `None` if it may be the largest sample in each period.
    pub envelope: Option<Envelope>,
}

impl PublisherSpec {
    /// Returns the traffic of this publisher's samples in `form`; `None` if it is unknown.
    ///
    /// Unscaled samples have the size that the publisher declares or sends. Pictures, video and sound that are coded
    /// again have a budget, which their encoder keeps: the bit rate of the form, if it is at least
    /// [`Self::least_bitrate`], or a default for its size. Other formats have the size that was measured, or before that
    /// at most the size of the source.
    #[must_use]
    pub fn budget(&self, form: Form) -> Option<FormBudget> {
        if !form.converts() {
            let bytes_max = self.bytes_max?;
            let limit = form.rate.bits_per_s.map(|bits| BitLimit::envelope(bits, bytes_max));
            let lower =
                |a: Envelope, b: Envelope| if a.bytes_per_s() < b.bytes_per_s() { a } else { b };
            let envelope = match (self.envelope, limit) {
                (Some(own), Some(limit)) => Some(lower(own, limit)),
                (own, limit) => own.or(limit),
            };
            return Some(FormBudget { bytes_max, envelope });
        }
        if self.kind.is_video() {
            return self.video_budget(form);
        }
        if let (Some(bitrate), true) = (form.bitrate, self.is_pcm()) {
            return self.sound_budget(u64::from(bitrate.get()));
        }
        if let (Some(bitrate), Some(period)) = (form.bitrate, form.rate.period(self.period)) {
            let bits = u128::from(bitrate.get()) * u128::from(period.as_nanos());
            // Whether the coder can keep it depends on the size.
            form.size.or(self.size)?;
            let bytes_max = narrow(bits / 8_000_000_000).max(1);
            return Some(FormBudget { bytes_max, envelope: None });
        }
        let full = self.bytes_max?;
        let measured = self.measured(form).filter(|_| !self.is_coded());
        let bytes_max = match (measured, form.size, self.size) {
            (Some(measured), ..) => measured.bytes_max,
            (None, Some(to), Some(from)) => self.smaller(full, to, from),
            (None, ..) => full,
        };
        let bytes_max = bytes_max.max(self.least_bytes(form));
        Some(FormBudget { bytes_max, envelope: None })
    }

    /// Returns the time between two samples; 100 ms if the rate is unknown.
    #[must_use]
    pub fn assumed_period(&self) -> Duration {
        self.period.unwrap_or(PERIOD_ASSUMED)
    }

    /// Returns the payload bytes per second of this publisher's samples in `form`, at most those of the largest sample
    /// in each [period](Self::assumed_period); `None` if no size is known.
    #[must_use]
    pub fn bytes_per_s(&self, form: Form) -> Option<u64> {
        let budget = self.budget(form)?;
        if let Some(envelope) = budget.envelope {
            return Some(envelope.bytes_per_s());
        }
        let period = form.rate.period(Some(self.assumed_period()));
        let nanos = u128::from(period.map_or(1, Duration::as_nanos).max(1));
        Some(narrow(u128::from(budget.bytes_max) * 1_000_000_000 / nanos))
    }

    /// Returns the longest measured processor time of scaling a sample; zero before the first measurement.
    #[must_use]
    pub fn longest_work(&self) -> Duration {
        self.scaled.iter().map(|form| form.work).max().unwrap_or(Duration::ZERO)
    }

    /// Returns the budget of video that is coded again: in each second the bytes of the bit rate, which a key picture
    /// may use at once.
    fn video_budget(&self, form: Form) -> Option<FormBudget> {
        let period = form.rate.period(self.period).unwrap_or(PERIOD_UNKNOWN);
        let default = || {
            let even = period.clamp(PERIODS.0, PERIODS.1);
            let pixels = u128::from(form.size.or(self.size)?.pixels()) + PIXELS_MORE;
            Some(pixels * 1_000_000_000 / PIXELS_PER_BIT / u128::from(even.as_nanos()))
        };
        let bits = form.bitrate.map(|bitrate| u128::from(bitrate.get())).or_else(default)?;
        let second = narrow(bits / 8).max(1);
        let pictures = narrow(bits * u128::from(period.as_nanos()) / 8_000_000_000);
        let burst = second.max(pictures);
        let envelope = Envelope::declared(burst, second);
        Some(FormBudget { bytes_max: burst, envelope: Some(envelope) })
    }

    /// Returns the budget of sound that is coded as Opus, one packet per block at most: in each second the bytes of the
    /// bit rate, which a second of blocks may use at once. Blocks that are no packet's duration become packets of the next shorter and longer ones.
    fn sound_budget(&self, bits_per_s: u64) -> Option<FormBudget> {
        let second = self.second_bytes()?;
        let bytes = |micros: u64| bits_per_s * micros / 8_000_000;
        let block = u128::from(self.bytes_max?) * 1_000_000;
        let covers =
            |micros: &u64| u128::from(*micros) * second >= block && bytes(*micros) >= PACKET_MIN;
        let longest = PACKETS_US.into_iter().find(covers).unwrap_or(120_000);
        let bytes_max = bytes(longest).max(1);
        let coded = bits_per_s.div_ceil(8);
        let bytes_per_s = coded + coded.div_ceil(SOUND_FAST);
        let burst = bytes_max.max(coded);
        let envelope = Envelope::declared(burst, bytes_per_s);
        Some(FormBudget { bytes_max, envelope: Some(envelope) })
    }

    /// Returns the bytes of one second of its sound; `None` if its media type does not state them.
    fn second_bytes(&self) -> Option<u128> {
        let mut parts = self.encoding.as_str().split(';').map(str::trim);
        let sample = if parts.next()? == "audio/pcm" { 2 } else { 1 };
        let number = |name: &str| {
            let value = parts.clone().find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
            value?.parse::<u32>().ok().filter(|it| *it > 0).map(u128::from)
        };
        Some(sample * number("rate")? * number("channels")?)
    }

    /// Returns the bytes of a picture that is scaled down: in proportion to the pixels if it is not compressed.
    /// Compressed pictures lose less, because small ones have more detail per pixel; the number of bytes is about
    /// proportional to the number of pixels to the power of 3/4.
    fn smaller(&self, full: u64, to: Size, from: Size) -> u64 {
        let one = 1_u128 << 32;
        let linear = (u128::from(to.pixels()) * one).div_ceil(u128::from(from.pixels().max(1)));
        let linear = linear.min(one);
        if self.is_raw() {
            // The chroma of an odd side is rounded up.
            let odd = u64::from(to.width) + u64::from(to.height) + 2;
            let fields = if self.is_ros() { ROS_FIELDS } else { 0 };
            return narrow((u128::from(full) * linear).div_ceil(one)).saturating_add(odd + fields);
        }
        // (linear / 2^32)^(3/4) · 2^31, as the fourth root of linear³ · 2^28.
        let power = ((linear * linear * linear) << 28).isqrt().isqrt() + 1;
        narrow((u128::from(full) * power).div_ceil(one / 2)).min(full)
    }

    /// Returns true if scaled pictures are coded again so that they fit a budget.
    fn is_coded(&self) -> bool {
        self.is_jpeg() || self.kind.is_video()
    }

    fn measured(&self, form: Form) -> Option<&ScaledForm> {
        Self::measured_of(&self.scaled, form)
    }

    /// Returns the measurements of `form`, at any rate.
    pub(in crate::control) fn measured_of(all: &[ScaledForm], form: Form) -> Option<&ScaledForm> {
        let form = Form { rate: Rate::ALL, ..form.without_via() };
        all.iter().find(|one| one.form == form)
    }

    /// Returns the processor time per second, in nanoseconds, of scaling to `form`, as the publisher's node measured it.
    pub(in crate::control) fn scaling_work(&self, form: Form) -> u64 {
        self.scaling_work_of(form, self.measured(form))
    }

    /// Returns the processor time per second, in nanoseconds, of scaling to `form` at the cost of `measured`.
    pub(in crate::control) fn scaling_work_of(
        &self,
        form: Form,
        measured: Option<&ScaledForm>,
    ) -> u64 {
        let each = measured.map_or(0, |one| one.work.as_nanos());
        let period = form.rate.period(self.period).map_or(0, Duration::as_nanos).max(1);
        narrow(u128::from(each) * 1_000_000_000 / u128::from(period))
    }

    /// Returns the part of a subscription's delay bound for scaling.
    pub(in crate::control) fn scaling_part(
        &self,
        request: &SubscriptionSpec,
        within: Duration,
    ) -> Duration {
        self.scaling_part_of(self.form_of(request.form), within)
    }

    /// Returns the part of a delay bound for scaling to `form`.
    pub(in crate::control) fn scaling_part_of(&self, form: Form, within: Duration) -> Duration {
        if !form.converts() {
            return Duration::ZERO;
        }
        let (shortest, part, most) = TAKES;
        let usual = shortest.max(within.mul_div(1, part)).min(within.mul_div(1, most));
        self.measured(form).map_or(usual, |one| usual.max(one.takes))
    }
}

fn narrow(wide: u128) -> u64 {
    u64::try_from(wide).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Encoding, Kind};
    use crate::tag::Tag;
    use core::num::NonZeroU32;

    fn camera(encoding: &str, kind: Kind) -> PublisherSpec {
        PublisherSpec {
            kind,
            encoding: Encoding::new(encoding),
            period: Some(Duration::from_millis(40)),
            size: Some(Size { width: 1_280, height: 720 }),
            bytes_max: Some(100_000),
            ..PublisherSpec::new(Tag::new("camera").unwrap())
        }
    }

    fn small(bitrate: Option<u32>) -> Form {
        let size = Some(Size { width: 320, height: 180 });
        Form { size, bitrate: bitrate.and_then(NonZeroU32::new), ..Form::FULL }
    }

    #[test]
    fn pictures_have_the_budget_of_their_bit_rate_or_their_pixels() {
        let jpeg = camera("image/jpeg", Kind::Picture);
        let bytes = |spec: &PublisherSpec, form| spec.budget(form).unwrap().bytes_max;
        // 800 kbit/s at 25 Hz.
        assert_eq!(bytes(&jpeg, small(Some(800_000))), 4_000);
        // (1/16)^(3/4) = 1/8.
        assert_eq!(bytes(&jpeg, small(None)), 12_501);
        assert_eq!(bytes(&jpeg, Form { size: jpeg.size, ..Form::FULL }), 100_000);
        let raw = camera("video/raw;format=i420;width=1280;height=720", Kind::Picture);
        assert_eq!(bytes(&raw, small(None)), 6_250 + 502);
        let tiny = camera("image/jpeg", Kind::Picture);
        assert_eq!(bytes(&tiny, small(Some(1))), 1, "never nothing");
    }

    #[test]
    fn only_formats_without_a_budget_have_their_measured_size() {
        let takes = Duration::from_millis(3);
        let scaled = vec![ScaledForm { form: small(None), bytes_max: 77_000, takes, work: takes }];
        let png = PublisherSpec { scaled: scaled.clone(), ..camera("image/png", Kind::Picture) };
        assert_eq!(png.budget(small(None)).unwrap().bytes_max, 77_000);
        let jpeg = PublisherSpec { scaled, ..camera("image/jpeg", Kind::Picture) };
        assert_eq!(jpeg.budget(small(None)).unwrap().bytes_max, 12_501);
    }

    #[test]
    fn video_has_a_rate_and_the_burst_of_a_second() {
        let video = camera("video/h264", Kind::VideoI);
        let FormBudget { bytes_max, envelope } = video.budget(small(None)).unwrap();
        // (320 · 180 + 10,000) pixels · 25 Hz / 4 = 422.5 kbit/s.
        let envelope = envelope.unwrap();
        assert_eq!((bytes_max, envelope.burst(), envelope.bytes_per_s()), (52_812, 52_812, 52_812));
        let slow = PublisherSpec { period: Some(Duration::from_secs(4)), ..video };
        let FormBudget { bytes_max, .. } = slow.budget(small(Some(8_000))).unwrap();
        assert_eq!(bytes_max, 4_000, "one picture may use its whole period");
    }

    #[test]
    fn sound_has_the_budget_of_the_longest_packet() {
        let budget = |encoding: &str, bytes_max: u64, bits: u32| {
            let mic = PublisherSpec { bytes_max: Some(bytes_max), ..camera(encoding, Kind::Audio) };
            let form = Form { bitrate: NonZeroU32::new(bits), ..Form::FULL };
            assert_eq!(mic.form_of(form), form);
            let FormBudget { bytes_max, envelope } = mic.budget(form)?;
            let envelope = envelope.unwrap();
            Some((bytes_max, envelope.burst(), envelope.bytes_per_s()))
        };
        let stereo = "audio/pcm;format=s16le;rate=48000;channels=2";
        // Blocks of 20 ms.
        assert_eq!(budget(stereo, 3_840, 32_000), Some((80, 4_000, 4_016)));
        // Blocks of 64 ms become packets of 60 and 80 ms.
        assert_eq!(budget(stereo, 12_288, 32_000), Some((320, 4_000, 4_016)));
        assert_eq!(
            budget("audio/pcmu;channels=1;rate=8000", 160, 32_000),
            Some((80, 4_000, 4_016))
        );
        // At 6 kbit/s blocks of 2.5 ms wait for a packet of 20 ms.
        assert_eq!(budget(stereo, 480, 6_000), Some((15, 750, 753)));
        // Longer blocks are dropped.
        assert_eq!(budget(stereo, 192_000, 510_000), Some((7_650, 63_750, 64_000)));
        assert_eq!(budget("audio/pcm", 3_840, 32_000), None);
        let mic = camera(stereo, Kind::Audio);
        let form = |bits| Form { bitrate: NonZeroU32::new(bits), ..Form::FULL };
        assert_eq!(mic.form_of(form(2_000_000)), form(510_000), "the bit rate of video");
        let opus = camera("audio/opus;rate=48000;channels=1", Kind::Audio);
        let form = Form { bitrate: NonZeroU32::new(32_000), ..Form::FULL };
        assert_eq!(opus.form_of(form), Form::FULL, "coded sound is not coded again");
    }

    #[test]
    fn scaling_uses_a_part_of_the_delay_bound() {
        let request = SubscriptionSpec {
            form: small(None),
            ..SubscriptionSpec::all_of(crate::tag::Pattern::new("camera").unwrap())
        };
        let mut jpeg = camera("image/jpeg", Kind::Picture);
        let part = |spec: &PublisherSpec, millis| {
            spec.scaling_part(&request, Duration::from_millis(millis)).as_nanos() / 1_000
        };
        assert_eq!([10, 40, 200].map(|millis| part(&jpeg, millis)), [2_500, 5_000, 20_000]);
        let takes = Duration::from_millis(9);
        jpeg.scaled = vec![ScaledForm { form: small(None), bytes_max: 1, takes, work: takes }];
        assert_eq!([40, 200].map(|millis| part(&jpeg, millis)), [9_000, 20_000]);
        let full = SubscriptionSpec { form: Form::FULL, ..request.clone() };
        assert_eq!(jpeg.scaling_part(&full, takes), Duration::ZERO);
    }
}
