//! Declarations with values from the whole range of the API, the ends of each range more often than the rest.

use core::num::{NonZeroU8, NonZeroU32};
use paceline_proto::control::{IDLE_MIN, PublisherSpec, SubscriptionSpec};
use paceline_proto::form::{Audio, ScaledForm};
use paceline_proto::wire::SAMPLE_BYTES_MAX;
use paceline_proto::{
    Encoding, Envelope, EnvelopeMeter, Form, Kind, Pattern, Proxy, Rate, Retransmit, Size, Tag,
    Unscalable,
};
use paceline_sched::{Duration, Instant, Late, LossTolerance};

const BYTES_MAX: u64 = SAMPLE_BYTES_MAX as u64;
/// The periods of publishers, 10⁶ to 10⁻⁶ Hz, in nanoseconds.
const PERIODS: (u64, u64) = (1_000, 1_000_000_000_000_000);
/// The rates of requests, 10⁻³ to 10⁶ Hz, in millihertz.
const MILLIHERTZ_MAX: u32 = 1_000_000_000;

/// A generator of random numbers (SplitMix64).
pub(super) struct Generator(u64);

impl Generator {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns true for one of `n`.
    fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    /// Returns a number of a range: an end, or one of any order of magnitude.
    fn within(&mut self, (min, max): (u64, u64)) -> u64 {
        match self.next() % 8 {
            0 => min,
            1 => max,
            _ => {
                let bits = self.next() % (u64::from((max - min).max(1).ilog2()) + 1);
                min + (self.next() & (u64::MAX >> (63 - bits))).min(max - min)
            }
        }
    }

    fn small(&mut self, (min, max): (u32, u32)) -> u32 {
        u32::try_from(self.within((min.into(), max.into()))).unwrap()
    }

    fn byte(&mut self, min: u8, max: u8) -> u8 {
        u8::try_from(self.within((min.into(), max.into()))).unwrap()
    }

    fn nonzero(&mut self, max: u32) -> NonZeroU32 {
        NonZeroU32::new(self.small((1, max))).unwrap()
    }

    fn maybe<T>(&mut self, one_in: u64, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.one_in(one_in) { Some(value(self)) } else { None }
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.next() % of.len() as u64).unwrap()].clone()
    }

    fn duration(&mut self, range: (u64, u64)) -> Duration {
        Duration::from_nanos(self.within(range))
    }

    /// Returns a delay bound: often one that a path can keep.
    fn bound(&mut self) -> Duration {
        match self.one_in(2) {
            true => Duration::from_nanos(1_000_000 + self.next() % 10_000_000_000),
            false => self.duration((1, u64::MAX)),
        }
    }

    fn loss(&mut self) -> LossTolerance {
        let y = self.small((1, LossTolerance::Y_MAX));
        LossTolerance::new(self.small((0, y)), y).unwrap()
    }

    fn size(&mut self, max: u32) -> Size {
        Size { width: self.small((1, max)), height: self.small((1, max)) }
    }

    /// Returns the capacity of a link, in bytes per second.
    pub(super) fn capacity(&mut self) -> Option<u64> {
        if self.one_in(4) { None } else { Some(self.within((300, 10_000_000_000))) }
    }

    fn encoding(&mut self) -> Encoding {
        let long = format!("application/{}", "x".repeat(243));
        match self.next() % 4 {
            0 => Encoding::Bytes,
            1 => Encoding::new(""),
            2 => {
                Encoding::new(self.pick(&["image/jpeg", "video/h264", "zenoh/bytes", "image/png"]))
            }
            _ => {
                let sound = "audio/pcm;format=s16le;rate=48000;channels=2";
                Encoding::new(self.pick(&[sound, "é", "text/plain", &long]))
            }
        }
    }

    /// Returns declared traffic, or what a node learns of samples.
    fn envelope(&mut self, spec: &PublisherSpec) -> Option<Envelope> {
        let (bytes, period) = spec.bytes_max.zip(spec.period)?;
        let peak = (u128::from(bytes) * 1_000_000_000).div_ceil(period.as_nanos().into());
        let peak = u64::try_from(peak).unwrap();
        if self.one_in(2) {
            let mean = self.within((1, peak.max(1)));
            return Some(Envelope::declared(self.within((bytes, u64::MAX)), mean));
        }
        let (mut meter, mut found) = (EnvelopeMeter::default(), None);
        let step = period.max(Duration::from_millis(500));
        for number in 0..80 {
            let now = Instant::from_millis(1) + step.mul_div(number, 1);
            let bytes = if self.one_in(4) { self.within((0, bytes)) } else { 0 };
            found = meter.note(now, bytes, peak).or(found);
        }
        found.flatten()
    }

    fn scaled(&mut self) -> Vec<ScaledForm> {
        let number = self.next() % (ScaledForm::FORMS_MAX as u64 + 1);
        let one = |of: &mut Self| {
            let size = Some(of.size(u32::MAX));
            let form = Form { size, ..of.coding(u32::MAX) };
            let (takes, work) = (of.duration((0, u64::MAX)), of.duration((0, u64::MAX)));
            ScaledForm { form, bytes_max: of.within((0, BYTES_MAX)), takes, work }
        };
        let mut forms: Vec<_> = (0..number).map(|_| one(self)).collect();
        forms.sort_by_key(|one| one.form);
        forms.dedup_by_key(|one| one.form);
        forms
    }

    fn coding(&mut self, bits_max: u32) -> Form {
        let bitrate = self.maybe(3, |of| NonZeroU32::new(of.small((1_000, bits_max))).unwrap());
        let quality = self.maybe(3, |of| NonZeroU8::new(of.byte(1, 100)).unwrap());
        Form { bitrate, quality, ..Form::FULL }
    }

    pub(super) fn publisher(&mut self, tag: &str) -> PublisherSpec {
        let kinds = (0..8).filter_map(Kind::from_code).collect::<Vec<_>>();
        let period = if self.one_in(8) { None } else { Some(self.duration(PERIODS)) };
        let bytes_max = if self.one_in(8) { None } else { Some(self.within((0, BYTES_MAX))) };
        let spec = PublisherSpec {
            kind: self.pick(&kinds),
            encoding: self.encoding(),
            period,
            late: self.pick(&[Late::Drop, Late::Send]),
            loss: self.maybe(3, Self::loss),
            within: self.maybe(6, Self::bound),
            size: self.maybe(2, |of| of.size(u32::MAX)),
            bytes_max,
            waits: self.one_in(8),
            latch: self.one_in(8),
            unscalable: self.maybe(8, |of| Unscalable::from_code(of.byte(0, 5)).unwrap()),
            key_interval: self.maybe(4, |of| of.duration((0, u64::MAX))),
            scaled: if self.one_in(8) { self.scaled() } else { Vec::new() },
            ..PublisherSpec::new(Tag::new(tag).unwrap())
        };
        let envelope = if self.one_in(2) { self.envelope(&spec) } else { None };
        PublisherSpec { envelope, ..spec }
    }

    fn form(&mut self) -> Form {
        let rate = Rate {
            every: self.maybe(4, |of| of.nonzero(u32::MAX)).unwrap_or(NonZeroU32::MIN),
            max_millihertz: self.maybe(4, |of| of.nonzero(MILLIHERTZ_MAX)),
            bits_per_s: None,
        };
        let audio =
            |of: &mut Self| Audio { rate: of.small((1_000, 384_000)), channels: of.byte(1, 8) };
        let (size, audio) = (self.maybe(3, |of| of.size(16_384)), self.maybe(5, audio));
        Form { rate, size, audio, ..self.coding(u32::MAX) }
    }

    pub(super) fn subscription(&mut self, tag: &str) -> SubscriptionSpec {
        let proxies = [
            Proxy::Publisher,
            Proxy::Publisher,
            Proxy::Subscriber,
            Proxy::Auto,
            Proxy::Node("node1".into()),
            Proxy::Node("x".repeat(Proxy::NAME_BYTES_MAX).into()),
        ];
        let idle = (IDLE_MIN.as_nanos(), u64::MAX);
        let spec = SubscriptionSpec {
            form: self.form(),
            within: self.maybe(2, Self::bound),
            loss: self.maybe(3, Self::loss),
            proxy: self.pick(&proxies),
            holds: self.one_in(16),
            retransmit: self.pick(&Retransmit::ALL),
            or_stop: self.one_in(4),
            level: self.maybe(4, |of| of.small((0, u32::MAX))),
            proves: self.one_in(4),
            ..SubscriptionSpec::all_of(Pattern::new(tag).unwrap())
        };
        match spec.wants_contract() {
            false => spec,
            true if self.one_in(4) => SubscriptionSpec { spare: self.one_in(4), ..spec },
            true => SubscriptionSpec { idle: self.maybe(4, |of| of.duration(idle)), ..spec },
        }
    }
}
