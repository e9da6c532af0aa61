//! Recording of the times at which single samples pass a link.

use super::*;

#[test]
fn a_traced_stream_records_arrival_and_departure_times() {
    let (mut a, mut b) = pair(LinkSpec::default());
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    a.link.open_stream(STREAM, to(node(2), Kind::Data, None));
    let published_at = now - Duration::from_millis(5);
    let pass = |a: &mut End, seq| {
        assert!(a.link.handle_sample(now, STREAM, sample(published_at, seq, 10)));
        a.poll(now + Duration::from_millis(2));
        a.link.passages(STREAM).copied().collect::<Vec<_>>()
    };
    assert_eq!(pass(&mut a, 0), [], "it is not traced");
    a.link.trace(PublisherId { index: 9, ..publisher() }, true);
    assert_eq!(pass(&mut a, 1), [], "another one is traced");
    a.link.trace(publisher(), true);
    let [passage] = pass(&mut a, 2)[..] else { panic!("one arrived since") };
    assert_eq!((passage.seq, passage.came_ns), (2, 5_000_000));
    assert!(passage.left_ns.is_some_and(|left| left >= 7_000_000), "{passage:?}");
    a.link.trace(publisher(), true);
    assert_eq!(pass(&mut a, 3).len(), 2, "asking again keeps the trace");
    a.link.trace(publisher(), false);
    assert_eq!(pass(&mut a, 4), []);
}
