//! The rate of a track, from the RTP times of its pictures.

/// The highest plausible rate of pictures in Hz.
const HZ_MAX: f64 = 1_000.0;
/// The steps after which the smallest one is that of neighbours: three B pictures are sent behind their next reference.
const STEPS: u32 = 4;
/// Slower pictures, in parts of a second, are not waited for.
const SLOW_PARTS: u64 = 2;

/// The smallest step of the RTP times of a connection. Pictures that do not pass count too.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    last: Option<i64>,
    least: Option<u64>,
    steps: u32,
}

impl Pace {
    /// Notes the RTP time of a packet.
    pub(super) fn note(&mut self, time: i64) {
        let before = self.last.replace(time).filter(|before| *before != time);
        let Some(step) = before.map(|before| time.abs_diff(before)) else { return };
        self.least = Some(self.least.map_or(step, |least| least.min(step)));
        self.steps += 1;
    }

    /// Returns true if the smallest step is known, or would take long to know. `clock` is the RTP clock rate in Hz.
    pub(super) fn is_known(&self, clock: u32) -> bool {
        let slow = |step: u64| step >= u64::from(clock) / SLOW_PARTS;
        self.steps >= STEPS || self.least.is_some_and(slow)
    }

    /// Returns the rate in Hz, in hundredths since RTP times are rounded; `None` for times that are no clock.
    pub(super) fn hz(&self, clock: u32) -> Option<f64> {
        let ticks = u32::try_from(self.least?).ok().filter(|ticks| *ticks > 0)?;
        let hz = (f64::from(clock) / f64::from(ticks) * 100.0).round() / 100.0;
        (hz > 0.0 && hz <= HZ_MAX).then_some(hz)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(times: &[i64]) -> (bool, Option<f64>) {
        let mut pace = Pace::default();
        for time in times {
            pace.note(*time);
            pace.note(*time);
        }
        (pace.is_known(90_000), pace.hz(90_000))
    }

    #[test]
    fn the_smallest_step_is_the_rate_whatever_is_lost_or_reordered() {
        assert_eq!(rate(&[]), (false, None));
        assert_eq!(rate(&[0, 3_600]).1, Some(25.0));
        assert_eq!(rate(&[0, 90_000, 93_600, 97_200, 100_800]), (true, Some(25.0)), "a loss");
        assert_eq!(rate(&[0, 14_400, 7_200, 3_600, 10_800]), (true, Some(25.0)), "B pictures");
        assert_eq!(rate(&[0, 90_000]), (true, Some(1.0)), "a slow camera is not waited for");
        assert_eq!(rate(&[0, 1]).1, None, "no plausible rate");
    }
}
