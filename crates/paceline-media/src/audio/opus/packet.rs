//! Durations of packets.

/// The durations that the encoder codes as one packet, in microseconds.
pub(super) const DURATIONS_US: [u32; 9] =
    [2_500, 5_000, 10_000, 20_000, 40_000, 60_000, 80_000, 100_000, 120_000];

/// Returns the duration of a packet in microseconds, from its first two bytes; `None` if it is invalid.
///
/// ```
/// // A mode, mono, one frame of 20 ms.
/// assert_eq!(paceline_media::audio::opus_micros(&[0b11111_0_00, 1, 2, 3]), Some(20_000));
/// ```
#[must_use]
pub fn opus_micros(packet: &[u8]) -> Option<u32> {
    let toc = *packet.first()?;
    // RFC 6716, section 3.1.
    let frame = match toc >> 3 {
        mode @ 0..=11 => [10_000, 20_000, 40_000, 60_000].get(usize::from(mode % 4)),
        mode @ 12..=15 => [10_000, 20_000].get(usize::from(mode % 2)),
        mode => [2_500, 5_000, 10_000, 20_000].get(usize::from(mode % 4)),
    }?;
    let frames = match toc & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u32::from(*packet.get(1)? & 0x3f),
    };
    Some(frame * frames).filter(|micros| (1..=120_000).contains(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_packets_have_no_duration() {
        assert_eq!(opus_micros(&[]), None);
        assert_eq!(opus_micros(&[3]), None, "no number of frames");
        assert_eq!(opus_micros(&[3, 0]), None, "no frames");
        // 7 frames of 20 ms.
        assert_eq!(opus_micros(&[1 << 3 | 3, 7]), None, "more than 120 ms");
        assert_eq!(opus_micros(&[1 << 3 | 3, 6]), Some(120_000));
        assert_eq!(opus_micros(&[11 << 3 | 1]), Some(120_000));
        assert_eq!(opus_micros(&[13 << 3]), Some(20_000));
    }
}
