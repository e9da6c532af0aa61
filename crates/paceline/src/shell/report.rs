//! The wire format of a node's status.

mod clock;
pub(crate) mod measured;
mod memory;
pub(crate) mod passages;
mod reserved;
mod timed;
mod times;

use crate::delivery::TimedStatus;
use crate::status::{
    BufferStatus, LinkReserved, LinkStatus, MutedStatus, NodeStatus, PublisherStatus,
    StalledThread, StreamContract, StreamStatus, SubscriptionStatus, UnreadStatus,
};
use bytes::Bytes;
use paceline_proto::control::{Grant, ProcessorUse};
use paceline_proto::guard::Flood;
use paceline_proto::link::{ClassView, MendCounters};
use paceline_proto::pull::Limits;
use paceline_proto::pull::limits::SAMPLES_MAX;
use paceline_proto::text::escape;
use paceline_proto::wire::segment::{read_form, write_form};
use paceline_proto::wire::{Reader, WireError, Writer};
use paceline_proto::{
    DropReason, Drops, Excess, Kind, NodeId, Proxy, PublisherId, StreamAges, StreamCounters,
    SubscriptionId, Tag,
};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

/// The limit of rows of one kind in a status. Others are left out.
const ROWS_MAX: usize = 4_096;
const TEXT_MAX: usize = 1_024;

/// Encodes a status.
///
/// Later versions append new parts after all existing ones, never within a row, so that nodes of
/// different versions understand each other.
pub(crate) fn encode(status: &NodeStatus) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u64(status.id.0);
    put_text(&status.name, &mut out);
    put_rows(&status.publishers, put_publisher, &mut out);
    put_rows(&status.subscriptions, put_subscription, &mut out);
    put_rows(&status.buffers, put_buffer, &mut out);
    put_rows(&status.links, put_link, &mut out);
    put_rows(&status.reservations, Grant::write, &mut out);
    put_drops(&status.drops, &mut out);
    let processor = |used: ProcessorUse, out: &mut Vec<u8>| {
        [used.held, used.most].into_iter().for_each(|n| out.put_varint(n));
    };
    put_option(status.processor, processor, &mut out);
    put_rows(&status.links, put_mended, &mut out);
    put_rows(&status.stalled, put_stalled, &mut out);
    times::put(status, &mut out);
    put_rows(&status.links, |link, out| reserved::put(&link.reserved, out), &mut out);
    put_option(status.clock.as_ref(), clock::put, &mut out);
    put_rows(&status.subscriptions, put_timed, &mut out);
    put_option(status.buffer.as_ref(), reserved::put_host, &mut out);
    put_rows(&status.unread, put_unread, &mut out);
    memory::put(status, &mut out);
    put_rows(&status.subscriptions, |row, out| out.put_varint(row.overdue), &mut out);
    out
}

/// Decodes a status. Parts that an older node does not send keep their defaults, and unknown parts
/// of a newer node are ignored.
pub(crate) fn decode(bytes: Bytes) -> Result<NodeStatus, WireError> {
    let r = &mut Reader::new(bytes);
    let mut status = NodeStatus {
        id: NodeId(r.u64("node")?),
        name: r.text(TEXT_MAX, "name")?,
        at: Duration::ZERO,
        publishers: read_rows(r, read_publisher)?,
        subscriptions: read_rows(r, read_subscription)?,
        buffers: read_rows(r, read_buffer)?,
        links: read_rows(r, read_link)?,
        reservations: read_rows(r, Grant::read)?,
        drops: read_drops(r)?,
        processor: if r.is_empty() { None } else { read_option(r, read_processor)? },
        stalled: Vec::new(),
        clock: None,
        buffer: None,
        memory: None,
        unread: Vec::new(),
    };
    let mended = if r.is_empty() { Vec::new() } else { read_rows(r, read_mended)? };
    for (link, mended) in status.links.iter_mut().zip(mended) {
        link.mended = mended;
    }
    if !r.is_empty() {
        status.stalled = read_rows(r, read_stalled)?;
    }
    if !r.is_empty() {
        times::read(r, &mut status)?;
    }
    let rows = if r.is_empty() { Vec::new() } else { read_rows(r, reserved::read)? };
    for (link, reserved) in status.links.iter_mut().zip(rows) {
        link.reserved = reserved;
    }
    if !r.is_empty() {
        status.clock = read_option(r, clock::read)?;
    }
    let rows = if r.is_empty() { Vec::new() } else { read_rows(r, read_timed)? };
    for (subscription, (jitter, lost, timed)) in status.subscriptions.iter_mut().zip(rows) {
        (subscription.jitter, subscription.lost, subscription.timed) = (jitter, lost, timed);
    }
    if !r.is_empty() {
        status.buffer = read_option(r, reserved::read_host)?;
    }
    if !r.is_empty() {
        status.unread = read_rows(r, read_unread)?;
    }
    if !r.is_empty() {
        memory::read(r, &mut status)?;
    }
    let rows = if r.is_empty() { Vec::new() } else { read_rows(r, |r| r.varint("overdue"))? };
    for (subscription, overdue) in status.subscriptions.iter_mut().zip(rows) {
        subscription.overdue = overdue;
    }
    Ok(status)
}

fn read_processor(r: &mut Reader) -> Result<ProcessorUse, WireError> {
    Ok(ProcessorUse { held: r.varint("held")?, most: r.varint("the most held")? })
}

fn put_rows<T>(rows: &[T], put: impl Fn(&T, &mut Vec<u8>), out: &mut Vec<u8>) {
    let rows = rows.get(..ROWS_MAX).unwrap_or(rows);
    out.put_varint(rows.len() as u64);
    rows.iter().for_each(|row| put(row, out));
}

fn read_rows<T>(
    reader: &mut Reader,
    read: impl Fn(&mut Reader) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    let count = reader.len(ROWS_MAX, "rows")?;
    (0..count).map(|_| read(reader)).collect()
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    // The receiver accepts plain text only.
    let text = escape(text);
    let mut end = text.len().min(TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.put_text(text.get(..end).unwrap_or_default());
}

fn put_time(time: Duration, out: &mut Vec<u8>) {
    out.put_varint(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

fn read_time(reader: &mut Reader) -> Result<Duration, WireError> {
    Ok(Duration::from_nanos(reader.varint("time")?))
}

fn put_option<T>(value: Option<T>, put: impl Fn(T, &mut Vec<u8>), out: &mut Vec<u8>) {
    out.put_flag(value.is_some());
    if let Some(value) = value {
        put(value, out);
    }
}

fn read_option<T>(
    reader: &mut Reader,
    read: impl Fn(&mut Reader) -> Result<T, WireError>,
) -> Result<Option<T>, WireError> {
    if reader.flag("option")? { read(reader).map(Some) } else { Ok(None) }
}

fn put_publisher_id(id: PublisherId, out: &mut Vec<u8>) {
    out.put_u64(id.node.0);
    out.put_varint(u64::from(id.index));
}

fn read_publisher_id(reader: &mut Reader) -> Result<PublisherId, WireError> {
    Ok(PublisherId { node: NodeId(reader.u64("node")?), index: reader.varint32("publisher")? })
}

fn put_drops(drops: &Drops, out: &mut Vec<u8>) {
    out.put_varint(drops.iter().count() as u64);
    for (reason, samples) in drops.iter() {
        out.put_varint(reason.index() as u64);
        out.put_varint(samples);
    }
}

fn read_drops(reader: &mut Reader) -> Result<Drops, WireError> {
    let mut drops = Drops::default();
    for _ in 0..reader.len(DropReason::ALL.len(), "drop reasons")? {
        let index = reader.len(DropReason::ALL.len(), "drop reason")?;
        let reason = DropReason::from_index(index).ok_or(WireError::Invalid("drop reason"))?;
        drops.add(reason, reader.varint("drops")?);
    }
    Ok(drops)
}

fn put_publisher(row: &PublisherStatus, out: &mut Vec<u8>) {
    put_publisher_id(row.id, out);
    put_text(row.tag.as_str(), out);
    out.put_u8(row.kind.code());
    put_text(&row.encoding, out);
    put_option(row.period, put_time, out);
    out.put_varint(row.published);
    out.put_varint(row.rate_millihertz);
    out.put_flag(row.matching);
}

fn read_publisher(r: &mut Reader) -> Result<PublisherStatus, WireError> {
    Ok(PublisherStatus {
        id: read_publisher_id(r)?,
        tag: Tag::new(&r.text(TEXT_MAX, "tag")?).map_err(|_| WireError::Invalid("tag"))?,
        kind: Kind::from_code(r.u8("kind")?).ok_or(WireError::Invalid("kind"))?,
        encoding: r.text(TEXT_MAX, "encoding")?,
        period: read_option(r, read_time)?,
        published: r.varint("published")?,
        rate_millihertz: r.varint("rate")?,
        matching: r.flag("matching")?,
    })
}

fn put_subscription(row: &SubscriptionStatus, out: &mut Vec<u8>) {
    out.put_u64(row.id.node.0);
    out.put_varint(u64::from(row.id.index));
    put_text(&row.pattern, out);
    write_form(&row.form, out);
    put_option(row.within, put_time, out);
    put_option(row.loss, put_loss, out);
    put_text(&row.proxy.to_string(), out);
    put_rows(&row.scaled_at, |text, out| put_text(text, out), out);
    put_rows(&row.publishers, |id, out| put_publisher_id(*id, out), out);
    put_rows(&row.refusals, |text, out| put_text(text, out), out);
    out.put_varint(row.delivered);
    out.put_varint(row.bytes);
    out.put_varint(row.rate_millihertz);
    out.put_varint(row.late);
    put_time(row.age_max, out);
    put_time(row.age_sum, out);
    put_drops(&row.drops, out);
}

fn put_loss((x, y): (u32, u32), out: &mut Vec<u8>) {
    out.put_varint(u64::from(x));
    out.put_varint(u64::from(y));
}

fn read_subscription(r: &mut Reader) -> Result<SubscriptionStatus, WireError> {
    Ok(SubscriptionStatus {
        id: SubscriptionId { node: NodeId(r.u64("node")?), index: r.varint32("subscription")? },
        pattern: r.text(TEXT_MAX, "pattern")?,
        form: read_form(r)?,
        within: read_option(r, read_time)?,
        loss: read_option(r, |r| Ok((r.varint32("loss x")?, r.varint32("loss y")?)))?,
        proxy: Proxy::parse(&r.text(TEXT_MAX, "proxy")?).ok_or(WireError::Invalid("proxy"))?,
        scaled_at: read_rows(r, |r| r.text(TEXT_MAX, "proxy"))?,
        publishers: read_rows(r, read_publisher_id)?,
        refusals: read_rows(r, |r| r.text(TEXT_MAX, "refusal"))?,
        delivered: r.varint("delivered")?,
        bytes: r.varint("bytes")?,
        rate_millihertz: r.varint("rate")?,
        late: r.varint("late")?,
        overdue: 0,
        age_max: read_time(r)?,
        age_mean: None,
        age_sum: read_time(r)?,
        drops: read_drops(r)?,
        jitter: Duration::ZERO,
        lost: 0,
        timed: None,
    })
}

fn put_timed(row: &SubscriptionStatus, out: &mut Vec<u8>) {
    put_time(row.jitter, out);
    out.put_varint(row.lost);
    put_option(row.timed.as_ref(), timed::put, out);
}

type Arrivals = (Duration, u64, Option<TimedStatus>);

fn read_timed(r: &mut Reader) -> Result<Arrivals, WireError> {
    Ok((read_time(r)?, r.varint("lost")?, read_option(r, timed::read)?))
}

fn put_buffer(row: &BufferStatus, out: &mut Vec<u8>) {
    out.put_u64(row.id.node.0);
    out.put_varint(u64::from(row.id.index));
    put_text(&row.pattern, out);
    out.put_varint(row.limits.samples() as u64);
    out.put_varint(row.limits.bytes());
    out.put_varint(row.limits.age().as_nanos());
    out.put_varint(row.samples);
    out.put_varint(row.bytes);
    put_option(row.captured, put_span, out);
}

fn put_span((first, last): (u64, u64), out: &mut Vec<u8>) {
    out.put_varint(first);
    out.put_varint(last);
}

fn read_buffer(r: &mut Reader) -> Result<BufferStatus, WireError> {
    let id = SubscriptionId { node: NodeId(r.u64("node")?), index: r.varint32("subscription")? };
    let pattern = r.text(TEXT_MAX, "pattern")?;
    let samples = r.len(SAMPLES_MAX, "buffer samples")?;
    let (bytes, age) = (r.varint("buffer bytes")?, r.varint("buffer age")?);
    let limits = Limits::new(samples, bytes, paceline_sched::Duration::from_nanos(age));
    Ok(BufferStatus {
        id,
        pattern,
        limits: limits.map_err(|_| WireError::Invalid("buffer limits"))?,
        samples: r.varint("samples held")?,
        bytes: r.varint("bytes held")?,
        captured: read_option(r, |r| Ok((r.varint("oldest")?, r.varint("newest")?)))?,
    })
}

fn put_link(row: &LinkStatus, out: &mut Vec<u8>) {
    put_text(&row.name, out);
    put_option(row.capacity_bits_per_s, |bits, out| out.put_varint(bits), out);
    put_rows(&row.hops, |node, out| out.put_u64(node.0), out);
    out.put_varint(row.wire_bytes);
    out.put_varint(row.frames);
    out.put_varint(row.frames_lost);
    put_time(row.least_round_trip, out);
    put_time(row.round_trip, out);
    put_time(row.jitter, out);
    out.put_varint(row.frames_dropped);
    put_rows(&row.streams, put_stream, out);
    put_counters(&row.closed, out);
    put_rows(&row.classes, put_class, out);
    put_rows(&row.muted, put_muted, out);
}

fn put_mended(row: &LinkStatus, out: &mut Vec<u8>) {
    let MendCounters { repeated, repeated_bytes, given_up } = row.mended;
    [repeated, repeated_bytes, given_up].into_iter().for_each(|n| out.put_varint(n));
}

fn put_stalled(row: &StalledThread, out: &mut Vec<u8>) {
    put_text(&row.thread, out);
    put_time(row.still, out);
}

fn read_stalled(r: &mut Reader) -> Result<StalledThread, WireError> {
    Ok(StalledThread { thread: r.text(TEXT_MAX, "thread")?, still: read_time(r)? })
}

fn put_unread(row: &UnreadStatus, out: &mut Vec<u8>) {
    out.put_u64(row.node.0);
    put_text(&row.entry, out);
    put_text(&row.reason, out);
}

fn read_unread(r: &mut Reader) -> Result<UnreadStatus, WireError> {
    let node = NodeId(r.u64("node")?);
    Ok(UnreadStatus {
        node,
        entry: r.text(TEXT_MAX, "entry")?,
        reason: r.text(TEXT_MAX, "reason")?,
    })
}

fn read_mended(r: &mut Reader) -> Result<MendCounters, WireError> {
    Ok(MendCounters {
        repeated: r.varint("pieces repeated")?,
        repeated_bytes: r.varint("bytes repeated")?,
        given_up: r.varint("samples given up")?,
    })
}

fn put_muted(row: &MutedStatus, out: &mut Vec<u8>) {
    out.put_u64(row.node.0);
    let place = Flood::ALL.iter().position(|flood| *flood == row.flood);
    out.put_varint(place.unwrap_or_default() as u64);
    out.put_flag(row.muted);
    out.put_varint(row.times);
    out.put_varint(row.dropped);
}

fn read_muted(r: &mut Reader) -> Result<MutedStatus, WireError> {
    let node = NodeId(r.u64("peer")?);
    let flood = r.len(Flood::ALL.len() - 1, "flood")?;
    Ok(MutedStatus {
        node,
        flood: *Flood::ALL.get(flood).ok_or(WireError::Invalid("flood"))?,
        muted: r.flag("muted")?,
        times: r.varint("times muted")?,
        dropped: r.varint("messages dropped")?,
    })
}

fn put_class(row: &ClassView, out: &mut Vec<u8>) {
    put_text(&row.name, out);
    put_option(row.parent.as_deref(), put_text, out);
    put_option(row.peer, |node, out| out.put_u64(node.0), out);
    out.put_varint(u64::from(row.part));
    out.put_varint(row.served);
    out.put_varint(row.guaranteed);
    out.put_varint(u64::from(row.streams));
    put_counters(&row.counters, out);
}

fn read_class(r: &mut Reader) -> Result<ClassView, WireError> {
    Ok(ClassView {
        name: r.text(TEXT_MAX, "class")?,
        parent: read_option(r, |r| r.text(TEXT_MAX, "class"))?,
        peer: read_option(r, |r| r.u64("peer").map(NodeId))?,
        part: r.varint32("part")?,
        served: r.varint("served")?,
        guaranteed: r.varint("guaranteed")?,
        streams: r.varint32("streams")?,
        counters: read_counters(r)?,
    })
}

fn read_link(r: &mut Reader) -> Result<LinkStatus, WireError> {
    Ok(LinkStatus {
        name: r.text(TEXT_MAX, "link")?,
        capacity_bits_per_s: read_option(r, |r| r.varint("capacity"))?,
        at: Duration::ZERO,
        sent: Vec::new(),
        hops: read_rows(r, |r| r.u64("hop").map(NodeId))?,
        wire_bytes: r.varint("wire bytes")?,
        frames: r.varint("frames")?,
        frames_lost: r.varint("frames lost")?,
        least_round_trip: read_time(r)?,
        round_trip: read_time(r)?,
        jitter: read_time(r)?,
        frames_dropped: r.varint("dropped frames")?,
        streams: read_rows(r, read_stream)?,
        closed: read_counters(r)?,
        classes: read_rows(r, read_class)?,
        muted: read_rows(r, read_muted)?,
        mended: MendCounters::default(),
        reserved: LinkReserved::default(),
    })
}

fn put_stream(row: &StreamStatus, out: &mut Vec<u8>) {
    put_publisher_id(row.publisher, out);
    write_form(&row.form, out);
    out.put_u64(row.hop.0);
    out.put_flag(row.contracted);
    put_option(row.contract, put_contract, out);
    let StreamAges { entered, entered_ns, left_ns } = row.ages;
    [entered, entered_ns, left_ns].into_iter().for_each(|n| out.put_varint(n));
    put_counters(&row.counters, out);
    put_option(row.group, put_group, out);
}

fn put_group(group: SocketAddrV4, out: &mut Vec<u8>) {
    out.put_u32(u32::from(*group.ip()));
    out.put_varint(group.port().into());
}

fn read_group(r: &mut Reader) -> Result<SocketAddrV4, WireError> {
    let address = Ipv4Addr::from(r.u32("group")?);
    let port = u16::try_from(r.varint("port")?).map_err(|_| WireError::Invalid("port"))?;
    Ok(SocketAddrV4::new(address, port))
}

fn put_contract(row: StreamContract, out: &mut Vec<u8>) {
    put_time(row.period, out);
    put_time(row.deadline, out);
    put_loss(row.loss, out);
    out.put_varint(row.bits_per_s);
}

fn read_contract(r: &mut Reader) -> Result<StreamContract, WireError> {
    Ok(StreamContract {
        period: read_time(r)?,
        deadline: read_time(r)?,
        loss: (r.varint32("loss x")?, r.varint32("loss y")?),
        bits_per_s: r.varint("held")?,
    })
}

fn put_counters(counters: &StreamCounters, out: &mut Vec<u8>) {
    let StreamCounters { offered, sent, bytes, late, violations, drops, aborted, excess } =
        *counters;
    [offered, sent, bytes, late, violations, aborted].into_iter().for_each(|n| out.put_varint(n));
    put_drops(&drops, out);
    [excess.early, excess.long].into_iter().for_each(|n| out.put_varint(n));
}

fn read_counters(r: &mut Reader) -> Result<StreamCounters, WireError> {
    Ok(StreamCounters {
        offered: r.varint("offered")?,
        sent: r.varint("sent")?,
        bytes: r.varint("bytes")?,
        late: r.varint("late")?,
        violations: r.varint("violations")?,
        aborted: r.varint("aborted")?,
        drops: read_drops(r)?,
        excess: Excess { early: r.varint("too early")?, long: r.varint("too long")? },
    })
}

fn read_stream(r: &mut Reader) -> Result<StreamStatus, WireError> {
    Ok(StreamStatus {
        publisher: read_publisher_id(r)?,
        form: read_form(r)?,
        hop: NodeId(r.u64("hop")?),
        contracted: r.flag("contracted")?,
        contract: read_option(r, read_contract)?,
        ages: StreamAges {
            entered: r.varint("entered")?,
            entered_ns: r.varint("age entered")?,
            left_ns: r.varint("age left")?,
        },
        counters: read_counters(r)?,
        group: read_option(r, read_group)?,
        broken_ago: None,
    })
}

#[cfg(test)]
mod tests;
