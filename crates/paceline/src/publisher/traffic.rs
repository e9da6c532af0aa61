//! The declared traffic of a publisher.

use crate::error::PublishError;
use paceline_proto::Envelope;
use paceline_proto::control::PublisherSpec;

/// Traffic as the application declares it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    pub(super) bits_per_s: u64,
    /// The burst in bytes.
    pub(super) burst: u64,
}

/// Returns the peak rate of a publisher in bytes per second, rounded up: its largest sample in each period.
pub(super) fn peak_bytes_per_s(spec: &PublisherSpec) -> Option<u64> {
    let (bytes, period) = spec.bytes_max.zip(spec.period)?;
    let peak = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(period.as_nanos().max(1)));
    u64::try_from(peak).ok()
}

/// Checks the declared traffic, and sets the largest sample if only the burst is known.
pub(super) fn check_traffic(
    spec: &mut PublisherSpec,
    declared: Option<Declared>,
) -> Result<(), PublishError> {
    let Some(Declared { bits_per_s, burst }) = declared else { return Ok(()) };
    let bytes_max = *spec.bytes_max.get_or_insert(burst.max(1));
    if burst < bytes_max {
        return Err(PublishError::Burst { burst, bytes_max });
    }
    let (mean, peak) = (bits_per_s.div_ceil(8), peak_bytes_per_s(spec).unwrap_or(u64::MAX / 8));
    if bits_per_s == 0 || mean > peak.max(1) {
        let peak = peak.max(1).saturating_mul(8);
        return Err(PublishError::MeanRate { mean: bits_per_s, peak });
    }
    spec.envelope = Some(Envelope::declared(burst, mean));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_proto::{EnvelopeMeter, Tag};
    use paceline_sched::{Duration, Instant};

    #[test]
    fn traffic_that_contradicts_itself_is_refused_by_name() {
        let check = |bytes_max: Option<u64>, burst, bits_per_s| {
            let mut spec = PublisherSpec::new(Tag::new("film").unwrap());
            spec.period = Some(Duration::from_millis(100));
            spec.bytes_max = bytes_max;
            let checked = check_traffic(&mut spec, Some(Declared { bits_per_s, burst }));
            checked.map(|()| spec.bytes_max).map_err(|error| error.to_string())
        };
        assert_eq!(check(Some(1_000), 3_000, 80_000), Ok(Some(1_000)));
        assert_eq!(check(None, 3_000, 80_000), Ok(Some(3_000)), "the burst bounds a sample");
        assert_eq!(check(Some(0), 0, 8), Ok(Some(0)), "empty samples");
        let short = check(Some(1_000), 999, 800).unwrap_err();
        assert!(short.contains("burst of 999 bytes: must be at least the largest sample, 1000"));
        for bits_per_s in [0, 80_001] {
            let mean = check(Some(1_000), 3_000, bits_per_s).unwrap_err();
            assert!(mean.contains("from 1 bit/s to the peak rate of 80000 bit/s"), "{mean}");
        }
    }

    #[test]
    fn a_rate_below_one_byte_per_second_is_one() {
        for (bytes_max, seconds) in [(2, 20), (0, 1), (1, 1_000_000), (0, 1_000_000)] {
            let mut spec = PublisherSpec::new(Tag::new("robot/x").unwrap());
            spec.period = Some(Duration::from_secs(seconds));
            spec.bytes_max = Some(bytes_max);
            check_traffic(&mut spec, Some(Declared { bits_per_s: 1, burst: bytes_max })).unwrap();
            let envelope = spec.envelope.unwrap();
            assert_eq!((envelope.burst(), envelope.bytes_per_s()), (bytes_max.max(1), 1));
            // What the node learns of the same samples.
            let (mut meter, peak) = (EnvelopeMeter::default(), peak_bytes_per_s(&spec).unwrap());
            let found = (0..300).filter_map(|number| {
                meter.note(Instant::from_millis(1_000 * seconds * number), bytes_max, peak)
            });
            for envelope in found.flatten() {
                assert!(envelope.burst() > 0 && envelope.bytes_per_s() > 0);
            }
        }
    }
}
