//! Golden bytes of the wire format. A change here requires a new version of the format.

use bytes::Bytes;
use paceline_proto::wire::Reader;
use paceline_proto::wire::ack::Ack;
use paceline_proto::wire::frame::FrameHeader;
use paceline_proto::wire::segment::{
    ControlHead, DataHead, Place, Retransmission, SampleHead, Segment, read_encoding, write_abort,
    write_close, write_encoding, write_open, write_open_retransmitted, write_padding, write_part,
};
use paceline_proto::{
    Encoding, Form, Kind, NodeId, ProbeInterval, PublisherId, Rate, Retransmit, Size, Timestamp,
};
use paceline_sched::Duration;
use std::num::NonZeroU32;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read(bytes: Vec<u8>) -> Segment {
    let mut reader = Reader::new(bytes.into());
    let segment = Segment::read(&mut reader).expect("a segment");
    reader.finish().expect("nothing behind it");
    segment
}

#[test]
fn a_header_with_everything() {
    let header = FrameHeader {
        epoch: 7,
        known: 0x0102_0304,
        seq: Some(300),
        ack: Ack::new(5, 4, 0b101),
        ack_now: true,
        datagrams: false,
        held: None,
        transit: None,
        stamp: None,
        echo: None,
        probes: ProbeInterval::from_tenths(500).unwrap(),
    };
    let mut out = Vec::new();
    header.write(&mut out);
    assert_eq!(hex(&out), "07070700000004030201f403ac0205040500000000000000");
    assert_eq!(FrameHeader::read(&mut Reader::new(out.into())).unwrap(), header);
    let mut header = FrameHeader { held: Some(Duration::from_micros(0x0102)), ..header };
    let mut out = Vec::new();
    header.write(&mut out);
    assert_eq!(hex(&out), "0717070000000403020102010000f403ac0205040500000000000000");
    FrameHeader::set_held(&mut out, Duration::from_micros(3));
    header.held = Some(Duration::from_micros(3));
    assert_eq!(FrameHeader::read(&mut Reader::new(out.into())).unwrap(), header);
    header.transit = Some(Duration::ZERO);
    let mut out = Vec::new();
    header.write(&mut out);
    FrameHeader::set_transit(&mut out, Duration::from_micros(0x0405));
    assert_eq!(hex(&out), "073707000000040302010300000005040000f403ac0205040500000000000000");
    header.transit = Some(Duration::from_micros(0x0405));
    assert_eq!(FrameHeader::read(&mut Reader::new(out.into())).unwrap(), header);
}

#[test]
fn a_greeting() {
    let header = FrameHeader { epoch: 1, ..FrameHeader::default() };
    let mut out = Vec::new();
    header.write(&mut out);
    assert_eq!(hex(&out), "0700010000000000000006");
}

#[test]
fn a_sample_in_one_piece() {
    let head = SampleHead {
        total: 3,
        seq: 258,
        captured: Timestamp { nanos: 1, error: 10 },
        shift: 0,
        kind: Kind::Picture,
        encoding: Encoding::Jpeg,
        age: Duration::from_micros(1_000),
        doubt: None,
        attachment: None,
    };
    let data = DataHead { stream: 2, number: 9, first: Some(&head), offset: 0, last: true, len: 3 };
    let mut out = Vec::new();
    data.write(&mut out);
    out.extend_from_slice(b"abc");
    assert_eq!(hex(&out), "310209820201000000000000000a0203e80703616263");
    let payload = Bytes::from_static(b"abc");
    let (place, last) = (Place::First(head), true);
    assert_eq!(read(out), Segment::Data { stream: 2, number: 9, place, last, payload });
}

#[test]
fn a_sample_with_an_attachment() {
    let head = SampleHead {
        total: 3,
        seq: 258,
        captured: Timestamp { nanos: 1, error: 10 },
        shift: 0,
        kind: Kind::Data,
        encoding: Encoding::Bytes,
        age: Duration::from_micros(1_000),
        doubt: None,
        attachment: Some([7, 8][..].into()),
    };
    let data = DataHead { stream: 2, number: 9, first: Some(&head), offset: 0, last: true, len: 3 };
    let mut out = Vec::new();
    data.write(&mut out);
    out.extend_from_slice(b"abc");
    assert_eq!(hex(&out), "710209820201000000000000000a0000e80702070803616263");
    for end in 0..out.len() {
        let short = Bytes::copy_from_slice(&out[..end]);
        assert!(Segment::read(&mut Reader::new(short)).is_err(), "{end} bytes of it");
    }
    let payload = Bytes::from_static(b"abc");
    let (place, last) = (Place::First(head), true);
    assert_eq!(read(out), Segment::Data { stream: 2, number: 9, place, last, payload });
    // Only the first piece has an attachment, and its length is bounded to fit a frame of any link.
    let later = Bytes::from_static(&[0x61, 2, 9, 1, 1, 0]);
    assert!(Segment::read(&mut Reader::new(later)).is_err());
    let mut long = vec![0x71, 2, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    long.extend([0x81, 4]);
    long.extend([0; 600]);
    assert!(Segment::read(&mut Reader::new(long.into())).is_err());
}

#[test]
fn a_sample_with_its_place_on_the_grid() {
    let head = |shift| SampleHead {
        total: 3,
        seq: 258,
        captured: Timestamp { nanos: 1, error: 10 },
        shift,
        kind: Kind::Picture,
        encoding: Encoding::Jpeg,
        age: Duration::from_micros(1_000),
        doubt: None,
        attachment: None,
    };
    for (shift, coded) in [(-1, "0a01"), (1, "0a02"), (-129, "0a8102"), (i32::MIN, "0affffffff0f")]
    {
        let first = head(shift);
        let data =
            DataHead { stream: 2, number: 9, first: Some(&first), offset: 0, last: true, len: 3 };
        let mut out = Vec::new();
        data.write(&mut out);
        out.extend_from_slice(b"abc");
        assert_eq!(hex(&out), format!("310209820201000000000000000a{coded}03e80703616263"));
        for end in 0..out.len() {
            let short = Bytes::copy_from_slice(&out[..end]);
            assert!(Segment::read(&mut Reader::new(short)).is_err(), "{end} bytes of it");
        }
        let payload = Bytes::from_static(b"abc");
        let (place, last) = (Place::First(first), true);
        assert_eq!(read(out), Segment::Data { stream: 2, number: 9, place, last, payload });
    }
    const WITHOUT: [u8; 19] = [0x31, 2, 9, 0x82, 2, 1, 0, 0, 0, 0, 0, 0, 0, 10, 0x0a, 0, 3, 0, 0];
    assert!(Segment::read(&mut Reader::new(Bytes::from_static(&WITHOUT))).is_err(), "no place");
}

#[test]
fn common_encodings_are_one_byte() {
    for (code, name) in [
        (0, "application/octet-stream"),
        (1, "text/plain"),
        (2, "application/json"),
        (3, "image/jpeg"),
        (4, "zenoh/bytes"),
    ] {
        let mut out = Vec::new();
        write_encoding(&Encoding::new(name), &mut out);
        assert_eq!(out, [code], "{name}");
        let back = read_encoding(&mut Reader::new(out.into())).unwrap();
        assert_eq!(back, Encoding::new(name));
    }
}

#[test]
fn a_later_piece() {
    let data = DataHead { stream: 2, number: 9, first: None, offset: 200, last: false, len: 1 };
    let mut out = Vec::new();
    data.write(&mut out);
    out.push(0xff);
    assert_eq!(hex(&out), "010209c80101ff");
}

#[test]
fn open_close_abort_and_control_segments() {
    let publisher = PublisherId { node: NodeId(0x0102_0304_0506_0708), index: 1 };
    let rate = Rate::max(NonZeroU32::new(5_000).unwrap());
    let form = Form { rate, size: Some(Size { width: 160, height: 120 }), ..Form::FULL };
    let mut out = Vec::new();
    write_open(3, publisher, &form, &mut out);
    assert_eq!(hex(&out), "030308070605040302010102882701a00178");
    assert_eq!(read(out), Segment::Open { stream: 3, publisher, form, retransmission: None });
    let number = |n| NonZeroU32::new(n).unwrap();
    let bits_per_s = Some(number(100_000));
    let rate = Rate { bits_per_s, ..Rate::every(number(2)).at_most(number(3_000)) };
    let form = Form { rate, ..Form::FULL };
    let mut out = Vec::new();
    write_open(3, publisher, &form, &mut out);
    assert_eq!(hex(&out), "0303080706050403020101".to_owned() + "0702b817a08d0600");
    for end in 0..out.len() {
        let short = Bytes::copy_from_slice(&out[..end]);
        assert!(Segment::read(&mut Reader::new(short)).is_err(), "{end} bytes of it");
    }
    assert_eq!(read(out), Segment::Open { stream: 3, publisher, form, retransmission: None });
    let mut out = Vec::new();
    write_close(3, 200, &mut out);
    assert_eq!(hex(&out), "0403c801");
    assert_eq!(read(out), Segment::Close { stream: 3, end: 200 });
    let mut out = Vec::new();
    write_abort(3, 200, &mut out);
    assert_eq!(hex(&out), "0503c801");
    let mut out = Vec::new();
    ControlHead { total: Some(2), last: true, len: 2 }.write(&mut out);
    out.extend_from_slice(b"hi");
    assert_eq!(hex(&out), "3202026869");
}

#[test]
fn fields_of_frames_on_lossy_links() {
    let header = FrameHeader { epoch: 1, seq: Some(2), datagrams: true, ..FrameHeader::default() };
    let mut out = Vec::new();
    header.write(&mut out);
    assert_eq!(hex(&out), "070c01000000000000000602");
    assert_eq!(FrameHeader::read(&mut Reader::new(out.into())).unwrap(), header);
    let publisher = PublisherId { node: NodeId(0x0102_0304_0506_0708), index: 1 };
    let (retransmit, hold) = (Retransmit::GoBackN, Some(Duration::from_millis(1)));
    let (form, retransmission) = (Form::FULL, Retransmission { retransmit, first: 5, hold });
    let mut out = Vec::new();
    write_open_retransmitted(3, publisher, &form, retransmission, &mut out);
    assert_eq!(hex(&out), "1303080706050403020101000001e80705");
    assert_eq!(
        read(out),
        Segment::Open { stream: 3, publisher, form, retransmission: Some(retransmission) }
    );
    let mut out = Vec::new();
    write_part(7, 300, 298, 2, &mut out);
    out.extend_from_slice(b"hi");
    assert_eq!(hex(&out), "0607ac02aa02026869");
    let payload = Bytes::from_static(b"hi");
    assert_eq!(read(out), Segment::Part { number: 7, total: 300, offset: 298, payload });
    let mut out = Vec::new();
    write_padding(3, &mut out);
    assert_eq!(hex(&out), "0703000000");
    assert_eq!(read(out), Segment::Padding { bytes: 3 });
}
