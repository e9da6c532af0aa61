//! The greatest queue of contracted samples.

use super::*;
use crate::plan::Demand;

fn bits(bits: u64) -> Option<Capacity> {
    Capacity::from_bits_per_s(bits).ok()
}

/// A contract of one sample per 100 ms, due after `deadline` ms.
fn contract(deadline: u64) -> Contract {
    Contract {
        period: Duration::from_millis(100),
        deadline: Duration::from_millis(deadline),
        loss: paceline_sched::LossTolerance::NONE,
        late: Late::Send,
        jitter: Duration::ZERO,
    }
}

#[test]
fn the_greatest_queue_counts_contracted_samples_with_headers_until_they_left() {
    let (mut a, mut b) = pair(LinkSpec { capacity: bits(2_000_000), ..LinkSpec::default() });
    let mut now = at(10_000);
    talk(&mut now, &mut a, &mut b, 8);
    assert!(a.link.open_stream(STREAM, to(node(2), Kind::Data, Some(contract(500)))));
    assert!(a.link.open_stream(StreamIndex(1), to(node(2), Kind::Data, None)));
    for seq in 0..20 {
        a.link.handle_sample(now, StreamIndex(1), sample(now, seq, 5_000));
    }
    assert_eq!(a.link.greatest_depth(), 0, "best effort is not counted");
    for seq in 0..3 {
        a.link.handle_sample(now, STREAM, sample(now, seq, 1_090));
    }
    assert_eq!(a.link.greatest_depth(), 3 * 1_200);
    // All three leave, and one more is a smaller queue.
    talk(&mut now, &mut a, &mut b, 200);
    assert_eq!(a.link.queued(STREAM), 0);
    a.link.handle_sample(now, STREAM, sample(now, 3, 1_090));
    assert_eq!(a.link.greatest_depth(), 3 * 1_200);
    // A best-effort stream that gets a contract does not count its queue, which the next sample replaces.
    for seq in 20..30 {
        a.link.handle_sample(now, StreamIndex(1), sample(now, seq, 5_000));
    }
    let queue = a.link.queued(StreamIndex(1)) as u64;
    assert!(queue > 1);
    now += Duration::from_millis(1);
    a.link.update_stream(now, StreamIndex(1), to(node(2), Kind::Data, Some(contract(9_000))));
    assert_eq!(a.link.queued(StreamIndex(1)) as u64, queue);
    assert!(a.link.handle_waiting(now, at(10_000), StreamIndex(1), sample(now, 30, 5_000)));
    a.link.handle_sample(now, StreamIndex(1), sample(now, 31, 5_000));
    assert_eq!((a.link.queued(StreamIndex(1)), a.link.greatest_depth()), (1, 1_200 + 5_550));
    let counters = a.link.counters(StreamIndex(1)).unwrap_or_default();
    assert_eq!(counters.drops.of(DropReason::Superseded), queue + 1);
}

#[test]
fn a_contract_has_room_for_all_samples_that_its_deadline_covers() {
    let every = Duration::from_micros(500);
    let spec = |deadline| {
        let contract = Contract { period: every, ..contract(deadline) };
        let bytes = 10_000;
        let demand = Demand {
            bytes,
            burst: bytes,
            bytes_per_s: 20_000_000,
            declared: true,
            varies: false,
            saves_loss: false,
        };
        StreamSpec { demand: Some(demand), ..to(node(2), Kind::Data, Some(contract)) }
    };
    // 2,000 samples and 20 MB per second, above the limits of best effort.
    for (deadline, most) in [(1_000, 2_002), (100, 202)] {
        let spec = spec(deadline);
        assert!(spec.waiting_bytes_max() >= 20_000 * usize::try_from(deadline).unwrap());
        let (mut a, mut b) = pair(LinkSpec { capacity: bits(2_000_000), ..LinkSpec::default() });
        let mut now = at(10_000);
        talk(&mut now, &mut a, &mut b, 8);
        a.link.open_stream(STREAM, spec);
        let kept =
            (0..3_000).filter(|&seq| a.link.handle_sample(now, STREAM, sample(now, seq, 9_000)));
        assert_eq!(kept.count(), most);
    }
}
