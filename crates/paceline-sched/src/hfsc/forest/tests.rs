use super::*;
use std::collections::BTreeSet;
use std::format;

/// SplitMix64.
fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) % below
}

type Plain = BTreeSet<(u64, u32, u64)>;

fn check(forest: &Forest<u64>, root: u32, plain: &Plain, state: &mut u64) {
    assert_eq!(forest.least(root), plain.iter().map(|&(_, _, value)| value).min());
    assert_eq!(forest.last_key(root), plain.last().map(|&(key, _, _)| key));
    let (key, limit) = (random(state, 24), random(state, 24));
    let after = plain.iter().find(|&&(other, _, _)| other > key).map(|&(key, _, _)| key);
    assert_eq!(forest.key_after(root, key), after);
    let within = plain.iter().find(|&&(_, _, value)| value <= limit).map(|&(_, at, _)| at);
    assert_eq!(forest.first_within(root, limit), within);
    let until = plain.iter().filter(|&&(other, _, _)| other <= key);
    let least = until.min_by_key(|&&(key, at, value)| (value, key, at)).map(|&(_, at, _)| at);
    assert_eq!(forest.least_until(root, key), least);
}

#[test]
fn a_tree_agrees_with_a_sorted_list() {
    for seed in 0..300 {
        let mut state = seed;
        let (mut forest, mut roots) = (Forest::new(), [NONE; 2]);
        let mut plain = [Plain::new(), Plain::new()];
        forest.reserve(39);
        for _ in 0..200 {
            let at = u32::try_from(random(&mut state, 40)).unwrap();
            let (key, value) = (random(&mut state, 20), random(&mut state, 20));
            let tree = usize::from(at >= 20);
            let old = plain[tree].iter().find(|&&(_, other, _)| other == at).copied();
            match (old, random(&mut state, 3)) {
                (None, _) => {
                    forest.insert(&mut roots[tree], at, key, value);
                    plain[tree].insert((key, at, value));
                }
                (Some(old), 0) => {
                    forest.remove(&mut roots[tree], at);
                    forest.remove(&mut roots[tree], at);
                    plain[tree].remove(&old);
                }
                (Some(old), kind) => {
                    let key = if kind == 1 { key } else { old.0 };
                    forest.update(&mut roots[tree], at, key, value);
                    plain[tree].remove(&old);
                    plain[tree].insert((key, at, value));
                }
            }
            check(&forest, roots[tree], &plain[tree], &mut state);
        }
    }
}

#[test]
fn an_empty_tree_and_an_unknown_node_return_nothing() {
    let mut forest: Forest<u128> = Forest::new();
    let mut root = NONE;
    forest.insert(&mut root, 3, 1, 1);
    forest.remove(&mut root, 3);
    assert_eq!(root, NONE);
    assert_eq!(forest.first_within(root, u64::MAX), None);
    assert_eq!(forest.least_until(root, u128::MAX), None);
    assert_eq!(format!("{:?}", forest.key(9)), "None");
}

#[test]
fn a_tree_stays_shallow_for_ordered_keys() {
    fn depth(forest: &Forest<u64>, at: u32) -> u32 {
        forest
            .node(at)
            .map_or(0, |node| 1 + depth(forest, node.left).max(depth(forest, node.right)))
    }
    let (mut forest, mut root) = (Forest::new(), NONE);
    for at in 0..10_000 {
        forest.reserve(at);
        forest.insert(&mut root, at, u64::from(at), 0);
    }
    // A perfect tree has 14 levels; a treap of as many random ranks has about 2.5 times as many.
    assert!(depth(&forest, root) < 60, "{} levels", depth(&forest, root));
}
