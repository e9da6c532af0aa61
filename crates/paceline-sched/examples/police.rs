//! Compares policers with naive ones in the given number of random scenarios: `cargo run -p
//! paceline-sched --example police -- FIRST HOW_MANY`.

#[path = "../tests/support/policers.rs"]
#[expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a reference may panic to report a failure"
)]
mod policers;

fn main() {
    let mut numbers = std::env::args().skip(1).map_while(|text| text.parse::<u64>().ok());
    let (Some(first), Some(count)) = (numbers.next(), numbers.next()) else {
        eprintln!("usage: police FIRST_SEED COUNT, for example police 0 1000000");
        std::process::exit(2);
    };
    for seed in first..first.saturating_add(count) {
        if std::panic::catch_unwind(|| policers::scenario(seed)).is_err() {
            eprintln!("scenario({seed}) fails");
            std::process::exit(1);
        }
    }
    println!("{count} histories from seed {first} on: every decision matches the definitions");
}
