//! The status of two nodes, for the tests of this crate and of the command line.

use paceline::contract::{Form, Proxy, Rate};
use paceline::delivery::{TimedMethod, TimedStatus};
use paceline::status::{
    BufferStatus, ClassStatus, DropReason, Drops, Flood, HealthState, LinkCounters, LinkStatus,
    MemoryStatus, MutedStatus, NeighbourStatus, NodeId, NodeStatus, PlayersStatus, ProcessorStatus,
    PublisherId, PublisherStatus, QueueStatus, Repairs, Reservation, ReservedHop, StreamContract,
    StreamStatus, SubscriptionHealth, SubscriptionId, SubscriptionStatus, SummedAges,
};
use paceline::time::{ClockReport, ClockStatus};
use paceline::{Kind, Size, Tag};
use std::num::NonZeroU32;
use std::time::Duration;

/// Returns a stream of the only publisher.
fn stream(publisher: PublisherId, form: Form, hop: NodeId, drops: Drops) -> StreamStatus {
    StreamStatus {
        publisher,
        tag: Some("robot/camera".to_owned()),
        form,
        hop,
        contracted: true,
        contract: Some(StreamContract {
            period: Duration::from_millis(200),
            deadline: Duration::from_millis(190),
            loss: "1/10".parse().unwrap(),
            bits_per_s: 400_000,
        }),
        ages: SummedAges {
            entered: 50,
            entered_age: Duration::from_millis(250),
            left_age: Duration::from_millis(940),
        },
        broken_ago: Some(Duration::from_secs(42)),
        group: None,
        counters: LinkCounters {
            offered: 50,
            sent: 47,
            bytes: 300_000,
            late: 1,
            violations: 2,
            dropped: drops,
            aborted: 2,
            too_early: 5,
            too_long: 2,
        },
    }
}

/// Returns the status of the only publisher.
fn camera(id: PublisherId) -> PublisherStatus {
    PublisherStatus {
        id,
        tag: Tag::new("robot/camera").unwrap(),
        kind: Kind::Picture,
        encoding: "image/jpeg".to_owned(),
        period: Some(Duration::from_micros(33_333)),
        published: 300,
        rate_millihertz: 30_000,
        off_rate: false,
        matching: true,
    }
}

/// Returns two nodes with one object of each kind.
pub(crate) fn status() -> Vec<NodeStatus> {
    let (robot, operator) = (NodeId(0xb0b), NodeId(0x0b));
    let publisher = PublisherId { node: robot, index: 1 };
    let mut drops = Drops::default();
    drops.add(DropReason::Superseded, 3);
    let size = Some(Size { width: 160, height: 120 });
    let rate = Rate::max(NonZeroU32::new(5_000).unwrap());
    let form = Form { rate, size, ..Form::FULL };
    let stream = stream(publisher, form, operator, drops);
    let video = video(stream.counters);
    let thin = LinkStatus {
        name: "thin".to_owned(),
        capacity_bits_per_s: Some(2_000_000),
        measured: None,
        medium: None,
        use_bits_per_s: None,
        loss: None,
        reserved_bits_per_s: 400_000,
        least_capacity_bits_per_s: Some(1_100_000),
        at: Duration::from_micros(86_399_900_000),
        hops: vec![operator],
        neighbours: vec![neighbour(operator)],
        wire_bytes: 400_000,
        frames: 1_000,
        frames_lost: 0,
        least_round_trip: Duration::from_micros(150),
        round_trip: Duration::from_micros(170),
        jitter: Duration::from_micros(20),
        frames_dropped: 5,
        streams: vec![stream],
        closed: LinkCounters::default(),
        classes: vec![video],
        muted: vec![flooding(operator)],
        repairs: Repairs { repeated: 41, repeated_bytes: 10_332, given_up: 1, share_per_mille: 60 },
        buffer: Some(QueueStatus {
            reserved_bytes: 23_140,
            bytes: 256_000_000,
            greatest_bytes: 13_140,
        }),
    };
    let picture = pictures(operator, publisher, form);
    let (publishers, buffers, links) = (vec![camera(publisher)], vec![held(robot)], vec![thin]);
    vec![
        NodeStatus {
            publishers,
            buffers,
            links,
            reservations: vec![promised(robot, operator)],
            processor: Some(ProcessorStatus { held_us_per_s: 31_201, most_us_per_s: 500_000 }),
            ..node(robot, "robot")
        },
        NodeStatus { subscriptions: vec![picture], ..node(operator, "operator") },
    ]
}

/// Returns the status of the only subscription.
fn pictures(node: NodeId, publisher: PublisherId, form: Form) -> SubscriptionStatus {
    SubscriptionStatus {
        id: SubscriptionId { node, index: 0 },
        pattern: "robot/**".to_owned(),
        form,
        elastic: None,
        importance: 50,
        within: Some(Duration::from_millis(200)),
        loss: Some("1/10".parse().unwrap()),
        proxy: Proxy::Publisher,
        scaled_at: vec!["robot".to_owned()],
        publishers: vec![publisher],
        refusals: vec![],
        delivered: 47,
        bytes: 299_000,
        rate_millihertz: 5_001,
        late: 1,
        overdue: 1,
        age_max: Duration::from_micros(45_678),
        age_mean: Some(Duration::from_micros(21_014)),
        age_sum: Duration::from_micros(987_654),
        dropped: Drops::default(),
        jitter: Duration::from_micros(3_412),
        lost: 2,
        timed: Some(timed()),
        players: Some(players()),
        health: health(),
    }
}

fn players() -> PlayersStatus {
    PlayersStatus {
        players: 2,
        packets: 94_000,
        left_out_slow: 12,
        left_out_needs: 30,
        left_out_sound: 0,
        reported: 90_000,
        lost: 900,
        loss_max: 0.0625,
        jitter_max: Duration::from_micros(1_250),
        round_trip_max: Some(Duration::from_micros(4_100)),
    }
}

fn health() -> SubscriptionHealth {
    SubscriptionHealth {
        state: HealthState::Served,
        label: HealthState::Served.in_words().to_owned(),
        window: Duration::from_secs(10),
        requested: Some(50),
        delivered: 47,
        lost: 3,
        lost_before: 3,
        late: 1,
        requested_millihertz: Some(5_000),
        delivered_millihertz: Some(4_700),
        reason: Some("3 of 50 lost before this node".to_owned()),
        broken_seconds: 0,
        broken_ago: None,
    }
}

const fn neighbour(id: NodeId) -> NeighbourStatus {
    NeighbourStatus {
        id,
        wire_bytes: 400_000,
        use_bits_per_s: None,
        down_after: Duration::from_millis(6_300),
        memory_bytes: 70,
    }
}

fn timed() -> TimedStatus {
    TimedStatus {
        released: 47,
        late: 1,
        added: Some(Duration::from_millis(150)),
        wakeup: Some(Duration::from_micros(52)),
        bound: Some(Duration::from_micros(114)),
        ..TimedStatus::new(TimedMethod::SyncGroup, "stage=150ms".to_owned())
    }
}

fn video(counters: LinkCounters) -> ClassStatus {
    ClassStatus {
        name: "video".to_owned(),
        parent: None,
        peer: None,
        share: 0.75,
        served_bytes: 123_456,
        guaranteed_bytes: 1_000,
        guaranteed_bits_per_s: 1_000_000,
        reserved_bits_per_s: 400_000,
        streams: 1,
        counters,
    }
}

const fn flooding(node: NodeId) -> MutedStatus {
    MutedStatus { peer: node, flood: Flood::Control, muted: true, times: 2, dropped: 900 }
}

fn promised(robot: NodeId, operator: NodeId) -> Reservation {
    Reservation {
        subscription: SubscriptionId { node: operator, index: 0 },
        publisher: PublisherId { node: robot, index: 1 },
        tag: Some("robot/camera".to_owned()),
        bound: Duration::from_millis(197),
        within: Some(Duration::from_millis(200)),
        learned: false,
        hops: vec![ReservedHop {
            node: robot,
            name: "robot".to_owned(),
            link: "thin".to_owned(),
            capacity_bits_per_s: Some(2_000_000),
            bits_per_s: 400_000,
            burst_bytes: 13_140,
            bound: Duration::from_millis(197),
            realtime: false,
        }],
        spare: Vec::new(),
    }
}

fn node(id: NodeId, name: &str) -> NodeStatus {
    NodeStatus {
        name: name.to_owned(),
        at: Duration::from_secs(86_400),
        memory: Some(MemoryStatus { used_bytes: 70, bytes: 134_217_728, greatest_bytes: 900 }),
        clock: Some(ClockReport {
            status: ClockStatus::Synchronised,
            error_nanos: Some(40_100),
            ..ClockReport::default()
        }),
        ..NodeStatus::new(id)
    }
}

fn held(robot: NodeId) -> BufferStatus {
    BufferStatus {
        id: SubscriptionId { node: robot, index: 0 },
        pattern: "robot/camera".to_owned(),
        samples_max: 100,
        bytes_max: 1 << 28,
        age_max: Duration::from_secs(86_400),
        samples: 100,
        bytes: 640_000,
        oldest_ns: Some(1_700_000_000_000_000_000),
        newest_ns: Some(1_700_000_003_300_000_000),
    }
}
