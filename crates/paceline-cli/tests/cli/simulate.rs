//! Scenarios in virtual time: the results of the example files, and errors for invalid ones.

use crate::host::{Ended, Host, arg};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Set this variable to rewrite the snapshots; review the changes before committing.
const REWRITE: &str = "PACELINE_REWRITE_SNAPSHOTS";

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 10, "{files:?}");
    files
}

fn simulate(args: &[&str]) -> Ended {
    let all: Vec<&str> = ["simulate"].iter().chain(args).copied().collect();
    Host::new().run(&all)
}

#[test]
fn every_example_matches_its_snapshot() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    let rewrite = std::env::var_os(REWRITE).is_some();
    let mut changed = Vec::new();
    for file in examples() {
        let ended = simulate(&[arg(&file)]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let snapshot = folder.join(format!("{name}.txt"));
        if rewrite {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&snapshot, ended.text()).unwrap();
        } else if std::fs::read_to_string(&snapshot).unwrap_or_default() != ended.text() {
            changed.push(format!("{name}:\n{}", ended.text()));
        }
    }
    let fix = format!("if that is as it should be: {REWRITE}=1 cargo test --workspace --test cli");
    assert!(changed.is_empty(), "{}\n{fix}", changed.join("\n"));
}

#[test]
fn equal_seeds_give_equal_output_and_others_differ() {
    let file = examples().into_iter().find(|file| file.ends_with("lossy-radio.toml")).unwrap();
    let json = |seed| {
        let ended = simulate(&[arg(&file), "--json", "--seed", seed]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.text()
    };
    let seven = json("7");
    assert_eq!(seven, json("7"));
    let (seven, eight): (Value, Value) =
        (serde_json::from_str(&seven).unwrap(), serde_json::from_str(&json("8")).unwrap());
    assert_eq!((&seven["seed"], &eight["seed"]), (&7.into(), &8.into()));
    assert_ne!(seven["links"], eight["links"]);
    assert!(seven["flows"][0]["delivered"].as_u64().is_some_and(|samples| samples > 900));
}

#[test]
fn many_seeds_are_counted() {
    let file = examples().into_iter().find(|file| file.ends_with("main-job.toml")).unwrap();
    let ended = simulate(&[arg(&file), "--seeds", "3..5"]);
    assert_eq!(
        (ended.code, ended.text().as_str()),
        (Some(0), "main-job: 3 seeds, 0 failed\n"),
        "{ended:?}"
    );
}

#[test]
fn errors_of_a_file_are_reported_by_line() {
    let host = Host::new();
    let file = host.path("wrong.toml");
    std::fs::write(&file, "[[node]]\nname = \"a\"\n[[publisher]]\nnode = \"b\"\nhz = 0\n").unwrap();
    let ended = host.run(&["simulate", arg(&file)]);
    ended.said(2, "wrong.toml:3: publisher 1: tag is missing");
    ended.said(2, "wrong.toml:4: publisher 1: node = \"b\"");
    ended.said(2, "wrong.toml:5: publisher 1: hz = 0: must be from 0.001");
}
