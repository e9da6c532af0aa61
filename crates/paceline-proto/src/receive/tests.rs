use super::*;
use crate::ids::NodeId;
use crate::sample::{Encoding, Kind, Timestamp};
use crate::wire::NUMBER_STEP_MAX;
use crate::wire::segment::{
    ControlHead, DataHead, Retransmission, stream_id, write_abort, write_close, write_open,
    write_open_retransmitted,
};
use proptest::prelude::*;

const US: u32 = 5;
const NOW: Instant = Instant::from_millis(1_000);

fn publisher(index: u32) -> PublisherId {
    PublisherId { node: NodeId(1), index }
}

/// Returns a frame of epoch 1 with these segments.
fn frame(seq: u64, segments: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let header = FrameHeader { epoch: 1, known: US, seq: Some(seq), ..FrameHeader::default() };
    let mut out = Vec::new();
    header.write(&mut out);
    segments(&mut out);
    out.into()
}

fn head(total: usize) -> SampleHead {
    SampleHead {
        total,
        seq: 40,
        captured: Timestamp::default(),
        shift: 0,
        kind: Kind::Data,
        encoding: Encoding::Bytes,
        age: Duration::from_millis(3),
        doubt: None,
        attachment: None,
    }
}

/// Appends a piece of sample `number` on stream 0.
fn piece(out: &mut Vec<u8>, number: u64, total: usize, range: core::ops::Range<usize>) {
    let head = head(total);
    let first = (range.start == 0).then_some(&head);
    let (offset, len, last) = (range.start, range.len(), range.end == total);
    DataHead { stream: 0, number, first, offset, last, len }.write(out);
    out.extend(range.map(|byte| byte.to_le_bytes()[0]));
}

#[derive(Debug, Default, PartialEq)]
struct Got {
    samples: Vec<Bytes>,
    control: Vec<Bytes>,
    lost: Vec<(u64, DropReason)>,
}

fn hear(receiver: &mut Receiver, frames: impl IntoIterator<Item = Bytes>) -> Got {
    let mut got = Got::default();
    for frame in frames {
        let result = receiver.handle_frame(NOW, US, frame, |item| match item {
            Received::Sample { sample, .. } => got.samples.push(sample.payload),
            Received::Control(message) => got.control.push(message),
            Received::Lost { lost, .. } => got.lost.push((lost.samples, lost.reason)),
        });
        result.unwrap();
    }
    got
}

fn opened() -> Receiver {
    let mut receiver = Receiver::new();
    hear(&mut receiver, [frame(0, |out| write_open(0, publisher(0), &Form::FULL, out))]);
    receiver
}

#[test]
fn pieces_assemble_a_sample_with_its_age() {
    let mut receiver = opened();
    receiver.set_half_round_trip(Duration::from_millis(2));
    let mut published_at = None;
    for (seq, range) in [(1, 0..100), (2, 100..200), (3, 200..250)] {
        let frame = frame(seq, |out| piece(out, 0, 250, range));
        let later = NOW + Duration::from_millis(seq);
        let heard = receiver.handle_frame(later, US, frame, |item| {
            if let Received::Sample { sample, .. } = item {
                assert_eq!(sample.payload.len(), 250);
                published_at = Some(sample.published_at);
            }
        });
        assert_eq!(heard.unwrap().owed.unwrap().next(), seq + 1);
    }
    assert_eq!(published_at, Some(Instant::from_millis(1_001 - 3 - 2)), "as of its first piece");
}

#[test]
fn missing_samples_are_counted_once() {
    let lost_middle = [(1, 0..100), (3, 200..300)];
    let mut receiver = opened();
    let pieces = lost_middle.map(|(seq, range)| frame(seq, |out| piece(out, 0, 300, range)));
    assert_eq!(hear(&mut receiver, pieces).lost, [(1, DropReason::LinkLoss)]);
    // Samples 1 to 3 were lost with their frames.
    let got = hear(&mut receiver, [frame(9, |out| piece(out, 4, 10, 0..10))]);
    assert_eq!((got.lost, got.samples.len()), (vec![(3, DropReason::LinkLoss)], 1));
}

#[test]
fn samples_before_the_stream_was_known_are_counted() {
    let mut receiver = Receiver::new();
    let got = hear(&mut receiver, [frame(0, |out| piece(out, 0, 10, 0..10))]);
    assert_eq!((got, receiver.unknown_stream()), (Got::default(), 1));
    let open = frame(1, |out| {
        write_open(0, publisher(0), &Form::FULL, out);
        piece(out, 1, 10, 0..10);
    });
    let got = hear(&mut receiver, [open]);
    assert_eq!((got.lost, got.samples.len()), (vec![(1, DropReason::LinkLoss)], 1));
}

#[test]
fn abort_close_and_restart_end_a_started_sample() {
    let begin = |seq| frame(seq, |out| piece(out, 0, 300, 0..100));
    let abort = frame(2, |out| write_abort(0, 0, out));
    let got = hear(&mut opened(), [begin(1), abort]);
    assert_eq!(got.lost, [(1, DropReason::DeadlineMissed)]);
    let wrong = frame(2, |out| write_abort(0, 7, out));
    assert_eq!(hear(&mut opened(), [begin(1), wrong]), Got::default());
    let got = hear(&mut opened(), [begin(1), frame(2, |out| write_close(0, 1, out))]);
    assert_eq!(got.lost, [(1, DropReason::NoRoute)]);
    let mut receiver = opened();
    let mut out = Vec::new();
    FrameHeader { epoch: 2, known: US, ..FrameHeader::default() }.write(&mut out);
    let got = hear(&mut receiver, [begin(1), out.into(), begin(2)]);
    assert_eq!(got.lost, [(1, DropReason::LinkDown)]);
    assert_eq!(receiver.unfinished_bytes, 0);
}

/// Returns a frame of `epoch` with these segments.
fn frame_of(epoch: u32, seq: u64, segments: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let header = FrameHeader { epoch, known: US, seq: Some(seq), ..FrameHeader::default() };
    let mut out = Vec::new();
    header.write(&mut out);
    segments(&mut out);
    out.into()
}

#[test]
fn a_close_counts_the_samples_that_never_arrived() {
    let mut receiver = opened();
    let got = hear(&mut receiver, [frame(1, |out| piece(out, 0, 10, 0..10))]);
    assert_eq!((got.samples.len(), got.lost), (1, vec![]));
    // Samples 1 to 6 were sent after it.
    let got = hear(&mut receiver, [frame(9, |out| write_close(0, 7, out))]);
    assert_eq!(got.lost, [(6, DropReason::LinkLoss)]);
    let again = frame(10, |out| write_close(0, 7, out));
    assert_eq!(hear(&mut receiver, [again]), Got::default(), "once");
}

#[test]
fn samples_lost_with_a_hop_are_counted_when_it_returns() {
    let open = |out: &mut Vec<u8>| write_open(0, publisher(0), &Form::FULL, out);
    let mut receiver = opened();
    hear(&mut receiver, [frame(1, |out| piece(out, 0, 10, 0..10))]);
    // Samples 1 to 4 were in transit when the hop went down.
    let back = frame_of(2, 0, |out| {
        open(out);
        piece(out, 5, 10, 0..10);
    });
    let got = hear(&mut receiver, [back]);
    assert_eq!((got.samples.len(), got.lost), (1, vec![(4, DropReason::LinkDown)]));
    // The stream closed while the hop was down again, with samples 6 and 7 in transit.
    let got = hear(&mut receiver, [frame_of(3, 0, |out| write_close(0, 8, out))]);
    assert_eq!(got.lost, [(2, DropReason::LinkDown)]);
}

#[test]
fn datagrams_lost_with_a_hop_are_counted_when_it_returns() {
    let datagram = |epoch, seq, segments: &dyn Fn(&mut Vec<u8>)| {
        let datagrams = true;
        let header =
            FrameHeader { epoch, known: US, seq: Some(seq), datagrams, ..FrameHeader::default() };
        let mut out = Vec::new();
        header.write(&mut out);
        segments(&mut out);
        Bytes::from(out)
    };
    let open = |out: &mut Vec<u8>, first| {
        let retransmission = Retransmission { first, ..Retransmission::default() };
        write_open_retransmitted(0, publisher(0), &Form::FULL, retransmission, out);
    };
    let mut receiver = Receiver::new();
    let begin = datagram(1, 0, &|out| {
        open(out, 0);
        piece(out, 0, 10, 0..10);
    });
    assert_eq!(hear(&mut receiver, [begin]).samples.len(), 1);
    // Samples 5 and 6 are sent after the hop is back, and the second overtakes the first.
    let [first, second] = [(0, 5), (1, 6)].map(|(seq, number)| {
        datagram(2, seq, &|out| {
            open(out, 5);
            piece(out, number, 10, 0..10);
        })
    });
    let got = hear(&mut receiver, [second, first]);
    assert_eq!((got.samples.len(), got.lost), (2, vec![(4, DropReason::LinkDown)]));
    let got = hear(&mut receiver, [datagram(3, 0, &|out| write_close(0, 8, out))]);
    assert_eq!(got.lost, [(1, DropReason::LinkDown)]);
}

#[test]
fn a_reused_stream_index_is_not_mistaken_for_the_old_stream() {
    let mut receiver = opened();
    let next = stream_id(0, 1);
    let first = head(3);
    let put = |out: &mut Vec<u8>, number| {
        let first = Some(&first);
        DataHead { stream: next, number, first, offset: 0, last: true, len: 3 }.write(out);
        out.extend([1, 2, 3]);
    };
    // The frames that closed the old stream and opened the new one are lost.
    assert_eq!(hear(&mut receiver, [frame(3, |out| put(out, 1))]), Got::default());
    let open = frame(4, |out| {
        write_open(next, publisher(1), &Form::FULL, out);
        put(out, 2);
    });
    let got = hear(&mut receiver, [open]);
    assert_eq!((got.lost, got.samples.len()), (vec![(2, DropReason::LinkLoss)], 1));
    let late = frame(5, |out| write_close(0, 1, out));
    hear(&mut receiver, [late]);
    assert_eq!(hear(&mut receiver, [frame(6, |out| put(out, 3))]).samples.len(), 1);
}

#[test]
fn frames_for_an_earlier_epoch_of_this_node_earn_no_credit() {
    let mut receiver = opened();
    let sample = frame(1, |out| piece(out, 0, 10, 0..10));
    let heard =
        receiver.handle_frame(NOW, US + 1, sample.clone(), |_| panic!("it knew another epoch"));
    assert_eq!(heard.unwrap().owed, None);
    assert_eq!(hear(&mut receiver, [sample.clone(), sample]).samples.len(), 1, "once");
}

#[test]
fn foreign_versions_and_garbage_are_errors_without_effect() {
    let mut receiver = opened();
    let mut other = frame(1, |out| piece(out, 0, 10, 0..10)).to_vec();
    other[0] = 9;
    let (heard, error) = receiver.handle_frame(NOW, US, other.into(), |_| panic!()).unwrap_err();
    assert_eq!((heard, error), (None, WireError::Version(9)));
    let half = frame(1, |out| {
        piece(out, 0, 10, 0..10);
        out.extend([0x7f, 1, 2, 3]);
    });
    let mut samples = 0;
    let (heard, _) = receiver.handle_frame(NOW, US, half, |_| samples += 1).unwrap_err();
    assert_eq!(samples, 1, "items before the error count");
    assert_eq!(heard.unwrap().owed.unwrap().next(), 2, "and the frame has arrived");
}

#[test]
fn a_message_with_a_gap_is_incomplete() {
    let put = |out: &mut Vec<u8>, total: Option<usize>, last, len: usize| {
        ControlHead { total, last, len }.write(out);
        out.resize(out.len() + len, 7);
    };
    let first = frame(1, |out| put(out, Some(20), false, 10));
    let last = |seq| frame(seq, |out| put(out, None, true, 10));
    assert_eq!(hear(&mut opened(), [first.clone(), last(2)]).control.len(), 1);
    // The lost frame ended this message and began one whose end fits by accident.
    assert_eq!(hear(&mut opened(), [first, last(3)]).control.len(), 0);
}

#[test]
fn unfinished_samples_are_bounded() {
    let mut receiver = Receiver::new();
    let open = |stream| move |out: &mut Vec<u8>| write_open(stream, publisher(0), &Form::FULL, out);
    let mut lost = 0;
    for stream in 0..10 {
        let begin = |out: &mut Vec<u8>| {
            open(stream)(out);
            let head = head(crate::wire::SAMPLE_BYTES_MAX);
            let (number, first) = (0, Some(&head));
            DataHead { stream, number, first, offset: 0, last: false, len: 1 }.write(out);
            out.push(0);
        };
        lost += hear(&mut receiver, [frame(u64::from(stream), begin)]).lost.len();
    }
    assert_eq!(lost, 8, "one neighbour may leave at most two of 64 MiB");
    receiver.part(|item| lost += usize::from(matches!(item, Received::Lost { .. })));
    assert_eq!((lost, receiver.unfinished_bytes), (10, 0), "a neighbour that has left holds none");
    for stream in 0..5_000 {
        hear(&mut receiver, [frame(100 + u64::from(stream), open(stream))]);
    }
    assert_eq!(receiver.streams.len(), 4_096);
}

proptest! {
    #[test]
    fn no_input_from_a_neighbour_breaks_the_receiver(
        frames in prop::collection::vec((prop::bool::ANY, prop::collection::vec(any::<u8>(), 0..80)), 1..40),
    ) {
        let mut receiver = opened();
        for (seq, (whole, bytes)) in (1..).zip(frames) {
            let noise = if whole {
                frame(seq, |out| {
                    piece(out, seq / 2, 30, if seq % 2 == 0 { 0..10 } else { 10..30 });
                    out.extend(bytes);
                })
            } else {
                bytes.into()
            };
            let _ = receiver.handle_frame(NOW, US, noise, |_| {});
            prop_assert!(receiver.unfinished_bytes <= 2 * crate::wire::SAMPLE_BYTES_MAX);
        }
    }

    #[test]
    fn lost_frames_never_produce_a_wrong_sample(lost in prop::collection::vec(any::<bool>(), 60)) {
        let mut receiver = opened();
        let mut got = Got::default();
        for (k, lost) in (0u64..).zip(lost).filter(|(_, lost)| !lost) {
            let (number, part) = (k / 3, (k % 3) as usize);
            let frame = frame(k + 1, |out| piece(out, number, 300, part * 100..part * 100 + 100));
            let more = hear(&mut receiver, [frame]);
            got.samples.extend(more.samples);
            got.lost.extend(more.lost);
            prop_assert!(!lost);
        }
        let whole: Vec<u8> = (0..300usize).map(|byte| byte.to_le_bytes()[0]).collect();
        prop_assert!(got.samples.iter().all(|sample| *sample == whole));
        let lost: u64 = got.lost.iter().map(|(samples, _)| samples).sum();
        prop_assert!(got.samples.len() as u64 + lost <= 20);
    }
}

#[test]
fn the_kind_of_a_lost_sample_is_reported_if_its_head_was_seen() {
    let mut receiver = opened();
    let mut kinds = Vec::new();
    let head = SampleHead { kind: Kind::VideoB, ..head(300) };
    let begin = frame(1, |out| {
        DataHead { stream: 0, number: 2, first: Some(&head), offset: 0, last: false, len: 3 }
            .write(out);
        out.extend([1, 2, 3]);
    });
    for frame in [begin, frame(2, |out| write_abort(0, 2, out))] {
        let heard = receiver.handle_frame(NOW, US, frame, |item| {
            if let Received::Lost { lost, .. } = item {
                kinds.push((lost.samples, lost.kind()));
            }
        });
        heard.unwrap();
    }
    assert_eq!(kinds, [(2, None), (1, Some(Kind::VideoB))]);
}

/// Passes a frame to the receiver. Returns the contents and the error, if any.
fn try_hear(receiver: &mut Receiver, frame: Bytes) -> (Got, Option<WireError>) {
    let mut got = Got::default();
    let result = receiver.handle_frame(NOW, US, frame, |item| match item {
        Received::Sample { sample, .. } => got.samples.push(sample.payload),
        Received::Control(message) => got.control.push(message),
        Received::Lost { lost, .. } => got.lost.push((lost.samples, lost.reason)),
    });
    (got, result.err().map(|(_, error)| error))
}

#[test]
fn an_impossible_sequence_number_is_an_error_and_loses_nothing() {
    for number in [NUMBER_STEP_MAX + 2, u64::MAX / 2] {
        let mut receiver = opened();
        hear(&mut receiver, [frame(1, |out| piece(out, 0, 10, 0..10))]);
        let jump = frame(2, |out| piece(out, number, 10, 0..10));
        let (got, error) = try_hear(&mut receiver, jump);
        let field = "sample number";
        let max = NUMBER_STEP_MAX + 1;
        assert_eq!(error, Some(WireError::TooLarge { field, value: number, max }));
        assert_eq!((got.lost, got.samples.len()), (vec![], 1), "the stream continues from there");
        // A number that has already passed is an error too, and the stream continues from there.
        let (got, error) = try_hear(&mut receiver, frame(3, |out| piece(out, 0, 10, 0..10)));
        assert_eq!((got.lost, error), (vec![], Some(WireError::Invalid(field))));
        let got = hear(&mut receiver, [frame(4, |out| piece(out, 2, 10, 0..10))]);
        assert_eq!(got.lost, [(1, DropReason::LinkLoss)]);
    }
}

#[test]
fn the_largest_sequence_step_counts_lost_samples() {
    let mut receiver = opened();
    let got = hear(&mut receiver, [frame(1, |out| piece(out, NUMBER_STEP_MAX, 10, 0..10))]);
    assert_eq!(got.lost, [(NUMBER_STEP_MAX, DropReason::LinkLoss)]);
}

#[test]
fn sequence_numbers_above_half_the_range_are_invalid() {
    for number in [u64::MAX / 2 + 1, u64::MAX] {
        let mut receiver = opened();
        let (got, error) = try_hear(&mut receiver, frame(1, |out| piece(out, number, 10, 0..10)));
        let max = u64::MAX / 2;
        let too_large = |field| Some(WireError::TooLarge { field, value: number, max });
        assert_eq!((got, error), (Got::default(), too_large("sample number")));
        let (_, error) = try_hear(&mut receiver, frame(2, |out| write_abort(0, number, out)));
        assert_eq!(error, too_large("sample number"));
        let mut late = head(10);
        late.seq = number;
        let (_, error) = try_hear(
            &mut receiver,
            frame(3, |out| {
                let first = Some(&late);
                DataHead { stream: 0, number: 1, first, offset: 0, last: true, len: 0 }.write(out);
            }),
        );
        assert_eq!(error, too_large("sample seq"));
    }
}

/// Returns a frame of a hop whose frames may be lost.
fn datagram(seq: u64, segments: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let (epoch, known, seq, datagrams) = (1, US, Some(seq), true);
    let mut out = Vec::new();
    FrameHeader { epoch, known, seq, datagrams, ..FrameHeader::default() }.write(&mut out);
    segments(&mut out);
    out.into()
}

#[test]
fn on_lossy_links_an_impossible_number_is_refused_and_the_stream_continues() {
    let mut receiver = Receiver::new();
    let open = datagram(0, |out| write_open(0, publisher(0), &Form::FULL, out));
    assert_eq!(try_hear(&mut receiver, open), (Got::default(), None));
    for (seq, number) in [(1, NUMBER_STEP_MAX + 1), (2, u64::MAX / 2)] {
        let max = NUMBER_STEP_MAX;
        let too_large = WireError::TooLarge { field: "sample number", value: number, max };
        let jump = datagram(seq, |out| piece(out, number, 10, 0..10));
        assert_eq!(try_hear(&mut receiver, jump), (Got::default(), Some(too_large)));
        let abort = datagram(seq + 10, |out| write_abort(0, number, out));
        assert_eq!(try_hear(&mut receiver, abort), (Got::default(), Some(too_large)));
    }
    let (got, error) = try_hear(&mut receiver, datagram(3, |out| piece(out, 0, 10, 0..10)));
    assert_eq!((got.lost, got.samples.len(), error), (vec![], 1, None));
}
