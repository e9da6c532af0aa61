//! The traffic of a publisher over longer times: declared, or learned from what it sends.

use crate::budget::{SEGMENT_BYTES, SEGMENT_OVERHEAD};
use core::num::NonZeroU64;
use paceline_sched::{Duration, Instant};

/// A bound on the payload of a publisher's samples: in any time t at most `burst` + `bytes_per_s` · t bytes.
///
/// With the largest sample and the period, which bound the peak rate, this is the TSpec of RFC 2212. It lets
/// admission charge video of a variable bit rate for less than its largest picture in each period.
///
/// Traffic of less than 1 byte per second, or of empty samples, has the next bound above: 1 byte, and 1 byte per second.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Envelope {
    burst: NonZeroU64,
    bytes_per_s: NonZeroU64,
    learned: bool,
}

/// The traffic of an [`Envelope`] on links, with the headers of all segments.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct WireEnvelope {
    /// The burst in bytes.
    pub(crate) burst: u64,
    /// The rate in bits per second.
    pub(crate) bits_per_s: u64,
    /// Packets per second.
    pub(crate) packets_per_s: u64,
}

/// Returns the smallest bound of a number that may be 0.
const fn bound(number: u64) -> NonZeroU64 {
    match NonZeroU64::new(number) {
        Some(number) => number,
        None => NonZeroU64::MIN,
    }
}

impl Envelope {
    /// Returns the envelope of a publisher that declares its traffic: a burst in bytes, at least the largest sample,
    /// and a mean rate in bytes per second.
    #[must_use]
    pub const fn declared(burst: u64, bytes_per_s: u64) -> Self {
        Self { burst: bound(burst), bytes_per_s: bound(bytes_per_s), learned: false }
    }

    /// Returns the envelope of traffic that the publisher's node learned from the samples of the last minute.
    #[must_use]
    pub const fn learned(burst: u64, bytes_per_s: u64) -> Self {
        Self { learned: true, ..Self::declared(burst, bytes_per_s) }
    }

    /// Returns the burst in bytes, at least 1.
    #[must_use]
    pub const fn burst(self) -> u64 {
        self.burst.get()
    }

    /// Returns the mean rate in bytes per second, at least 1.
    #[must_use]
    pub const fn bytes_per_s(self) -> u64 {
        self.bytes_per_s.get()
    }

    /// Returns true for traffic that was learned and not declared.
    #[must_use]
    pub const fn is_learned(self) -> bool {
        self.learned
    }

    /// Returns the envelope of traffic in the form of the Tenet protocols (Ferrari & Verma 1990): samples of at most
    /// `smax` bytes, at least `xmin` apart, and on average `xave` apart in any interval of length `interval`.
    ///
    /// Returns `None` if `xmin` > `xave`, `xave` > `interval`, or one of them or `smax` is 0.
    #[must_use]
    pub fn tenet(xmin: Duration, xave: Duration, interval: Duration, smax: u64) -> Option<Self> {
        if smax == 0 || xmin.is_zero() || xmin > xave || xave > interval {
            return None;
        }
        // At most this number of samples in any interval.
        let samples = interval.as_nanos() / xave.as_nanos();
        let bytes = u128::from(samples) * u128::from(smax);
        let every = u128::from(interval.as_nanos());
        let bytes_per_s = (bytes * 1_000_000_000).div_ceil(every);
        // The samples of an interval may be as near to each other as allowed.
        let spread = u128::from(samples - 1) * u128::from(xmin.as_nanos());
        let burst = bytes - bytes * spread / every;
        let narrow = |wide: u128| u64::try_from(wide).unwrap_or(u64::MAX);
        Some(Self::declared(narrow(burst), narrow(bytes_per_s)))
    }

    /// Returns the envelope of samples that are `part`/`whole` as long.
    pub(crate) fn smaller(self, part: u64, whole: u64) -> Self {
        let scale = |bytes: NonZeroU64| {
            let scaled = u128::from(bytes.get()) * u128::from(part);
            let scaled = scaled.div_ceil(u128::from(whole.max(1)));
            bound(u64::try_from(scaled).unwrap_or(u64::MAX))
        };
        Self { burst: scale(self.burst), bytes_per_s: scale(self.bytes_per_s), ..self }
    }

    /// Returns the traffic on links of a stream with one sample per `period`, early by at most `jitter`.
    ///
    /// Each sample may end with a segment that is not full.
    pub(crate) fn on_wire(self, (period, jitter): (Duration, Duration)) -> WireEnvelope {
        let (segment, header) = (u128::from(SEGMENT_BYTES), u128::from(SEGMENT_OVERHEAD));
        let every = u128::from(period.as_nanos().max(1));
        let early = u128::from(jitter.as_nanos()).div_ceil(every);
        let burst = u128::from(self.burst());
        let burst = burst + (burst * header).div_ceil(segment) + header * (1 + early);
        let rate = u128::from(self.bytes_per_s());
        let samples = 1_000_000_000_u128.div_ceil(every);
        let headers = (rate * header).div_ceil(segment);
        let bits = 8 * (rate + headers + (header * 1_000_000_000).div_ceil(every));
        let narrow = |wide: u128| u64::try_from(wide).unwrap_or(u64::MAX);
        WireEnvelope {
            burst: narrow(burst),
            bits_per_s: narrow(bits),
            packets_per_s: narrow(rate.div_ceil(segment) + samples),
        }
    }
}

/// The rates for which an [`EnvelopeMeter`] measures bursts: each is 3/4 of the one before, from the peak rate.
const RATES: usize = 16;
/// Half of the time that a learned envelope covers.
const HALF: Duration = Duration::from_secs(30);
/// The time and the samples before the first envelope is learned.
const FIRST: Duration = Duration::from_secs(10);
const FIRST_SAMPLES: u64 = 50;
/// The time for which an envelope should allow few bytes: long delay bounds are of this order.
const HORIZON: Duration = Duration::from_secs(2);
/// A learned envelope is worth its risk if its rate is at most this part of the peak rate, in percent.
const WORTH_PERCENT: u128 = 70;

/// Learns the envelope of a publisher's samples.
///
/// For each of several rates it measures the largest backlog of a server of that rate, which is the burst of the
/// traffic at that rate. It remembers the maxima of the last 30 to 60 s.
#[derive(Clone, Debug)]
pub struct EnvelopeMeter {
    rates: [Backlog; RATES],
    /// The peak rate from which the rates derive, in bytes per second; 0 before the first sample.
    peak: u64,
    begun: Instant,
    latest: Instant,
    turned: Instant,
    samples: u64,
    known: Option<Envelope>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Backlog {
    bytes_per_s: u64,
    /// Current backlog, in bytes times 10⁹.
    waiting: u128,
    /// The maxima of the current half and the one before, in the same unit.
    most: [u128; 2],
}

const NANOS: u128 = 1_000_000_000;

impl Backlog {
    fn add(&mut self, passed: Duration, bytes: u64) {
        let served = u128::from(self.bytes_per_s) * u128::from(passed.as_nanos());
        self.waiting = self.waiting.saturating_sub(served) + u128::from(bytes) * NANOS;
        self.most[0] = self.most[0].max(self.waiting);
    }

    fn burst(&self) -> u64 {
        let most = self.most[0].max(self.most[1]);
        u64::try_from(most.div_ceil(NANOS)).unwrap_or(u64::MAX)
    }
}

impl Default for EnvelopeMeter {
    fn default() -> Self {
        Self {
            rates: [Backlog::default(); RATES],
            peak: 0,
            begun: Instant::ZERO,
            latest: Instant::ZERO,
            turned: Instant::ZERO,
            samples: 0,
            known: None,
        }
    }
}

impl EnvelopeMeter {
    /// Notes a sample of `bytes`, where `peak` is the declared peak rate in bytes per second, rounded up and above 0.
    /// Returns the new envelope if it changes: the first after 10 s, wider ones at once, and clearly narrower ones every
    /// 30 s. `Some(None)` means that the traffic is so regular that the peak rate describes it.
    pub fn note(&mut self, now: Instant, bytes: u64, peak: u64) -> Option<Option<Envelope>> {
        let peak = peak.max(1);
        if self.peak != peak {
            self.restart(now, peak);
        }
        let passed = now.since(self.latest);
        self.latest = self.latest.max(now);
        self.samples += 1;
        self.rates.iter_mut().for_each(|rate| rate.add(passed, bytes));
        let turns = now.since(self.turned) >= HALF;
        let first = self.known.is_none()
            && now.since(self.begun) >= FIRST
            && self.samples >= FIRST_SAMPLES
            && self.samples.is_multiple_of(8);
        let wider = self.known.is_some_and(|known| !self.covers(known));
        if !turns && !first && !wider {
            return None;
        }
        let found = self.find();
        if turns {
            self.turned = now;
            self.rates.iter_mut().for_each(|rate| rate.most = [0, rate.most[0]]);
        }
        let changes = wider || self.known.is_none() || self.narrows(found);
        if !changes || found == self.known {
            return None;
        }
        self.known = found;
        Some(found)
    }

    /// Begins again where the peak rate is another one.
    fn restart(&mut self, now: Instant, peak: u64) {
        let known = self.known;
        *self = Self { peak, begun: now, latest: now, turned: now, known, ..Self::default() };
        let mut next = peak;
        for rate in &mut self.rates {
            rate.bytes_per_s = next;
            next -= next / 4;
        }
    }

    /// Returns true if the measured traffic stays below an envelope.
    fn covers(&self, known: Envelope) -> bool {
        let at = self.rates.iter().rev().find(|rate| rate.bytes_per_s >= known.bytes_per_s());
        // A server of a higher rate has a smaller backlog, so this finds no excess where there is none.
        let burst = u128::from(known.burst()) * NANOS;
        at.is_none_or(|rate| rate.most.iter().all(|most| *most <= burst))
    }

    /// Returns true if an envelope is narrower than the known one by a quarter.
    fn narrows(&self, found: Option<Envelope>) -> bool {
        let Some((known, found)) = self.known.zip(found) else { return false };
        let less = |new: u64, old: u64| new <= old - old / 4;
        less(found.bytes_per_s(), known.bytes_per_s()) && found.burst() <= known.burst()
            || less(found.burst(), known.burst()) && found.bytes_per_s() <= known.bytes_per_s()
    }

    /// Returns the measured envelope, with a quarter more than its burst: of all rates the one at which the bytes of
    /// [`HORIZON`] are the fewest. At a rate below the mean, the burst would grow with each sample.
    fn find(&self) -> Option<Envelope> {
        let bytes = |rate: &Backlog| {
            let sustained = u128::from(rate.bytes_per_s) * u128::from(HORIZON.as_nanos()) / NANOS;
            sustained + u128::from(rate.burst())
        };
        let least = self.rates.iter().min_by_key(|rate| bytes(rate))?;
        let burst = least.burst();
        let found = Envelope::learned(burst.saturating_add(burst / 4), least.bytes_per_s);
        let is_worth =
            u128::from(found.bytes_per_s()) * 100 <= u128::from(self.peak) * WORTH_PERCENT;
        is_worth.then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::counted;
    use proptest::prelude::*;

    #[test]
    fn tenet_traffic_is_below_its_envelope() {
        let ms = Duration::from_millis;
        let envelope = Envelope::tenet(ms(10), ms(40), ms(400), 1_000).unwrap();
        // Ten samples 10 ms apart, at the end of one interval and the beginning of the next.
        assert_eq!((envelope.burst(), envelope.bytes_per_s()), (7_750, 25_000));
        for (xmin, xave, interval, smax) in
            [(50, 40, 400, 1), (0, 40, 400, 1), (10, 500, 400, 1), (10, 40, 400, 0)]
        {
            assert_eq!(Envelope::tenet(ms(xmin), ms(xave), ms(interval), smax), None);
        }
    }

    /// Sizes of pictures with a group of `group`, in bytes.
    fn picture(number: u64, group: u64) -> u64 {
        if number.is_multiple_of(group) { 60_000 } else { 2_000 + number * 7_919 % 4_000 }
    }

    fn learn(group: u64, seconds: u64) -> (Vec<Option<Envelope>>, u64) {
        let (mut meter, mut got, mut over) = (EnvelopeMeter::default(), Vec::new(), 0);
        let mut known: Option<Envelope> = None;
        // A leaky bucket of the announced envelope, as a link polices it.
        let (mut waiting, mut before) = (0_u64, Instant::ZERO);
        for number in 0..25 * seconds {
            let now = Instant::from_millis(1_000 + 40 * number);
            let bytes = picture(number, group);
            if let Some(envelope) = known {
                let served = now.since(before).as_nanos() * envelope.bytes_per_s() / 1_000_000_000;
                waiting = waiting.saturating_sub(served) + bytes;
                over += u64::from(waiting > envelope.burst());
            }
            before = now;
            if let Some(found) = meter.note(now, bytes, 60_000 * 25) {
                (known, waiting) = (found, bytes);
                got.push(found);
            }
        }
        (got, over)
    }

    #[test]
    fn the_envelope_of_a_film_is_learned_once_and_kept() {
        let (got, over) = learn(50, 300);
        let envelope = got[0].unwrap();
        let mean = 25 * (4_000 + 56_000 / 50);
        assert!(envelope.bytes_per_s() < mean * 3 / 2, "{envelope:?}");
        assert!(envelope.burst() < 100_000, "{envelope:?}");
        assert!(got.len() <= 2 && over == 0, "{got:?} {over}");
    }

    #[test]
    fn regular_traffic_needs_no_envelope() {
        assert_eq!(learn(1, 120).0, []);
    }

    #[test]
    fn more_traffic_widens_the_envelope_at_once() {
        let mut meter = EnvelopeMeter::default();
        let mut announced = Vec::new();
        for number in 0..6_000_u64 {
            let group = if number < 2_000 { 50 } else { 5 };
            let now = Instant::from_millis(1_000 + 40 * number);
            if let Some(found) = meter.note(now, picture(number, group), 60_000 * 25) {
                announced.push((number, found));
            }
        }
        let last = announced.last().unwrap().1.unwrap();
        assert!(announced.len() <= 16, "{announced:?}");
        assert!(last.bytes_per_s() > 25 * 60_000 / 5, "{announced:?}");
    }

    proptest! {
        #[test]
        fn the_wire_envelope_bounds_the_segments_of_any_samples(
            sizes in proptest::collection::vec(0..20_000_u64, 1..60),
            burst in 20_000..60_000_u64,
            rate in 1_000..2_000_000_u64,
        ) {
            let period = Duration::from_millis(10);
            let wire = Envelope::declared(burst, rate);
            let wire = wire.on_wire((period, Duration::ZERO));
            let (mut payload, mut segments) = (0_u64, 0_u64);
            for (number, size) in sizes.iter().enumerate() {
                let time = 10 * number as u64;
                let room = (burst + rate * time / 1_000).saturating_sub(payload);
                let size = (*size).min(room);
                payload += size;
                segments += u64::try_from(counted(size.into())).unwrap();
                let allowed = wire.burst + wire.bits_per_s * time / 8_000;
                prop_assert!(segments <= allowed, "{segments} {allowed} after {time} ms");
            }
        }
    }
}
