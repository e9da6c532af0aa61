//! From ages at the places of a way to the time that each part of it took. Pure.

use crate::show;
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
        let own = |at: String, what, us| Part { at, what, us, uncertain_us: Some(0) };
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
        for Part { at, what, us, uncertain_us } in &self.parts {
            let time = us.map_or_else(|| "-".to_owned(), show::millis);
            let off = match uncertain_us {
                Some(0) => String::new(),
                us => format!(" {}", off(*us)),
            };
            let _ = writeln!(out, "  {at:<width$}  {what:<36}  {time:>6} ms{off}");
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
    Part { at, what, us, uncertain_us: over.round_trip_us.map(|trip| trip / 2) }
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
