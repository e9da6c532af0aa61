//! Changes of a link's capacity while it carries streams.

use super::*;
use crate::plan::Demand;

/// Returns the bytes on the wire within one second, in which both ends are polled every millisecond.
fn second(now: &mut Instant, a: &mut End, b: &mut End) -> u64 {
    let before = a.link.sent().1;
    for seq in 0..1_000 {
        *now += Duration::from_millis(1);
        a.link.handle_sample(*now, STREAM, sample(*now, seq, 5_000));
        a.poll(*now);
        a.sent.drain(..).for_each(|frame| b.hear(*now, frame));
        b.poll(*now);
        b.sent.drain(..).for_each(|frame| a.hear(*now, frame));
    }
    a.link.sent().1 - before
}

#[test]
fn a_new_capacity_applies_at_once() {
    let bits = |bits| Capacity::from_bits_per_s(bits).unwrap();
    let (mut a, mut b) = pair(LinkSpec { capacity: Some(bits(2_000_000)), ..LinkSpec::default() });
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    a.link.open_stream(STREAM, to(node(2), Kind::Data, None));
    for (capacity, bytes_per_s) in [(2_000_000, 250_000), (400_000, 50_000), (8_000_000, 1_000_000)]
    {
        assert!(a.link.set_capacity(now, bits(capacity)));
        let bytes = second(&mut now, &mut a, &mut b);
        assert!((bytes_per_s * 95 / 100..=bytes_per_s * 102 / 100).contains(&bytes), "{bytes}");
    }
    let mut boundless = Link::new(LinkSpec::default());
    assert!(!boundless.set_capacity(now, bits(2_000_000)), "its hops are not paced");
}

#[test]
fn queued_samples_are_scheduled_with_the_new_capacity() {
    let bits = |bits| Capacity::from_bits_per_s(bits).unwrap();
    let (mut a, mut b) = pair(LinkSpec { capacity: Some(bits(2_000_000)), ..LinkSpec::default() });
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    let contract = Contract::every(Duration::from_millis(100)).unwrap().with_late(Late::Drop);
    a.link.open_stream(STREAM, to(node(2), Kind::Data, Some(contract)));
    a.link.handle_sample(now, STREAM, sample(now, 0, 2_000));
    // 9 ms at 2 Mbit/s, 185 ms at 100 kbit/s.
    a.link.set_capacity(now, bits(100_000));
    a.poll(now);
    let counters = a.link.counters(STREAM).unwrap();
    assert_eq!(counters.drops.of(DropReason::DeadlineMissed), 1);
    now += Duration::from_millis(100);
    a.link.handle_sample(now, STREAM, sample(now, 1, 100));
    talk(&mut now, &mut a, &mut b, 1);
    assert_eq!(b.got, [1], "fitting streams continue");
}

/// Returns the arrivals of two HFSC streams on a link of 400 kbit/s, on which a packet of other streams takes
/// 24 ms. The first stream may send a burst of 4,000 bytes within 100 ms, and sends half of that. The second
/// sends 800 bytes within `deadline` milliseconds. With `joined_before`, the streams join while the link
/// still has 8 Mbit/s.
fn arrivals(deadline: u64, joined_before: bool) -> Vec<(Instant, u64)> {
    const OTHER: StreamIndex = StreamIndex(1);
    let bits = |bits| Capacity::from_bits_per_s(bits).unwrap();
    let (capacity, policy) = (Some(bits(8_000_000)), Policy::Hfsc);
    let (mut a, mut b) = pair(LinkSpec { capacity, policy, ..LinkSpec::default() });
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    if !joined_before {
        a.link.set_capacity(now, bits(400_000));
    }
    for (index, deadline, bytes) in [(STREAM, 100, 4_000), (OTHER, deadline, 800)] {
        let contract = Contract {
            deadline: Duration::from_millis(deadline),
            ..Contract::every(Duration::from_millis(500)).unwrap()
        };
        let demand = Some(Demand {
            bytes,
            burst: bytes,
            bytes_per_s: 2 * bytes,
            declared: true,
            varies: false,
            saves_loss: false,
        });
        let spec = to(node(2), Kind::Data, Some(contract.with_late(Late::Send)));
        assert!(a.link.open_stream(index, StreamSpec { demand, ..spec }));
    }
    if joined_before {
        a.link.set_capacity(now, bits(400_000));
    }
    a.link.handle_sample(now, STREAM, sample(now, 1, 2_000));
    a.link.handle_sample(now, OTHER, sample(now, 2, 700));
    let mut arrived = Vec::new();
    for _ in 0..100 {
        a.poll(now);
        a.sent.drain(..).for_each(|frame| b.hear(now, frame));
        b.poll(now);
        b.sent.drain(..).for_each(|frame| a.hear(now, frame));
        arrived.extend(b.got.drain(..).map(|seq| (now, seq)));
        now += Duration::from_millis(1);
    }
    arrived
}

#[test]
fn streams_share_by_the_curves_of_the_current_capacity() {
    let mut orders = std::collections::BTreeSet::new();
    for deadline in 30..100 {
        let anew = arrivals(deadline, false);
        assert_eq!(anew.len(), 2, "{deadline} ms: {anew:?}");
        assert_eq!(arrivals(deadline, true), anew, "{deadline} ms, as if they had joined now");
        orders.insert(anew.iter().map(|(_, seq)| *seq).collect::<Vec<_>>());
    }
    assert_eq!(orders.len(), 2, "the deadline decides the order");
}
