use super::*;
use std::vec::Vec;

fn constraint(x: u32, y: u32) -> Constraint {
    Constraint { x, y }
}

/// Every tolerance with a window of at most `y_max`, 0/0 first.
fn tolerances(y_max: u32) -> Vec<LossTolerance> {
    let mut all = std::vec![LossTolerance::EDF];
    for y in 1..=y_max {
        all.extend((0..=y).filter_map(|x| LossTolerance::new(x, y).ok()));
    }
    all
}

#[test]
fn constraints_rank_by_the_table() {
    // N2: lowest ratio first; N3: of zeros the highest y', 0/0 last; N4: of equals the lowest x'.
    let ranked =
        [(0, u32::MAX), (0, 3), (0, 1), (0, 0), (1, 4), (2, 8), (1, 2), (2, 4), (1, 1), (2, 2)];
    for (i, &(x, y)) in ranked.iter().enumerate() {
        for (j, &(other_x, other_y)) in ranked.iter().enumerate() {
            let order = constraint(x, y).cmp(&constraint(other_x, other_y));
            assert_eq!(order, i.cmp(&j), "{x}/{y} against {other_x}/{other_y}");
        }
    }
}

#[test]
fn the_order_of_constraints_is_total() {
    let mut all: Vec<_> = tolerances(6).iter().map(|l| constraint(l.x(), l.y())).collect();
    all.extend([constraint(0, u32::MAX), constraint(u32::MAX, u32::MAX), constraint(1, u32::MAX)]);
    for &a in &all {
        for &b in &all {
            assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            assert_eq!(a.cmp(&b).is_eq(), a == b);
            for &c in &all {
                assert!(!(a <= b && b <= c) || a <= c, "{a:?} {b:?} {c:?}");
            }
        }
    }
}

#[test]
fn rule_a_counts_down_and_opens_a_new_window() {
    let loss = LossTolerance::new(1, 3).unwrap();
    let mut window = Window::open(loss);
    for expected in [(1, 2), (1, 1), (1, 3)] {
        window.handle_met(loss);
        assert_eq!(window.constraint, constraint(expected.0, expected.1));
    }
    let mut edf = Window::open(LossTolerance::EDF);
    edf.handle_met(LossTolerance::EDF);
    edf.handle_missed(LossTolerance::EDF, 7);
    assert_eq!((edf.constraint, edf.tagged), (constraint(0, 0), false));
}

#[test]
fn a_violation_tags_until_the_next_service_in_time() {
    let loss = LossTolerance::new(1, 3).unwrap();
    let mut window = Window::open(loss);
    for (expected, tagged) in [((0, 2), false), ((0, 3), true), ((0, 4), true)] {
        window.handle_missed(loss, 1);
        assert_eq!(window.constraint, constraint(expected.0, expected.1));
        assert_eq!(window.tagged, tagged);
    }
    window.handle_met(loss);
    assert_eq!((window.constraint, window.tagged), (constraint(1, 3), false));
}

#[test]
fn many_deadlines_at_once_are_as_many_one_by_one() {
    for loss in tolerances(6) {
        for served in 0..6 {
            for missed in 0..30 {
                let mut at_once = Window::open(loss);
                (0..served).for_each(|_| at_once.handle_met(loss));
                let mut one_by_one = at_once;
                at_once.handle_missed(loss, missed);
                (0..missed).for_each(|_| one_by_one.handle_missed(loss, 1));
                assert_eq!(at_once.constraint, one_by_one.constraint, "{loss} {served} {missed}");
                assert_eq!(at_once.tagged, one_by_one.tagged, "{loss} {served} {missed}");
            }
        }
    }
}

#[test]
fn the_denominator_saturates() {
    let mut window = Window::open(LossTolerance::NONE);
    window.handle_missed(LossTolerance::NONE, u64::MAX);
    window.handle_missed(LossTolerance::NONE, 1);
    assert_eq!((window.constraint, window.tagged), (constraint(0, u32::MAX), true));
}
