use super::*;
use crate::form::{Audio, Rate, Size};
use core::num::{NonZeroU8, NonZeroU32};
use proptest::prelude::*;

fn forms() -> impl Strategy<Value = Form> {
    let number = || any::<u32>().prop_filter_map("zero", NonZeroU32::new);
    let limit = || prop::option::of(number());
    let every = prop_oneof![Just(NonZeroU32::MIN), number()];
    let rate = (every, limit(), limit());
    let rate = rate.prop_map(|(every, max_millihertz, bits_per_s)| Rate {
        every,
        max_millihertz,
        bits_per_s,
    });
    let size =
        prop::option::of((1u32.., 1u32..).prop_map(|(width, height)| Size { width, height }));
    let audio =
        prop::option::of((1u32.., 1u8..).prop_map(|(rate, channels)| Audio { rate, channels }));
    let quality = prop::option::of((1..=100_u8).prop_filter_map("zero", NonZeroU8::new));
    let via = prop::option::of(any::<u64>().prop_map(NodeId));
    let form = (rate, size, audio, limit(), quality, via);
    form.prop_map(|(rate, size, audio, bitrate, quality, via)| Form {
        rate,
        size,
        audio,
        bitrate,
        quality,
        via,
    })
}

fn encodings() -> impl Strategy<Value = Encoding> {
    prop_oneof![
        Just(Encoding::Bytes),
        Just(Encoding::Jpeg),
        Just(Encoding::new("zenoh/bytes")),
        "[a-z/;=0-9]{0,60}".prop_map(|name| Encoding::new(&name)),
    ]
}

proptest! {
    #[test]
    fn data_segments_round_trip(stream: u32, number in 0..=NUMBER_MAX, seq in 0..=NUMBER_MAX, nanos: u64, error: u8, last: bool,
                               micros in 0..u64::MAX / 1_000, doubt in prop::option::of(0..u64::MAX / 1_000), encoding in encodings(),
                               attached in prop::option::of(prop::collection::vec(any::<u8>(), 0..=ATTACHMENT_BYTES_MAX)),
                               first: bool, shift in prop_oneof![Just(0_i32), -3..4_i32, any::<i32>()], body in prop::collection::vec(any::<u8>(), 0..300)) {
        let total = if last { body.len() } else { body.len() + 7 };
        let captured = Timestamp { nanos, error };
        let age = Duration::from_micros(micros);
        let doubt = doubt.map(Duration::from_micros);
        let attachment = attached.map(Into::into);
        let head = SampleHead { total, seq, captured, shift, kind: Kind::Picture, encoding, age, doubt, attachment };
        let first = first.then_some(&head);
        let offset = if first.is_some() { 0 } else { 77 };
        let data = DataHead { stream, number, first, offset, last, len: body.len() };
        let mut out = Vec::new();
        data.write(&mut out);
        prop_assert!(out.len() <= data.bytes_max());
        out.extend_from_slice(&body);
        let place = first.map_or(Place::At(offset), |head| Place::First(head.clone()));
        let mut reader = Reader::new(out.into());
        let want = Segment::Data { stream, number, place, last, payload: body.into() };
        prop_assert_eq!(Segment::read(&mut reader), Ok(want));
        prop_assert!(reader.is_empty());
    }

    #[test]
    fn open_segments_round_trip(stream: u32, node: u64, index: u32, form in forms()) {
        let publisher = PublisherId { node: NodeId(node), index };
        let mut out = Vec::new();
        write_open(stream, publisher, &form, &mut out);
        prop_assert!(out.len() <= OPEN_BYTES_MAX);
        let mut reader = Reader::new(out.into());
        prop_assert_eq!(Segment::read(&mut reader), Ok(Segment::Open { stream, publisher, form, retransmission: None }));
    }

    #[test]
    fn garbage_ends_in_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut reader = Reader::new(bytes.into());
        while !reader.is_empty() && Segment::read(&mut reader).is_ok() {}
    }
}

#[test]
fn untrusted_lengths_are_checked() {
    let mut out = vec![DATA | LAST, 1, 0, 0];
    out.put_varint(SAMPLE_BYTES_MAX as u64);
    let truncated = Segment::read(&mut Reader::new(out.into()));
    assert_eq!(truncated, Err(WireError::Truncated("payload")));
    let mut out = vec![DATA, 1, 0];
    out.put_varint(u64::MAX);
    let err = Segment::read(&mut Reader::new(out.into())).unwrap_err();
    assert!(matches!(err, WireError::TooLarge { field: "offset", .. }), "{err}");
    let flags = Segment::read(&mut Reader::new(Bytes::from_static(&[OPEN | LAST, 1])));
    assert_eq!(flags, Err(WireError::Invalid("segment flags")));
}

#[test]
fn an_overlong_name_is_truncated_without_breaking_the_frame() {
    let long = Encoding::Other("ö".repeat(200).into());
    let mut out = Vec::new();
    write_encoding(&long, &mut out);
    let read = read_encoding(&mut Reader::new(out.into())).unwrap();
    assert_eq!(read.as_str(), "ö".repeat(127));
}
