//! Samples that replace a queued one.

use super::*;
use paceline_sched::{Capacity, Policy};

/// Returns the number of positions sent in two seconds on a 1 Mbit/s link. They are offered 1,000 times per
/// second, next to an unlimited backlog of 64 KiB messages.
fn positions(policy: Policy) -> u64 {
    let capacity = Capacity::from_bits_per_s(1_000_000).unwrap();
    let (mut a, mut b) = pair(LinkSpec { capacity: Some(capacity), policy, ..LinkSpec::default() });
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    let position = StreamIndex(1);
    a.link.open_stream(STREAM, to(node(2), Kind::Data, None));
    a.link.open_stream(position, to(node(2), Kind::State, None));
    for seq in 0..2_000 {
        now += Duration::from_millis(1);
        a.link.handle_sample(now, STREAM, sample(now, seq, 65_536));
        a.link.handle_sample(now, position, sample(now, seq, 64));
        a.poll(now);
        a.sent.drain(..).for_each(|frame| b.hear(now, frame));
        b.poll(now);
        b.sent.drain(..).for_each(|frame| a.hear(now, frame));
    }
    a.link.counters(position).unwrap().sent
}

#[test]
fn a_replacing_sample_keeps_the_queue_position() {
    // FIFO is exempt: there a sample waits for everything that arrived before it.
    for policy in Policy::ALL.into_iter().filter(|policy| *policy != Policy::Fifo) {
        let sent = positions(policy);
        println!("{policy}: {sent} of 2,000");
        // A frame of 1,200 bytes takes 10 ms, and every other frame carries positions.
        assert!(sent > 80, "{policy}: {sent} of 2,000");
    }
}
