//! Figures 17 and 18 and table 1: the video's frames, their latency over the reserved rate, and the
//! receiver's buffers.

use super::millis;
use super::paper::{
    BUFFERS, FRAME, FRAMES_PER_S, PACKET, RouterCosts, TimerBucket, VIDEO_BURST, update_period,
};
use super::testbed::{Gate, Outcome, Setup, exact_gate, run};
use crate::bench::report::{Bound, Section, Unit};
use crate::bench::stats::float;
use anyhow::{Context as _, Result};
use paceline_sched::police::Conformance;
use paceline_sched::{Duration, Instant};

/// A reserved rate and the paper's figures for it; NaN if the text has none.
#[derive(Clone, Copy, Debug)]
struct Rate {
    bits_per_s: u64,
    /// The update period of the timer, in milliseconds.
    period_ms: f64,
    /// A frame in bytes, and its longest time from an empty bucket in milliseconds.
    frame: u64,
    from_empty_ms: f64,
    /// Percentages of time with 1 to 4 full buffers (table 1), which has "< 0.1 %" where 0.1 is
    /// here.
    buffers: [f64; CUSHION],
}

const RATES: [Rate; 4] = [
    Rate {
        bits_per_s: 6_000_000,
        period_ms: 6.0,
        frame: 22_000,
        from_empty_ms: 30.0,
        buffers: [37.0, 61.0, 0.1, 1.0],
    },
    Rate {
        bits_per_s: 7_200_000,
        period_ms: f64::NAN,
        frame: 22_000,
        from_empty_ms: f64::NAN,
        buffers: [25.0, 74.0, 0.1, 1.0],
    },
    Rate {
        bits_per_s: 9_000_000,
        period_ms: 4.0,
        frame: 20_000,
        from_empty_ms: 20.0,
        buffers: [9.0, 35.0, 10.0, 46.0],
    },
    Rate {
        bits_per_s: 12_000_000,
        period_ms: 3.0,
        frame: 20_000,
        from_empty_ms: f64::NAN,
        buffers: [1.0, 1.0, 75.0, 23.0],
    },
];
/// The buffers that the receiver fills before it begins to play (§4.3.1.2).
const CUSHION: usize = 4;

pub(super) fn sections(time: Duration) -> Result<Vec<Section>> {
    let title = "Figure 18: latency of frames over the reserved rate";
    let mut latencies = Section::new(title).against_paper();
    let title = "Table 1: share of time with n full buffers at the receiver";
    let mut buffers = Section::new(title).against_paper();
    for rate in RATES {
        let outcome = run(Setup {
            costs: RouterCosts::of_text()?,
            buffers: usize::try_from(BUFFERS)?,
            video: Some((exact_gate(VIDEO_BURST, rate.bits_per_s)?, FRAME)),
            file: None,
            background: None,
            time,
        })?;
        over_rate(&mut latencies, rate, &outcome)?;
        table_1(&mut buffers, rate, &outcome);
    }
    latencies.note(
        "The text states that latencies fall as the rate grows, and two times from an empty bucket: at least 30 ms at \
         6 Mbit/s, 16 to 20 ms at 9 Mbit/s. Our bucket charges the last packet its bytes, the paper's charges a whole \
         packet.",
    );
    latencies.note(
        "Our frames all have the largest size of the text, and end systems take no time. The bucket is full again before \
         the next frame at every rate, so the reserved rate makes no difference.",
    );
    buffers.note(
        "The paper's sender cannot refill empty buffers quickly, because its rate is limited. In our runs no frame is \
         late, so the buffers never empty. Two entries of the paper are \"< 0.1 %\", shown as 0.1 %.",
    );
    Ok(vec![frames(), latencies, buffers])
}

fn frames() -> Section {
    let mut section = Section::new("Figure 17: the video's frames").against_paper();
    section.show("largest frame, bytes", Unit::Count, float(FRAME), 21_680.0);
    let rate = float(FRAME * 8) / 33_000.0;
    section.show("one largest frame per 33 ms, Mbit/s", Unit::Ratio, rate, 5.25);
    let rate = float(FRAME * 8 * FRAMES_PER_S) / 1e6;
    section.show("30 largest frames per second, Mbit/s", Unit::Ratio, rate, f64::NAN);
    section.note(
        "The distribution of sizes exists only as a graph. Every frame here has the largest size.",
    );
    section
}

/// Returns the time from an empty bucket until the last packet of a frame may leave.
fn from_empty(mut gate: Gate, bytes: u64) -> Duration {
    while gate.police(Instant::ZERO, PACKET) == Conformance::Conforms {}
    let (mut now, mut left) = (Instant::ZERO, bytes);
    while left > 0 {
        match gate.police(now, left.min(PACKET)) {
            Conformance::Conforms => left -= left.min(PACKET),
            Conformance::At(at) => now = at,
            Conformance::Never => return Duration::MAX,
        }
    }
    now.since(Instant::ZERO)
}

fn name(rate: Rate, quantity: &str) -> String {
    format!("{} Mbit/s: {quantity}", float(rate.bits_per_s) / 1e6)
}

fn over_rate(section: &mut Section, rate: Rate, outcome: &Outcome) -> Result<()> {
    let Rate { bits_per_s, frame, .. } = rate;
    let timer = TimerBucket::new(VIDEO_BURST, bits_per_s).context("no update period")?;
    let period = millis(update_period(bits_per_s).context("no update period")?);
    let quantity = name(rate, "update period of the paper's timer");
    section.show(&quantity, Unit::Millis, period, rate.period_ms);
    let coarse = millis(from_empty(Gate::Timer(timer), frame));
    let quantity = name(rate, &format!("{frame} bytes from an empty bucket, paper's timer"));
    section.show(&quantity, Unit::Millis, coarse, rate.from_empty_ms);
    let exact = millis(from_empty(exact_gate(VIDEO_BURST, bits_per_s)?, frame));
    let quantity = name(rate, &format!("{frame} bytes from an empty bucket, Paceline"));
    section.must(&quantity, Unit::Millis, exact, f64::NAN, Bound::AtMost(coarse));
    let average = outcome.average_millis();
    section.show(&name(rate, "average latency"), Unit::Millis, average, f64::NAN);
    let longest = outcome.longest_millis();
    section.show(&name(rate, "longest latency"), Unit::Millis, longest, f64::NAN);
    Ok(())
}

fn table_1(section: &mut Section, rate: Rate, outcome: &Outcome) {
    let shares = buffer_shares(&outcome.done);
    for ((full, ours), paper) in (1..).zip(shares).zip(rate.buffers) {
        let quantity = name(rate, &format!("n = {full}"));
        section.show(&quantity, Unit::Percent, ours * 100.0, paper);
    }
}

/// Returns the shares of time with 1 to 4 full buffers, for frames received at these instants. Each
/// frame is shown for its time and then freed, unless it is the only one: then it is shown again.
fn buffer_shares(received: &[Instant]) -> [f64; CUSHION] {
    let mut nanos = [0_u64; CUSHION];
    let Some((&start, later)) = received.get(CUSHION - 1..).and_then(<[Instant]>::split_first)
    else {
        return [f64::NAN; CUSHION];
    };
    let (mut now, mut full, mut shown) = (start, CUSHION, 0_u64);
    let mut later = later.iter().copied().peekable();
    while let Some(&arrival) = later.peek() {
        let next = start + Duration::from_secs(1).mul_div(shown + 1, FRAMES_PER_S);
        let to = arrival.min(next);
        if let Some(share) = nanos.get_mut(full.min(CUSHION) - 1) {
            *share += to.since(now).as_nanos();
        }
        now = to;
        // A frame that arrives just in time is in its buffer before the next one is freed.
        if to == arrival {
            full += 1;
            later.next();
        } else {
            shown += 1;
            full = (full - 1).max(1);
        }
    }
    let all = float(nanos.iter().sum::<u64>().max(1));
    nanos.map(|nanos| float(nanos) / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_from_an_empty_bucket_waits_as_long_as_the_text_states() {
        let timer = |rate| Gate::Timer(TimerBucket::new(VIDEO_BURST, rate).unwrap());
        assert_eq!(from_empty(timer(6_000_000), 22_000), Duration::from_millis(30));
        assert_eq!(from_empty(timer(9_000_000), 20_000), Duration::from_millis(20));
        let exact = from_empty(exact_gate(VIDEO_BURST, 6_000_000).unwrap(), 22_000);
        assert!(exact <= Duration::from_millis(30), "{exact}");
    }

    #[test]
    fn late_frames_empty_the_buffers() {
        let at = |frame: u64, late: u64| {
            let time = Duration::from_secs(1).mul_div(frame, FRAMES_PER_S);
            Instant::ZERO + time.saturating_add(Duration::from_millis(late))
        };
        let steady: Vec<_> = (0..100).map(|frame| at(frame, 5)).collect();
        assert!(buffer_shares(&steady)[3] > 0.99, "{:?}", buffer_shares(&steady));
        // From the tenth frame on, everything is two frame times late.
        let late: Vec<_> =
            (0..1_000).map(|frame| at(frame, if frame < 10 { 5 } else { 72 })).collect();
        assert!(buffer_shares(&late)[1] > 0.9, "{:?}", buffer_shares(&late));
        assert!(buffer_shares(&steady[..3])[0].is_nan());
    }
}
