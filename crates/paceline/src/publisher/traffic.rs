//! The declared traffic of a publisher.

use crate::error::PublishError;
use paceline_proto::Envelope;
use paceline_proto::control::PublisherSpec;

/// Returns the peak rate of a publisher in bytes per second: its largest sample in each period.
pub(super) fn peak_bytes_per_s(spec: &PublisherSpec) -> Option<u64> {
    let (bytes, period) = spec.bytes_max.zip(spec.period)?;
    let peak = u128::from(bytes) * 1_000_000_000 / u128::from(period.as_nanos().max(1));
    u64::try_from(peak).ok()
}

/// Checks the declared traffic, and sets the largest sample if only the burst is known.
pub(super) fn check_traffic(spec: &mut PublisherSpec) -> Result<(), PublishError> {
    let Some(Envelope { burst, bytes_per_s, .. }) = spec.envelope else { return Ok(()) };
    let bytes_max = *spec.bytes_max.get_or_insert(burst.max(1));
    if burst < bytes_max {
        return Err(PublishError::Burst { burst, bytes_max });
    }
    let peak = peak_bytes_per_s(spec).unwrap_or(u64::MAX / 8);
    if bytes_per_s == 0 || bytes_per_s > peak {
        let bits = |bytes: u64| bytes.saturating_mul(8);
        return Err(PublishError::MeanRate { mean: bits(bytes_per_s), peak: bits(peak) });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_proto::Tag;
    use paceline_sched::Duration;

    #[test]
    fn traffic_that_contradicts_itself_is_refused_by_name() {
        let check = |bytes_max: Option<u64>, burst, bytes_per_s| {
            let mut spec = PublisherSpec::new(Tag::new("film").unwrap());
            spec.period = Some(Duration::from_millis(100));
            spec.bytes_max = bytes_max;
            spec.envelope = Some(Envelope { burst, bytes_per_s, learned: false });
            check_traffic(&mut spec).map(|()| spec.bytes_max).map_err(|error| error.to_string())
        };
        assert_eq!(check(Some(1_000), 3_000, 10_000), Ok(Some(1_000)));
        assert_eq!(check(None, 3_000, 10_000), Ok(Some(3_000)), "the burst bounds a sample");
        let short = check(Some(1_000), 999, 100).unwrap_err();
        assert!(short.contains("burst of 999 bytes: must be at least the largest sample, 1000"));
        for bytes_per_s in [0, 10_001] {
            let mean = check(Some(1_000), 3_000, bytes_per_s).unwrap_err();
            assert!(mean.contains("to the peak rate of 80000 bit/s"), "{mean}");
        }
    }
}
