//! The example scenarios at many seeds.

// One module, so that the helpers too are tests to the lints.
#[cfg(test)]
#[path = "scenario_files"]
mod scenario_files {
    mod seeds;
}
