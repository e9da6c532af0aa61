//! Finds circles in a graph of imports.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The places of the imports from one module of another.
pub(super) type Edges = BTreeMap<(String, String), Vec<String>>;

/// Returns the shortest circle through each edge that is part of a circle, each circle once. It
/// begins with the first of its modules in alphabetical order.
pub(super) fn circles(edges: &Edges) -> Vec<Vec<String>> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in edges.keys().filter(|(from, to)| from != to) {
        next.entry(from).or_default().push(to);
    }
    let mut found = BTreeSet::new();
    for (from, targets) in &next {
        for to in targets {
            if let Some(path) = shortest(&next, to, from) {
                found.insert(rotated(path));
            }
        }
    }
    let own = |circle: Vec<&str>| circle.into_iter().map(str::to_owned).collect();
    found.into_iter().map(own).collect()
}

/// Returns the modules of a shortest path, with both ends.
fn shortest<'a>(
    next: &BTreeMap<&'a str, Vec<&'a str>>,
    start: &'a str,
    end: &'a str,
) -> Option<Vec<&'a str>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(module) = open.pop_front() {
        if module == end {
            let mut path = vec![end];
            let mut last = end;
            while let Some(&previous) = before.get(last).filter(|_| last != start) {
                path.push(previous);
                last = previous;
            }
            path.reverse();
            return Some(path);
        }
        for &target in next.get(module).into_iter().flatten() {
            if target != start && !before.contains_key(target) {
                before.insert(target, module);
                open.push_back(target);
            }
        }
    }
    None
}

fn rotated(mut circle: Vec<&str>) -> Vec<&str> {
    let first = circle.iter().enumerate().min_by_key(|&(_, module)| module);
    let first = first.map_or(0, |(at, _)| at);
    circle.rotate_left(first);
    circle
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(edges: &[(&str, &str)]) -> Vec<String> {
        let edges = edges.iter().map(|(a, b)| (((*a).to_owned(), (*b).to_owned()), Vec::new()));
        circles(&edges.collect()).into_iter().map(|circle| circle.join(" ")).collect()
    }

    #[test]
    fn a_tower_has_no_circle() {
        assert_eq!(found(&[("a", "b"), ("a", "c"), ("b", "c"), ("c", "c")]), Vec::<String>::new());
    }

    #[test]
    fn each_circle_is_found_once() {
        assert_eq!(found(&[("b", "a"), ("a", "b"), ("b", "c")]), ["a b"]);
        assert_eq!(found(&[("c", "a"), ("a", "b"), ("b", "c")]), ["a b c"]);
        let two = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "d"), ("d", "b")];
        assert_eq!(found(&two), ["a b", "b c d"]);
    }

    #[test]
    fn a_chord_makes_two_circles() {
        let chord = [("a", "b"), ("b", "c"), ("c", "a"), ("b", "a")];
        assert_eq!(found(&chord), ["a b", "a b c"]);
    }
}
