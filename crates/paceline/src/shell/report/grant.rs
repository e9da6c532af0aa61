//! Reservations in a node's status.

use super::{
    TEXT_MAX, put_option, put_publisher_id, put_rows, put_text, read_option, read_publisher_id,
    read_rows,
};
use paceline_proto::control::{Grant, GrantedHop};
use paceline_proto::wire::{Reader, WireError, Writer};
use paceline_proto::{NodeId, SubscriptionId};
use paceline_sched::{Capacity, Duration};

pub(super) fn put(row: &Grant, out: &mut Vec<u8>) {
    out.put_u64(row.subscription.node.0);
    out.put_varint(u64::from(row.subscription.index));
    put_publisher_id(row.publisher, out);
    out.put_varint(row.bound.as_nanos());
    put_option(row.within, |within, out| out.put_varint(within.as_nanos()), out);
    put_rows(&row.hops, put_hop, out);
}

pub(super) fn read(r: &mut Reader) -> Result<Grant, WireError> {
    let node = NodeId(r.u64("node")?);
    Ok(Grant {
        subscription: SubscriptionId { node, index: r.varint32("subscription")? },
        publisher: read_publisher_id(r)?,
        bound: Duration::from_nanos(r.varint("bound")?),
        within: read_option(r, |r| r.varint("within").map(Duration::from_nanos))?,
        hops: read_rows(r, read_hop)?,
    })
}

fn put_hop(row: &GrantedHop, out: &mut Vec<u8>) {
    out.put_u64(row.node.0);
    put_text(&row.node_name, out);
    put_text(&row.link, out);
    put_option(row.capacity, |capacity, out| out.put_varint(capacity.bits_per_s()), out);
    out.put_varint(row.bytes_per_s);
    out.put_varint(row.burst);
    out.put_varint(row.bound.as_nanos());
}

fn read_hop(r: &mut Reader) -> Result<GrantedHop, WireError> {
    let capacity = |r: &mut Reader| {
        Capacity::from_bits_per_s(r.varint("capacity")?).map_err(|_| WireError::Invalid("capacity"))
    };
    Ok(GrantedHop {
        node: NodeId(r.u64("node")?),
        node_name: r.text(TEXT_MAX, "name")?,
        link: r.text(TEXT_MAX, "link")?,
        capacity: read_option(r, capacity)?,
        bytes_per_s: r.varint("bytes per second")?,
        burst: r.varint("burst")?,
        bound: Duration::from_nanos(r.varint("bound")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use paceline_proto::PublisherId;

    #[test]
    fn what_is_written_is_read_and_every_cut_is_an_error() {
        let hop = |capacity: Option<u64>| GrantedHop {
            node: NodeId(7),
            node_name: "robot".into(),
            link: "radio".into(),
            capacity: capacity.map(|bits| Capacity::from_bits_per_s(bits).unwrap()),
            bytes_per_s: 300_000,
            burst: 13_140,
            bound: Duration::from_millis(98),
        };
        let grant = Grant {
            subscription: SubscriptionId { node: NodeId(9), index: 3 },
            publisher: PublisherId { node: NodeId(7), index: 1 },
            bound: Duration::from_millis(196),
            within: Some(Duration::from_millis(200)),
            hops: vec![hop(Some(1_000_000)), hop(None)],
        };
        let mut out = Vec::new();
        put(&grant, &mut out);
        for cut in 0..out.len() {
            let mut reader = Reader::new(Bytes::copy_from_slice(&out[..cut]));
            assert!(read(&mut reader).is_err(), "{cut} of {} bytes", out.len());
        }
        let mut reader = Reader::new(out.into());
        assert_eq!(read(&mut reader), Ok(grant));
        assert!(reader.finish().is_ok());
    }
}
