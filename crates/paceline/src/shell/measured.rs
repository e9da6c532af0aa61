//! The wire format of feedback requests and answers.

use crate::status::{Measured, PlayersStatus};
use bytes::Bytes;
use paceline_proto::wire::{Reader, WireError, Writer};
use std::time::Duration;

/// The limit of subscriptions in a request.
pub(crate) const ROWS_MAX: usize = 512;

/// Decodes the subscription indices of a request, which follow the topic.
pub(crate) fn read_question(body: Bytes) -> Result<Vec<u32>, WireError> {
    let mut reader = Reader::new(body);
    let mut indices = Vec::new();
    while reader.remaining() > 0 && indices.len() < ROWS_MAX {
        indices.push(reader.varint32("subscription")?);
    }
    reader.finish()?;
    Ok(indices)
}

/// Encodes the counters in the order of the request; `None` for an ended subscription.
pub(crate) fn encode(rows: &[Option<Measured>]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_varint(rows.len() as u64);
    for row in rows {
        out.put_flag(row.is_some());
        if let Some(row) = row {
            let Measured { delivered, bytes, late, overdue, dropped, rate_millihertz, .. } = *row;
            for number in [delivered, bytes, late, overdue, dropped, rate_millihertz] {
                out.put_varint(number);
            }
            put_time(row.age_max, &mut out);
            put_time(row.age_sum, &mut out);
            put_players(row.players, &mut out);
        }
    }
    out
}

fn put_players(players: Option<PlayersStatus>, out: &mut Vec<u8>) {
    out.put_flag(players.is_some());
    let Some(of) = players else { return };
    let left_out = [of.left_out_slow, of.left_out_needs, of.left_out_sound];
    let counts = [of.players, of.packets, of.reported, of.lost].into_iter().chain(left_out);
    counts.for_each(|count| out.put_varint(count));
    out.put_varint(of.loss_max.to_bits());
    put_time(of.jitter_max, out);
    out.put_flag(of.round_trip_max.is_some());
    of.round_trip_max.into_iter().for_each(|time| put_time(time, out));
}

fn put_time(time: Duration, out: &mut Vec<u8>) {
    out.put_varint(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

pub(crate) fn decode(body: Bytes) -> Result<Vec<Option<Measured>>, WireError> {
    let mut reader = Reader::new(body);
    let count = reader.len(ROWS_MAX, "rows")?;
    let mut rows = Vec::new();
    for _ in 0..count {
        let known = reader.flag("measured")?;
        rows.push(if known { Some(read(&mut reader)?) } else { None });
    }
    reader.finish()?;
    Ok(rows)
}

fn read(reader: &mut Reader) -> Result<Measured, WireError> {
    let [delivered, bytes, late, overdue, dropped, rate_millihertz] = {
        let mut numbers = [0; 6];
        for number in &mut numbers {
            *number = reader.varint("measured")?;
        }
        numbers
    };
    let (age_max, age_sum) = (time(reader)?, time(reader)?);
    let players = if reader.flag("players")? { Some(read_players(reader)?) } else { None };
    Ok(Measured {
        delivered,
        bytes,
        late,
        overdue,
        dropped,
        rate_millihertz,
        age_max,
        age_sum,
        players,
    })
}

fn time(reader: &mut Reader) -> Result<Duration, WireError> {
    reader.varint("time").map(Duration::from_nanos)
}

fn read_players(reader: &mut Reader) -> Result<PlayersStatus, WireError> {
    let mut count = || reader.varint("players");
    let [players, packets, reported, lost] = [count()?, count()?, count()?, count()?];
    let [left_out_slow, left_out_needs, left_out_sound] = [count()?, count()?, count()?];
    let loss = f64::from_bits(count()?);
    // Another value is no part of the packets.
    let loss_max = if (0.0..=1.0).contains(&loss) { loss } else { 0.0 };
    let jitter_max = time(reader)?;
    let round_trip_max = if reader.flag("round trip")? { Some(time(reader)?) } else { None };
    Ok(PlayersStatus {
        players,
        packets,
        left_out_slow,
        left_out_needs,
        left_out_sound,
        reported,
        lost,
        loss_max,
        jitter_max,
        round_trip_max,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_round_trip_and_no_prefix_decodes() {
        let some = Measured {
            delivered: 3,
            bytes: u64::MAX,
            late: 3,
            overdue: 2,
            dropped: 70_000,
            rate_millihertz: 29_970,
            age_max: Duration::from_millis(7),
            age_sum: Duration::from_secs(9),
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
        };
        let rows = [Some(some), None, Some(Measured::default())];
        let bytes = Bytes::from(encode(&rows));
        assert_eq!(decode(bytes.clone()), Ok(rows.to_vec()));
        for end in 0..bytes.len() {
            assert!(decode(bytes.slice(..end)).is_err(), "{end} bytes");
        }
        let long = Bytes::from([encode(&rows), vec![0]].concat());
        assert!(decode(long).is_err());
    }

    #[test]
    fn a_query_names_a_bounded_number_of_streams() {
        let mut body = Vec::new();
        for index in [0, 127, u64::from(u32::MAX)] {
            body.put_varint(index);
        }
        assert_eq!(read_question(body.into()), Ok(vec![0, 127, u32::MAX]));
        assert_eq!(read_question(Bytes::new()), Ok(Vec::new()));
        assert!(read_question(vec![1; ROWS_MAX + 1].into()).is_err());
        assert!(read_question(vec![0xff].into()).is_err());
    }
}
