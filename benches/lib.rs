//! Criterion benchmarks of the scheduling core: `cargo bench --manifest-path benches/Cargo.toml`.
