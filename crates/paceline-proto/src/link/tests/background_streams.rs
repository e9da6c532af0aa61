//! Background streams are served after all live ones, and their samples are never replaced.

use super::*;

/// Returns the stream of each data segment, for each frame of a link without other load.
fn frames(a: &mut End) -> Vec<Vec<u32>> {
    use crate::wire::segment::Segment;
    let streams = |frame: Bytes| {
        let mut reader = Reader::new(frame);
        FrameHeader::read(&mut reader).unwrap();
        let mut streams = Vec::new();
        while !reader.is_empty() {
            if let Segment::Data { stream, .. } = Segment::read(&mut reader).unwrap() {
                streams.push(stream);
            }
        }
        streams
    };
    a.sent.drain(..).map(streams).filter(|streams| !streams.is_empty()).collect()
}

#[test]
fn a_background_stream_waits_for_all_live_ones_and_shares_no_frame_with_them() {
    let (mut a, mut b) = pair(LinkSpec::default());
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    let live = to(node(2), Kind::Data, None);
    a.link.open_stream(STREAM, StreamSpec { background: true, ..live.clone() });
    a.link.open_stream(StreamIndex(1), live);
    for seq in 0..3 {
        a.link.handle_sample(now, STREAM, sample(now, seq, 10_000));
        a.link.handle_sample(now, StreamIndex(1), sample(now, seq, 20_000));
    }
    a.poll(now);
    let got = frames(&mut a);
    assert_eq!(
        got,
        [vec![1, 1], vec![1, 1], vec![0, 0, 0]],
        "live ones first, in a frame of their own"
    );
}

#[test]
fn samples_of_a_background_stream_replace_none() {
    for kind in [Kind::State, Kind::Picture] {
        let (mut a, mut b) = pair(LinkSpec::default());
        let mut now = at(1_000);
        talk(&mut now, &mut a, &mut b, 4);
        let spec = StreamSpec { background: true, ..to(node(2), kind, None) };
        a.link.open_stream(STREAM, spec.clone());
        let mut offer = |seq| a.link.handle_sample(now, STREAM, sample(now, seq, 10));
        assert!((0..256).all(&mut offer) && !offer(256), "it buffers as much as a data stream");
        assert_eq!(a.link.counters(STREAM).unwrap().drops.of(DropReason::QueueFull), 1);
        // It stays a background stream after a change of its contract and after the hop returns.
        a.link.update_stream(
            now,
            STREAM,
            StreamSpec { upstream: Duration::from_millis(1), ..spec },
        );
        talk(&mut now, &mut a, &mut b, 1);
        assert_eq!(b.got, (0..256).collect::<Vec<_>>());
    }
}

#[test]
fn video_of_a_background_stream_waits_for_room_and_may_begin_inside_a_group() {
    let (mut a, mut b) = pair(LinkSpec::default());
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    let spec = StreamSpec { background: true, ..to(node(2), Kind::VideoI, None) };
    a.link.open_stream(STREAM, spec);
    let mut offer = |seq| {
        let kind = if seq % 2 == 0 { Kind::VideoB } else { Kind::VideoP };
        a.link.handle_sample(now, STREAM, RawSample { kind, ..sample(now, seq, 10) })
    };
    assert!((0..256).all(&mut offer));
    assert!(!a.link.has_room(now, STREAM), "its producer waits");
    talk(&mut now, &mut a, &mut b, 1);
    assert_eq!(b.got, (0..256).collect::<Vec<_>>());
}
