//! Samples that follow a late one are ahead of the contract's clock, and are not delayed for longer.

use super::*;
use paceline_sched::{Late, LossTolerance};

const FILLERS: [StreamIndex; 3] = [StreamIndex(1), StreamIndex(2), StreamIndex(3)];
const PERIOD: Duration = Duration::from_millis(20);

fn contract() -> Contract {
    Contract {
        period: PERIOD,
        deadline: PERIOD,
        loss: LossTolerance::NONE,
        late: Late::Drop,
        jitter: Duration::ZERO,
    }
}

/// Returns the delay of each sample next to best effort that fills the link. `came` is the arrival time of
/// each sample, in milliseconds after the start of its period.
fn waits(policy: Policy, came: &[u64]) -> Vec<Duration> {
    let capacity = Capacity::from_bits_per_s(8_000_000).ok();
    let (mut a, mut b) = pair(LinkSpec { capacity, policy, ..LinkSpec::default() });
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    assert!(a.link.open_stream(STREAM, to(node(2), Kind::Data, Some(contract()))));
    for filler in FILLERS {
        assert!(a.link.open_stream(filler, to(node(2), Kind::Data, None)));
    }
    let mut filled = 1_000_000;
    let mut step = |now: Instant, a: &mut End, b: &mut End| {
        for filler in FILLERS {
            while a.link.has_room(now, filler) {
                a.link.handle_sample(now, filler, sample(now, filled, 50_000));
                filled += 1;
            }
        }
        a.poll(now);
        a.sent.drain(..).for_each(|frame| b.hear(now, frame));
        b.poll(now);
        b.sent.drain(..).for_each(|frame| a.hear(now, frame));
    };
    let start = now;
    let mut waits = Vec::new();
    for (period, late) in (0..).zip(came) {
        let comes = start + PERIOD.mul_div(period, 1) + Duration::from_millis(*late);
        while now < comes {
            now += Duration::from_micros(100);
            step(now, &mut a, &mut b);
        }
        a.link.handle_sample(now, STREAM, sample(now, period, 64));
        let is_here = |b: &End| b.got.contains(&period);
        while !is_here(&b) && now < comes + PERIOD.mul_div(4, 1) {
            now += Duration::from_micros(100);
            step(now, &mut a, &mut b);
        }
        waits.push(now.since(comes));
    }
    waits
}

#[test]
fn a_delayed_stream_recovers_its_schedule() {
    for policy in [Policy::Vds, Policy::DWCS, Policy::Edf, Policy::DelayEdd, Policy::StaticPriority]
    {
        let all = waits(policy, &[0, 0, 0, 12, 0, 0, 0, 0, 0, 0]);
        // One frame of another stream, which takes 2 ms, and the polling interval.
        let most = Duration::from_micros(2_300);
        assert!(all.iter().all(|wait| *wait <= most), "{policy}: {all:?}");
    }
}
