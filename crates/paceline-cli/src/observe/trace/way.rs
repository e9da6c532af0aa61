//! From ages at the places of a way to the time that each part of it took. Pure.

use crate::show;
use crate::stats::Histogram;
use serde::Serialize;
use std::fmt::Write as _;

/// One hop: the mean ages of samples when they came to its link and when their last byte left.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Leg {
    pub(super) node: String,
    pub(super) link: String,
    pub(super) came_us: Option<u64>,
    pub(super) left_us: Option<u64>,
    /// The least round trip; none if it was not measured.
    pub(super) round_trip_us: Option<u64>,
}

/// How old samples were at delivery: their mean, what 99 of 100 did not exceed, the oldest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Age {
    pub(super) us: u64,
    pub(super) p99_us: u64,
    pub(super) max_us: u64,
}

/// A part of the way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Part {
    /// Where: a node, a link, or a hop.
    pub(super) at: String,
    /// What it is.
    pub(super) what: &'static str,
    /// Its mean time; null if nothing passed there in the time between.
    pub(super) us: Option<u64>,
    /// How much that may be off; null if nobody knows.
    pub(super) uncertain_us: Option<u64>,
    /// How its means of each second spread; null if it was read fewer than three times.
    pub(super) seconds: Option<Spread>,
}

/// Of the means of a part in each second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Spread {
    /// How many there are.
    pub(super) count: u64,
    pub(super) p50_us: u64,
    pub(super) p99_us: u64,
    pub(super) max_us: u64,
}

/// What is known of the seconds of each part.
#[derive(Default)]
pub(super) struct Spreads(Vec<(u64, Histogram)>);

impl Spreads {
    /// Adds the means of a second.
    pub(super) fn add(&mut self, second: &Way) {
        self.0.resize_with(second.parts.len().max(self.0.len()), || (0, Histogram::new()));
        for ((count, means), part) in self.0.iter_mut().zip(&second.parts) {
            if let Some(us) = part.us {
                *count += 1;
                means.add(us);
            }
        }
    }
}

/// The way from publish to delivery.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Way {
    pub(super) samples: u64,
    /// Mean age at delivery.
    pub(super) age_us: u64,
    /// The age that 99 of 100 samples did not exceed, and that of the oldest.
    pub(super) age_p99_us: u64,
    pub(super) age_max_us: u64,
    /// How much that may be off; null if nobody knows.
    pub(super) uncertain_us: Option<u64>,
    pub(super) parts: Vec<Part>,
}

/// Seconds from which on something is said of how they differ.
const SECONDS_MIN: u64 = 3;

const QUEUED: &str = "until it is queued";
const LINK: &str = "its turn, and its bytes";
const WIRE: &str = "on the wire, and received";
const DELIVERY: &str = "on the wire, received, and delivered";
const HERE: &str = "on this host";

impl Way {
    /// The parts of a way of these hops whose samples were so old at delivery.
    pub(super) fn new(legs: &[Leg], samples: u64, age: &Age) -> Self {
        let age_us = age.us;
        let mut parts = Vec::new();
        // A link's own clock tells how long something waits there: nothing is compared, nothing uncertain.
        let own =
            |at: String, what, us| Part { at, what, us, uncertain_us: Some(0), seconds: None };
        let between = |from: Option<u64>, to: Option<u64>| {
            from.zip(to).map(|(from, to)| to.saturating_sub(from))
        };
        let mut left = Some(0);
        for (at, leg) in legs.iter().enumerate() {
            if at == 0 {
                parts.push(own(leg.node.clone(), QUEUED, leg.came_us));
            } else if let Some(before) = legs.get(at - 1) {
                parts.push(wire(before, &leg.node, WIRE, between(left, leg.came_us)));
            }
            let link = format!("{}.{}", leg.node, leg.link);
            parts.push(own(link, LINK, between(leg.came_us, leg.left_us)));
            left = leg.left_us;
        }
        match legs.last() {
            Some(last) => parts.push(wire(last, "here", DELIVERY, between(left, Some(age_us)))),
            None => parts.push(own("here".to_owned(), HERE, Some(age_us))),
        }
        let trips = legs.iter().map(|leg| leg.round_trip_us).sum::<Option<u64>>();
        Self {
            samples,
            age_us,
            age_p99_us: age.p99_us,
            age_max_us: age.max_us,
            uncertain_us: trips.map(|trips| trips / 2),
            parts,
        }
    }

    /// Has each part say how its seconds differed.
    pub(super) fn spread(&mut self, spreads: &Spreads) {
        for (part, (count, means)) in self.parts.iter_mut().zip(&spreads.0) {
            part.seconds = (*count >= SECONDS_MIN).then(|| Spread {
                count: *count,
                p50_us: means.permille(500),
                p99_us: means.permille(990),
                max_us: means.max(),
            });
        }
    }

    /// As lines for people.
    pub(super) fn told(&self) -> String {
        let mut out = format!(
            "\nmean of {} samples: age {} ms {}, p99 {} max {} ms\n",
            self.samples,
            show::millis(self.age_us),
            off(self.uncertain_us),
            show::millis(self.age_p99_us),
            show::millis(self.age_max_us)
        );
        let width = self.parts.iter().map(|part| part.at.chars().count()).max().unwrap_or_default();
        for Part { at, what, us, uncertain_us, seconds } in &self.parts {
            let time = us.map_or_else(|| "-".to_owned(), show::millis);
            let off = match uncertain_us {
                Some(0) => String::new(),
                us => format!(" {}", off(*us)),
            };
            let spread =
                seconds.map_or_else(String::new, |Spread { p50_us, p99_us, max_us, .. }| {
                    let [p50, p99, max] = [p50_us, p99_us, max_us].map(show::millis);
                    format!("  seconds: p50 {p50} p99 {p99} max {max} ms")
                });
            let _ = writeln!(out, "  {at:<width$}  {what:<36}  {time:>6} ms{off}{spread}");
        }
        if self.parts.iter().any(|part| part.seconds.is_some()) {
            out.push_str(
                "seconds: of the means of each second; nodes keep sums of ages, not the age of every sample.\n",
            );
        }
        if self.parts.len() > 1 {
            out.push_str(
                "No clocks are compared: every node counts a sample's age on by its own. For the wire it takes \
                 half of the\nleast round trip, which is off by at most as much where the two directions \
                 differ; ± ? where none was\nmeasured yet, and nothing is taken.\n",
            );
        }
        out
    }
}

fn wire(over: &Leg, to: &str, what: &'static str, us: Option<u64>) -> Part {
    let at = format!("{} to {to}", over.link);
    let uncertain_us = over.round_trip_us.map(|trip| trip / 2);
    Part { at, what, us, uncertain_us, seconds: None }
}

/// How much a time may be off, in words.
pub(super) fn off(uncertain_us: Option<u64>) -> String {
    match uncertain_us {
        Some(us) => format!("± {} ms", show::millis(us)),
        None => "± ?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leg(node: &str, link: &str, came: u64, left: u64, trip: Option<u64>) -> Leg {
        Leg {
            node: node.to_owned(),
            link: link.to_owned(),
            came_us: Some(came),
            left_us: Some(left),
            round_trip_us: trip,
        }
    }

    /// A mean, with a p99 twice and an oldest three times as much.
    const fn aged(us: u64) -> Age {
        Age { us, p99_us: 2 * us, max_us: 3 * us }
    }

    #[test]
    fn the_parts_of_a_way_make_the_whole() {
        let legs = [
            leg("robot", "thin", 1_200, 19_500, Some(300)),
            leg("operator", "host", 19_900, 20_000, Some(100)),
        ];
        let way = Way::new(&legs, 10, &aged(20_250));
        assert_eq!(way.parts.iter().filter_map(|part| part.us).sum::<u64>(), way.age_us);
        assert_eq!(
            way.told(),
            "
mean of 10 samples: age 20.2 ms ± 0.20 ms, p99 40.5 max 60.7 ms
  robot             until it is queued                      1.20 ms
  robot.thin        its turn, and its bytes                 18.3 ms
  thin to operator  on the wire, and received               0.40 ms ± 0.15 ms
  operator.host     its turn, and its bytes                 0.10 ms
  host to here      on the wire, received, and delivered    0.25 ms ± 0.05 ms
No clocks are compared: every node counts a sample's age on by its own. For the wire it takes half of the
least round trip, which is off by at most as much where the two directions differ; ± ? where none was
measured yet, and nothing is taken.
"
        );
    }

    #[test]
    fn the_seconds_of_a_part_tell_how_it_varies() {
        let second = |left: u64| {
            Way::new(&[leg("robot", "thin", 1_000, left, Some(300))], 30, &aged(left + 500))
        };
        let (mut spreads, mut way) = (Spreads::default(), second(3_000));
        for left in [2_000, 2_000, 9_000] {
            assert!(!way.told().contains("seconds: "), "{}", way.told());
            spreads.add(&second(left));
            way.spread(&spreads);
        }
        // One in which nothing passed there says nothing of it.
        let silent = Leg { came_us: None, left_us: None, ..leg("robot", "thin", 0, 0, None) };
        spreads.add(&Way::new(&[silent], 30, &aged(1)));
        way.spread(&spreads);
        let spread = way.parts[1].seconds.unwrap();
        assert_eq!((spread.count, spread.max_us), (3, 8_000));
        assert!(spread.p50_us.abs_diff(1_000) < 50 && spread.p99_us.abs_diff(8_000) < 200);
        assert_eq!(way.parts[0].seconds.map(|first| first.max_us), Some(1_000));
        let told = way.told();
        assert!(told.contains("ms  seconds: p50 1.00 p99 "), "{told}");
        assert!(told.contains("max 8.00 ms\n") && told.contains("nodes keep sums"), "{told}");
    }

    #[test]
    fn what_nobody_knows_is_not_made_up() {
        let silent = Leg { came_us: None, left_us: None, ..leg("robot", "thin", 0, 0, None) };
        let way = Way::new(&[silent], 3, &aged(5_000));
        assert!(way.parts.iter().all(|part| part.us.is_none()), "{way:?}");
        assert_eq!((way.uncertain_us, way.age_us), (None, 5_000));
        assert!(way.told().contains("age 5.00 ms ± ?"), "{}", way.told());
        let here = Way::new(&[], 3, &aged(250));
        assert_eq!(
            here.told(),
            "\nmean of 3 samples: age 0.25 ms ± 0.00 ms, p99 0.50 max 0.75 ms\n  here  on this host                            0.25 ms\n"
        );
    }
}
