//! The encoding of refusals, offers and missing rights.

use super::{REVISION_MAX, optional, put_pair, put_size, read_pair, read_size, read_unscalable};
use crate::classes::Unguaranteed;
use crate::control::data::ids::{NAME_BYTES_MAX, PairKey};
use crate::control::data::refusal::{Offer, Refusal, RefusalReason};
use crate::form::Size;
use crate::ids::{NodeId, SubscriptionId};
use crate::rights::{Lack, Quota, Right};
use crate::video::THOUSAND;
use crate::wire::{Reader, WireError, Writer};
use core::num::{NonZeroU32, NonZeroU64};
use paceline_sched::{Duration, LossTolerance};

pub(in crate::control) fn put_refusal(out: &mut Vec<u8>, refusal: &Refusal) {
    put_pair(out, refusal.subscription, refusal.publisher);
    put_refusal_of(out, refusal);
}

/// Appends a refusal without its pair.
pub(in crate::control) fn put_refusal_of(out: &mut Vec<u8>, refusal: &Refusal) {
    put_reason(out, refusal.reason);
    out.put_u64(refusal.node.0);
    out.put_text(&refusal.node_name);
    out.put_text(&refusal.link);
    out.put_text(&refusal.class);
    out.put_varint(refusal.needed_bytes_per_s);
    out.put_varint(refusal.available_bytes_per_s);
    put_offer(out, &refusal.offer);
    out.put_varint(refusal.revision);
    out.put_flag(refusal.spare);
}

/// Encodes a reason that consists of numbers.
fn put_numbers(out: &mut Vec<u8>, code: u8, numbers: &[u64]) {
    out.put_u8(code);
    numbers.iter().for_each(|number| out.put_varint(*number));
}

fn put_reason(out: &mut Vec<u8>, reason: RefusalReason) {
    match reason {
        RefusalReason::Capacity => out.put_u8(0),
        RefusalReason::SizeAboveSource { asked, source } => {
            out.put_u8(1);
            put_size(out, asked);
            put_size(out, source);
        }
        RefusalReason::Unscalable { asked, why } => {
            out.put_u8(6);
            put_size(out, asked);
            out.put_u8(why.code());
        }
        RefusalReason::Unthinnable { why, references, keys } => {
            out.put_u8(18);
            out.put_u8(why.code());
            out.put_varint(references.into());
            out.put_varint(keys.map_or(0, NonZeroU64::get));
        }
        RefusalReason::Deadlines { within, due, carried } => {
            put_numbers(out, 2, &[within.as_nanos(), due, carried]);
        }
        RefusalReason::Delay { takes, within } => {
            put_numbers(out, 3, &[takes.as_nanos(), within.as_nanos()]);
        }
        RefusalReason::NoAnswer => out.put_u8(4),
        RefusalReason::Processor { needed, available } => put_numbers(out, 5, &[needed, available]),
        RefusalReason::Rights { of, lack } => {
            out.put_u8(7);
            out.put_u64(of.0);
            put_lack(out, lack);
        }
        RefusalReason::Unencrypted => out.put_u8(8),
        RefusalReason::Buffer { needed, available } => put_numbers(out, 10, &[needed, available]),
        RefusalReason::HostBuffer { needed, available } => {
            put_numbers(out, 13, &[needed, available]);
        }
        RefusalReason::NoProxy { apart } => {
            out.put_u8(12);
            out.put_flag(apart);
        }
        RefusalReason::Opposite { missing } => {
            out.put_u8(11);
            out.put_flag(missing);
        }
        RefusalReason::NoSecondPath { shared } => {
            out.put_u8(14);
            out.put_flag(shared);
        }
        RefusalReason::TooManySpares => out.put_u8(15),
        RefusalReason::SpareMeets { other } => {
            out.put_u8(16);
            out.put_u64(other.node.0);
            out.put_varint(other.index.into());
        }
        RefusalReason::BitRate { asked, least } => put_numbers(out, 17, &[asked, least]),
        RefusalReason::Medium { needed, available } => put_numbers(out, 19, &[needed, available]),
        RefusalReason::NoGuarantee { why } => {
            out.put_u8(9);
            out.put_u8(why.code());
        }
    }
}

/// Encodes a missing right; code 0 of the quota stands for none.
pub(in crate::control) fn put_lack(out: &mut Vec<u8>, lack: Lack) {
    out.put_u8(lack.right().code());
    match lack {
        Lack::Right(_) => out.put_u8(0),
        Lack::Quota { quota, asked, limit, .. } => {
            out.put_u8(1 + quota.code());
            out.put_flag(asked.is_some());
            if let Some(asked) = asked {
                out.put_varint(asked);
            }
            out.put_varint(limit);
        }
    }
}

pub(in crate::control) fn read_lack(reader: &mut Reader) -> Result<Lack, WireError> {
    let right = Right::from_code(reader.u8("right")?).ok_or(WireError::Invalid("right"))?;
    let Some(quota) = reader.u8("quota")?.checked_sub(1) else { return Ok(Lack::Right(right)) };
    let quota = Quota::from_code(quota).ok_or(WireError::Invalid("quota"))?;
    let asked = reader.flag("requested")?;
    let asked = optional(asked, || reader.varint("requested"))?;
    Ok(Lack::Quota { right, quota, asked, limit: reader.varint("limit")? })
}

/// Encodes an offer; 0 stands for `None`, because no offer has the value 0.
fn put_offer(out: &mut Vec<u8>, offer: &Offer) {
    out.put_varint(offer.max_millihertz.unwrap_or(0));
    let (width, height) = offer.size.map_or((0, 0), |size| (size.width, size.height));
    out.put_varint(width.into());
    out.put_varint(height.into());
    out.put_flag(offer.together);
    out.put_varint(offer.bitrate.map_or(0, |bits| bits.get().into()));
    out.put_varint(offer.bytes.unwrap_or(0));
    out.put_varint(offer.within.map_or(0, Duration::as_nanos));
    let (x, y) = offer.loss.map_or((0, 0), |loss| (loss.x(), loss.y()));
    out.put_varint(x.into());
    out.put_varint(y.into());
}

fn read_offer(reader: &mut Reader) -> Result<Offer, WireError> {
    let some = |value: u64| (value > 0).then_some(value);
    let max_millihertz = some(reader.varint("offered rate")?);
    let (width, height) = (reader.varint32("offered size")?, reader.varint32("offered size")?);
    if (width == 0) != (height == 0) {
        return Err(WireError::Invalid("offered size"));
    }
    let size = (width > 0).then_some(Size { width, height });
    let together = reader.flag("offer")?;
    let bitrate = NonZeroU32::new(reader.varint32("offered bit rate")?);
    let bytes = some(reader.varint("offered bytes")?);
    let within = some(reader.varint("offered delay bound")?).map(Duration::from_nanos);
    let (x, y) = (reader.varint32("offered loss")?, reader.varint32("offered loss")?);
    if y == 0 && x > 0 {
        return Err(WireError::Invalid("offered loss"));
    }
    let loss = (y > 0).then(|| LossTolerance::new(x, y)).transpose();
    let loss = loss.map_err(|_| WireError::Invalid("offered loss"))?;
    Ok(Offer { max_millihertz, size, together, bitrate, bytes, within, loss })
}

pub(in crate::control) fn read_refusal(reader: &mut Reader) -> Result<Refusal, WireError> {
    let pair = read_pair(reader)?;
    read_refusal_of(reader, pair)
}

fn read_reason(reader: &mut Reader) -> Result<RefusalReason, WireError> {
    Ok(match reader.u8("refusal reason")? {
        0 => RefusalReason::Capacity,
        1 => {
            let asked = read_size(reader)?;
            RefusalReason::SizeAboveSource { asked, source: read_size(reader)? }
        }
        6 => {
            let asked = read_size(reader)?;
            RefusalReason::Unscalable { asked, why: read_unscalable(reader)? }
        }
        2 => {
            let within = Duration::from_nanos(reader.varint("time of deadlines")?);
            let due = reader.varint("bytes due")?;
            RefusalReason::Deadlines { within, due, carried: reader.varint("bytes carried")? }
        }
        3 => {
            let takes = Duration::from_nanos(reader.varint("time taken")?);
            RefusalReason::Delay { takes, within: Duration::from_nanos(reader.varint("time")?) }
        }
        4 => RefusalReason::NoAnswer,
        5 => {
            let needed = reader.varint("time needed")?;
            RefusalReason::Processor { needed, available: reader.varint("time there is")? }
        }
        7 => {
            let of = NodeId(reader.u64("node without the right")?);
            RefusalReason::Rights { of, lack: read_lack(reader)? }
        }
        8 => RefusalReason::Unencrypted,
        9 => {
            let why = Unguaranteed::from_code(reader.u8("guarantee")?);
            RefusalReason::NoGuarantee { why: why.ok_or(WireError::Invalid("guarantee"))? }
        }
        13 => {
            let needed = reader.varint("bytes needed")?;
            let available = reader.varint("bytes of the host's buffer")?;
            RefusalReason::HostBuffer { needed, available }
        }
        14 => RefusalReason::NoSecondPath { shared: reader.flag("second path")? },
        15 => RefusalReason::TooManySpares,
        16 => {
            let node = NodeId(reader.u64("other subscription")?);
            let index = reader.varint32("other subscription")?;
            RefusalReason::SpareMeets { other: SubscriptionId { node, index } }
        }
        17 => {
            let asked = reader.varint("requested bit rate")?;
            RefusalReason::BitRate { asked, least: reader.varint("least bit rate")? }
        }
        19 => {
            let needed = reader.varint("needed rate")?;
            RefusalReason::Medium { needed, available: reader.varint("available rate")? }
        }
        18 => {
            let why = read_unscalable(reader)?;
            let references = reader.varint_max(THOUSAND.into(), "reference pictures")?;
            let references = u16::try_from(references).unwrap_or(THOUSAND);
            let keys = NonZeroU64::new(reader.varint("rate of key pictures")?);
            RefusalReason::Unthinnable { why, references, keys }
        }
        12 => RefusalReason::NoProxy { apart: reader.flag("proxy")? },
        11 => RefusalReason::Opposite { missing: reader.flag("opposite stream")? },
        10 => {
            let needed = reader.varint("bytes needed")?;
            RefusalReason::Buffer { needed, available: reader.varint("bytes of the buffer")? }
        }
        _ => return Err(WireError::Invalid("refusal reason")),
    })
}

/// Reads a refusal of a pair.
pub(in crate::control) fn read_refusal_of(
    reader: &mut Reader,
    (subscription, publisher): PairKey,
) -> Result<Refusal, WireError> {
    let reason = read_reason(reader)?;
    Ok(Refusal {
        subscription,
        publisher,
        node: NodeId(reader.u64("refusing node")?),
        node_name: reader.text(NAME_BYTES_MAX, "refusing node")?,
        link: reader.text(NAME_BYTES_MAX, "link name")?,
        class: reader.text(NAME_BYTES_MAX, "class name")?,
        needed_bytes_per_s: reader.varint("needed bytes")?,
        available_bytes_per_s: reader.varint("available bytes")?,
        reason,
        offer: read_offer(reader)?,
        revision: reader.varint_max(REVISION_MAX, "revision")?,
        spare: reader.flag("spare")?,
    })
}
