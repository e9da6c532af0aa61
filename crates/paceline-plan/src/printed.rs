//! The paper's seven-node program and its star, as printed and corrected.
//!
//! The printed formulation (Juvva 1999, §2.4.2 and appendix A) has five errors. Each function here
//! computes the [`Literal`](Reading::Literal) and the [`Corrected`](Reading::Corrected) reading, so
//! that tests and `paceline-lab repro juvva-1999` can show the difference.

use crate::problem::{PlanLink, PlanNode, PlanProblem, PlanSubscriber, PlanTag};
use paceline_sched::Duration;

/// A reading of the paper.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reading {
    /// As printed.
    Literal,
    /// With the errors corrected.
    Corrected,
}

/// The binary variables of a proxy's place in the seven-node program: its number in three bits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BitCode {
    /// The bit of value 4.
    pub x: bool,
    /// The bit of value 2.
    pub y: bool,
    /// The bit of value 1.
    pub z: bool,
}

impl BitCode {
    /// Returns all eight codes in the order of their numbers. The last one is no node.
    #[must_use]
    pub fn all() -> [Self; 8] {
        let bits = [false, true];
        let mut codes = [Self { x: false, y: false, z: false }; 8];
        let all =
            bits.iter().flat_map(|&x| bits.iter().flat_map(move |&y| bits.map(|z| (x, y, z))));
        codes.iter_mut().zip(all).for_each(|(code, (x, y, z))| *code = Self { x, y, z });
        codes
    }

    fn number(self) -> u8 {
        u8::from(self.x) * 4 + u8::from(self.y) * 2 + u8::from(self.z)
    }
}

/// Returns the objective of a code: the bandwidth on all links with the unscaled rate `l` and the
/// scaled rate `l2`, or the delay with the periods T and T′. All its terms are 0 for 111, which is
/// no node; `None` is the corrected reading, in which 111 is excluded.
#[must_use]
pub fn objective(code: BitCode, l: u64, l2: u64, reading: Reading) -> Option<u64> {
    let before = u64::from(code.number());
    match (before, reading) {
        (7, Reading::Literal) => Some(0),
        (7, Reading::Corrected) => None,
        _ => Some(before * l + (6 - before) * l2),
    }
}

/// The printed rows of links a to f: whether each of the seven terms has L (not L′). The terms are
/// for the codes 000, 001, 010, 011, 100, 100 again (printed for 101), and 110.
const ROWS: [[bool; 7]; 6] = [
    [false, true, true, true, true, true, true],
    [false, true, false, true, true, true, true],
    [false, false, false, true, true, true, true],
    [false, false, false, false, false, true, true],
    [false, false, false, false, false, true, true],
    [false, false, false, false, false, true, true],
];

/// Returns the rate on a link, 0 for a to 5 for f, for a code. The printed rows repeat the term
/// X(1 − Y)(1 − Z) where X(1 − Y)Z is meant, so 100 counts twice and 101 not at all. Link b has L′
/// for 010, d has L′ for 100, and f has L for 101.
#[must_use]
pub fn link_rate(link: usize, code: BitCode, l: u64, l2: u64, reading: Reading) -> u64 {
    let number = usize::from(code.number());
    match reading {
        Reading::Corrected if number == 7 => 0,
        // The publisher is node 0, and link a leads to node 1.
        Reading::Corrected => {
            if link < number {
                l
            } else {
                l2
            }
        }
        Reading::Literal => {
            let terms = [0, 1, 2, 3, 4, 4, 6];
            let row = ROWS.get(link).copied().unwrap_or_default();
            let rates = row.iter().zip(terms).filter(|(_, term)| *term == number);
            rates.map(|(&is_unscaled, _)| if is_unscaled { l } else { l2 }).sum()
        }
    }
}

/// Returns true if the printed constraints of the product a = XY allow a value. They are a ≥ 0,
/// a − y ≤ 0 and −a + x + y ≤ 1. The constraint a − x ≤ 0 is missing: "d − x ≤ 0" is printed.
#[must_use]
pub fn allows_product(x: bool, y: bool, a: bool, reading: Reading) -> bool {
    let [x, y, a] = [x, y, a].map(i32::from);
    let printed = a - y <= 0 && x + y - a <= 1;
    printed && (reading == Reading::Literal || a - x <= 0)
}

/// Returns true if the product b = YZ may have a value: b − y ≤ 0 is missing, b − z ≤ 0 is printed.
#[must_use]
pub fn allows_second_product(y: bool, z: bool, b: bool, reading: Reading) -> bool {
    let [y, z, b] = [y, z, b].map(i32::from);
    let printed = b - z <= 0 && y + z - b <= 1;
    printed && (reading == Reading::Literal || b - y <= 0)
}

/// Returns true if the algorithm of appendix A calls a path infeasible. Line 4 prints "Δ > δ", which
/// is the condition of a feasible path with time to spare.
#[must_use]
pub fn is_infeasible(required: Duration, delay: Duration, reading: Reading) -> bool {
    match reading {
        Reading::Literal => required > delay,
        Reading::Corrected => delay > required,
    }
}

/// Returns the path of the seven-node program: nodes 0 (CMU) to 6 (San Diego), links a to f without
/// limits, and the given number of subscribers at node 6 without delay bounds.
#[must_use]
pub fn seven_nodes(subscribers: usize, period: Duration, scale: u32, bytes: u64) -> PlanProblem {
    let mut problem =
        PlanProblem::new((0..7).map(|node| PlanNode::new(&node.to_string())).collect());
    problem.links = (0..6).map(|node| PlanLink::new(node, node + 1)).collect();
    let mut tag = PlanTag::new("vbns", 0, period, bytes);
    tag.subscribers = vec![PlanSubscriber { node: 6, scale, bytes, within: None }; subscribers];
    problem.tags.push(tag);
    problem
}

/// Returns the star of appendix A: node 5 in the middle, the publisher at node 1 and subscribers at
/// nodes 3 and 4. The index of a node is its number − 1. The limit is 2T as printed, or 2T′, the
/// delay of the paper's own answer.
#[must_use]
pub fn star(period: Duration, scale: u32, bytes: u64, reading: Reading) -> PlanProblem {
    let mut problem =
        PlanProblem::new((1..=5).map(|node| PlanNode::new(&node.to_string())).collect());
    for leaf in 0..4 {
        let link = PlanLink::new(leaf, 4);
        problem.links.extend([link.back(), link]);
    }
    let scaled = period.mul_div(u64::from(scale), 1);
    let within = match reading {
        Reading::Literal => period.mul_div(2, 1),
        Reading::Corrected => scaled.mul_div(2, 1),
    };
    let mut tag = PlanTag::new("star", 0, period, bytes);
    tag.subscribers =
        [2, 3].map(|node| PlanSubscriber { node, scale, bytes, within: Some(within) }).to_vec();
    problem.tags.push(tag);
    problem
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Binding, PlanError};
    use crate::{exhaustive, integer, plan};
    use std::time::Duration as Time;

    fn hour() -> Time {
        Time::from_secs(3_600)
    }

    #[test]
    fn code_111_costs_nothing_as_printed_and_is_excluded_when_corrected() {
        let costs = |reading| BitCode::all().map(|code| objective(code, 10, 2, reading));
        let literal = costs(Reading::Literal);
        assert_eq!(literal.map(Option::unwrap), [12, 20, 28, 36, 44, 52, 60, 0]);
        assert_eq!(literal.iter().min(), Some(&Some(0)), "the literal optimum is no node");
        let corrected = costs(Reading::Corrected);
        assert_eq!(corrected[7], None);
        assert_eq!(corrected.into_iter().flatten().min(), Some(12), "at the publisher");
    }

    #[test]
    fn the_printed_rows_count_100_twice_and_101_never() {
        let rate =
            |link, number: usize, reading| link_rate(link, BitCode::all()[number], 10, 2, reading);
        let row = |number, reading| [0, 1, 2, 3, 4, 5].map(|link| rate(link, number, reading));
        assert_eq!(row(4, Reading::Literal), [20, 20, 20, 12, 12, 12]);
        assert_eq!(row(5, Reading::Literal), [0; 6]);
        assert_eq!(row(4, Reading::Corrected), [10, 10, 10, 10, 2, 2]);
        assert_eq!(row(5, Reading::Corrected), [10, 10, 10, 10, 10, 2]);
        // Link b: L′ for 010 as printed, although its stream is not scaled there.
        assert_eq!((rate(1, 2, Reading::Literal), rate(1, 2, Reading::Corrected)), (2, 10));
        // The rates of the corrected rows add up to the objective.
        for (number, code) in BitCode::all().into_iter().enumerate() {
            let sum: u64 = row(number, Reading::Corrected).iter().sum();
            assert_eq!(objective(code, 10, 2, Reading::Corrected).unwrap_or(0), sum);
        }
    }

    #[test]
    fn the_printed_products_may_be_1_without_their_first_factor() {
        for (reading, wrong) in [(Reading::Literal, true), (Reading::Corrected, false)] {
            assert_eq!(allows_product(false, true, true, reading), wrong);
            assert_eq!(allows_second_product(false, true, true, reading), wrong);
            for (x, y) in [(false, false), (false, true), (true, false), (true, true)] {
                assert!(allows_product(x, y, x && y, reading));
                assert!(allows_second_product(x, y, x && y, reading));
            }
        }
        let all = [false, true];
        let all = all.iter().flat_map(|&x| all.iter().flat_map(move |&y| all.map(|a| (x, y, a))));
        for (x, y, a) in all {
            assert_eq!(allows_product(x, y, a, Reading::Corrected), a == (x && y));
            assert_eq!(allows_second_product(x, y, a, Reading::Corrected), a == (x && y));
        }
    }

    #[test]
    fn line_4_of_the_algorithm_calls_fast_paths_infeasible() {
        let [fast, slow] = [1, 9].map(Duration::from_millis);
        let limit = Duration::from_millis(5);
        let call = |reading| [fast, slow].map(|delay| is_infeasible(limit, delay, reading));
        assert_eq!(call(Reading::Literal), [true, false]);
        assert_eq!(call(Reading::Corrected), [false, true]);
    }

    #[test]
    fn the_limit_2t_of_the_star_excludes_the_papers_own_answer() {
        let period = Duration::from_millis(1);
        let literal = star(period, 5, 1, Reading::Literal);
        for answer in
            [plan(&literal, &mut hour), exhaustive(&literal), integer(&literal, &mut hour)]
        {
            let Err(PlanError::Infeasible { smallest, binding, within, .. }) = answer else {
                panic!("{answer:?}");
            };
            assert_eq!(within, Some(period.mul_div(2, 1)));
            // Each subscriber alone is served in 2T by a proxy of its own, but not by one for both.
            assert_eq!(*binding, Binding::Proxies(1));
            assert_eq!(
                smallest,
                Some(Duration::from_millis(12)),
                "2T + 2T′ with the other one in 2T"
            );
        }
        let corrected = star(period, 5, 1, Reading::Corrected);
        for answer in
            [plan(&corrected, &mut hour), exhaustive(&corrected), integer(&corrected, &mut hour)]
        {
            let planned = answer.unwrap();
            assert_eq!(planned.proxies[0].node, 0);
            assert!(planned.streams.iter().all(|it| it.delay == Duration::from_millis(10)));
            // 4f′ with K = 1 bit: f′ = 200 samples per second of 8 bits.
            assert!((planned.cost - 4.0 * 200.0 * 8.0).abs() < 1e-6);
        }
    }

    #[test]
    fn the_star_costs_as_much_as_printed_at_each_node() {
        let mut problem = star(Duration::from_millis(1), 5, 1, Reading::Corrected);
        let (f, f2) = (8_000.0, 1_600.0);
        let printed = [
            4.0 * f2,
            4.0 * f + 4.0 * f2,
            4.0 * f + 2.0 * f2,
            4.0 * f + 2.0 * f2,
            2.0 * f + 2.0 * f2,
        ];
        problem.tags[0].subscribers.iter_mut().for_each(|it| it.within = None);
        for (node, expected) in printed.into_iter().enumerate() {
            problem.tags[0].allowed = Some(vec![node]);
            let planned = plan(&problem, &mut hour).unwrap();
            assert!((planned.cost - expected).abs() < 1e-6, "{node}: {}", planned.cost);
        }
    }

    #[test]
    fn the_seven_node_program_places_the_proxy_by_the_delay_bound() {
        for subscribers in [1, 2, 5, 10] {
            let mut problem = seven_nodes(subscribers, Duration::from_millis(1), 3, 100);
            for (bound, node) in [(18, 0), (17, 1), (14, 2), (12, 3), (10, 4), (8, 5), (6, 6)] {
                for to in &mut problem.tags[0].subscribers {
                    to.within = Some(Duration::from_millis(bound));
                }
                let planned = plan(&problem, &mut hour).unwrap();
                assert_eq!(planned.proxies[0].node, node, "{bound}");
                assert!(
                    (integer(&problem, &mut hour).unwrap().cost - planned.cost).abs()
                        < 1e-6 * planned.cost
                );
            }
        }
    }
}
