//! The encoding of publisher declarations and subscription requests.

mod elastic;
mod medium;
mod refusal;

pub(in crate::control) use medium::{put_medium, read_medium};
pub(in crate::control) use refusal::{
    put_lack, put_refusal, put_refusal_of, read_lack, read_refusal, read_refusal_of,
};

use super::elastic::IMPORTANCE_DEFAULT;
use super::ids::NAME_BYTES_MAX;
use super::spec::{HopInfo, IDLE_MIN, PublisherSpec, SubscriptionSpec};
use crate::envelope::Envelope;
use crate::form::{Form, Proxy, Rate, ScaledForm, Size, Unscalable};
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::retransmit::Retransmit;
use crate::sample::Kind;
use crate::tag::{Pattern, TAG_BYTES_MAX, Tag};
use crate::video::{Structure, THOUSAND};
use crate::wire::segment::{
    read_audio, read_bitrate, read_encoding, read_form, read_quality, read_rate, write_audio,
    write_encoding, write_form, write_rate,
};
use crate::wire::{Reader, WireError, Writer};
use core::num::NonZeroU32;
use elastic::{put_elastic, read_elastic, read_importance};
use paceline_sched::{Capacity, Duration, Late, LossTolerance};

/// The largest revision, far below overflow.
pub(in crate::control) const REVISION_MAX: u64 = 1 << 62;

// Flags of a publisher: the optional fields present, and its boolean fields.
const HAS_PERIOD: u8 = 1;
const HAS_SIZE: u8 = 1 << 1;
const HAS_BYTES_MAX: u8 = 1 << 2;
const LATE_SEND: u8 = 1 << 3;
const HAS_LOSS: u8 = 1 << 4;
const WAITS: u8 = 1 << 5;
const HAS_UNSCALABLE: u8 = 1 << 6;
const HAS_KEY_INTERVAL: u8 = 1 << 7;
const HAS_ENVELOPE: u64 = 1 << 8;
const LEARNED: u64 = 1 << 9;
const HAS_SCALED: u64 = 1 << 10;
const HAS_WITHIN: u64 = 1 << 11;
const LATCH: u64 = 1 << 12;
const HAS_STRUCTURE: u64 = 1 << 13;

// Flags of a subscription.
const ASKS_RATE: u8 = 1;
const ASKS_SIZE: u8 = 1 << 1;
const ASKS_WITHIN: u8 = 1 << 2;
const ASKS_LOSS: u8 = 1 << 3;
const PROXY_SUBSCRIBER: u8 = 1 << 4;
const ASKS_AUDIO: u8 = 1 << 5;
const HOLDS: u8 = 1 << 6;
const LOCAL: u8 = 1 << 7;
// The flags of a subscription are a varint; the flags from here on take a second byte.
const ASKS_RETRANSMIT: u64 = 1 << 8;
const HAS_REVISION: u64 = 1 << 9;
const OR_STOP: u64 = 1 << 10;
const ASKS_ENCRYPTED: u64 = 1 << 11;
const ASKS_LEVEL: u64 = 1 << 12;
const ASKS_BITRATE: u64 = 1 << 13;
const ASKS_QUALITY: u64 = 1 << 14;
const ASKS_IDLE: u64 = 1 << 15;
const ASKS_WITH: u64 = 1 << 16;
const PROVES: u64 = 1 << 17;
const ASKS_PROXY: u64 = 1 << 18;
const ASKS_SPARE: u64 = 1 << 19;
const HAS_IMPORTANCE: u64 = 1 << 20;
const ELASTIC: u64 = 1 << 21;

// Flags of a hop.
const LEAF: u8 = 1;
const ENCRYPTED: u8 = 1 << 1;
const OWN: u8 = 1 << 2;
const REALTIME: u8 = 1 << 3;
const MULTICAST: u8 = 1 << 4;

const fn bit(present: bool, flag: u8) -> u8 {
    if present { flag } else { 0 }
}

/// Reads a field if its flag is set.
fn optional<T>(
    present: bool,
    read: impl FnOnce() -> Result<T, WireError>,
) -> Result<Option<T>, WireError> {
    if present { read().map(Some) } else { Ok(None) }
}

fn read_duration(reader: &mut Reader, field: &'static str) -> Result<Duration, WireError> {
    reader.varint(field).map(Duration::from_nanos)
}

fn nonzero(reader: &mut Reader, field: &'static str) -> Result<NonZeroU32, WireError> {
    NonZeroU32::new(reader.varint32(field)?).ok_or(WireError::Invalid(field))
}

pub(in crate::control) fn put_size(out: &mut Vec<u8>, size: Size) {
    out.put_varint(u64::from(size.width));
    out.put_varint(u64::from(size.height));
}

pub(in crate::control) fn read_size(reader: &mut Reader) -> Result<Size, WireError> {
    let width = nonzero(reader, "width")?.get();
    Ok(Size { width, height: nonzero(reader, "height")?.get() })
}

pub(in crate::control) fn put_loss(out: &mut Vec<u8>, loss: LossTolerance) {
    out.put_varint(u64::from(loss.x()));
    out.put_varint(u64::from(loss.y()));
}

pub(in crate::control) fn read_loss(reader: &mut Reader) -> Result<LossTolerance, WireError> {
    match (reader.varint32("loss")?, reader.varint32("loss")?) {
        (0, 0) => Ok(LossTolerance::EDF),
        (x, y) => LossTolerance::new(x, y).map_err(|_| WireError::Invalid("loss")),
    }
}

/// Appends a declaration. The tag comes first, so that a node that cannot read the rest can name it.
pub(in crate::control) fn put_publisher(out: &mut Vec<u8>, spec: &PublisherSpec) {
    let flags = u64::from(
        bit(spec.period.is_some(), HAS_PERIOD)
            | bit(spec.late == Late::Send, LATE_SEND)
            | bit(spec.size.is_some(), HAS_SIZE)
            | bit(spec.bytes_max.is_some(), HAS_BYTES_MAX)
            | bit(spec.loss.is_some(), HAS_LOSS)
            | bit(spec.waits, WAITS)
            | bit(spec.unscalable.is_some(), HAS_UNSCALABLE)
            | bit(spec.key_interval.is_some(), HAS_KEY_INTERVAL),
    );
    let learned = spec.envelope.is_some_and(Envelope::is_learned);
    let long = [
        (spec.envelope.is_some(), HAS_ENVELOPE),
        (learned, LEARNED),
        (!spec.scaled.is_empty(), HAS_SCALED),
        (spec.within.is_some(), HAS_WITHIN),
        (spec.latch, LATCH),
        (spec.structure.is_some(), HAS_STRUCTURE),
    ];
    out.put_text(spec.tag.as_str());
    out.put_varint(
        long.iter().filter(|(set, _)| *set).fold(flags, |flags, (_, flag)| flags | flag),
    );
    out.put_u8(spec.kind.code());
    write_encoding(&spec.encoding, out);
    if let Some(period) = spec.period {
        out.put_varint(period.as_nanos());
    }
    if let Some(size) = spec.size {
        put_size(out, size);
    }
    if let Some(bytes) = spec.bytes_max {
        out.put_varint(bytes);
    }
    if let Some(envelope) = spec.envelope {
        put_envelope(out, envelope);
    }
    if let Some(loss) = spec.loss {
        put_loss(out, loss);
    }
    if let Some(why) = spec.unscalable {
        out.put_u8(why.code());
    }
    if let Some(interval) = spec.key_interval {
        out.put_varint(interval.as_nanos());
    }
    if !spec.scaled.is_empty() {
        put_scaled(out, &spec.scaled);
    }
    if let Some(within) = spec.within {
        out.put_varint(within.as_nanos());
    }
    if let Some(Structure { references, keys, period }) = spec.structure {
        out.put_varint(references.into());
        out.put_varint(keys.unwrap_or(0).into());
        out.put_varint(period.as_nanos());
    }
}

fn read_structure(reader: &mut Reader) -> Result<Structure, WireError> {
    let references = reader.varint_max(THOUSAND.into(), "reference pictures")?;
    let keys = reader.varint32("pictures between key pictures")?;
    Ok(Structure {
        references: u16::try_from(references).unwrap_or(THOUSAND),
        keys: (keys > 0).then_some(keys),
        period: read_duration(reader, "time between pictures")?,
    })
}

fn put_scaled(out: &mut Vec<u8>, scaled: &[ScaledForm]) {
    out.put_varint(scaled.len() as u64);
    for one in scaled {
        write_form(&one.form, out);
        out.put_varint(one.bytes_max);
        out.put_varint(one.takes.as_nanos());
        out.put_varint(one.work.as_nanos());
    }
}

fn read_scaled(reader: &mut Reader) -> Result<Vec<ScaledForm>, WireError> {
    let count = reader.varint_max(ScaledForm::FORMS_MAX as u64, "scaled forms")?;
    let mut scaled: Vec<ScaledForm> = Vec::new();
    for _ in 0..count {
        let form = read_form(reader)?;
        let after = scaled.last().is_none_or(|before| before.form < form);
        if !after || !form.converts() || form.rate != Rate::ALL {
            return Err(WireError::Invalid("scaled forms"));
        }
        let bytes_max = reader.varint("scaled bytes")?;
        let takes = read_duration(reader, "scaling time")?;
        let work = read_duration(reader, "processor time")?;
        scaled.push(ScaledForm { form, bytes_max, takes, work });
    }
    if scaled.is_empty() { Err(WireError::Invalid("scaled forms")) } else { Ok(scaled) }
}

fn read_unscalable(reader: &mut Reader) -> Result<Unscalable, WireError> {
    let code = reader.u8("reason against scaling")?;
    Unscalable::from_code(code).ok_or(WireError::Invalid("reason against scaling"))
}

pub(in crate::control) fn put_envelope(out: &mut Vec<u8>, envelope: Envelope) {
    out.put_varint(envelope.burst());
    out.put_varint(envelope.bytes_per_s());
}

/// Reads an envelope. Neither number may be zero: every record has exactly one encoding.
pub(in crate::control) fn read_envelope(
    reader: &mut Reader,
    learned: bool,
) -> Result<Envelope, WireError> {
    let (burst, bytes_per_s) = (reader.varint("burst")?, reader.varint("mean rate")?);
    match (burst, bytes_per_s) {
        (0, _) => Err(WireError::Invalid("burst")),
        (_, 0) => Err(WireError::Invalid("mean rate")),
        _ if learned => Ok(Envelope::learned(burst, bytes_per_s)),
        _ => Ok(Envelope::declared(burst, bytes_per_s)),
    }
}

pub(in crate::control) fn read_publisher(reader: &mut Reader) -> Result<PublisherSpec, WireError> {
    let tag = read_tag(reader)?;
    let flags = reader.varint_max(2 * HAS_STRUCTURE - 1, "publisher flags")?;
    if flags & (HAS_ENVELOPE | LEARNED) == LEARNED {
        return Err(WireError::Invalid("publisher flags"));
    }
    let has = |flag: u8| flags & u64::from(flag) != 0;
    Ok(PublisherSpec {
        tag,
        kind: Kind::from_code(reader.u8("kind")?).ok_or(WireError::Invalid("kind"))?,
        encoding: read_encoding(reader)?,
        period: optional(has(HAS_PERIOD), || read_duration(reader, "period"))?,
        late: if has(LATE_SEND) { Late::Send } else { Late::Drop },
        size: optional(has(HAS_SIZE), || read_size(reader))?,
        bytes_max: optional(has(HAS_BYTES_MAX), || reader.varint("bytes"))?,
        envelope: optional(flags & HAS_ENVELOPE != 0, || {
            read_envelope(reader, flags & LEARNED != 0)
        })?,
        loss: optional(has(HAS_LOSS), || read_loss(reader))?,
        waits: has(WAITS),
        latch: flags & LATCH != 0,
        unscalable: optional(has(HAS_UNSCALABLE), || read_unscalable(reader))?,
        key_interval: optional(has(HAS_KEY_INTERVAL), || read_duration(reader, "key interval"))?,
        scaled: optional(flags & HAS_SCALED != 0, || read_scaled(reader))?.unwrap_or_default(),
        within: optional(flags & HAS_WITHIN != 0, || read_duration(reader, "delay bound"))?,
        structure: optional(flags & HAS_STRUCTURE != 0, || read_structure(reader))?,
    })
}

/// Returns the flags of a request: the optional fields present, and its boolean fields.
fn flags_of(spec: &SubscriptionSpec) -> u64 {
    let asks = spec.retransmit != Retransmit::default();
    let flags = u64::from(
        bit(spec.form.rate != Rate::ALL, ASKS_RATE)
            | bit(spec.within.is_some(), ASKS_WITHIN)
            | bit(spec.form.size.is_some(), ASKS_SIZE)
            | bit(spec.loss.is_some(), ASKS_LOSS)
            | bit(spec.proxy == Proxy::Subscriber, PROXY_SUBSCRIBER)
            | bit(spec.form.audio.is_some(), ASKS_AUDIO)
            | bit(spec.holds, HOLDS)
            | bit(spec.local, LOCAL),
    );
    let long = [
        (asks, ASKS_RETRANSMIT),
        (spec.revision > 0, HAS_REVISION),
        (spec.or_stop, OR_STOP),
        (spec.encrypted, ASKS_ENCRYPTED),
        (spec.level.is_some(), ASKS_LEVEL),
        (spec.form.bitrate.is_some(), ASKS_BITRATE),
        (spec.form.quality.is_some(), ASKS_QUALITY),
        (spec.idle.is_some(), ASKS_IDLE),
        (spec.with.is_some(), ASKS_WITH),
        (matches!(spec.proxy, Proxy::Node(_) | Proxy::Auto), ASKS_PROXY),
        (spec.proves, PROVES),
        (spec.spare, ASKS_SPARE),
        (spec.importance != IMPORTANCE_DEFAULT, HAS_IMPORTANCE),
        (spec.elastic.is_some(), ELASTIC),
    ];
    let long = long.iter().filter(|(present, _)| *present).map(|(_, flag)| flag);
    long.fold(flags, |all, flag| all | flag)
}

/// Appends a request. The pattern comes first, so that a node that cannot read the rest can name it.
pub(in crate::control) fn put_subscription(out: &mut Vec<u8>, spec: &SubscriptionSpec) {
    out.put_text(spec.pattern.as_str());
    out.put_varint(flags_of(spec));
    if spec.form.rate != Rate::ALL {
        write_rate(spec.form.rate, out);
    }
    if let Some(size) = spec.form.size {
        put_size(out, size);
    }
    if let Some(audio) = spec.form.audio {
        write_audio(audio, out);
    }
    if let Some(bitrate) = spec.form.bitrate {
        out.put_varint(u64::from(bitrate.get()));
    }
    if let Some(quality) = spec.form.quality {
        out.put_u8(quality.get());
    }
    if let Some(within) = spec.within {
        out.put_varint(within.as_nanos());
    }
    if let Some(loss) = spec.loss {
        put_loss(out, loss);
    }
    if spec.retransmit != Retransmit::default() {
        out.put_u8(spec.retransmit.code());
    }
    if spec.revision > 0 {
        out.put_varint(spec.revision);
    }
    if let Some(level) = spec.level {
        out.put_varint(level.into());
    }
    if let Some(idle) = spec.idle {
        out.put_varint(idle.as_nanos());
    }
    if let Some(with) = &spec.with {
        out.put_text(with.as_str());
    }
    put_proxy(out, &spec.proxy);
    if spec.importance != IMPORTANCE_DEFAULT {
        out.put_u8(spec.importance);
    }
    if let Some(elastic) = &spec.elastic {
        put_elastic(out, elastic);
    }
}

fn put_proxy(out: &mut Vec<u8>, proxy: &Proxy) {
    match proxy {
        Proxy::Publisher | Proxy::Subscriber => {}
        // No node has an empty name.
        Proxy::Auto => out.put_text(""),
        Proxy::Node(name) => out.put_text(name),
    }
}

fn read_proxy(reader: &mut Reader) -> Result<Proxy, WireError> {
    let name = reader.text(NAME_BYTES_MAX, "proxy")?;
    Ok(if name.is_empty() { Proxy::Auto } else { Proxy::Node(name.into()) })
}

pub(in crate::control) fn read_subscription(
    reader: &mut Reader,
) -> Result<SubscriptionSpec, WireError> {
    let pattern = reader.text(TAG_BYTES_MAX, "pattern")?;
    let pattern = Pattern::new(&pattern).map_err(|_| WireError::Invalid("pattern"))?;
    let all = reader.varint_max(2 * ELASTIC - 1, "subscription flags")?;
    let [flags, ..] = all.to_le_bytes();
    let rate = optional(flags & ASKS_RATE != 0, || read_rate(reader))?.unwrap_or_default();
    let size = optional(flags & ASKS_SIZE != 0, || read_size(reader))?;
    let audio = optional(flags & ASKS_AUDIO != 0, || read_audio(reader))?;
    let bitrate = optional(all & ASKS_BITRATE != 0, || read_bitrate(reader))?;
    let quality = optional(all & ASKS_QUALITY != 0, || read_quality(reader))?;
    let at_end = if flags & PROXY_SUBSCRIBER != 0 { Proxy::Subscriber } else { Proxy::Publisher };
    if at_end == Proxy::Subscriber && all & ASKS_PROXY != 0 {
        return Err(WireError::Invalid("proxy"));
    }
    let form = Form { rate, size, audio, bitrate, quality, via: None };
    Ok(SubscriptionSpec {
        pattern,
        form,
        within: optional(flags & ASKS_WITHIN != 0, || read_duration(reader, "within"))?,
        loss: optional(flags & ASKS_LOSS != 0, || read_loss(reader))?,
        holds: flags & HOLDS != 0,
        local: flags & LOCAL != 0,
        retransmit: optional(all & ASKS_RETRANSMIT != 0, || read_retransmit(reader))?
            .unwrap_or_default(),
        revision: optional(all & HAS_REVISION != 0, || read_revision(reader))?.unwrap_or_default(),
        or_stop: all & OR_STOP != 0,
        encrypted: all & ASKS_ENCRYPTED != 0,
        level: optional(all & ASKS_LEVEL != 0, || reader.varint32("level"))?,
        idle: optional(all & ASKS_IDLE != 0, || read_idle(reader))?,
        with: optional(all & ASKS_WITH != 0, || read_tag(reader))?,
        proxy: optional(all & ASKS_PROXY != 0, || read_proxy(reader))?.unwrap_or(at_end),
        proves: all & PROVES != 0,
        spare: all & ASKS_SPARE != 0,
        importance: optional(all & HAS_IMPORTANCE != 0, || read_importance(reader))?
            .unwrap_or(IMPORTANCE_DEFAULT),
        elastic: optional(all & ELASTIC != 0, || read_elastic(reader, form))?.map(Box::new),
    })
}

fn read_tag(reader: &mut Reader) -> Result<Tag, WireError> {
    Tag::new(&reader.text(TAG_BYTES_MAX, "tag")?).map_err(|_| WireError::Invalid("tag"))
}

fn read_idle(reader: &mut Reader) -> Result<Duration, WireError> {
    let idle = read_duration(reader, "idle time")?;
    if idle < IDLE_MIN { Err(WireError::Invalid("idle time")) } else { Ok(idle) }
}

/// Reads a nonzero revision; revision 0 is not encoded.
fn read_revision(reader: &mut Reader) -> Result<u64, WireError> {
    match reader.varint_max(REVISION_MAX, "revision")? {
        0 => Err(WireError::Invalid("revision")),
        revision => Ok(revision),
    }
}

/// Reads a choice other than the default, which is not encoded: every record has exactly one encoding.
fn read_retransmit(reader: &mut Reader) -> Result<Retransmit, WireError> {
    let asked = Retransmit::from_code(reader.u8("retransmission")?);
    asked
        .filter(|asked| *asked != Retransmit::default())
        .ok_or(WireError::Invalid("retransmission"))
}

pub(in crate::control) fn put_hop(out: &mut Vec<u8>, hop: &HopInfo) {
    out.put_text(&hop.link_name);
    out.put_varint(hop.capacity.map_or(0, Capacity::bytes_per_s));
    out.put_u8(
        bit(hop.leaf, LEAF)
            | bit(hop.encrypted, ENCRYPTED)
            | bit(hop.own, OWN)
            | bit(hop.realtime, REALTIME)
            | bit(hop.multicast, MULTICAST),
    );
}

pub(in crate::control) fn read_hop(reader: &mut Reader) -> Result<HopInfo, WireError> {
    let link_name = reader.text(NAME_BYTES_MAX, "link name")?;
    let capacity = Capacity::from_bytes_per_s(reader.varint("capacity")?).ok();
    let flags = reader.u8("hop flags")?;
    if flags > LEAF | ENCRYPTED | OWN | REALTIME | MULTICAST {
        return Err(WireError::Invalid("hop flags"));
    }
    Ok(HopInfo {
        link_name,
        capacity,
        leaf: flags & LEAF != 0,
        encrypted: flags & ENCRYPTED != 0,
        own: flags & OWN != 0,
        realtime: flags & REALTIME != 0,
        multicast: flags & MULTICAST != 0,
    })
}

pub(in crate::control) fn put_pair(
    out: &mut Vec<u8>,
    subscription: SubscriptionId,
    publisher: PublisherId,
) {
    out.put_u64(subscription.node.0);
    out.put_varint(u64::from(subscription.index));
    out.put_u64(publisher.node.0);
    out.put_varint(u64::from(publisher.index));
}

pub(in crate::control) fn read_pair(
    reader: &mut Reader,
) -> Result<(SubscriptionId, PublisherId), WireError> {
    let node = NodeId(reader.u64("subscription")?);
    let subscription = SubscriptionId { node, index: reader.varint32("subscription")? };
    let node = NodeId(reader.u64("publisher")?);
    Ok((subscription, PublisherId { node, index: reader.varint32("publisher")? }))
}
