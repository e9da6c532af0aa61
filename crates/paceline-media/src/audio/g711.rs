//! G.711 (ITU-T): conversion of 16-bit samples to 8-bit codes whose steps grow with loudness, and back.
//!
//! Decision values and outputs are those of the standard's tables, scaled to 16 bits: µ-law uses 14 of
//! them, A-law 13. As in the reference software of the ITU-T (G.191), the magnitude of a negative sample
//! is its ones' complement. Both signs then have the same number of intervals.

/// Returns the 16-bit sample of a µ-law code, -32,124 to 32,124.
#[must_use]
pub fn from_ulaw(code: u8) -> i16 {
    let code = !code;
    let (segment, step) = ((code >> 4) & 7, i16::from(code & 15));
    let magnitude = (((step << 3) + 132) << segment) - 132;
    if code & 0x80 == 0 { magnitude } else { -magnitude }
}

/// Returns the 16-bit sample of an A-law code, -32,256 to 32,256, never 0.
#[must_use]
pub fn from_alaw(code: u8) -> i16 {
    // Every other bit is stored inverted.
    let code = code ^ 0x55;
    let (segment, step) = ((code >> 4) & 7, i16::from(code & 15));
    let magnitude = match segment {
        0 => (step << 4) + 8,
        _ => ((step << 4) + 264) << (segment - 1),
    };
    if code & 0x80 == 0 { -magnitude } else { magnitude }
}

/// Returns the µ-law code of a 16-bit sample.
#[must_use]
pub fn to_ulaw(sample: i16) -> u8 {
    let biased = (magnitude(sample) >> 2).min(0x1fff - 33) + 33;
    // 33 to 8,191: the highest bit is 5 to 12 and selects the segment.
    let segment = biased.ilog2() - 5;
    let code = byte(segment << 4) | byte(u32::from(biased >> (segment + 1)) & 15);
    !(code | if sample < 0 { 0x80 } else { 0 })
}

/// Returns the A-law code of a 16-bit sample.
#[must_use]
pub fn to_alaw(sample: i16) -> u8 {
    let magnitude = magnitude(sample) >> 4;
    // 0 to 2,047: the first two segments have the same step.
    let segment = (magnitude | 15).ilog2() - 3;
    let step = u32::from(magnitude >> segment.saturating_sub(1)) & 15;
    let code = byte(segment << 4) | byte(step);
    (code | if sample < 0 { 0 } else { 0x80 }) ^ 0x55
}

/// Returns the distance from zero; for a negative sample, its ones' complement.
fn magnitude(sample: i16) -> u16 {
    (if sample < 0 { !sample } else { sample }).unsigned_abs()
}

/// Converts a number that is below 256 by construction.
fn byte(value: u32) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the interval that contains a magnitude, by search in the standard's decision values.
    ///
    /// Each segment `s` has sixteen intervals, twice as wide as those of the preceding segment.
    fn ulaw_interval(magnitude: i32) -> (u8, i32) {
        let mut found = (0, 0);
        for segment in 0..8 {
            for step in 0..16 {
                let (low, width) = ((32 << segment) + ((step * 2) << segment) - 33, 2 << segment);
                if magnitude >= low {
                    found = (u8::try_from(segment * 16 + step).unwrap(), low + width / 2);
                }
            }
        }
        found
    }

    fn alaw_interval(magnitude: i32) -> (u8, i32) {
        let (mut found, mut low) = ((0, 0), 0);
        for interval in 0..128 {
            let width = if interval < 32 { 2 } else { 2 << (interval / 16 - 1) };
            if magnitude >= low {
                found = (u8::try_from(interval).unwrap(), low + width / 2);
            }
            low += width;
        }
        assert_eq!(low, 4096);
        found
    }

    #[test]
    fn every_sample_gets_the_code_of_its_interval() {
        for sample in i16::MIN..=i16::MAX {
            let magnitude = i32::from(if sample < 0 { !sample } else { sample });
            let negative = sample < 0;
            let (interval, output) = ulaw_interval(magnitude >> 2);
            let code = !(interval | if negative { 0x80 } else { 0 });
            let output = 4 * if negative { -output } else { output };
            let ulaw = (to_ulaw(sample), i32::from(from_ulaw(to_ulaw(sample))));
            assert_eq!(ulaw, (code, output), "{sample}");
            let (interval, output) = alaw_interval(magnitude >> 3);
            let code = (interval | if negative { 0 } else { 0x80 }) ^ 0x55;
            let output = 8 * if negative { -output } else { output };
            let alaw = (to_alaw(sample), i32::from(from_alaw(to_alaw(sample))));
            assert_eq!(alaw, (code, output), "{sample}");
        }
    }

    #[test]
    fn codes_match_the_standard() {
        for (code, sample) in [
            (0xff, 0),
            (0x7f, 0),
            (0xfe, 8),
            (0x7e, -8),
            (0xf0, 120),
            (0xef, 132),
            (0x80, 32_124),
            (0x00, -32_124),
            (0x8f, 16_764),
            (0x9f, 8_316),
        ] {
            assert_eq!(from_ulaw(code), sample, "{code:02x}");
        }
        for (code, sample) in [
            (0xd5, 8),
            (0x55, -8),
            (0xd4, 24),
            (0xc5, 264),
            (0xaa, 32_256),
            (0x2a, -32_256),
            (0x80, 5_504),
            (0x00, -5_504),
            (0xff, 848),
        ] {
            assert_eq!(from_alaw(code), sample, "{code:02x}");
        }
        assert_eq!((to_ulaw(0), to_ulaw(i16::MAX), to_ulaw(i16::MIN)), (0xff, 0x80, 0x00));
        assert_eq!((to_alaw(0), to_alaw(i16::MAX), to_alaw(i16::MIN)), (0xd5, 0xaa, 0x2a));
        assert_eq!((to_alaw(-1), to_ulaw(-1)), (0x55, 0x7f));
    }

    #[test]
    fn codes_round_trip_through_samples() {
        for code in 0..=u8::MAX {
            assert_eq!(to_alaw(from_alaw(code)), code);
            // The two zeros of µ-law are the same number.
            let expected = if code == 0x7f { 0xff } else { code };
            assert_eq!(to_ulaw(from_ulaw(code)), expected);
        }
    }
}
