//! Random classes of links: guarantees by curves of each shape, which contracts share with best effort.

use super::{POLICIES, Run};
use crate::random::Random;
use paceline_proto::link::{ClassTree, LinkClass, Match};
use paceline_proto::tag::Pattern;
use paceline_sched::curve::Curve;
use paceline_sched::hfsc::Curves;
use paceline_sched::{Capacity, Duration};
use std::sync::Arc;

/// The most classes with a guarantee.
const GUARANTEED_MAX: u64 = 3;
/// The number of tags that the classes of a link divide among them.
const TAGS: u64 = 40;

impl Run {
    /// Returns random classes for some of the links with a capacity.
    pub(super) fn classes(&mut self, capacity: Option<Capacity>) -> Option<Arc<ClassTree>> {
        let (classes, chance) = (self.mix.classes, &mut self.class_chance);
        let capacity = capacity.filter(|_| chance.chance(classes))?;
        let count = 1 + chance.below(GUARANTEED_MAX);
        let mut left = capacity.bits_per_s() / 10 * 9;
        let mut list: Vec<LinkClass> = Vec::new();
        for number in 0..count {
            let peak = left / 4 + chance.below(left / 2 + 1);
            left -= peak;
            let wants =
                if number + 1 == count { rest(chance) } else { some(chance, number, count) };
            let policy = chance.one_of(POLICIES).filter(|_| chance.chance(500));
            let shares = chance.chance(500);
            let link_share = Curve::linear(peak.max(1)).ok().filter(|_| shares);
            let real_time = curve(chance, peak.max(8));
            let curves = Curves { real_time, link_share, upper_limit: None };
            let name = format!("guaranteed{number}");
            list.push(LinkClass { name, wants, policy, curves, ..LinkClass::default() });
        }
        ClassTree::new(list, Some(capacity)).ok().map(Arc::new)
    }
}

/// Returns a linear, concave or convex curve of at most `peak` bit/s.
fn curve(chance: &mut Random, peak: u64) -> Option<Curve> {
    let d = Duration::from_millis(1 + chance.below(50));
    let slope = peak / 4 + chance.below(peak / 2 + 1);
    let curve = match chance.below(3) {
        0 => Curve::linear(peak),
        1 => Curve::two_piece(peak, d, slope.max(1)),
        _ => Curve::two_piece(slope * chance.below(2), d, peak),
    };
    curve.ok()
}

/// Returns a class for some contracts, with or without small best effort or that of one node.
fn some(chance: &mut Random, number: u64, count: u64) -> Match {
    let own = |place: u64| place % count == number;
    let mut tags: Vec<String> =
        (0..TAGS).filter(|place| own(*place)).map(|place| format!("asked/{place}")).collect();
    if chance.chance(500) {
        tags.push("small/**".to_owned());
    }
    let tags = tags.iter().filter_map(|tag| Pattern::new(tag).ok()).collect();
    let nodes = if chance.chance(300) { vec![format!("n{}", chance.below(4))] } else { Vec::new() };
    Match { tags, nodes, ..Match::default() }
}

/// Returns a class for all other contracts, with or without all other best effort.
fn rest(chance: &mut Random) -> Match {
    let contracted = Some(true).filter(|_| chance.chance(500));
    Match { contracted, ..Match::default() }
}
