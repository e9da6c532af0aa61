//! The demo's traffic on a link in order of arrival, in virtual time, for comparison.

use super::scenario::{
    BULK, BULK_BYTES, BULK_HZ, CAMERA, ROWS, STEER, STEER_BYTES, STEER_PERIOD, THIN_BITS_PER_S,
};
use paceline_http::Comparison;
use paceline_sim::scenario::{Plan, Record, run};

/// The bytes of a picture of 160×120 in the demo.
const PICTURE_BYTES: usize = 4_500;
/// The second in which the flood starts.
const FLOOD_S: usize = 10;
const SECONDS: usize = 40;
const SEED: u64 = 1;

/// Simulates the demo's traffic to the operator, with the flood, under plain FIFO.
pub(super) fn compare() -> Option<Comparison> {
    let plan = Plan::read(&scenario(), "the demo").ok()?;
    Some(delays(&run(&plan, SEED)))
}

fn scenario() -> String {
    let steer_hz = 1.0 / STEER_PERIOD.as_secs_f64();
    let camera_hz = ROWS.iter().find(|row| row.scaled().is_some()).map_or(5, |row| row.hz);
    let mut text = format!(
        "name = \"fifo\"\nduration = \"{SECONDS}s\"\nwarm_up = \"1s\"\n\
         [[node]]\nname = \"robot\"\n[[node]]\nname = \"operator\"\n\
         [[link]]\nbetween = [\"robot\", \"operator\"]\nrate = \"{THIN_BITS_PER_S}bit/s\"\ndiscipline = \"fifo\"\n"
    );
    let streams = [
        (STEER, steer_hz, STEER_BYTES, "late = true"),
        (CAMERA, f64::from(camera_hz), PICTURE_BYTES, "kind = \"picture\""),
        (BULK, f64::from(BULK_HZ), BULK_BYTES, &format!("from = \"{FLOOD_S}s\"")),
    ];
    for (tag, hz, bytes, more) in streams {
        text.push_str(&format!(
            "[[publisher]]\nnode = \"robot\"\ntag = \"{tag}\"\nhz = {hz}\nbytes = \"{bytes}B\"\n{more}\n\
             [[subscriber]]\nnode = \"operator\"\ntag = \"{tag}\"\n"
        ));
    }
    text
}

fn delays(record: &Record) -> Comparison {
    let mut seconds = vec![(0_u64, 0_u64, 0_u64); SECONDS];
    let steer = record.received.first();
    for sample in steer.iter().flat_map(|steer| &steer.arrivals) {
        let published = record.published.iter().find(|published| published.id == sample.from);
        let at = published.and_then(|it| it.at.get(usize::try_from(sample.seq).ok()?));
        let Some(at) = at.filter(|at| **at >= record.start) else { continue };
        let us = sample.at.since(*at).as_nanos() / 1_000;
        let second = at.since(record.start).as_nanos() / 1_000_000_000;
        let place = usize::try_from(second).ok().and_then(|second| seconds.get_mut(second));
        if let Some((count, sum, max)) = place {
            (*count, *sum, *max) = (*count + 1, *sum + us, us.max(*max));
        }
    }
    Comparison {
        tag: STEER,
        flood_s: FLOOD_S,
        mean_us: seconds
            .iter()
            .map(|(count, sum, _)| sum.checked_div(*count).unwrap_or(0))
            .collect(),
        max_us: seconds.iter().map(|(_, _, max)| *max).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_delays_steering_in_order_of_arrival() {
        let Comparison { mean_us, max_us, .. } = compare().unwrap();
        assert_eq!((mean_us.len(), max_us.len()), (SECONDS, SECONDS));
        let (before, after) = (max_us[FLOOD_S - 2], max_us[FLOOD_S + 5]);
        assert!((1..100_000).contains(&before) && after > 500_000, "{max_us:?}");
    }
}
