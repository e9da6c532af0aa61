//! VDS against a naive scheduler written straight from its formula (Zhang, West & Qi RTSS 2004).

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
#[expect(clippy::indexing_slicing, reason = "a test may panic")]
mod twin;

/// k': samples left. m': services owed.
type Current = (u32, u32);

struct Formula;

impl Formula {
    fn step((left, owed): &mut Current, contract: &Contract, served: bool) {
        if contract.loss.y() == 0 {
            return;
        }
        *left -= 1;
        if served {
            *owed = owed.saturating_sub(1);
        }
        if *left == 0 {
            (*left, *owed) = Self::open(contract);
        }
    }

    /// Vd as a fraction; `None` if nothing is owed.
    fn virtual_deadline(rank: &Rank<Current>) -> Option<(i128, i128)> {
        let (left, owed) = rank.window;
        let (deadline, period) =
            (i128::from(rank.deadline), i128::from(rank.contract.period.as_nanos()));
        if rank.contract.loss.y() == 0 {
            return Some((deadline, 1));
        }
        let owed = i128::from(owed);
        // d + (k'/m' − 1)·T, times m'.
        (owed > 0).then_some((deadline * owed + (i128::from(left) - owed) * period, owed))
    }
}

impl Rules for Formula {
    type Window = Current;

    fn open(contract: &Contract) -> Current {
        (contract.loss.y(), contract.loss.y() - contract.loss.x())
    }

    fn met(window: &mut Current, contract: &Contract) {
        Self::step(window, contract, true);
    }

    fn missed(window: &mut Current, contract: &Contract, first: bool) {
        if first {
            Self::step(window, contract, false);
        }
    }

    fn order(a: &Rank<Current>, b: &Rank<Current>) -> Ordering {
        match (Self::virtual_deadline(a), Self::virtual_deadline(b)) {
            (Some((n1, d1)), Some((n2, d2))) => (n1 * d2).cmp(&(n2 * d1)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => a.deadline.cmp(&b.deadline),
        }
    }

    fn state(&(left, owed): &Current) -> WindowState {
        WindowState { x: left.saturating_sub(owed), y: left, tagged: false }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn vds_does_what_its_formula_says((eligibility, events) in life()) {
        let mut pair = Pair::<Formula>::new(Policy::Vds, eligibility);
        for event in &events {
            pair.step(event)?;
        }
    }
}
