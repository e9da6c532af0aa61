//! Compares the parts with their reference models on random histories.
//!
//! A failing history is shrunk and printed. Every run uses the same histories.
#![cfg(test)]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::Cell;
use std::io::Write as _;
use std::time::Instant;

/// Runs `cases` histories of up to `bytes_max` bytes and prints their number.
fn histories(part: &str, cases: u32, bytes_max: usize, body: fn(&[u8])) {
    let (began, count) = (Instant::now(), Cell::new(0u64));
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let chance = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let result =
        TestRunner::new_with_rng(config, chance).run(&vec(any::<u8>(), 0..bytes_max), |bytes| {
            count.set(count.get() + 1);
            body(&bytes);
            Ok(())
        });
    if let Err(error) = result {
        panic!("{part}: {error}");
    }
    assert_eq!(count.get(), u64::from(cases));
    let line = format!("models: {part}: {} histories, {:.1?}", count.get(), began.elapsed());
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[test]
fn ingress_agrees_with_its_model() {
    histories("ingress", 50_000, 200, paceline_fuzz::ingress);
}

#[test]
fn link_and_receiver_agree_with_their_models() {
    histories("link", 50_000, 300, paceline_fuzz::link);
}

#[test]
fn each_sample_arrives_at_most_once_and_in_order_under_any_loss() {
    histories("repair", 3_000, 300, paceline_fuzz::repair);
}

#[test]
fn runs_in_virtual_time_keep_their_recorded_results() {
    histories("schedule", 20_000, 120, paceline_fuzz::schedule);
}
