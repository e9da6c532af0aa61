//! Samples in transit when a hop goes down are counted, also on streams that close meanwhile.

use super::*;

/// Returns a hop with a stream that has lost some samples in transit while the hop goes down.
fn cut(carrier: Carrier) -> (End, End, Instant) {
    let spec = LinkSpec { carrier, ..LinkSpec::default() };
    let (mut a, mut b) = (End::new(1, 2, spec.clone()), End::new(2, 1, spec));
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    a.link.open_stream(STREAM, to(node(2), Kind::Data, None));
    for seq in 0..3 {
        a.link.handle_sample(now, STREAM, sample(now, seq, 10));
    }
    talk(&mut now, &mut a, &mut b, 1);
    assert_eq!(b.got, [0, 1, 2]);
    // These are sent and never arrive.
    for seq in 3..8 {
        a.link.handle_sample(now, STREAM, sample(now, seq, 10));
        a.poll(now);
    }
    a.sent.clear();
    (a, b, now)
}

/// Resumes both ends after `silence` without any arrival.
fn go_on(now: &mut Instant, silence: Duration, (a, b): (&mut End, &mut End)) {
    *now += silence;
    for end in [&mut *a, &mut *b] {
        end.link.handle_timeout(*now);
        if end.link.epoch(end.other) == 0 {
            // The hop was forgotten and is found again, while the receiver has kept the streams.
            end.epoch = u32::try_from(now.as_nanos() / 100_000_000).unwrap();
            end.link.add_hop(*now, end.other, end.epoch);
        }
    }
    talk(now, a, b, 8);
    assert!(a.hop().is_up() && b.hop().is_up());
}

#[test]
fn samples_in_flight_are_counted_when_the_hop_returns() {
    for carrier in [Carrier::Ordered, Carrier::Datagrams] {
        for silence in [Duration::from_secs(2), Duration::from_secs(60)] {
            let (mut a, mut b, mut now) = cut(carrier);
            go_on(&mut now, silence, (&mut a, &mut b));
            a.link.handle_sample(now, STREAM, sample(now, 8, 10));
            talk(&mut now, &mut a, &mut b, 2);
            assert_eq!((b.got.as_slice(), b.lost), (&[0, 1, 2, 8][..], 5), "{carrier:?} {silence}");
            assert_eq!(a.link.counters(STREAM).unwrap().sent, 9);
            // The loss is counted once.
            a.link.close_stream(STREAM);
            talk(&mut now, &mut a, &mut b, 2);
            assert_eq!(b.lost, 5, "{carrier:?} {silence}");
        }
    }
}

#[test]
fn a_stream_that_ended_while_its_hop_was_down_is_counted() {
    for carrier in [Carrier::Ordered, Carrier::Datagrams] {
        for silence in [Duration::from_secs(2), Duration::from_secs(60)] {
            let (mut a, mut b, mut now) = cut(carrier);
            now += silence;
            a.link.handle_timeout(now);
            a.link.close_stream(STREAM);
            go_on(&mut now, Duration::from_millis(1), (&mut a, &mut b));
            assert_eq!(b.lost, 5, "{carrier:?} {silence}");
        }
    }
}

#[test]
fn a_close_in_flight_is_sent_again() {
    let (mut a, mut b, mut now) = cut(Carrier::Ordered);
    a.link.close_stream(STREAM);
    a.poll(now);
    assert!(!a.sent.is_empty());
    a.sent.clear();
    go_on(&mut now, Duration::from_secs(2), (&mut a, &mut b));
    assert_eq!(b.lost, 5);
}

#[test]
fn closes_for_neighbours_that_never_return_are_bounded() {
    let mut link = Link::new(LinkSpec::default());
    for id in 2..500 {
        link.add_hop(at(id), node(id), 1);
        for _ in 0..100 {
            link.hops.notify_close(node(id), Notice::Close(0, 1));
        }
        link.remove_hop(node(id));
    }
    let mut kept = 0;
    for id in 2..500 {
        link.add_hop(at(id), node(id), 2);
        kept += link.hops.get(node(id)).unwrap().notices.len();
    }
    assert_eq!(kept, 64 * 100);
}
