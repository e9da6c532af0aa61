//! Seeds of frames, of segments, and of sequences of frames of a hop.

use crate::{Seed, with_cuts};
use core::num::NonZeroU32;
use paceline_proto::form::Audio;
use paceline_proto::wire::Writer;
use paceline_proto::wire::ack::Ack;
use paceline_proto::wire::frame::FrameHeader;
use paceline_proto::wire::segment::{
    ControlHead, DataHead, SampleHead, write_abort, write_close, write_open,
};
use paceline_proto::{
    Encoding, Form, Kind, NodeId, ProbeInterval, PublisherId, Rate, Size, Timestamp,
};
use paceline_sched::Duration;

fn header(seq: Option<u64>, ack: Option<Ack>) -> Vec<u8> {
    let mut out = Vec::new();
    FrameHeader {
        epoch: 1,
        known: 7,
        seq,
        ack,
        ack_now: true,
        datagrams: false,
        held: ack.map(|_| Duration::from_micros(300)),
        transit: seq.map(|_| Duration::from_micros(5_000)),
        stamp: None,
        echo: None,
        probes: ProbeInterval::SHORTEST,
    }
    .write(&mut out);
    out
}

fn head(total: usize, encoding: Encoding) -> SampleHead {
    SampleHead {
        total,
        seq: 300,
        captured: Timestamp { nanos: 1_700_000_000_000_000_000, error: 10 },
        shift: 0,
        kind: Kind::Picture,
        encoding,
        age: Duration::from_micros(1_500),
        doubt: None,
        attachment: None,
    }
}

fn piece(
    number: u64,
    first: Option<&SampleHead>,
    offset: usize,
    last: bool,
    len: usize,
) -> Vec<u8> {
    let mut out = Vec::new();
    DataHead { stream: 3, number, first, offset, last, len }.write(&mut out);
    out.extend((0..len).map(|byte| byte.to_le_bytes()[0]));
    out
}

fn forms() -> Vec<Form> {
    let n = NonZeroU32::new(30_000).unwrap();
    let size = Some(Size { width: 640, height: 480 });
    let audio = Some(Audio { rate: 48_000, channels: 2 });
    vec![
        Form::FULL,
        Form { rate: Rate::every(n), ..Form::FULL },
        Form { rate: Rate::max(n), size, ..Form::FULL },
        Form { size, audio, ..Form::FULL },
    ]
}

fn opening(form: &Form) -> Vec<u8> {
    let publisher = PublisherId { node: NodeId(0x0102_0304_0506_0708), index: 9 };
    let mut out = Vec::new();
    write_open(3, publisher, form, &mut out);
    out
}

fn control(total: Option<usize>, last: bool, len: usize) -> Vec<u8> {
    let mut out = Vec::new();
    ControlHead { total, last, len }.write(&mut out);
    out.extend(vec![5; len]);
    out
}

/// Returns named segments.
fn pieces() -> Vec<(&'static str, Vec<u8>)> {
    let whole = head(20, Encoding::Jpeg);
    let other = head(20, Encoding::new("application/x-thing"));
    let known = head(20, Encoding::Other("text/plain".into()));
    let mut close = Vec::new();
    write_close(3, 9, &mut close);
    let mut abort = Vec::new();
    write_abort(3, 1, &mut abort);
    vec![
        ("whole", piece(0, Some(&whole), 0, true, 20)),
        ("other", piece(0, Some(&other), 0, true, 20)),
        ("known", piece(0, Some(&known), 0, true, 20)),
        ("begin", piece(1, Some(&whole), 0, false, 8)),
        ("middle", piece(1, None, 8, false, 8)),
        ("end", piece(1, None, 16, true, 4)),
        ("open", forms().iter().flat_map(opening).collect()),
        ("close", close),
        ("abort", abort),
        ("control", control(Some(9), true, 9)),
        ("control-begin", control(Some(20), false, 12)),
        ("control-end", control(None, true, 8)),
    ]
}

/// Returns segments with impossible lengths.
fn huge() -> Vec<(&'static str, Vec<u8>)> {
    let mut data = vec![0x11, 3, 0];
    data.put_varint(64 << 20);
    data.extend([0; 9]);
    data.extend([2, 3, 0]);
    data.put_varint(64 << 20);
    let mut over = data.clone();
    over.put_varint(u64::MAX);
    let mut message = vec![0x12];
    message.put_varint((4 << 20) + 1);
    let mut numbers = vec![5];
    numbers.put_varint(u64::from(u32::MAX));
    numbers.put_varint(u64::MAX);
    vec![
        ("huge-sample", data),
        ("huge-piece", over),
        ("huge-message", message),
        ("huge-number", numbers),
    ]
}

/// Returns one frame of a `receiver` seed: its variant, its length, and its segments.
fn framed(how: u8, segments: &[u8]) -> Vec<u8> {
    let len = u16::try_from(segments.len()).unwrap().to_le_bytes();
    [&[how], &len[..], segments].concat()
}

fn sequences() -> Vec<Seed> {
    let named: Vec<_> = pieces().into_iter().chain(huge()).collect();
    let get = |name: &str| named.iter().find(|(other, _)| *other == name).unwrap().1.clone();
    // 2: the next number; 4: one frame is missing; 0xf2: the sender restarted.
    let sequence = |names: &[(u8, &str)]| -> Vec<u8> {
        let open = framed(2, &opening(&Form::FULL));
        let frames = names.iter().map(|(how, name)| framed(*how, &get(name)));
        core::iter::once(open).chain(frames).flatten().collect()
    };
    let all = [
        ("pieces", vec![(2, "whole"), (2, "begin"), (2, "middle"), (2, "end")]),
        ("missing", vec![(2, "begin"), (4, "end"), (2, "whole")]),
        ("aborted", vec![(2, "begin"), (2, "abort"), (2, "middle"), (2, "close"), (2, "end")]),
        ("reopened", vec![(2, "begin"), (2, "open"), (2, "middle"), (2, "end")]),
        ("restarted", vec![(2, "begin"), (0xf2, "middle"), (2, "open"), (2, "whole")]),
        ("control", vec![(2, "control"), (2, "control-begin"), (2, "whole"), (2, "control-end")]),
        ("control-lost", vec![(2, "control-begin"), (4, "control-end"), (2, "control")]),
        (
            "huge",
            vec![(2, "huge-sample"), (2, "huge-sample"), (2, "huge-piece"), (2, "huge-number")],
        ),
    ];
    all.into_iter()
        .flat_map(|(name, names)| with_cuts("receiver", name, &sequence(&names)))
        .collect()
}

pub(crate) fn seeds() -> Vec<Seed> {
    let mut seeds = sequences();
    let ack = Ack::new(1_000, 4_096, 0x8000_0000_0000_0005).unwrap();
    let headers = [
        ("bare", header(None, None)),
        ("numbered", header(Some(0), None)),
        ("answer", header(Some(1 << 40), Some(ack))),
        ("furthest", header(Some(u64::MAX / 2), Ack::new(u64::MAX / 2, 2, 1))),
    ];
    for (name, bytes) in &headers {
        seeds.extend(with_cuts("frame", name, bytes));
    }
    let all: Vec<u8> = pieces().into_iter().flat_map(|(_, bytes)| bytes).collect();
    seeds.extend(with_cuts("frame", "all", &[header(Some(5), Some(ack)), all.clone()].concat()));
    seeds.extend(with_cuts("segments", "all", &all));
    for (name, bytes) in pieces().into_iter().chain(huge()) {
        seeds.extend(with_cuts("segments", name, &bytes));
    }
    seeds
}
