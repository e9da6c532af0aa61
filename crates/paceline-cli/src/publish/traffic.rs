//! The traffic of a file whose samples are known.

use std::time::Duration;

/// Returns the traffic of samples of these lengths that are published at `hz`, also again and again: a rate a tenth above its mean
/// in bits per second, and the most bytes at once at that rate. Returns `None` if the largest sample in each period describes it
/// well.
pub(super) fn traffic(lengths: &[u32], hz: f64) -> Option<(u64, u64)> {
    let bytes = || lengths.iter().map(|bytes| u64::from(*bytes));
    let all: u64 = bytes().sum();
    let largest = bytes().max()?;
    // The bytes that each period serves.
    let served = (all + all / 10) / lengths.len() as u64 + 1;
    if served > largest / 10 * 7 {
        return None;
    }
    let (most, _) = bytes().chain(bytes()).fold((0, 0_u64), |(most, waiting), bytes| {
        let waiting = waiting.saturating_sub(served) + bytes;
        (waiting.max(most), waiting)
    });
    // Pictures may get parameter sets in front, and the pace is not exact.
    let burst = most + most / 16 + 2 * served;
    #[expect(clippy::cast_precision_loss, reason = "samples have at most 64 MiB")]
    let bits = Duration::try_from_secs_f64(8.0 * served as f64 * hz).ok()?;
    // A mean of 0 would bound nothing.
    let whole = bits.as_secs() + u64::from(bits.subsec_nanos() > 0);
    Some((whole.max(1), burst))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_traffic_of_a_file_is_its_mean_and_its_largest_backlog() {
        let film: Vec<u32> =
            (0..50).map(|number| if number == 0 { 60_000 } else { 4_000 }).collect();
        let (bits, burst) = traffic(&film, 25.0).unwrap();
        let mean = 8 * 25 * (60_000 + 49 * 4_000) / 50;
        assert!((mean..mean * 12 / 10).contains(&bits), "{bits}");
        assert!((60_000..80_000).contains(&burst), "{burst}");
        let slow = traffic(&film, 1e-6).unwrap();
        assert_eq!(slow, (1, burst), "no mean is 0");
        assert_eq!(traffic(&[100, 101], 25.0), None);
        assert_eq!(traffic(&[], 25.0), None);
    }
}
