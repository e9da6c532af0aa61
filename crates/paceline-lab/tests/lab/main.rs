//! Tests of the built command in separate processes, each on a simulated host.
#![cfg(test)]

#[path = "../../../paceline-cli/tests/cli/host.rs"]
#[expect(dead_code, reason = "the tests of `paceline` use more of it")]
mod host;
mod impair;
mod schedule;
mod soak;

/// The program under test.
const BINARY: &str = env!("CARGO_BIN_EXE_paceline-lab");
