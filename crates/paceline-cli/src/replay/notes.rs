//! Notes about the defects of a file.

use paceline_record::{Jump, Jumps, Order, Survey};
use paceline_tool::show;
use std::collections::BTreeMap;
use std::time::Duration;

/// Prints notes about the defects of a file, and about the choice of a clock.
pub(super) fn print_notes(name: &str, asked: Order, survey: &Survey) {
    if let Some(error) = &survey.end {
        let is = if error.is_cut() { "" } else { "cannot be read to its end: " };
        show::note(&format!("{name} {is}{error}; the part before it is replayed"));
    }
    if !survey.damage.is_empty() {
        show::note(&format!("{name}: {}", survey.damage));
    }
    if survey.strays > 0 {
        let strays = survey.strays;
        show::note(&format!("{name}: {strays} messages of undeclared channels are left out"));
    }
    if let Some(why) = clock(asked, survey) {
        show::note(&format!("{name}: {why}"));
    }
    let topics = survey.lanes.iter().map(|(id, lane)| (*id, lane.channel.topic.as_str()));
    let first = survey.times(|lane| lane.is_samples()).map_or(0, |(first, _)| first);
    if let Some(what) = jumps(&survey.jumps, first, &topics.collect()) {
        show::note(&format!("{name}: {what}"));
    }
}

/// Explains the clock that is followed, unless the user chose it and it fits.
fn clock(asked: Order, survey: &Survey) -> Option<String> {
    let apart = survey.clocks_apart().map(|apart| {
        let apart = Duration::from_nanos(apart).as_secs_f64();
        format!("its publishers' clocks seem to differ by up to {apart:.1} s")
    });
    match (asked, survey.order()) {
        (Order::Auto, Order::Came) => {
            let why =
                apart.unwrap_or_else(|| "its publication times do not fit each other".to_owned());
            Some(format!("{why}; its arrival times are used, by the recorder's clock"))
        }
        (Order::Published, _) => {
            apart.map(|apart| format!("{apart}; --by auto or arrival uses the recorder's clock"))
        }
        _ => None,
    }
}

/// Describes the jumps that are cut, and the pauses that are kept; `begin` is the release time of the first sample.
pub(crate) fn jumps(jumps: &Jumps, begin: u64, topics: &BTreeMap<u16, &str>) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(Jump { channel, at, by }) = jumps.first.first() {
        let topic = topics.get(channel).copied().unwrap_or("another topic");
        let at = Duration::from_nanos(at.saturating_sub(begin)).as_secs_f64();
        let by = words(*by);
        let jumps = match jumps.count {
            1 => "a jump of its times is cut:".to_owned(),
            count => format!("{count} jumps of its times are cut; the first is"),
        };
        parts.push(format!("{jumps} {by} s at {at:.3} s, in {topic}"));
    }
    if jumps.pauses > 0 {
        let longest = Duration::from_nanos(jumps.longest_pause).as_secs_f64();
        parts.push(match jumps.pauses {
            1 => format!("a pause of {longest:.1} s is kept"),
            pauses => format!("{pauses} pauses of up to {longest:.1} s are kept"),
        });
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn words(nanos: i128) -> String {
    let sign = if nanos < 0 { '-' } else { '+' };
    let tenths = nanos.unsigned_abs() / 100_000_000;
    format!("{sign}{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_and_pauses_are_described() {
        let topics = BTreeMap::from([(3, "robot/x")]);
        let jump = Jump { channel: 3, at: 3_500_000_000, by: -3_600_000_000_000 };
        let one = Jumps { count: 1, first: vec![jump], ..Jumps::default() };
        let said = jumps(&one, 1_000_000_000, &topics).unwrap();
        assert_eq!(said, "a jump of its times is cut: -3600.0 s at 2.500 s, in robot/x");
        let more = Jumps { count: 7, pauses: 2, longest_pause: 60_000_000_000, ..one };
        let said = jumps(&more, 1_000_000_000, &topics).unwrap();
        assert!(said.starts_with("7 jumps of its times are cut; the first is -3600.0 s"), "{said}");
        assert!(said.ends_with("; 2 pauses of up to 60.0 s are kept"), "{said}");
        assert_eq!(jumps(&Jumps::default(), 0, &topics), None);
    }
}
