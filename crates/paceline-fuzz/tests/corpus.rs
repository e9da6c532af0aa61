//! Runs every file of the corpus, and mutations of it, through its body.
//!
//! A failing input is printed in hexadecimal with the seed of its mutation. To keep it, write its bytes to
//! `fuzz/corpus/<body>/regression-<name>`.
#![cfg(test)]

use paceline_fuzz::mutate::{Xorshift, mutate};
use paceline_fuzz::{BODIES, FuzzBody};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The size limit of the whole corpus, in bytes.
const CORPUS_BYTES_MAX: usize = 200_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Returns the seeds of a body by name.
fn seeds(body: &FuzzBody) -> Vec<(String, Vec<u8>)> {
    let folder = root().join("corpus").join(body.name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut seeds: Vec<_> = entries
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    seeds.sort();
    seeds
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn run(body: &FuzzBody, what: &str, bytes: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| (body.run)(bytes))).is_err() {
        panic!("body {}, {what}, {} bytes: {}", body.name, bytes.len(), hex(bytes));
    }
}

/// Runs the seeds of a body, then mutations of them.
fn run_body(name: &str) {
    let body = BODIES.iter().find(|body| body.name == name).unwrap();
    let (seeds, began) = (seeds(body), Instant::now());
    for (name, bytes) in &seeds {
        run(body, &format!("seed {name}"), bytes);
    }
    let mut number = 0;
    for (name, bytes) in &seeds {
        for _ in 0..body.mutations {
            number += 1;
            let mut chance = Xorshift::new(number);
            let (_, other) = &seeds[usize::try_from(number).unwrap() % seeds.len()];
            let wrong = mutate(bytes, other, &mut chance);
            run(body, &format!("mutation {number} of seed {name}"), &wrong);
        }
    }
    let (count, took) = (seeds.len(), began.elapsed());
    let line = format!("corpus: {}: {count} seeds, {number} mutations, {took:.1?}", body.name);
    // Prints past the test harness, which would capture the line.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Declares one test per body and checks that no body lacks one.
macro_rules! bodies {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            run_body(stringify!($name));
        })*

        #[test]
        fn every_body_has_a_test_and_seeds_and_a_target() {
            let tested = [$(stringify!($name)),*];
            assert_eq!(BODIES.iter().map(|body| body.name).collect::<Vec<_>>(), tested);
            let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
            for name in tested {
                assert!(manifest.contains(&format!("name = \"{name}\"\n")), "{name}");
                let target = root().join("fuzz_targets").join(format!("{name}.rs"));
                let target = fs::read_to_string(&target).unwrap();
                assert!(target.contains(&format!("paceline_fuzz::{name}(data)")), "{name}");
            }
        }
    };
}

bodies!(
    frame, segments, receiver, control, tags, link, repair, ingress, sched, encoding, jpeg, mjpeg,
    y4m, ros, png, wav, sound, ulog, h264, recording, schedule, rtp, camera, player, packetize,
    film, browser, webrtc
);

#[test]
fn the_corpus_is_small_and_has_no_folder_without_a_body() {
    let bytes: usize = BODIES.iter().flat_map(seeds).map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes <= CORPUS_BYTES_MAX, "{bytes} bytes");
    for entry in fs::read_dir(root().join("corpus")).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(BODIES.iter().any(|body| body.name == name), "{name:?} is the corpus of no body");
    }
}
