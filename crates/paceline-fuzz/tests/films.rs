//! Random networks with the sizes of recorded films: the short form of what `cargo xtask long` runs.

use paceline_fuzz::films::recorded_films;
use paceline_sim::promises::{PromisesResult, generated_films, run_films};

#[test]
fn contracts_are_kept_with_the_sizes_of_recorded_films() {
    let recorded = recorded_films();
    let films = recorded.unwrap_or_else(|| {
        println!("skipped: the recorded films (PACELINE_DATA is not set); generated ones instead");
        generated_films()
    });
    let pictures: usize = films.iter().map(|film| film.len()).sum();
    let mut all = PromisesResult::default();
    for seed in 0..40 {
        all.add(&run_films(seed, &films).unwrap_or_else(|error| panic!("{error}")));
    }
    println!("{} films of {pictures} pictures: {all}", films.len());
    assert!(all.films > 5_000 && all.films < all.samples, "{all}");
}
