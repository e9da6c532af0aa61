//! The status of two nodes, for the tests of this crate and of the command line.

use paceline::class::ClassStatus;
use paceline::contract::{Form, Grant, GrantedHop, Proxy, Rate};
use paceline::delivery::{TimedMethod, TimedStatus};
use paceline::pull::History;
use paceline::status::{
    BufferStatus, BufferUse, ClassUse, DropReason, Drops, Excess, Flood, LinkReserved, LinkStatus,
    MemoryUse, MendCounters, MutedStatus, NodeId, NodeStatus, ProcessorUse, PublisherId,
    PublisherStatus, SentTo, StreamAges, StreamContract, StreamCounters, StreamStatus,
    SubscriptionId, SubscriptionStatus,
};
use paceline::time::{ClockReport, ClockStatus};
use paceline::{Capacity, Kind, Size, Tag};
use std::num::NonZeroU32;
use std::time::Duration;

/// Returns a stream of the only publisher.
fn stream(publisher: PublisherId, form: Form, hop: NodeId, drops: Drops) -> StreamStatus {
    StreamStatus {
        publisher,
        form,
        hop,
        contracted: true,
        contract: Some(StreamContract {
            period: Duration::from_millis(200),
            deadline: Duration::from_millis(190),
            loss: (1, 10),
            bits_per_s: 400_000,
        }),
        ages: StreamAges { entered: 50, entered_ns: 250_000_000, left_ns: 940_000_000 },
        broken_ago: Some(Duration::from_secs(42)),
        group: None,
        counters: StreamCounters {
            offered: 50,
            sent: 47,
            bytes: 300_000,
            late: 1,
            violations: 2,
            drops,
            aborted: 2,
            excess: Excess { early: 5, long: 2 },
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
        at: Duration::from_micros(86_399_900_000),
        hops: vec![operator],
        sent: vec![sent_to(operator)],
        wire_bytes: 400_000,
        frames: 1_000,
        frames_lost: 0,
        least_round_trip: Duration::from_micros(150),
        round_trip: Duration::from_micros(170),
        jitter: Duration::from_micros(20),
        frames_dropped: 5,
        streams: vec![stream],
        closed: StreamCounters::default(),
        classes: vec![video],
        muted: vec![flooding(operator)],
        mended: MendCounters { repeated: 41, repeated_bytes: 10_332, given_up: 1 },
        reserved: LinkReserved {
            buffer: Some(BufferUse { held: 23_140, most: 256_000_000 }),
            greatest_depth: 13_140,
            classes: vec![ClassUse { name: "video".to_owned(), held: 400_000, most: 1_000_000 }],
        },
    };
    let picture = SubscriptionStatus {
        id: SubscriptionId { node: operator, index: 0 },
        pattern: "robot/**".to_owned(),
        form,
        within: Some(Duration::from_millis(200)),
        loss: Some((1, 10)),
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
        drops: Drops::default(),
        jitter: Duration::from_micros(3_412),
        lost: 2,
        timed: Some(timed()),
    };
    let (publishers, buffers, links) = (vec![camera(publisher)], vec![held(robot)], vec![thin]);
    vec![
        NodeStatus {
            publishers,
            buffers,
            links,
            reservations: vec![promised(robot, operator)],
            processor: Some(ProcessorUse { held: 31_200_001, most: 500_000_000 }),
            ..node(robot, "robot")
        },
        NodeStatus { subscriptions: vec![picture], ..node(operator, "operator") },
    ]
}

const fn sent_to(node: NodeId) -> SentTo {
    SentTo { node, wire_bytes: 400_000, down_after: Duration::from_millis(6_300), memory: 70 }
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

fn video(counters: StreamCounters) -> ClassStatus {
    ClassStatus {
        name: "video".to_owned(),
        parent: None,
        peer: None,
        part: 750_000,
        served: 123_456,
        guaranteed: 1_000,
        streams: 1,
        counters,
    }
}

const fn flooding(node: NodeId) -> MutedStatus {
    MutedStatus { node, flood: Flood::Control, muted: true, times: 2, dropped: 900 }
}

fn promised(robot: NodeId, operator: NodeId) -> Grant {
    let millis = paceline_sched::Duration::from_millis;
    Grant {
        subscription: SubscriptionId { node: operator, index: 0 },
        publisher: PublisherId { node: robot, index: 1 },
        revision: 0,
        bound: millis(197),
        within: Some(millis(200)),
        learned: false,
        hops: vec![GrantedHop {
            node: robot,
            node_name: "robot".to_owned(),
            link: "thin".to_owned(),
            capacity: Some(Capacity::from_bits_per_s(2_000_000).unwrap()),
            bytes_per_s: 50_000,
            burst: 13_140,
            bound: millis(197),
            realtime: false,
        }],
        spare: Vec::new(),
    }
}

fn node(id: NodeId, name: &str) -> NodeStatus {
    NodeStatus {
        id,
        name: name.to_owned(),
        at: Duration::from_secs(86_400),
        publishers: vec![],
        subscriptions: vec![],
        buffers: vec![],
        links: vec![],
        reservations: vec![],
        processor: None,
        buffer: None,
        memory: Some(MemoryUse { used: 70, limit: 134_217_728, greatest: 900 }),
        drops: Drops::default(),
        stalled: vec![],
        unread: vec![],
        clock: Some(ClockReport {
            status: ClockStatus::Synchronised,
            error_nanos: Some(40_100),
            ..ClockReport::default()
        }),
    }
}

fn held(robot: NodeId) -> BufferStatus {
    BufferStatus {
        id: SubscriptionId { node: robot, index: 0 },
        pattern: "robot/camera".to_owned(),
        limits: History::new().samples(100).limits().unwrap(),
        samples: 100,
        bytes: 640_000,
        captured: Some((1_700_000_000_000_000_000, 1_700_000_003_300_000_000)),
    }
}
