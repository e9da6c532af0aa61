//! Conversion of the number of channels.

/// Mixes interleaved levels from `from` channels to `to`, both at least 1.
///
/// With fewer channels, output `j` is the mean of the inputs `j`, `j + to`, `j + 2 to`, …: a single
/// output is the mean of all. With more, the inputs are repeated in order: a single input is copied to
/// all.
pub(super) fn mix(levels: &[f32], from: usize, to: usize, out: &mut Vec<f32>) {
    out.clear();
    for frame in levels.chunks_exact(from) {
        if to >= from {
            out.extend(frame.iter().cycle().take(to));
        } else {
            out.extend((0..to).map(|channel| {
                let inputs = frame.iter().skip(channel).step_by(to);
                let count: f32 = inputs.clone().map(|_| 1.0).sum();
                inputs.sum::<f32>() / count
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed(levels: &[f32], from: usize, to: usize) -> Vec<f32> {
        let mut out = vec![9.0];
        mix(levels, from, to, &mut out);
        out
    }

    #[test]
    fn channels_are_averaged_copied_and_repeated() {
        assert_eq!(mixed(&[0.5, -0.25, 1.0, 0.0], 2, 1), [0.125, 0.5]);
        assert_eq!(mixed(&[0.5, -0.25], 1, 2), [0.5, 0.5, -0.25, -0.25]);
        assert_eq!(mixed(&[1.0, 0.5, 0.0, -0.5], 4, 2), [0.5, 0.0]);
        assert_eq!(mixed(&[1.0, 0.5, 0.25], 3, 2), [0.625, 0.5]);
        assert_eq!(mixed(&[1.0, 0.5], 2, 3), [1.0, 0.5, 1.0]);
        assert_eq!(mixed(&[1.0, 0.5], 2, 2), [1.0, 0.5]);
    }
}
