//! Expiry of best-effort samples that were queued for too long.

use super::*;
use paceline_sched::Policy;

const WAIT: Duration = Duration::from_secs(2);

fn fresh(kind: Kind) -> StreamSpec {
    StreamSpec { max_wait: Some(WAIT), ..to(node(2), kind, None) }
}

fn thin(policy: Policy) -> LinkSpec {
    let capacity = Capacity::from_bits_per_s(80_000).ok();
    LinkSpec { capacity, policy, ..LinkSpec::default() }
}

fn expired(link: &Link, index: StreamIndex) -> u64 {
    link.counters(index).unwrap().drops.of(DropReason::Expired)
}

fn sums_agree(link: &Link) {
    for (index, _, counters, waiting) in link.streams() {
        let gone = counters.sent + counters.drops.total() + waiting as u64;
        assert_eq!(counters.offered, gone, "{index:?}: {counters:?}");
    }
}

#[test]
fn overdue_samples_expire_and_started_samples_are_completed() {
    for policy in Policy::ALL {
        let (mut a, mut b) = pair(thin(policy));
        let mut now = at(10_000);
        talk(&mut now, &mut a, &mut b, 8);
        a.link.open_stream(STREAM, fresh(Kind::Data));
        // The link needs about six seconds for it.
        a.link.handle_sample(now, STREAM, sample(now, 0, 50_000));
        talk(&mut now, &mut a, &mut b, 1);
        a.link.handle_sample(now, STREAM, sample(now, 1, 100));
        talk(&mut now, &mut a, &mut b, 100);
        a.link.handle_sample(now, STREAM, sample(now, 2, 100));
        talk(&mut now, &mut a, &mut b, 80);
        assert_eq!((&b.got[..], expired(&a.link, STREAM)), (&[0, 2][..], 1), "{policy}");
        assert_eq!(b.lost, 0, "{policy}: no byte of it was sent");
        sums_agree(&a.link);
    }
}

#[test]
fn a_full_queue_replaces_an_expired_sample_with_a_fresh_one() {
    let (mut a, mut b) = pair(thin(Policy::default()));
    let mut now = at(10_000);
    talk(&mut now, &mut a, &mut b, 8);
    a.link.open_stream(STREAM, fresh(Kind::Data));
    let (mut seq, since) = (0, now - WAIT);
    while a.link.has_room(now, STREAM) {
        assert!(a.link.handle_waiting(now, since, STREAM, sample(since, seq, 1_000)));
        seq += 1;
    }
    assert_eq!(seq, 256);
    assert!(!a.link.has_room(now, STREAM), "it may wait this long");
    assert!(!a.link.handle_sample(now, STREAM, sample(now, seq, 1_000)));
    now += Duration::from_nanos(1);
    assert!(a.link.has_room(now, STREAM));
    assert!(a.link.handle_sample(now, STREAM, sample(now, seq + 1, 1_000)));
    assert_eq!(expired(&a.link, STREAM), 1, "one made room");
    sums_agree(&a.link);
    talk(&mut now, &mut a, &mut b, 2);
    assert_eq!((&b.got[..], expired(&a.link, STREAM)), (&[seq + 1][..], 256));
    sums_agree(&a.link);
}

#[test]
fn waiting_time_includes_the_time_before_the_link_has_room() {
    let (mut a, mut b) = pair(thin(Policy::default()));
    let mut now = at(10_000);
    talk(&mut now, &mut a, &mut b, 8);
    a.link.open_stream(STREAM, fresh(Kind::Data));
    let old = now - Duration::from_millis(2_001);
    // It is older, but was queued only now.
    a.link.handle_sample(now, STREAM, sample(old, 0, 10));
    a.link.handle_waiting(now, old, STREAM, sample(old, 1, 10));
    talk(&mut now, &mut a, &mut b, 2);
    assert_eq!((&b.got[..], expired(&a.link, STREAM)), (&[0][..], 1));
}

#[test]
fn pictures_that_depend_on_an_expired_picture_expire_with_it() {
    use Kind::{VideoI, VideoP};
    let (mut a, mut b) = pair(thin(Policy::default()));
    let mut now = at(10_000);
    talk(&mut now, &mut a, &mut b, 8);
    a.link.open_stream(STREAM, fresh(VideoI));
    let offer = |a: &mut End, now, seq, kind, len| {
        a.link.handle_sample(now, STREAM, RawSample { kind, ..sample(now, seq, len) })
    };
    offer(&mut a, now, 0, VideoI, 30_000);
    talk(&mut now, &mut a, &mut b, 1);
    offer(&mut a, now, 1, VideoP, 100);
    talk(&mut now, &mut a, &mut b, 50);
    for (seq, kind) in (2..).zip([VideoP, VideoI, VideoP]) {
        assert!(offer(&mut a, now, seq, kind, 100));
    }
    talk(&mut now, &mut a, &mut b, 80);
    assert_eq!(b.got, [0, 3, 4]);
    let drops = a.link.counters(STREAM).unwrap().drops;
    assert_eq!((drops.of(DropReason::Expired), drops.of(DropReason::Undecodable)), (1, 1));
    // Without a queued I behind it, later pictures are dropped until the next I.
    offer(&mut a, now, 5, VideoI, 30_000);
    talk(&mut now, &mut a, &mut b, 1);
    offer(&mut a, now, 6, VideoP, 100);
    talk(&mut now, &mut a, &mut b, 80);
    assert!(!offer(&mut a, now, 7, VideoP, 100) && offer(&mut a, now, 8, VideoI, 100));
    talk(&mut now, &mut a, &mut b, 8);
    assert_eq!(b.got, [0, 3, 4, 5, 8]);
    sums_agree(&a.link);
}

#[test]
fn large_expired_backlogs_are_dropped_in_portions() {
    let (mut a, mut b) = pair(thin(Policy::default()));
    let mut now = at(10_000);
    talk(&mut now, &mut a, &mut b, 8);
    for index in 0..8 {
        a.link.open_stream(StreamIndex(index), fresh(Kind::Data));
        let since = now - Duration::from_millis(2_001);
        (0..256).for_each(|seq| {
            a.link.handle_waiting(now, since, StreamIndex(index), sample(since, seq, 1_000));
        });
    }
    let gone = |a: &End| (0..8).map(|index| expired(&a.link, StreamIndex(index))).sum::<u64>();
    let mut turns = 0;
    while gone(&a) < 8 * 256 {
        let before = gone(&a);
        a.poll(now);
        turns += 1;
        assert!(gone(&a) - before <= 512 + 256, "an iteration drops at most this number");
        assert!(turns < 10 && a.link.poll_timeout() <= now || gone(&a) == 8 * 256);
    }
    assert!(turns >= 3, "{turns}");
    sums_agree(&a.link);
    assert!(!a.link.is_behind());
}

#[test]
fn a_delaying_class_is_not_charged_for_expired_samples() {
    // The first rate is limited by the class, the second by the link, of which the class has a fifth.
    for (rate, most) in [(100, 101), (10_000, 88)] {
        let police = format!("leaky:4p,{rate}p/s else delay").parse().unwrap();
        let police = Some(ClassPolice::from(&police));
        let class = classes::tagged("flood", "flood");
        let classes = [LinkClass { police, share: Some(20), ..class }];
        let mut rig = classes::Rig::new(&classes, &["flood", "other"]);
        let streams = if rate == 100 { 1 } else { 2 };
        let spec = rig.a.link.spec_of(STREAM).unwrap().clone();
        rig.a.link.update_stream(rig.now, STREAM, StreamSpec { max_wait: Some(WAIT), ..spec });
        let (start, mut seen, mut oldest) = (rig.now, 0, Duration::ZERO);
        // One sample per stream and millisecond, so its number gives the time of the offer.
        for _ in 0..10_000 {
            rig.run(1, streams, 1);
            for seq in &rig.b.got[seen..] {
                oldest = oldest.max(
                    rig.now.since(start + Duration::from_millis((seq - 1) / streams as u64 + 1)),
                );
            }
            seen = rig.b.got.len();
        }
        let sent = rig.sent(0);
        println!("{rate} a second: {sent} sent, the oldest after {oldest}");
        assert!(oldest <= WAIT.saturating_add(Duration::from_millis(30)), "{rate}: {oldest}");
        assert!(sent <= most * 10 && sent * 20 >= most * 10 * 19, "{rate}: {sent}");
        sums_agree(&rig.a.link);
    }
}
