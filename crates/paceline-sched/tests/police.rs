//! Policers against naive ones with the full history, in random scenarios.

#[path = "support/policers.rs"]
#[expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a reference may panic to report a failure"
)]
mod policers;

use policers::scenario;

/// The number of scenarios of an ordinary run; `cargo run --example police` accepts any number.
const LIVES: u64 = 100_000;

#[test]
fn policers_decide_by_the_definitions_of_their_constraints() {
    for seed in 0..LIVES {
        if std::panic::catch_unwind(|| scenario(seed)).is_err() {
            panic!("scenario({seed}) fails");
        }
    }
}
