//! The samples of a file, before it is published.

use super::flow::nothing;
use crate::publish::input::{Input, Place};
use anyhow::Context as _;
use paceline_media::stream::{Properties, StreamReader};
use std::io::Read as _;
use std::time::Duration;

/// The bytes of one read.
const READ: usize = 256 * 1024;

/// The samples of a file.
pub(super) struct Survey {
    pub(super) properties: Properties,
    /// Their lengths in bytes.
    pub(super) lengths: Vec<u32>,
}

impl Survey {
    /// Reads a file from its beginning to its end.
    ///
    /// # Errors
    /// Errors if it has no sample.
    pub(super) fn take(
        place: &Place,
        input: &mut Input,
        mut reader: StreamReader,
    ) -> anyhow::Result<Self> {
        let failed = |error: std::io::Error| place.cannot(&error);
        input.rewind().map_err(failed)?;
        let (mut properties, mut lengths) = (None, Vec::new());
        let mut part = vec![0; READ];
        loop {
            while let Some(sample) = reader.poll().with_context(|| place.name())? {
                if properties.is_none() {
                    properties = Some(reader.properties(&sample).with_context(|| place.name())?);
                }
                // Samples have at most 64 MiB.
                lengths.push(u32::try_from(sample.len()).unwrap_or(u32::MAX));
            }
            match input.read(&mut part).map_err(failed)? {
                0 if reader.is_ended() => break,
                0 => reader.end(),
                read => reader.push(part.get(..read).unwrap_or_default()),
            }
        }
        match properties {
            Some(properties) => Ok(Self { properties, lengths }),
            None => Err(nothing(&reader, place)),
        }
    }

    /// Returns the traffic of the file if it is published at `hz`, also again and again: a rate a tenth above its mean in
    /// bits per second, and the most bytes at once at that rate. Returns `None` if the largest sample in each period
    /// describes it well.
    pub(super) fn traffic(&self, hz: f64) -> Option<(u64, u64)> {
        traffic(&self.lengths, hz)
    }
}

/// Returns the traffic of samples of these lengths, as [`Survey::traffic`].
pub(in crate::publish) fn traffic(lengths: &[u32], hz: f64) -> Option<(u64, u64)> {
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
