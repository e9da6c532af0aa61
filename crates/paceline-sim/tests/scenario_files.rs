//! The example scenarios with many seeds.

// A single module makes clippy treat the helpers as tests too.
#[cfg(test)]
#[path = "scenario_files"]
mod scenario_files {
    mod seeds;
}
