//! The wire format of a clock's state, the last part of a status.

use super::{
    TEXT_MAX, put_option, put_rows, put_text, put_time, read_option, read_rows, read_time,
};
use crate::time::{ClockReport, ClockStatus, SourceKind, SourcePart, SourceReport};
use paceline_proto::wire::{Reader, WireError, Writer};

fn put_count(value: u64, out: &mut Vec<u8>) {
    out.put_varint(value);
}

fn put_signed(value: i64, out: &mut Vec<u8>) {
    out.put_u64(value.cast_unsigned());
}

fn read_signed(r: &mut Reader, field: &'static str) -> Result<i64, WireError> {
    Ok(r.u64(field)?.cast_signed())
}

fn read_name(r: &mut Reader) -> Result<String, WireError> {
    r.text(TEXT_MAX, "text of the clock")
}

/// Encodes the state of a clock.
pub(super) fn put(clock: &ClockReport, out: &mut Vec<u8>) {
    out.put_u8(clock.status.code());
    out.put_varint(clock.nanos);
    put_option(clock.error_nanos, put_count, out);
    out.put_varint(clock.epoch);
    put_signed(clock.system_offset_nanos, out);
    put_signed(clock.frequency_ppt, out);
    out.put_varint(clock.jitter_nanos);
    put_option(clock.stratum, |stratum, out| out.put_u8(stratum), out);
    put_text(&clock.leap, out);
    out.put_varint(clock.updates);
    out.put_varint(clock.disruptions);
    put_option(clock.disruption.as_deref(), put_text, out);
    put_option(clock.serves.as_deref(), put_text, out);
    clock.served.iter().for_each(|count| out.put_varint(*count));
    out.put_flag(clock.is_follower);
    put_rows(&clock.sources, put_source, out);
}

/// Decodes the state of a clock.
pub(super) fn read(r: &mut Reader) -> Result<ClockReport, WireError> {
    let invalid = WireError::Invalid("state of the clock");
    let status = ClockStatus::from_code(u64::from(r.u8("state of the clock")?)).ok_or(invalid)?;
    Ok(ClockReport {
        status,
        nanos: r.varint("time")?,
        error_nanos: read_option(r, |r| r.varint("error"))?,
        epoch: r.varint("epoch")?,
        system_offset_nanos: read_signed(r, "offset of the system clock")?,
        frequency_ppt: read_signed(r, "frequency")?,
        jitter_nanos: r.varint("jitter")?,
        stratum: read_option(r, |r| r.u8("stratum"))?,
        leap: read_name(r)?,
        updates: r.varint("updates")?,
        disruptions: r.varint("disruptions")?,
        disruption: read_option(r, read_name)?,
        serves: read_option(r, read_name)?,
        served: [
            r.varint("answered")?,
            r.varint("kissed")?,
            r.varint("limited")?,
            r.varint("malformed")?,
            r.varint("unauthenticated")?,
        ],
        is_follower: r.flag("follower")?,
        sources: read_rows(r, read_source)?,
    })
}

fn put_source(source: &SourceReport, out: &mut Vec<u8>) {
    let kind = SourceKind::ALL.iter().position(|one| *one == source.kind);
    out.put_varint(kind.unwrap_or_default() as u64);
    put_text(&source.address, out);
    put_option(source.key.map(u64::from), put_count, out);
    let at = SourcePart::ALL.iter().position(|one| *one == source.selection);
    out.put_varint(at.unwrap_or_default() as u64);
    put_option(source.stratum, |stratum, out| out.put_u8(stratum), out);
    out.put_u8(source.reach);
    put_time(source.poll, out);
    put_signed(source.offset_nanos, out);
    out.put_varint(source.delay_nanos);
    out.put_varint(source.jitter_nanos);
    put_option(source.error_nanos, put_count, out);
    out.put_varint(source.answers);
    let put_rejected = |(cause, count): &(String, u64), out: &mut Vec<u8>| {
        put_text(cause, out);
        out.put_varint(*count);
    };
    put_rows(&source.rejected, put_rejected, out);
}

fn read_source(r: &mut Reader) -> Result<SourceReport, WireError> {
    let kind = r.len(SourceKind::ALL.len(), "kind of a server")?;
    let kind = SourceKind::ALL.get(kind).copied();
    let kind = kind.ok_or(WireError::Invalid("kind of a server"))?;
    let address = read_name(r)?;
    let key = read_option(r, |r| r.varint("key of a server"))?.map(u32::try_from).transpose();
    let key = key.map_err(|_| WireError::Invalid("key of a server"))?;
    let at = r.len(SourcePart::ALL.len(), "part of a server")?;
    let selection = SourcePart::ALL.get(at).copied();
    Ok(SourceReport {
        kind,
        address,
        key,
        selection: selection.ok_or(WireError::Invalid("part of a server"))?,
        stratum: read_option(r, |r| r.u8("stratum"))?,
        reach: r.u8("reach")?,
        poll: read_time(r)?,
        offset_nanos: read_signed(r, "offset")?,
        delay_nanos: r.varint("delay")?,
        jitter_nanos: r.varint("jitter")?,
        error_nanos: read_option(r, |r| r.varint("error"))?,
        answers: r.varint("answers")?,
        rejected: read_rows(r, |r| Ok((read_name(r)?, r.varint("unusable answers")?)))?,
    })
}

/// A clock with all fields, for the tests of the format.
#[cfg(test)]
pub(super) fn example() -> ClockReport {
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
        serves: Some("0.0.0.0:123".to_owned()),
        served: [1, 2, 3, 4, 5],
        is_follower: false,
        sources: vec![SourceReport {
            kind: SourceKind::Neighbour,
            address: "ntp.example:123".to_owned(),
            key: Some(7),
            selection: SourcePart::Falseticker,
            stratum: Some(2),
            reach: 0b1011,
            poll: std::time::Duration::from_secs(16),
            offset_nanos: 12,
            delay_nanos: 3,
            jitter_nanos: 4,
            error_nanos: None,
            answers: 7,
            rejected: vec![("distance".to_owned(), 2)],
        }],
    }
}
