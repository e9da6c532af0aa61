//! The limit of data in flight, and requests for acknowledgements.

use super::*;

#[test]
fn the_window_without_a_capacity_is_twelve_frames() {
    let (mut a, mut b) = pair(LinkSpec::default());
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    a.link.open_stream(STREAM, to(node(2), Kind::Data, None));
    for (seq, len) in (0..200).zip((1_000..).step_by(300)) {
        a.link.handle_sample(now, STREAM, sample(now, seq, len));
        a.poll(now);
        assert!(a.hop().flight_frames() <= hops::WINDOW_FRAMES);
        assert!(a.hop().flight_bytes() <= hops::window_bytes(&a.link.pacer.wire));
    }
    let sent = a.sent.len();
    (0..100).for_each(|_| a.link.handle_control(node(2), vec![0; 59_000].into()));
    a.poll(now);
    assert!(a.sent.len() - sent <= 3, "control has three frames more");
    assert_eq!(a.link.poll_timeout(), a.hop().next_frame(), "it does not wake for control");
    talk(&mut now, &mut a, &mut b, 40);
    assert_eq!(b.got.len() as u64, a.link.counters(STREAM).unwrap().sent);
    assert_eq!(b.control.len(), 100);
    assert!(a.hop().flight_frames() == 0 && a.hop().flight_bytes() == 0);
}

#[test]
fn small_samples_request_acks_before_they_fill_the_window() {
    let (mut a, mut b) = pair(LinkSpec::default());
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    a.link.open_stream(STREAM, to(node(2), Kind::Data, None));
    for seq in 0..200 {
        a.link.handle_sample(now, STREAM, sample(now, seq, 64));
        a.poll(now);
        for frame in std::mem::take(&mut a.sent) {
            b.hear(now, frame);
        }
        b.poll(now);
        for frame in std::mem::take(&mut b.sent) {
            a.hear(now, frame);
        }
        assert_eq!(b.got.len() as u64, seq + 1, "each leaves at once");
        now += Duration::from_millis(5);
    }
}

#[test]
fn lost_credits_are_requested_again() {
    let (mut a, mut b) = pair(LinkSpec::default());
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    a.link.open_stream(STREAM, to(node(2), Kind::Data, None));
    for round in 0..20 {
        (0..20).for_each(|seq| {
            a.link.handle_sample(now, STREAM, sample(now, round * 20 + seq, 50_000));
        });
        a.poll(now);
        // Only the frames arrive in one round, and only the acknowledgements in the next.
        let frames: Vec<Bytes> = a.sent.drain(..).collect();
        if round % 2 == 1 {
            frames.into_iter().for_each(|frame| b.hear(now, frame));
            b.poll(now);
            b.sent.clear();
        }
        now += Duration::from_millis(60);
    }
    let before = b.got.len();
    talk(&mut now, &mut a, &mut b, 20);
    assert_eq!(a.hop().flight_frames(), 0);
    assert!(a.link.frames_lost() > 0);
    assert!(b.got.len() > before);
    let counters = a.link.counters(STREAM).unwrap();
    assert_eq!(counters.offered, counters.sent + counters.drops.total());
    assert_eq!(b.got.len() as u64 + b.lost, counters.sent, "losses are counted");
    assert!(b.got.is_sorted_by(|x, y| x < y));
}

#[test]
fn bytes_per_hop_add_up_to_bytes_of_the_link_after_an_outage() {
    for capacity in [None, Some(Capacity::from_bits_per_s(2_000_000).unwrap())] {
        let (mut a, mut b) = pair(LinkSpec { capacity, ..LinkSpec::default() });
        let mut now = at(1_000);
        talk(&mut now, &mut a, &mut b, 4);
        a.link.open_stream(STREAM, to(node(2), Kind::Data, None));
        for seq in 0..20 {
            a.link.handle_sample(now, STREAM, sample(now, seq, 3_000));
            // A sample takes three frames on the slow link, and one frame leaves at a time.
            talk(&mut now, &mut a, &mut b, 4);
        }
        let before = a.hop().wire_bytes();
        assert!(before > 60_000, "{before}");
        now += Duration::from_secs(2);
        a.link.handle_timeout(now);
        assert!(!a.hop().is_up(), "it was silent for too long");
        talk(&mut now, &mut a, &mut b, 4);
        assert!(a.hop().is_up() && a.hop().wire_bytes() > before);
        assert_eq!(a.hop().wire_bytes(), a.link.sent().1);
    }
}
