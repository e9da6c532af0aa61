//! Figures 17 and 18 and table 1: the video's frames, their latency over the reserved rate, and the
//! receiver's buffers.

use super::film::FRAMES;
use super::loads::end_systems;
use super::millis;
use super::paper::{
    FRAME, FRAMES_PER_S, PACKET, RouterCosts, TimerBucket, VIDEO_BURST, update_period,
};
use super::testbed::{Gate, Outcome, Setup, Video, exact_gate, run};
use crate::bench::report::{Bound, Section, Unit};
use crate::bench::stats::{count, float};
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

/// The sender's pauses in table 1: how often, and how long. The text blames large frames that fall together, but all of them
/// need the same number of packets. Something else delayed the paper's frames, and its text has no figure for it.
const PAUSES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_millis(100));
/// The shortest run in which the cushion of the start does not count.
const LEAST: Duration = Duration::from_secs(60);

pub(super) fn sections(time: Duration) -> Result<Vec<Section>> {
    let time = time.max(LEAST);
    let title = "Figure 18: latency of frames over the reserved rate";
    let mut latencies = Section::new(title).against_paper().repeatable();
    let title = "Table 1: share of time with n full buffers at the receiver";
    let mut buffers = Section::new(title).against_paper().repeatable();
    let costs = RouterCosts::of_text()?;
    let end_systems = end_systems(costs)?;
    let (mut slowest, mut least) = (f64::INFINITY, 0.0);
    for rate in RATES {
        let timer = TimerBucket::new(VIDEO_BURST, rate.bits_per_s).context("no update period")?;
        let timer = Gate::Timer(timer);
        let exact = exact_gate(VIDEO_BURST, rate.bits_per_s)?;
        let outcome = |gate, pauses| {
            let video = Video { pauses, ..Video::of_paper(gate, end_systems) };
            run(Setup::alone(costs, video, time)?).map_err(anyhow::Error::from)
        };
        let theirs = outcome(timer.clone(), None)?;
        over_rate(&mut latencies, rate, [&theirs, &outcome(exact, None)?], slowest)?;
        slowest = theirs.average_millis();
        least = table_1(&mut buffers, rate, &outcome(timer, Some(PAUSES))?, least);
    }
    latencies.note(
        "Simulated: frames of figure 17, and before each a control packet, which takes a credit (§4.3.2 reserves a sixth \
         packet for them). The time of the end systems is the one of load 1. At 6 Mbit/s six credits take 36 ms, more than a \
         frame lasts, so the sender's queue is always full and loses frames. From 7.2 Mbit/s on the bucket is full before each \
         frame, so a higher rate makes no difference here; the paper's latencies fall further.",
    );
    latencies.note(
        "The text states that latencies fall as the rate grows, and two times from an empty bucket: at least 30 ms at \
         6 Mbit/s, 16 to 20 ms at 9 Mbit/s. Our bucket charges the last packet its bytes, the paper's charges a whole \
         packet.",
    );
    let (every, length) = PAUSES;
    buffers.note(format!(
        "Simulated with the paper's timer, and a receiver that fills {CUSHION} buffers before it plays. Assumed: the sender \
         pauses for {length} every {every}, because the text does not state the delays that emptied the buffers. So the \
         shares of 7.2 to 12 Mbit/s are no reproduction of the paper's, only their order is: the higher the rate, the sooner \
         the cushion is back. The empty cushion at 6 Mbit/s needs no pause. Two entries of the paper are \"< 0.1 %\", shown \
         as 0.1 %."
    ));
    Ok(vec![frames(), latencies, buffers])
}

fn frames() -> Section {
    let mut section = Section::new("Figure 17: the video's frames").against_paper().repeatable();
    section.show("largest frame (input), bytes", Unit::Count, float(FRAME), 21_680.0);
    let peak = float(FRAME * 8) / 33_000.0;
    let near = Bound::Near(5.25, 0.01);
    section.must("one largest frame per 33 ms, Mbit/s", Unit::Ratio, peak, 5.25, near);
    let mean = float(FRAMES.iter().sum::<u64>()) / count(FRAMES.len());
    let rate = mean * 8.0 * float(FRAMES_PER_S) / 1e6;
    let near = Bound::Near(5.0, 0.5);
    section.must("mean of all frames, Mbit/s", Unit::Ratio, rate, 5.0, near);
    let least = float(FRAMES.iter().copied().min().unwrap_or_default());
    section.show("smallest frame, bytes", Unit::Count, least, f64::NAN);
    section.note(
        "The distribution of sizes exists only as a graph. These are the pictures of another film, as JPEG of 640x480 with \
         one quantisation, multiplied by 0.98 so that the largest has the size of the text.",
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

/// Adds a rate to figure 18: the runs with the paper's policer and with Paceline's, and the paper's average at the rate
/// before.
fn over_rate(
    section: &mut Section,
    rate: Rate,
    [theirs, ours]: [&Outcome; 2],
    before: f64,
) -> Result<()> {
    let Rate { bits_per_s, frame, .. } = rate;
    let timer = TimerBucket::new(VIDEO_BURST, bits_per_s).context("no update period")?;
    let period = millis(update_period(bits_per_s).context("no update period")?);
    let mut stated = |quantity: &str, value, paper: f64| {
        let quantity = name(rate, quantity);
        if paper.is_nan() {
            section.show(&quantity, Unit::Millis, value, paper);
        } else {
            section.must(&quantity, Unit::Millis, value, paper, Bound::Near(paper, 0.0));
        }
    };
    stated("update period of the paper's timer", period, rate.period_ms);
    let coarse = millis(from_empty(Gate::Timer(timer), frame));
    let quantity = format!("{frame} bytes from an empty bucket, paper's timer");
    stated(&quantity, coarse, rate.from_empty_ms);
    let exact = millis(from_empty(exact_gate(VIDEO_BURST, bits_per_s)?, frame));
    let quantity = name(rate, &format!("{frame} bytes from an empty bucket, Paceline"));
    section.must(&quantity, Unit::Millis, exact, f64::NAN, Bound::AtMost(coarse));
    let quantity = name(rate, "average latency, paper's timer");
    let falls = Bound::AtMost(before + 0.001);
    let average = theirs.average_millis();
    if before.is_finite() {
        section.must(&quantity, Unit::Millis, average, f64::NAN, falls);
    } else {
        section.show(&quantity, Unit::Millis, average, f64::NAN);
    }
    let quantity = name(rate, "average latency, Paceline's policers");
    section.show(&quantity, Unit::Millis, ours.average_millis(), f64::NAN);
    let quantity = name(rate, "longest latency, paper's timer");
    section.show(&quantity, Unit::Millis, theirs.longest_millis(), f64::NAN);
    let quantity = name(rate, "frames lost by the sender's full queue, paper's timer");
    let all = count(theirs.latencies.len()) + float(theirs.lost);
    section.show(&quantity, Unit::Percent, 100.0 * float(theirs.lost) / all, f64::NAN);
    Ok(())
}

/// Adds a rate to table 1. Returns the percentage of time with 3 or 4 full buffers, which must exceed that of the rate
/// before.
fn table_1(section: &mut Section, rate: Rate, outcome: &Outcome, before: f64) -> f64 {
    let shares = buffer_shares(&outcome.done);
    for ((full, ours), paper) in (1..).zip(shares).zip(rate.buffers) {
        let quantity = name(rate, &format!("n = {full}"));
        section.show(&quantity, Unit::Percent, ours * 100.0, paper);
    }
    let [one, two, three, four] = shares.map(|share| share * 100.0);
    let [.., third, fourth] = rate.buffers;
    if before == 0.0 {
        let quantity = name(rate, "n = 1 and 2");
        let paper = rate.buffers.iter().take(2).sum();
        section.must(&quantity, Unit::Percent, one + two, paper, Bound::AtLeast(90.0));
    } else {
        let quantity = name(rate, "n = 3 and 4 (more than at the rate before)");
        let more = Bound::AtLeast(before);
        section.must(&quantity, Unit::Percent, three + four, third + fourth, more);
    }
    three + four
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

    /// Returns the percentage of time with 3 or 4 full buffers at 6 and 12 Mbit/s.
    fn cushions(has_control: bool, pauses: Option<(Duration, Duration)>) -> [f64; 2] {
        let costs = RouterCosts::of_text().unwrap();
        let end_systems = end_systems(costs).unwrap();
        [6_000_000, 12_000_000].map(|rate| {
            let timer = Gate::Timer(TimerBucket::new(VIDEO_BURST, rate).unwrap());
            let of_paper = Video::of_paper(timer, end_systems);
            let video = Video { has_control, pauses, ..of_paper };
            let outcome = run(Setup::alone(costs, video, LEAST).unwrap()).unwrap();
            let [.., three, four] = buffer_shares(&outcome.done);
            (three + four) * 100.0
        })
    }

    #[test]
    fn bounds_of_table_1_fail_without_control_packets_or_with_longer_pauses() {
        let [slow, fast] = cushions(true, Some(PAUSES));
        assert!(100.0 - slow >= 90.0 && fast > slow, "{slow} {fast}");
        // Planted: a sender whose control packets take no credit keeps its cushion at 6 Mbit/s.
        let [slow, _] = cushions(false, None);
        assert!(100.0 - slow < 90.0, "{slow}");
    }

    #[test]
    fn the_bound_of_figure_18_fails_if_rates_are_swapped() {
        let mut section = Section::new("planted").repeatable();
        let costs = RouterCosts::of_text().unwrap();
        let video = |rate| {
            let timer = Gate::Timer(TimerBucket::new(VIDEO_BURST, rate).unwrap());
            let video = Video::of_paper(timer, end_systems(costs).unwrap());
            run(Setup::alone(costs, video, LEAST).unwrap()).unwrap()
        };
        let (slow, fast) = (video(6_000_000), video(12_000_000));
        over_rate(&mut section, RATES[3], [&slow, &slow], fast.average_millis()).unwrap();
        assert!(!section.is_met());
    }
}
