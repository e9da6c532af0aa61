//! The wire format of the last part of a status: reading times and recent values.

use super::{put_option, put_rows, put_time, read_option, read_rows, read_time};
use crate::status::{LinkStatus, NodeStatus, SentTo, StreamStatus, SubscriptionStatus};
use paceline_proto::NodeId;
use paceline_proto::wire::{Reader, WireError, Writer};
use std::time::Duration;

/// This part's values of a link.
struct LinkTimes {
    at: Duration,
    sent: Vec<SentTo>,
    broken_ago: Vec<Option<Duration>>,
}

/// Encodes the values that only this part has, in the order of the rows before it.
pub(super) fn put(status: &NodeStatus, out: &mut Vec<u8>) {
    put_time(status.at, out);
    put_rows(&status.subscriptions, put_subscription, out);
    put_rows(&status.links, put_link, out);
}

/// Decodes the part into the rows of `status`.
pub(super) fn read(r: &mut Reader, status: &mut NodeStatus) -> Result<(), WireError> {
    status.at = read_time(r)?;
    let means = read_rows(r, |r| read_option(r, read_time))?;
    for (subscription, mean) in status.subscriptions.iter_mut().zip(means) {
        subscription.age_mean = mean;
    }
    for (link, times) in status.links.iter_mut().zip(read_rows(r, read_link)?) {
        (link.at, link.sent) = (times.at, times.sent);
        for (stream, broken_ago) in link.streams.iter_mut().zip(times.broken_ago) {
            stream.broken_ago = broken_ago;
        }
    }
    Ok(())
}

fn put_subscription(row: &SubscriptionStatus, out: &mut Vec<u8>) {
    put_option(row.age_mean, put_time, out);
}

fn put_link(row: &LinkStatus, out: &mut Vec<u8>) {
    put_time(row.at, out);
    let put_sent = |sent: &SentTo, out: &mut Vec<u8>| {
        out.put_u64(sent.node.0);
        out.put_varint(sent.wire_bytes);
        put_time(sent.down_after, out);
    };
    put_rows(&row.sent, put_sent, out);
    let put_stream =
        |stream: &StreamStatus, out: &mut Vec<u8>| put_option(stream.broken_ago, put_time, out);
    put_rows(&row.streams, put_stream, out);
}

fn read_link(r: &mut Reader) -> Result<LinkTimes, WireError> {
    let read_sent = |r: &mut Reader| {
        let (node, wire_bytes) = (NodeId(r.u64("hop")?), r.varint("bytes sent to a hop")?);
        Ok(SentTo { node, wire_bytes, down_after: read_time(r)?, memory: 0 })
    };
    Ok(LinkTimes {
        at: read_time(r)?,
        sent: read_rows(r, read_sent)?,
        broken_ago: read_rows(r, |r| read_option(r, read_time))?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{decode, encode};
    use super::*;
    use crate::delivery::{TimedMethod, TimedStatus};
    use crate::status::{LinkReserved, MemoryUse};
    use bytes::Bytes;
    use paceline_proto::link::MendCounters;
    use paceline_proto::{Drops, Form, PublisherId, StreamAges, StreamCounters};
    use paceline_proto::{Proxy, SubscriptionId};

    fn subscription(index: u32, age_mean: Option<Duration>) -> SubscriptionStatus {
        SubscriptionStatus {
            id: SubscriptionId { node: NodeId(7), index },
            pattern: "a/**".to_owned(),
            form: Form::FULL,
            within: None,
            loss: None,
            proxy: Proxy::Publisher,
            scaled_at: vec!["robot".to_owned()],
            publishers: Vec::new(),
            refusals: Vec::new(),
            delivered: 3,
            bytes: 300,
            rate_millihertz: 1_000,
            late: 0,
            overdue: u64::from(index),
            age_max: Duration::from_millis(9),
            age_mean,
            age_sum: Duration::from_millis(20),
            drops: Drops::default(),
            jitter: Duration::from_micros(70),
            lost: 4_000,
            timed: None,
        }
    }

    fn timed() -> TimedStatus {
        TimedStatus {
            released: 70_000,
            late: 1,
            early: 2,
            refused: 3,
            silences: 4,
            unknown: 5,
            beyond: 6,
            jumps: 7,
            jitter_in: Some(Duration::from_micros(8)),
            added: Some(Duration::from_micros(9)),
            bound: Some(Duration::from_micros(10)),
            ..TimedStatus::new(TimedMethod::SyncGroup, "stage=150ms".to_owned())
        }
    }

    fn link(at: u64, broken_ago: &[Option<Duration>]) -> LinkStatus {
        let stream = |broken_ago: &Option<Duration>| StreamStatus {
            publisher: PublisherId { node: NodeId(7), index: 1 },
            form: Form::FULL,
            hop: NodeId(8),
            contracted: true,
            contract: None,
            ages: StreamAges::default(),
            counters: StreamCounters::default(),
            broken_ago: *broken_ago,
            group: Some(std::net::SocketAddrV4::new([239, 77, 0, 1].into(), 7_400)),
        };
        LinkStatus {
            frames_lost: 0,
            name: "thin".to_owned(),
            capacity_bits_per_s: None,
            at: Duration::from_millis(at),
            hops: vec![NodeId(8), NodeId(9)],
            sent: [(8, 70_000), (9, u64::MAX)].map(to).into(),
            wire_bytes: 70_000,
            frames: 3,
            least_round_trip: Duration::ZERO,
            round_trip: Duration::from_micros(170),
            jitter: Duration::from_micros(20),
            frames_dropped: 5,
            streams: broken_ago.iter().map(stream).collect(),
            closed: StreamCounters::default(),
            classes: Vec::new(),
            muted: Vec::new(),
            mended: MendCounters::default(),
            reserved: LinkReserved::default(),
        }
    }

    const fn to((node, wire_bytes): (u64, u64)) -> SentTo {
        SentTo {
            node: NodeId(node),
            wire_bytes,
            down_after: Duration::from_millis(6_300),
            memory: 5,
        }
    }

    #[test]
    fn each_row_gets_its_reported_times() {
        let some = |millis| Some(Duration::from_millis(millis));
        let told = NodeStatus {
            stalled: Vec::new(),
            unread: Vec::new(),
            id: NodeId(7),
            name: "robot".to_owned(),
            at: Duration::from_secs(86_400),
            publishers: Vec::new(),
            subscriptions: vec![
                subscription(0, some(4)),
                subscription(1, None),
                SubscriptionStatus { timed: Some(timed()), ..subscription(2, None) },
            ],
            buffers: Vec::new(),
            links: vec![link(5, &[None, some(42_000)]), link(6, &[]), link(7, &[some(0)])],
            reservations: Vec::new(),
            processor: None,
            drops: Drops::default(),
            clock: None,
            buffer: None,
            memory: Some(MemoryUse { used: 10, limit: 1_000_000, greatest: 20 }),
        };
        assert_eq!(decode(Bytes::from(encode(&told))), Ok(told));
    }
}
