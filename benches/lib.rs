//! Criterion benchmarks of the scheduling core and of shared objects: `cargo bench --manifest-path benches/Cargo.toml`.

pub mod world;
