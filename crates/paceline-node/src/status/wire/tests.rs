use super::super::*;
use super::*;
use core::num::{NonZeroU8, NonZeroU32};
use paceline_proto::capacity::CapacityState;
use paceline_proto::control::{Grant, GrantedHop};
use paceline_proto::form::Audio;
use paceline_proto::guard::Flood;
use paceline_proto::{
    DropReason, Drops, Form, Kind, NodeId, Proxy, PublisherId, Rate, Size, SubscriptionId, Tag,
};
use paceline_sched::{Capacity, LossTolerance};
use paceline_time::clock::page::ClockStatus;
use paceline_time::clock::service::SourcePart;
use proptest::prelude::*;
use std::time::Duration;

const ROBOT: NodeId = NodeId(0xb0b);

fn form() -> Form {
    Form {
        rate: Rate {
            every: NonZeroU32::new(3).unwrap(),
            max_millihertz: NonZeroU32::new(29_970),
            bits_per_s: NonZeroU32::new(64_000),
        },
        size: Some(Size { width: 160, height: 120 }),
        audio: Some(Audio { rate: 48_000, channels: 2 }),
        bitrate: NonZeroU32::new(500_000),
        quality: NonZeroU8::new(60),
        via: Some(NodeId(7)),
    }
}

fn drops() -> Drops {
    let mut drops = Drops::default();
    for (reason, samples) in DropReason::ALL.into_iter().zip(1..) {
        drops.add(reason, samples);
    }
    drops
}

fn counters() -> LinkCounters {
    LinkCounters {
        offered: 50,
        sent: 47,
        bytes: u64::MAX,
        late: 1,
        violations: 2,
        aborted: 3,
        too_early: 4,
        too_long: 5,
        dropped: drops(),
    }
}

fn medium() -> MediumStatus {
    MediumStatus {
        name: "air".to_owned(),
        allottable_bits_per_s: 1_875_000,
        allotted_bits_per_s: 700_000,
        reserved_bits_per_s: 900_000,
        links: 3,
        manager: NodeId(4),
    }
}

fn class() -> ClassStatus {
    ClassStatus {
        name: "video".to_owned(),
        parent: Some("all".to_owned()),
        peer: Some(NodeId(8)),
        share: 0.75,
        served_bytes: 123_456,
        guaranteed_bytes: 1_000,
        guaranteed_bits_per_s: 9,
        reserved_bits_per_s: 8,
        streams: 1,
        counters: counters(),
    }
}

fn link() -> LinkStatus {
    let stream = StreamStatus {
        publisher: PublisherId { node: ROBOT, index: 1 },
        tag: Some("robot/camera".to_owned()),
        form: form(),
        hop: NodeId(8),
        contracted: true,
        contract: Some(StreamContract {
            period: Duration::from_millis(200),
            deadline: Duration::from_millis(190),
            loss: LossTolerance::new(1, 10).unwrap(),
            bits_per_s: 400_000,
        }),
        ages: SummedAges {
            entered: 50,
            entered_age: Duration::from_millis(250),
            left_age: Duration::from_millis(940),
        },
        counters: counters(),
        broken_ago: Some(Duration::from_secs(42)),
        group: Some(std::net::SocketAddrV4::new([239, 77, 0, 1].into(), 7_400)),
    };
    LinkStatus {
        name: "thin".to_owned(),
        at: Duration::from_millis(5),
        capacity_bits_per_s: Some(2_000_000),
        measured: Some(MeasuredCapacity {
            state: CapacityState::Falling,
            estimate_bits_per_s: 2_000_000,
            low_bits_per_s: 1_900_000,
            high_bits_per_s: None,
            contracts_bits_per_s: 1_800_000,
        }),
        medium: Some(medium()),
        use_bits_per_s: Some(7),
        least_capacity_bits_per_s: Some(1_100_000),
        hops: vec![NodeId(8)],
        neighbours: vec![NeighbourStatus {
            id: NodeId(8),
            wire_bytes: 70_000,
            use_bits_per_s: None,
            down_after: Duration::from_millis(6_300),
            memory_bytes: 5,
        }],
        loss: Some(0.05),
        streams: vec![stream],
        closed: counters(),
        classes: vec![class()],
        muted: vec![MutedStatus {
            peer: NodeId(8),
            flood: Flood::Malformed,
            muted: true,
            times: 2,
            dropped: 900,
        }],
        repairs: Repairs { repeated: 41, repeated_bytes: 10_332, given_up: 1, share_per_mille: 60 },
        buffer: Some(QueueStatus { reserved_bytes: 1, bytes: 2, greatest_bytes: 3 }),
        ..LinkStatus::default()
    }
}

fn clock() -> ClockReport {
    ClockReport {
        status: ClockStatus::Holdover,
        nanos: 1_795_737_600_000_000_000,
        error_nanos: Some(70_000),
        epoch: 2,
        system_offset_nanos: -5,
        frequency_ppt: -40_000_000,
        jitter_nanos: 900,
        stratum: Some(3),
        leap: "insert".to_owned(),
        updates: 9,
        disruptions: 1,
        disruption: Some("suspend".to_owned()),
        serves: Some(TimeService {
            address: "0.0.0.0:123".to_owned(),
            answered: 1,
            ..TimeService::default()
        }),
        is_follower: false,
        sources: vec![SourceReport {
            kind: SourceKind::Neighbour,
            address: "ntp.example:123".to_owned(),
            key: Some(7),
            selection: SourcePart::Falseticker,
            stratum: Some(2),
            reach: 0b1011,
            poll: Duration::from_secs(16),
            offset_nanos: 12,
            delay_nanos: 3,
            jitter_nanos: 4,
            error_nanos: None,
            answers: 7,
            rejected: [("distance".to_owned(), 2)].into(),
        }],
    }
}

fn subscription() -> SubscriptionStatus {
    SubscriptionStatus {
        id: SubscriptionId { node: ROBOT, index: 9 },
        pattern: "robot/**".to_owned(),
        form: form(),
        elastic: Some(ElasticStatus {
            step: 1,
            ladder: vec!["30 Hz".to_owned(), "5 Hz".to_owned()],
        }),
        importance: 20,
        within: Some(Duration::from_millis(200)),
        loss: Some(LossTolerance::new(1, 10).unwrap()),
        proxy: Proxy::Node("cellar".into()),
        scaled_at: vec!["robot".to_owned()],
        publishers: vec![PublisherId { node: ROBOT, index: 1 }],
        refusals: vec!["the link is full".to_owned()],
        delivered: 47,
        bytes: 299_000,
        rate_millihertz: 5_001,
        late: 1,
        overdue: 1,
        age_max: Duration::from_micros(45_678),
        age_mean: Some(Duration::from_micros(21_014)),
        age_sum: Duration::from_micros(987_654),
        dropped: drops(),
        jitter: Duration::from_micros(3_412),
        lost: 2,
        timed: Some(TimedStatus {
            released: 70_000,
            jitter_in: Some(Duration::from_micros(8)),
            bound: Some(Duration::from_micros(10)),
            ..TimedStatus::new(TimedMethod::SyncGroup, "stage=150ms".to_owned())
        }),
        players: Some(PlayersStatus {
            players: 2,
            packets: 94_000,
            left_out_slow: 12,
            left_out_needs: 30,
            left_out_sound: 7,
            reported: 90_000,
            lost: 900,
            loss_max: 0.0625,
            jitter_max: Duration::from_micros(1_250),
            round_trip_max: Some(Duration::from_micros(4_100)),
        }),
        health: SubscriptionHealth {
            state: HealthState::Short,
            label: "less than requested".to_owned(),
            window: Duration::from_secs(10),
            requested: Some(50),
            delivered: 40,
            lost: 10,
            lost_before: 9,
            late: 1,
            requested_millihertz: Some(5_000),
            delivered_millihertz: Some(4_000),
            reason: Some("9 of 50 lost before this node".to_owned()),
            broken_seconds: 3,
            broken_ago: Some(Duration::from_secs(70)),
        },
    }
}

fn grant() -> Grant {
    let bound = paceline_sched::Duration::from_millis(197);
    let hop = GrantedHop {
        node: ROBOT,
        node_name: "robot".to_owned(),
        link: "thin".to_owned(),
        capacity: Some(Capacity::from_bits_per_s(2_000_000).unwrap()),
        bytes_per_s: 50_000,
        burst: 13_140,
        bound,
        realtime: true,
    };
    Grant {
        subscription: SubscriptionId { node: NodeId(1), index: 0 },
        publisher: PublisherId { node: ROBOT, index: 1 },
        revision: 4,
        form: form(),
        bound,
        within: Some(bound),
        learned: true,
        hops: vec![hop.clone()],
        spare: vec![GrantedHop { capacity: None, ..hop }],
    }
}

/// Returns a status in which every field differs from its default.
fn status() -> NodeStatus {
    NodeStatus {
        name: "robot".to_owned(),
        at: Duration::from_secs(86_400),
        publishers: vec![PublisherStatus {
            id: PublisherId { node: ROBOT, index: 1 },
            tag: Tag::new("robot/camera").unwrap(),
            kind: Kind::VideoLeading,
            encoding: "image/jpeg".to_owned(),
            period: Some(Duration::from_micros(33_333)),
            published: 300,
            rate_millihertz: 29_970,
            off_rate: true,
            matching: true,
        }],
        subscriptions: vec![subscription()],
        buffers: vec![BufferStatus {
            id: SubscriptionId { node: ROBOT, index: 0 },
            pattern: "robot/camera".to_owned(),
            samples_max: 100,
            bytes_max: 1 << 28,
            age_max: Duration::from_secs(60),
            samples: 99,
            bytes: 640_000,
            oldest_ns: Some(1_700_000_000_000_000_000),
            newest_ns: Some(u64::MAX),
        }],
        links: vec![link()],
        reservations: vec![Reservation::new(&grant(), Some("robot/camera".to_owned()))],
        processor: Some(ProcessorStatus { held_us_per_s: 31_201, most_us_per_s: 500_000 }),
        buffer: Some(QueueStatus { reserved_bytes: 4, bytes: 5, greatest_bytes: 6 }),
        memory: Some(MemoryStatus { used_bytes: 70, bytes: 1 << 27, greatest_bytes: 900 }),
        dropped: drops(),
        stalled: vec![StalledThread {
            thread: "paceline-engine".to_owned(),
            still: Duration::from_secs(3),
        }],
        clock: Some(clock()),
        unread: vec![UnreadStatus {
            node: NodeId(5),
            entry: "publisher 3 'robot/camera'".to_owned(),
            reason: "kind 9".to_owned(),
        }],
        ..NodeStatus::new(ROBOT)
    }
}

#[test]
fn a_status_round_trips_and_no_prefix_of_it_decodes() {
    let sent = status();
    let bytes = sent.to_wire();
    assert_eq!(NodeStatus::from_wire(&bytes), Ok(sent));
    for end in 0..bytes.len() {
        assert!(NodeStatus::from_wire(&bytes[..end]).is_err(), "{end} bytes");
    }
}

#[test]
fn every_value_of_a_named_choice_and_every_plain_form_round_trips() {
    let mut sent = status();
    let row = sent.publishers[0].clone();
    sent.publishers = Kind::ALL.map(|kind| PublisherStatus { kind, ..row.clone() }).into();
    let row = sent.subscriptions[0].clone();
    let timed = |method| Some(TimedStatus::new(method, String::new()));
    sent.subscriptions = TimedMethod::ALL
        .map(|method| SubscriptionStatus { timed: timed(method), form: Form::FULL, ..row.clone() })
        .into();
    let row = sent.links[0].muted[0];
    sent.links[0].muted = Flood::ALL.map(|flood| MutedStatus { flood, ..row }).into();
    let row = clock();
    let source = row.sources[0].clone();
    let sources = SourcePart::ALL.map(|selection| SourceReport { selection, ..source.clone() });
    sent.clock = Some(ClockReport { sources: sources.into(), ..row });
    assert_eq!(NodeStatus::from_wire(&sent.to_wire()), Ok(sent));
}

#[test]
fn text_that_is_not_plain_is_escaped_by_the_sender_and_refused_by_the_receiver() {
    let name = "a\"b\\c\n\t\u{1b}[2J\u{202e}ä";
    let hostile = NodeStatus { name: name.to_owned(), ..NodeStatus::new(ROBOT) };
    let decoded = NodeStatus::from_wire(&hostile.to_wire()).unwrap();
    assert_eq!(decoded.name, "a\"b\\c\\n\\t\\u{1b}[2J\\u{202e}ä");

    let json = serde_json::to_string(&hostile).unwrap();
    assert_eq!(NodeStatus::from_wire(&packed(&json)), Err(StatusError::NotPlain));
    let escaped = r#"{"name": "\u001b[2J"}"#;
    assert_eq!(NodeStatus::from_wire(&packed(escaped)), Err(StatusError::NotPlain));
    let quoted = r#"{"name": "\"\\"}"#;
    let missing = NodeStatus::from_wire(&packed(quoted)).unwrap_err();
    assert!(missing.to_string().contains("missing field"), "{missing}");
}

/// Returns the wire form of a text.
fn packed(json: &str) -> Vec<u8> {
    let len = u32::try_from(json.len()).unwrap();
    [&len.to_le_bytes()[..], &lz4_flex::block::compress(json.as_bytes())].concat()
}

#[test]
fn fields_and_drop_reasons_of_a_newer_node_are_skipped() {
    let sent = status();
    let mut json = serde_json::to_value(&sent).unwrap();
    json["warp"] = serde_json::json!({ "factor": 9 });
    json["links"][0]["streams"][0]["dropped"]["wormhole"] = 3.into();
    assert_eq!(NodeStatus::from_wire(&packed(&json.to_string())), Ok(sent));
}

#[test]
fn a_length_beyond_the_limit_is_refused_before_anything_is_decompressed() {
    let mut bytes = status().to_wire();
    bytes[..4].copy_from_slice(&(17_u32 << 20).to_le_bytes());
    assert_eq!(NodeStatus::from_wire(&bytes), Err(StatusError::Length));
    let mut bytes = status().to_wire();
    bytes[0] ^= 1;
    assert_eq!(NodeStatus::from_wire(&bytes), Err(StatusError::Compression));
}

#[test]
fn rows_that_do_not_fit_are_counted() {
    let row = subscription();
    let sent = NodeStatus { subscriptions: vec![row; 5_000], ..NodeStatus::new(ROBOT) };
    let decoded = NodeStatus::from_wire(&sent.to_wire()).unwrap();
    assert_eq!((decoded.subscriptions.len(), decoded.left_out), (5_000, 0));

    // Names that cannot be compressed.
    let mut state = 1_u64;
    let mut name = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{state:016x}").repeat(1).chars().rev().collect::<String>()
    };
    let mut row = || {
        let pattern = (0..60).map(|_| name()).collect();
        SubscriptionStatus { pattern, ..subscription() }
    };
    let sent =
        NodeStatus { subscriptions: (0..4_000).map(|_| row()).collect(), ..NodeStatus::new(ROBOT) };
    let bytes = sent.to_wire();
    assert!(bytes.len() <= ANSWER_BYTES_MAX);
    let decoded = NodeStatus::from_wire(&bytes).unwrap();
    assert_eq!(decoded.subscriptions.len() as u64 + decoded.left_out, 4_000);
    assert!(decoded.left_out > 0 && decoded.subscriptions.len() > 500);
}

#[test]
fn long_texts_are_cut_by_the_sender_and_refused_by_the_receiver() {
    for long in ["x".repeat(5_000), "ä\n\"\\".repeat(900), "\u{202e}".repeat(700)] {
        let sent = NodeStatus { name: long.clone(), ..NodeStatus::new(ROBOT) };
        let name = NodeStatus::from_wire(&sent.to_wire()).unwrap().name;
        assert!(escape(&long).starts_with(&name), "{name}");
        assert!((500..=TEXT_BYTES_MAX).contains(&name.len()), "{}", name.len());
    }
    let json =
        serde_json::to_string(&NodeStatus { name: "x".repeat(2_000), ..NodeStatus::new(ROBOT) });
    assert_eq!(NodeStatus::from_wire(&packed(&json.unwrap())), Err(StatusError::Size));
    let many = format!("[{}0]", "0,".repeat(COMMAS_MAX + 1));
    assert_eq!(NodeStatus::from_wire(&packed(&many)), Err(StatusError::Size));
}

#[test]
fn the_lists_of_one_subscription_are_shortened_too() {
    let mut state = 1_u32;
    let mut id = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        PublisherId { node: NodeId(u64::from(state) << 24 | u64::from(state)), index: state }
    };
    let publishers: Vec<_> = (0..90_000).map(|_| id()).collect();
    let row = SubscriptionStatus { publishers, scaled_at: Vec::new(), ..subscription() };
    let sent = NodeStatus {
        subscriptions: vec![row],
        publishers: status().publishers,
        ..NodeStatus::new(ROBOT)
    };
    let decoded = NodeStatus::from_wire(&sent.to_wire()).unwrap();
    let kept = decoded.subscriptions[0].publishers.len() as u64;
    assert_eq!((kept + decoded.left_out, decoded.publishers.len()), (90_000, 1));
}

proptest! {
    #[test]
    fn a_status_with_a_changed_byte_decodes_or_fails(at in 0_usize..4_000, value: u8) {
        let mut bytes = status().to_wire();
        let at = at % bytes.len();
        bytes[at] = value;
        let _ = NodeStatus::from_wire(&bytes);
    }

    #[test]
    fn every_name_arrives_as_its_plain_form(name: String) {
        let sent = NodeStatus { name: name.clone(), ..NodeStatus::new(ROBOT) };
        let decoded = NodeStatus::from_wire(&sent.to_wire()).unwrap();
        prop_assert!(escape(&name).starts_with(&decoded.name));
        prop_assert!(decoded.name.len() > 500 || decoded.name == escape(&name));
    }
}
