//! A limit of the bits per second of a stream, by leaving out whole samples.

use crate::envelope::Envelope;
use core::num::NonZeroU32;
use paceline_sched::Instant;

/// Selects as many samples as a bit rate allows, evenly spread: each takes its bytes' time at that rate, and the first sample
/// after this time is the next one.
///
/// In any time t, `bits_per_s` · t / 8 bytes and two samples more are selected at most ([`Self::envelope`]): one sample's time may be
/// saved, so that the rate is exact although samples arrive at times of their own. A sample of any size is selected, and then
/// none for its whole time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BitLimit {
    bits_per_s: NonZeroU32,
    /// The instant from which a sample is selected; `None` before the first one.
    next: Option<Instant>,
}

impl BitLimit {
    pub(crate) const fn new(bits_per_s: NonZeroU32) -> Self {
        Self { bits_per_s, next: None }
    }

    /// Returns the bound of the selected bytes for samples of at most `bytes_max`.
    pub(crate) fn envelope(bits_per_s: NonZeroU32, bytes_max: u64) -> Envelope {
        let bytes_per_s = u64::from(bits_per_s.get()).div_ceil(8);
        Envelope::declared(bytes_max.saturating_mul(2), bytes_per_s)
    }

    /// Returns true if a sample of `bytes`, published at `at`, is selected.
    pub(crate) fn take(&mut self, at: Instant, bytes: u64) -> bool {
        let next = self.next.unwrap_or(at);
        if at < next {
            return false;
        }
        let nanos = u128::from(bytes) * 8_000_000_000;
        let time = nanos.div_ceil(u128::from(self.bits_per_s.get()));
        let time = u64::try_from(time).unwrap_or(u64::MAX);
        let paid = Instant::from_nanos(next.as_nanos().saturating_add(time));
        self.next = Some(paid.max(at));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the selected samples: their index, time in nanoseconds and bytes.
    fn selected(bits: u32, samples: &[(u64, u64)]) -> Vec<(usize, u64, u64)> {
        let mut limit = BitLimit::new(NonZeroU32::new(bits).unwrap());
        let all = samples.iter().enumerate();
        let taken = all.filter(|(_, (at, bytes))| limit.take(Instant::from_nanos(*at), *bytes));
        taken.map(|(index, (at, bytes))| (index, *at, *bytes)).collect()
    }

    #[test]
    fn a_point_cloud_keeps_the_bit_rate_evenly() {
        // 10 Hz of 5,000 bytes are 400 kbit/s.
        let cloud: Vec<_> = (0..1_000).map(|k| ((1 << 40) + k * 100_000_000, 5_000)).collect();
        for (bits, of) in [(100_000, 250), (130_000, 325), (399_000, 997), (400_000, 1_000)] {
            let got = selected(bits, &cloud);
            assert!(got.len().abs_diff(of) <= 2, "{bits} bit/s: {}", got.len());
            let gaps = got.windows(2).map(|pair| pair[1].0 - pair[0].0);
            let gaps: Vec<usize> = gaps.skip(1).collect();
            let (least, most) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
            assert!(most - least <= 1, "{bits} bit/s: every {least} to {most}");
        }
        let rare = selected(1_000, &cloud);
        assert_eq!(rare.iter().map(|it| it.0).collect::<Vec<_>>(), [0, 400, 800]);
    }

    proptest! {
        #[test]
        fn the_bytes_in_any_window_stay_within_the_envelope(
            bits in 1_000..10_000_000_u32,
            gaps in prop::collection::vec((0..50_000_000_u64, 0..20_000_u64), 1..300),
        ) {
            let mut at = 0;
            let samples: Vec<(u64, u64)> = gaps.iter().map(|(gap, bytes)| { at += gap; (at, *bytes) }).collect();
            let got = selected(bits, &samples);
            let bytes_max = got.iter().map(|it| it.2).max().unwrap();
            let envelope = BitLimit::envelope(NonZeroU32::new(bits).unwrap(), bytes_max);
            for (first, from) in got.iter().enumerate() {
                let mut sum = 0;
                for to in &got[first..] {
                    sum += u128::from(to.2);
                    let flow = u128::from(envelope.bytes_per_s()) * u128::from(to.1 - from.1);
                    prop_assert!(sum * 1_000_000_000 <= u128::from(envelope.burst()) * 1_000_000_000 + flow);
                }
            }
            // Nothing is left out that the bit rate allows: each selected sample pauses for at most its own time.
            let own = |bytes: u64| bytes * 8_000_000_000 / u64::from(bits) + 1;
            let mut paid = samples[0].0;
            let mut taken = got.iter().peekable();
            for (index, (at, _)) in samples.iter().enumerate() {
                if taken.next_if(|it| it.0 == index).is_some() {
                    paid = at.max(&(paid + own(samples[index].1))).to_owned();
                } else {
                    prop_assert!(*at < paid, "sample {} at {} could have been sent from {}", index, at, paid);
                }
            }
        }
    }
}
