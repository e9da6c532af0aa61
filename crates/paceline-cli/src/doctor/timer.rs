//! Measures the wake-up delay of a thread.

use super::row::{Row, State, line_of, ok_if};
use paceline_tool::show;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// The number and duration of the sleeps, about 200 ms in total.
const SLEEPS: usize = 200;
const SLEEP: Duration = Duration::from_millis(1);
/// The largest acceptable delay, a tenth of a deadline of 10 ms.
const LATE_MAX: Duration = Duration::from_millis(1);

/// Sleeps as link threads do and reports the wake-up delays.
pub(super) fn precision() -> Row {
    let measured = std::thread::Builder::new().name("doctor-timer".to_owned()).spawn(sleeps);
    let late = measured.ok().and_then(|thread| thread.join().ok());
    row(late, line_of("/proc/self/timerslack_ns").as_deref())
}

/// Returns the delay of each wake-up.
fn sleeps() -> Vec<Duration> {
    // As on link threads; otherwise the kernel adds 50 µs.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    (0..SLEEPS)
        .map(|_| {
            let begun = Instant::now();
            std::thread::sleep(SLEEP);
            begun.elapsed().saturating_sub(SLEEP)
        })
        .collect()
}

fn row(late: Option<Vec<Duration>>, slack_ns: Option<&str>) -> Row {
    let mut late = late.unwrap_or_default();
    late.sort_unstable();
    let at = |percent: usize| late.get((late.len() * percent / 100).min(late.len() - 1)).copied();
    let (found, state) = if late.is_empty() {
        ("unknown".to_owned(), State::Unknown)
    } else {
        let (median, most) = (at(50).unwrap_or_default(), at(90).unwrap_or_default());
        let millis = |time| show::millis(show::micros(time));
        let slack = slack_ns.map_or_else(String::new, |slack| format!(", slack {slack} ns"));
        (
            format!(
                "{} ms late, 9 in 10 below {} ms, longest {} ms{slack}",
                millis(median),
                millis(most),
                millis(late.last().copied().unwrap_or_default())
            ),
            ok_if(most < LATE_MAX),
        )
    };
    Row::new(
        "timer",
        &found,
        "9 in 10 below 1 ms",
        state,
        "give nodes a higher priority (Nice=-10 or CPUSchedulingPolicy=rr in the unit, chrt -r 10 \
         paceline node), leave a core idle, or remove a CPU quota (CPUQuota=, docker --cpus); \
         cpupower idle-set -D 10 prevents deep sleep states",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_in_ten_must_be_soon() {
        let millis = |millis: &[u64]| millis.iter().map(|n| Duration::from_millis(*n)).collect();
        let late = row(Some(millis(&[0, 0, 0, 0, 0, 0, 0, 0, 3, 3])), Some("50000"));
        assert_eq!(late.state, State::Lack);
        assert_eq!(
            late.found,
            "0.00 ms late, 9 in 10 below 3.00 ms, longest 3.00 ms, slack 50000 ns"
        );
        let once = row(Some(millis(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9])), None);
        assert_eq!(once.state, State::Ok);
        assert_eq!(row(None, None).state, State::Unknown);
    }
}
