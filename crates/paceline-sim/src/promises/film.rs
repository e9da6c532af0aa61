//! Films: samples whose sizes are those of recorded pictures, in order.

use paceline_proto::Envelope;
use paceline_sched::Duration;
use std::sync::Arc;

/// The sizes of a film's pictures in bytes, in the order of transmission. It starts again after the last one.
pub type Film = Arc<[u64]>;

/// The longest sample of a source in bytes.
pub(super) const LONGEST: u64 = 64_000;

/// Parts of a size, for films that are made larger or smaller.
const PARTS: u128 = 1_000_000;

/// A film that a source publishes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clip {
    /// The index of the film.
    pub(super) film: usize,
    /// The first picture.
    first: usize,
    /// The size of a picture, in millionths of the recorded one.
    scale: u128,
}

impl Clip {
    /// Creates a clip of pictures with `mean` bytes on average, of at most [`LONGEST`].
    pub(super) fn new(film: usize, sizes: &[u64], first: u64, mean: u64) -> Option<Self> {
        let all = sizes.iter().fold(0, |sum, size| sum + u128::from(*size));
        let (largest, count) = (u128::from(*sizes.iter().max()?), sizes.len() as u128);
        let scale = u128::from(mean) * count * PARTS / all.max(1);
        let scale = scale.min(u128::from(LONGEST) * PARTS / largest.max(1));
        let first = usize::try_from(first).unwrap_or_default() % sizes.len();
        Some(Self { film, first, scale })
    }

    /// Returns the size of picture `number`.
    pub(super) fn size(&self, sizes: &[u64], number: u64) -> u64 {
        let at = usize::try_from(number).unwrap_or_default() % sizes.len().max(1);
        let size = sizes.get((self.first + at) % sizes.len().max(1)).copied().unwrap_or_default();
        u64::try_from(u128::from(size) * self.scale / PARTS).unwrap_or(LONGEST).clamp(1, LONGEST)
    }

    /// Returns the size of the largest picture, and the least burst with which a mean rate a tenth above that of the
    /// pictures allows them all. A picture may be early by `jitter`.
    pub(super) fn envelope(
        &self,
        sizes: &[u64],
        (period, jitter): (Duration, Duration),
    ) -> (u64, Envelope) {
        let count = sizes.len() as u64;
        let pictures = || (0..2 * count).map(|number| self.size(sizes, number));
        let all: u64 = pictures().take(sizes.len()).sum();
        let every = u128::from(period.as_nanos().max(1));
        let rate = u128::from(all) * 11 * 1_000_000_000 / (10 * u128::from(count.max(1)) * every);
        let rate = rate + 1;
        // In nanobytes, so that nothing is rounded.
        let (mut waiting, mut most) = (0, 0);
        for size in pictures() {
            waiting =
                u128::saturating_sub(waiting, rate * every) + u128::from(size) * 1_000_000_000;
            most = most.max(waiting);
        }
        let burst = (most + rate * u128::from(jitter.as_nanos())).div_ceil(1_000_000_000);
        let narrow = |wide: u128| u64::try_from(wide).unwrap_or(u64::MAX);
        let envelope = Envelope::declared(narrow(burst), narrow(rate));
        (pictures().max().unwrap_or(1), envelope)
    }
}

/// Returns films that are generated like a camera's coder: a large picture at the start of each group, medium ones, and
/// small ones in between.
#[must_use]
pub fn generated_films() -> Vec<Film> {
    let film = |group: u64, between: u64, large: u64| {
        let size = |number: u64| match number % group {
            0 => large + number * 37 % 5_000,
            at if at % (between + 1) == 0 => large / 6 + number * 131 % (large / 8),
            _ => large / 20 + number * 57 % (large / 30),
        };
        (0..3 * group).map(size).collect()
    };
    vec![film(150, 2, 90_000), film(30, 0, 24_000), film(12, 1, 9_000)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every window of pictures, each as early as allowed after the first, fits the envelope, and a smaller one not.
    #[test]
    fn the_envelope_of_a_film_is_the_least() {
        let (period, jitter) = (Duration::from_millis(40), Duration::from_micros(3_800));
        for (at, sizes) in generated_films().iter().enumerate() {
            let clip = Clip::new(at, sizes, 17, 3_000).unwrap();
            let (largest, envelope) = clip.envelope(sizes, (period, jitter));
            let mut closest = u128::MAX;
            let count = 2 * sizes.len() as u64;
            for first in 0..sizes.len() as u64 {
                let mut sent = 0;
                for last in first..count {
                    let size = clip.size(sizes, last);
                    assert!(size <= largest && largest <= LONGEST);
                    sent += u128::from(size) * 1_000_000_000;
                    let between = period.mul_div(last - first, 1).saturating_sub(jitter);
                    let allowed = u128::from(envelope.burst()) * 1_000_000_000
                        + u128::from(envelope.bytes_per_s()) * u128::from(between.as_nanos());
                    closest = closest.min(allowed.checked_sub(sent).expect("within the envelope"));
                }
            }
            let spare = u128::from(envelope.bytes_per_s()) * u128::from(jitter.as_nanos());
            assert!(closest <= spare + 1_000_000_000, "{closest} nanobytes are never used");
        }
    }

    #[test]
    fn pictures_are_scaled_to_a_mean_size() {
        for sizes in generated_films() {
            let clip = Clip::new(0, &sizes, 5, 2_000).unwrap();
            let all: u64 = (0..sizes.len() as u64).map(|number| clip.size(&sizes, number)).sum();
            let mean = all / sizes.len() as u64;
            assert!((1_900..=2_000).contains(&mean), "{mean}");
            let number = 3 * sizes.len() as u64 + 1;
            assert_eq!(clip.size(&sizes, 1), clip.size(&sizes, number), "it starts again");
        }
        assert!(Clip::new(0, &[], 0, 2_000).is_none(), "an empty film");
    }
}
