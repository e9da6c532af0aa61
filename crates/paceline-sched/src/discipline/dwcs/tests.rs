use super::*;
use core::cmp::Ordering;
use std::vec::Vec;

/// Returns every tolerance with a window of at most `y_max`, 0/0 first.
fn tolerances(y_max: u32) -> Vec<LossTolerance> {
    let mut all = std::vec![LossTolerance::EDF];
    for y in 1..=y_max {
        all.extend((0..=y).filter_map(|x| LossTolerance::new(x, y).ok()));
    }
    all
}

/// A head as in the precedence tables: deadline, x', y'.
type Seen = (u64, u32, u32);

/// N2 to N4 as in the table.
fn by_constraint((_, x1, y1): Seen, (_, x2, y2): Seen) -> Ordering {
    if x1 == 0 && x2 == 0 {
        return y2.cmp(&y1);
    }
    let (a, b) = (u64::from(x1) * u64::from(y2), u64::from(x2) * u64::from(y1));
    if x1 == 0 || x2 == 0 { x1.min(1).cmp(&x2.min(1)) } else { a.cmp(&b).then(x1.cmp(&x2)) }
}

fn later(a: Seen, b: Seen) -> Ordering {
    a.0.cmp(&b.0).then(by_constraint(a, b))
}

fn original(a: Seen, b: Seen) -> Ordering {
    let ratio = |(_, x, y): Seen| (u64::from(x), u64::from(y));
    let ((x1, y1), (x2, y2)) = (ratio(a), ratio(b));
    match (x1, x2) {
        (0, 0) => y2.cmp(&y1).then(a.0.cmp(&b.0)),
        (0, _) => Ordering::Less,
        (_, 0) => Ordering::Greater,
        _ => (x1 * y2).cmp(&(x2 * y1)).then(a.0.cmp(&b.0)).then(x1.cmp(&x2)),
    }
}

/// Returns heads whose deadlines and constraints are as close to each other as possible.
fn heads() -> Vec<Seen> {
    const MOST: u32 = LossTolerance::Y_MAX;
    let mut constraints: Vec<_> = tolerances(5).iter().map(|l| (l.x(), l.y())).collect();
    constraints.extend([(0, u32::MAX), (0, MOST + 1), (1, MOST), (1, MOST - 1), (2, MOST)]);
    constraints.extend([(MOST, MOST), (MOST - 1, MOST), (MOST - 2, MOST - 1), (MOST / 2, MOST)]);
    let deadlines = [0, 1, u64::MAX - 1, u64::MAX];
    let with = |d| constraints.iter().map(move |&(x, y)| (d, x, y));
    deadlines.into_iter().flat_map(with).collect()
}

/// P2 and P8: one word contains the whole order, and the order is total.
#[test]
fn packed_keys_order_heads_like_the_tables() {
    let heads = heads();
    for &a in &heads {
        for &b in &heads {
            let deadline = |seen: Seen| Instant::from_nanos(seen.0);
            let words = |order: fn(Instant, u32, u32) -> u128| {
                (order(deadline(a), a.1, a.2), order(deadline(b), b.1, b.2))
            };
            let (word_a, word_b) = words(later_order);
            assert_eq!(word_a.cmp(&word_b), later(a, b), "N: {a:?} {b:?}");
            assert!(word_a < 1 << 126);
            let (word_a, word_b) = words(original_order);
            assert_eq!(word_a.cmp(&word_b), original(a, b), "O: {a:?} {b:?}");
            assert!(word_a < 1 << 126);
        }
    }
}

#[test]
fn constraints_rank_by_the_table() {
    // N2: lowest ratio first; N3: of zeros the highest y', 0/0 last; N4: of equals the lowest x'.
    let ranked =
        [(0, u32::MAX), (0, 3), (0, 1), (0, 0), (1, 4), (2, 8), (1, 2), (2, 4), (1, 1), (2, 2)];
    let words: Vec<_> = ranked.iter().map(|&(x, y)| later_order(Instant::ZERO, x, y)).collect();
    assert!(words.is_sorted_by(|a, b| a < b), "{words:?}");
}

#[test]
fn rule_a_counts_down_and_opens_a_new_window() {
    let loss = LossTolerance::new(1, 3).unwrap();
    let mut window = Window::open(loss);
    for expected in [(1, 2), (1, 1), (1, 3)] {
        window.handle_met(loss);
        assert_eq!((window.x(), window.y), expected);
    }
    // O: at x' = y' service changes nothing.
    for expected in [(1, 2), (1, 1), (1, 1)] {
        window.handle_met_original(loss);
        assert_eq!((window.x(), window.y), expected);
    }
    let mut edf = Window::open(LossTolerance::EDF);
    edf.handle_met(LossTolerance::EDF);
    edf.handle_missed(LossTolerance::EDF, 7, RuleSet::Later);
    edf.handle_missed(LossTolerance::EDF, 7, RuleSet::Original);
    assert_eq!((edf.x(), edf.y, edf.tagged()), (0, 0, false));
}

#[test]
fn a_violation_tags_until_the_next_service_in_time() {
    let loss = LossTolerance::new(1, 3).unwrap();
    let mut window = Window::open(loss);
    for (expected, tagged) in [((0, 2), false), ((0, 3), true), ((0, 4), true)] {
        window.handle_missed(loss, 1, RuleSet::Later);
        assert_eq!((window.x(), window.y, window.tagged()), (expected.0, expected.1, tagged));
    }
    window.handle_met(loss);
    assert_eq!((window.x(), window.y, window.tagged()), (1, 3, false));
}

#[test]
fn the_original_rules_raise_the_denominator_in_larger_steps() {
    let loss = LossTolerance::new(2, 8).unwrap();
    let mut window = Window::open(loss);
    for expected in [(1, 7), (0, 6), (0, 10), (0, 14)] {
        window.handle_missed(loss, 1, RuleSet::Original);
        assert_eq!((window.x(), window.y, window.tagged()), (expected.0, expected.1, false));
    }
    let mut strict = Window::open(LossTolerance::NONE);
    strict.handle_missed(LossTolerance::NONE, 3, RuleSet::Original);
    assert_eq!((strict.x, strict.y), (0, 4));
}

#[test]
fn missing_many_deadlines_at_once_equals_missing_them_one_by_one() {
    for rules in [RuleSet::Later, RuleSet::Original] {
        for loss in tolerances(6) {
            for (served, missed) in (0..6).flat_map(|served| (0..30).map(move |m| (served, m))) {
                let mut at_once = Window::open(loss);
                (0..served).for_each(|_| match rules {
                    RuleSet::Later => at_once.handle_met(loss),
                    RuleSet::Original => at_once.handle_met_original(loss),
                });
                let mut one_by_one = at_once;
                at_once.handle_missed(loss, missed, rules);
                (0..missed).for_each(|_| one_by_one.handle_missed(loss, 1, rules));
                let state = |window: Window| (window.x(), window.y, window.tagged());
                assert_eq!(state(at_once), state(one_by_one), "{loss} {served} {missed}");
            }
        }
    }
}

#[test]
fn the_denominator_saturates() {
    for rules in [RuleSet::Later, RuleSet::Original] {
        let mut window = Window::open(LossTolerance::NONE);
        window.handle_missed(LossTolerance::NONE, u64::MAX, rules);
        window.handle_missed(LossTolerance::NONE, 1, rules);
        assert_eq!((window.x(), window.y), (0, u32::MAX));
    }
}
