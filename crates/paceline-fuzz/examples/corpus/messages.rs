//! Seeds of control messages as sent by real nodes, for the body `control`, and of tags and patterns.

use crate::{Seed, with_cuts};
use bytes::Bytes;
use core::num::NonZeroU32;
use paceline_proto::control::{
    Control, ControlOutput, Elastic, HopInfo, PublisherSpec, SubscriptionSpec,
};
use paceline_proto::form::Audio;
use paceline_proto::{Encoding, Form, Kind, NodeId, Pattern, Proxy, Rate, Size, Tag};
use paceline_sched::{Capacity, Duration, Instant, Late, LossTolerance};

/// The stranger whose messages the body delivers first. `LISTENER` is the node that receives them.
const STRANGER: NodeId = NodeId(3);
const LISTENER: NodeId = NodeId(1);

fn publisher(tag: &str, full: bool) -> PublisherSpec {
    PublisherSpec {
        tag: Tag::new(tag).unwrap(),
        kind: Kind::Picture,
        encoding: if full { Encoding::new("image/x-odd") } else { Encoding::Jpeg },
        period: full.then_some(Duration::from_millis(40)),
        late: if full { Late::Send } else { Late::Drop },
        loss: full.then_some(LossTolerance::NONE),
        size: full.then_some(Size { width: 640, height: 480 }),
        bytes_max: full.then_some(20_000),
        envelope: None,
        waits: full,
        latch: full,
        unscalable: None,
        key_interval: None,
        structure: None,
        scaled: Vec::new(),
        within: None,
    }
}

fn subscription(pattern: &str, full: bool) -> SubscriptionSpec {
    let asked = Form {
        rate: Rate::max(NonZeroU32::new(10_000).unwrap()),
        size: Some(Size { width: 2_000, height: 240 }),
        audio: Some(Audio { rate: 8_000, channels: 1 }),
        bitrate: NonZeroU32::new(64_000),
        quality: None,
        via: None,
    };
    SubscriptionSpec {
        pattern: Pattern::new(pattern).unwrap(),
        form: if full { asked } else { Form::FULL },
        within: full.then_some(Duration::from_millis(90)),
        loss: full.then_some(LossTolerance::EDF),
        proxy: if full { Proxy::Subscriber } else { Proxy::Publisher },
        holds: full,
        local: false,
        retransmit: paceline_proto::Retransmit::default(),
        revision: 0,
        or_stop: false,
        encrypted: false,
        level: None,
        idle: None,
        with: None,
        proves: false,
        spare: false,
        importance: if full { 90 } else { 50 },
        elastic: full.then(|| {
            let min_bitrate = NonZeroU32::new(16_000);
            Box::new(Elastic { min_bitrate, ..Elastic::none(asked) })
        }),
    }
}

/// Returns messages from the stranger to the listener: a digest, snapshots, and deltas of every kind.
fn messages() -> Vec<Bytes> {
    let capacity = Capacity::from_bytes_per_s(10_000).ok();
    let hop_info = HopInfo::new("radio".into(), capacity);
    let now = Instant::from_millis(5);
    let (mut stranger, mut listener) =
        (Control::new(STRANGER, "stranger"), Control::new(LISTENER, "me"));
    listener.handle_hop_up(now, STRANGER, hop_info.clone());
    stranger.handle_hop_up(now, LISTENER, hop_info);
    let mut messages = Vec::new();
    let talk = |stranger: &mut Control, listener: &mut Control, messages: &mut Vec<Bytes>| loop {
        let mut quiet = true;
        while let Some(output) = stranger.poll_output() {
            if let ControlOutput::Send { message, .. } = output {
                quiet = false;
                messages.push(message.clone());
                listener.handle_message(now, STRANGER, message).unwrap();
            }
        }
        while let Some(output) = listener.poll_output() {
            if let ControlOutput::Send { message, .. } = output {
                quiet = false;
                stranger.handle_message(now, LISTENER, message).unwrap();
            }
        }
        if quiet {
            return;
        }
    };
    for full in [false, true] {
        stranger.publish(now, publisher("robot/left", full));
        talk(&mut stranger, &mut listener, &mut messages);
        listener.publish(now, publisher("robot/right", full));
        let id = stranger.subscribe(now, subscription("robot/*", full));
        talk(&mut stranger, &mut listener, &mut messages);
        listener.subscribe(now, subscription("**", full));
        talk(&mut stranger, &mut listener, &mut messages);
        if !full {
            stranger.unsubscribe(now, id);
        }
    }
    stranger.handle_hop_up(now, NodeId(9), HopInfo::new("b".into(), None));
    talk(&mut stranger, &mut listener, &mut messages);
    stranger.handle_hop_down(now, NodeId(9));
    talk(&mut stranger, &mut listener, &mut messages);
    messages
}

/// Returns the step of the body in which the stranger sends `message`.
fn script(message: &[u8]) -> Vec<u8> {
    let len = u16::try_from(message.len()).unwrap().to_le_bytes();
    [&[0], &len[..], message].concat()
}

/// Returns messages with one error each.
fn wrong() -> Vec<(&'static str, Vec<u8>)> {
    let node = 3u64.to_le_bytes();
    let many = [&[1][..], &[0x80, 0x20]].concat();
    let digest = [&[1, 1][..], &node, &[0xff; 9], &[1]].concat();
    // One record has an encoding with an empty name, another spells out a name that has a code.
    let record = |encoding: &[u8]| {
        let start = [&[4][..], &node, &[9, 0, 1, 0, 0, 1, b'a', 0], encoding].concat();
        [start, vec![0, 0, 0]].concat()
    };
    vec![
        ("digest-many", many),
        ("digest-version", digest),
        ("need", [&[2][..], &node].concat()),
        ("encoding-empty", record(&[4, 0])),
        ("encoding-spelled", record(b"\x04\x0atext/plain")),
        ("unknown", vec![99, 1, 2, 3]),
    ]
}

pub(crate) fn seeds() -> Vec<Seed> {
    let messages = messages();
    let mut seeds = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        seeds.extend(with_cuts("control", &format!("message-{place:02}"), &script(message)));
    }
    let all: Vec<u8> = messages.iter().flat_map(|message| script(message)).collect();
    seeds.extend(with_cuts("control", "all", &all));
    for (name, message) in wrong() {
        seeds.push(("control", name.to_owned(), script(&message)));
    }
    // Publishers and subscriptions of the node itself, hops that go up and down, and time.
    let steps = [
        &[10, 0, 1, 1, 1, 200, 10, 11, 0, 1, 1, 0, 0][..],
        &[14, 0, 1, 9, 200, 13, 9, 255, 13, 12, 2, 0, 1, 1, 0, 15, 1, 9, 90, 12, 0, 0],
    ];
    let busy = [steps[0], &all[..all.len() / 2], steps[1], &all[all.len() / 2..]].concat();
    seeds.extend(with_cuts("control", "busy", &busy));
    let tags = [
        "robot/left",
        "a/**/b/*/c\na/x/b/y/b/z/c",
        "**\n@pull/a",
        "@pull/**\n@pull/a/b",
        "a//b\n/",
        "*\u{f6}\n#",
        "**/**/**/**/**/x\na/a/a/a/a/a/a/a/a/a",
    ];
    for (place, tag) in tags.iter().enumerate() {
        seeds.push(("tags", format!("tag-{place}"), tag.as_bytes().to_vec()));
    }
    seeds.push(("tags", "longest".to_owned(), vec![b'a'; 256]));
    seeds
}
