//! Splits a sample's delay over the parts of its path, from its age at each part. Does no input or output.

use paceline_tool::show;
use paceline_tool::stats::Histogram;
use paceline_tool::table::{Align::Left, Align::Right, Table, width};
use serde::Serialize;

/// One hop of the path.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hop {
    pub(super) node: String,
    pub(super) link: String,
    /// Minimum round-trip time; `None` if not measured.
    pub(super) round_trip_us: Option<u64>,
}

/// The age of a sample when it was queued on a hop's link, and when its last byte left; `None` if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Leg {
    pub(super) came_us: Option<u64>,
    pub(super) left_us: Option<u64>,
}

/// The time of one sample in one part; null if unknown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Took<'a> {
    pub(super) at: &'a str,
    pub(super) us: Option<u64>,
}

/// Statistics over samples, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Times {
    /// Number of samples with a known time.
    pub(super) samples: u64,
    /// Mean; like the following fields null if there are no samples.
    pub(super) us: Option<u64>,
    pub(super) p50_us: Option<u64>,
    pub(super) p99_us: Option<u64>,
    pub(super) max_us: Option<u64>,
}

/// The statistics of one part of the path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Part<'a> {
    /// A node, a link, or a hop.
    pub(super) at: &'a str,
    /// A description of the part.
    pub(super) what: &'static str,
    #[serde(flatten)]
    pub(super) times: Times,
    /// Uncertainty of the times; null if unknown.
    pub(super) uncertain_us: Option<u64>,
}

/// The statistics of the whole path from publish to delivery.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Summary<'a> {
    /// Age at delivery.
    #[serde(rename = "age")]
    pub(super) age: Times,
    /// Uncertainty of an age; null if unknown.
    pub(super) uncertain_us: Option<u64>,
    pub(super) parts: Vec<Part<'a>>,
}

struct Place {
    at: String,
    what: &'static str,
    uncertain_us: Option<u64>,
    tally: Tally,
}

/// Counts times.
struct Tally {
    samples: u64,
    sum_us: u64,
    all: Histogram,
}

/// The path from publish to delivery, with the times of its parts.
pub(super) struct Way {
    places: Vec<Place>,
    ages: Tally,
    uncertain_us: Option<u64>,
}

const QUEUED: &str = "before the link's queue";
const LINK: &str = "queue and transmission";
const WIRE: &str = "on the wire and received";
const DELIVERY: &str = "on the wire, received, delivered";
const HERE: &str = "on this host";
const WHOLE: &str = "from publish to delivery";

impl Way {
    /// Creates a path over these hops, without samples.
    pub(super) fn new(hops: &[Hop]) -> Self {
        let mut places = Vec::new();
        let mut place = |at: String, what, uncertain_us| {
            places.push(Place { at, what, uncertain_us, tally: Tally::new() });
        };
        // One clock measures the time on a link, so the time has no uncertainty.
        let off = |hop: &Hop| hop.round_trip_us.map(|trip| trip / 2);
        let mut before: Option<&Hop> = None;
        for hop in hops {
            match before {
                None => place(hop.node.clone(), QUEUED, Some(0)),
                Some(last) => place(format!("{} to {}", last.link, hop.node), WIRE, off(last)),
            }
            place(format!("{}.{}", hop.node, hop.link), LINK, Some(0));
            before = Some(hop);
        }
        match before {
            Some(last) => place(format!("{} to here", last.link), DELIVERY, off(last)),
            None => place("here".to_owned(), HERE, Some(0)),
        }
        let add = |sum: u64, hop: &Hop| Some(sum.saturating_add(hop.round_trip_us?));
        let trips = hops.iter().try_fold(0, add);
        Self { places, ages: Tally::new(), uncertain_us: trips.map(|trips| trips / 2) }
    }

    /// Returns the uncertainty of a sample's age, `None` if unknown.
    pub(super) const fn uncertain_us(&self) -> Option<u64> {
        self.uncertain_us
    }

    /// Splits the age of one sample over the parts and counts it; expects one leg per hop.
    pub(super) fn add(&mut self, legs: &[Leg], age_us: u64) -> Vec<Took<'_>> {
        self.ages.add(age_us);
        let marks = legs.iter().flat_map(|leg| [leg.came_us, leg.left_us]);
        let (mut last, mut latest) = (Some(0), 0);
        let mut took = Vec::new();
        for (place, mark) in self.places.iter_mut().zip(marks.chain([Some(age_us)])) {
            // If a link is faster than its capacity, the next node receives a sample before its computed
            // departure.
            let mark = mark.map(|mark| mark.clamp(latest, age_us.max(latest)));
            let us = last.zip(mark).map(|(from, to)| to - from);
            us.into_iter().for_each(|us| place.tally.add(us));
            took.push(Took { at: &place.at, us });
            latest = mark.unwrap_or(latest);
            last = mark;
        }
        took
    }

    pub(super) fn summary(&self) -> Summary<'_> {
        Summary {
            age: self.ages.times(),
            uncertain_us: self.uncertain_us,
            parts: self.places.iter().map(Place::summary).collect(),
        }
    }
}

impl Summary<'_> {
    /// Formats the summary as text.
    pub(super) fn to_text(&self) -> String {
        let mut table = Table::new(&[
            ("at", Left),
            ("ms", Left),
            ("mean", Right),
            ("p50", Right),
            ("p99", Right),
            ("max", Right),
            ("\u{b1}", Right),
        ]);
        let ms = |us: Option<u64>| us.map_or_else(|| "-".to_owned(), show::millis);
        let mut row = |at: &str, what: &str, times: &Times, off: Option<u64>| {
            let off = match off {
                Some(0) => String::new(),
                Some(us) => show::millis(us),
                None => "?".to_owned(),
            };
            let Times { us, p50_us, p99_us, max_us, .. } = *times;
            let [mean, p50, p99, max] = [us, p50_us, p99_us, max_us].map(ms);
            table.row(vec![at.to_owned(), what.to_owned(), mean, p50, p99, max, off]);
        };
        for part in &self.parts {
            row(part.at, part.what, &part.times, part.uncertain_us);
        }
        row("total", WHOLE, &self.age, self.uncertain_us);
        let samples =
            show::count(usize::try_from(self.age.samples).unwrap_or(usize::MAX), "sample");
        let mut out = format!("\n{samples}\n{}", table.render(width()));
        let known = self.parts.iter().map(|part| part.times.samples).min().unwrap_or_default();
        if known < self.age.samples {
            out.push_str(&format!(
                "The parts of {} of them are unknown: a node records the last {} samples of a \
                 stream, and a node of an\nolder version records none.\n",
                self.age.samples - known,
                paceline::status::PASSAGES_MAX
            ));
        }
        if self.parts.len() > 1 {
            out.push_str(
                "No clocks are compared: every node adds its own time to the age of a sample. The \
                 time on the wire is half\nof the minimum round trip, and its error \u{b1} is at \
                 most that. If no round trip was measured yet, the time\non the wire is 0 and its \
                 error is ?.\n",
            );
        }
        out
    }
}

impl Place {
    fn summary(&self) -> Part<'_> {
        Part {
            at: &self.at,
            what: self.what,
            times: self.tally.times(),
            uncertain_us: self.uncertain_us,
        }
    }
}

impl Tally {
    fn new() -> Self {
        Self { samples: 0, sum_us: 0, all: Histogram::new() }
    }

    fn add(&mut self, us: u64) {
        self.samples += 1;
        self.sum_us = self.sum_us.saturating_add(us);
        self.all.add(us);
    }

    fn times(&self) -> Times {
        let some = |us: u64| (self.samples > 0).then_some(us);
        Times {
            samples: self.samples,
            us: self.sum_us.checked_div(self.samples),
            p50_us: some(self.all.permille(500)),
            p99_us: some(self.all.permille(990)),
            max_us: some(self.all.max()),
        }
    }
}

/// Formats an uncertainty as text.
pub(super) fn off(uncertain_us: Option<u64>) -> String {
    match uncertain_us {
        Some(us) => format!("± {} ms", show::millis(us)),
        None => "± ?".to_owned(),
    }
}

/// Formats the parts of one sample as text.
pub(super) fn describe(took: &[Took<'_>]) -> String {
    let part = |Took { at, us }: &Took<'_>| {
        format!("{at} {}", us.map_or_else(|| "-".to_owned(), show::millis))
    };
    took.iter().map(part).collect::<Vec<_>>().join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(node: &str, link: &str, trip: Option<u64>) -> Hop {
        Hop { node: node.to_owned(), link: link.to_owned(), round_trip_us: trip }
    }

    const fn leg(came: u64, left: u64) -> Leg {
        Leg { came_us: Some(came), left_us: Some(left) }
    }

    #[test]
    fn the_parts_of_a_sample_make_its_age() {
        let mut way =
            Way::new(&[hop("robot", "thin", Some(300)), hop("operator", "host", Some(100))]);
        let took = way.add(&[leg(1_200, 19_500), leg(19_900, 20_000)], 20_250);
        assert_eq!(took.iter().filter_map(|part| part.us).sum::<u64>(), 20_250);
        assert_eq!(
            describe(&took),
            "robot 1.20 + robot.thin 18.3 + thin to operator 0.40 + operator.host 0.10 + host to here 0.25"
        );
        way.add(&[leg(1_000, 2_000), leg(2_400, 2_500)], 2_750);
        assert_eq!(
            way.summary().to_text(),
            "
2 samples
at                ms                                mean   p50   p99   max     ±
robot             before the link's queue           1.10  1.00  1.20  1.20
robot.thin        queue and transmission            9.65  1.00  18.3  18.3
thin to operator  on the wire and received          0.40  0.40  0.40  0.40  0.15
operator.host     queue and transmission            0.10  0.10  0.10  0.10
host to here      on the wire, received, delivered  0.25  0.25  0.25  0.25  0.05
total             from publish to delivery          11.5  2.75  20.2  20.2  0.20
No clocks are compared: every node adds its own time to the age of a sample. The time on the wire is half
of the minimum round trip, and its error ± is at most that. If no round trip was measured yet, the time
on the wire is 0 and its error is ?.
"
        );
    }

    #[test]
    fn the_parts_make_the_age_on_links_faster_than_their_capacity() {
        let mut way = Way::new(&[hop("robot", "thin", Some(300)), hop("mast", "eth", None)]);
        let took = way.add(&[leg(1_000, 51_000), leg(47_000, 47_100)], 47_250);
        let us: Vec<_> = took.iter().filter_map(|part| part.us).collect();
        assert_eq!(us, [1_000, 46_250, 0, 0, 0]);
    }

    #[test]
    fn unknown_parts_have_no_time() {
        let mut way = Way::new(&[hop("robot", "thin", None)]);
        let took = way.add(&[Leg::default()], 5_000);
        assert!(took.iter().all(|part| part.us.is_none()), "{took:?}");
        assert_eq!(describe(&took), "robot - + robot.thin - + thin to here -");
        way.add(&[leg(1_000, 3_000)], 4_000);
        let summary = way.summary();
        assert_eq!((summary.age.samples, summary.parts[1].times.samples), (2, 1));
        assert_eq!(summary.parts[1].times.us, Some(2_000));
        let text = summary.to_text();
        assert!(text.contains("The parts of 1 of them are unknown"), "{text}");
        assert!(text.contains("  ?\n"), "{text}");
    }

    #[test]
    fn on_one_host_there_is_one_part() {
        let mut way = Way::new(&[]);
        assert_eq!(describe(&way.add(&[], 250)), "here 0.25");
        assert_eq!(
            way.summary().to_text(),
            "
1 sample
at     ms                        mean   p50   p99   max   ±
here   on this host              0.25  0.25  0.25  0.25
total  from publish to delivery  0.25  0.25  0.25  0.25
"
        );
        assert_eq!(Way::new(&[]).summary().age.us, None);
    }
}
