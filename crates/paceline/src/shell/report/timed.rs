//! The wire format of the last part of a status: the delivery by time of each subscription.

use super::{TEXT_MAX, put_option, put_text, put_time, read_option, read_time};
use crate::delivery::{TimedMethod, TimedStatus};
use paceline_proto::wire::{Reader, WireError, Writer};

pub(super) fn put(row: &TimedStatus, out: &mut Vec<u8>) {
    let method = TimedMethod::ALL.iter().position(|method| *method == row.method);
    out.put_varint(method.unwrap_or_default() as u64);
    put_text(&row.setting, out);
    let TimedStatus { released, late, early, refused, silences, unknown, beyond, jumps, .. } = *row;
    for count in [released, late, early, refused, silences, unknown, beyond, jumps] {
        out.put_varint(count);
    }
    for time in [row.jitter_in, row.jitter_out, row.added, row.wakeup, row.bound] {
        put_option(time, put_time, out);
    }
}

pub(super) fn read(r: &mut Reader) -> Result<TimedStatus, WireError> {
    let method = r.len(TimedMethod::ALL.len() - 1, "delivery by time")?;
    let method = *TimedMethod::ALL.get(method).ok_or(WireError::Invalid("delivery by time"))?;
    Ok(TimedStatus {
        method,
        setting: r.text(TEXT_MAX, "delivery by time")?,
        released: r.varint("released")?,
        late: r.varint("late")?,
        early: r.varint("early")?,
        refused: r.varint("refused")?,
        silences: r.varint("silences")?,
        unknown: r.varint("unknown order")?,
        beyond: r.varint("beyond the jitter")?,
        jumps: r.varint("jumps")?,
        jitter_in: read_option(r, read_time)?,
        jitter_out: read_option(r, read_time)?,
        added: read_option(r, read_time)?,
        wakeup: read_option(r, read_time)?,
        bound: read_option(r, read_time)?,
    })
}
