//! DWCS against a naive scheduler written straight from the later rules (West & Poellabauer RTSS 2000).

use paceline_sched::contract::Contract;
use paceline_sched::discipline::{Policy, WindowState};
use proptest::prelude::*;
use script::{Pair, life};
use std::cmp::Ordering;
use twin::{Rank, Rules};

#[path = "support/script.rs"]
#[expect(clippy::indexing_slicing, reason = "a test may panic")]
mod script;
#[path = "support/twin.rs"]
#[expect(clippy::indexing_slicing, dead_code, reason = "may panic; no rule of DWCS asks for T")]
mod twin;

/// x', y', tagged.
type Current = (u32, u32, bool);

struct LaterRules;

impl Rules for LaterRules {
    type Window = Current;

    fn open(contract: &Contract) -> Current {
        (contract.loss.x(), contract.loss.y(), false)
    }

    fn met((x, y, tagged): &mut Current, contract: &Contract) {
        if *y > *x {
            *y -= 1;
        } else if *y == *x && *x > 0 {
            *x -= 1;
            *y -= 1;
        }
        if (*x == 0 && *y == 0) || *tagged {
            (*x, *y) = (contract.loss.x(), contract.loss.y());
        }
        *tagged = false;
    }

    fn missed((x, y, tagged): &mut Current, contract: &Contract, _first: bool) {
        if *x > 0 {
            *x -= 1;
            *y -= 1;
            if *x == 0 && *y == 0 {
                (*x, *y) = (contract.loss.x(), contract.loss.y());
            }
        } else if contract.loss.y() > 0 {
            *y += 1;
            *tagged = true;
        }
    }

    fn order(a: &Rank<Current>, b: &Rank<Current>) -> Ordering {
        let ((x1, y1, _), (x2, y2, _)) = (a.window, b.window);
        if a.deadline != b.deadline {
            return a.deadline.cmp(&b.deadline);
        }
        if x1 == 0 && x2 == 0 {
            return y2.cmp(&y1);
        }
        if x1 * y2 != x2 * y1 {
            return (x1 * y2).cmp(&(x2 * y1));
        }
        // A zero beside 0/0 was settled above, so the ratios are equal and not zero.
        x1.cmp(&x2)
    }

    fn state(&(x, y, tagged): &Current) -> WindowState {
        WindowState { x, y, tagged }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn dwcs_does_what_its_rules_say((eligibility, events) in life()) {
        let mut pair = Pair::<LaterRules>::new(Policy::DWCS, eligibility);
        for event in &events {
            pair.step(event)?;
        }
    }
}
