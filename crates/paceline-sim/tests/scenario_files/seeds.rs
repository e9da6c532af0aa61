//! Runs each scenario of examples/scenarios with many seeds and checks all invariants.

use paceline_sched::Duration;
use paceline_sim::scenario::{Plan, oracles, run};
use std::path::{Path, PathBuf};

/// The number of seeds per scenario.
const SEEDS: u64 = 1_000;
/// The same for scenarios with thousands of packets per second, by file name: a run of them takes 5 to 60 times as long.
const FEWER: &[(&str, u64)] = &[
    ("christie-background", 60),
    ("christie-file", 200),
    ("christie-small-packets", 20),
    ("fading-radio", 20),
    ("promised-path", 200),
    ("relay-chain", 300),
];
/// The compressed duration of each scenario in seconds, so that all of them together take a minute or two.
const SECONDS: u64 = 3;
/// Every fourth seed has that duration, and the others this shorter one.
const SHORT_SECONDS: u64 = 1;
/// Seeds that violated an invariant before, by file name. Each is run at full length.
const ONCE_FAILED: &[(&str, u64)] = &[];

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.sort();
    assert!(files.len() >= 10, "{files:?}");
    files
}

fn read(file: &Path) -> Plan {
    let text = std::fs::read_to_string(file).unwrap();
    Plan::read(&text, &file.display().to_string()).unwrap_or_else(|problems| panic!("{problems}"))
}

fn holds(file: &Path, plan: &Plan, seed: u64) {
    // A panic of the simulator has no context, so the last line printed identifies the run.
    println!("{} {seed}", plan.name);
    let again = format!("paceline simulate {} --seed {seed}", file.display());
    let broken = oracles(plan, &run(plan, seed));
    assert!(broken.is_empty(), "{again}: {}", broken.join("\n"));
}

fn oracles_hold(name: &str) {
    let file = files().into_iter().find(|file| file.file_stem().is_some_and(|stem| stem == name));
    let file = file.unwrap_or_else(|| panic!("no file {name}.toml"));
    let plan = read(&file);
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
    (1..=5).for_each(|seed| holds(&file, &plan, seed));
    let squeezed = plan.squeezed(Duration::from_secs(SECONDS));
    let short = plan.squeezed(Duration::from_secs(SHORT_SECONDS));
    let fewer = FEWER.iter().find(|(heavy, _)| *heavy == name);
    for seed in 1..=fewer.map_or(SEEDS, |(_, seeds)| *seeds) {
        holds(&file, if seed % 4 == 0 { &squeezed } else { &short }, seed);
    }
}

/// Declares one test per file, so that they run in parallel.
macro_rules! files {
    ($($test:ident: $name:literal,)*) => {
        $(
            #[test]
            fn $test() {
                oracles_hold($name);
            }
        )*

        #[test]
        fn every_file_has_its_test() {
            let mut names = vec![$($name),*];
            names.sort_unstable();
            let stem = |file: &PathBuf| file.file_stem().unwrap().to_string_lossy().into_owned();
            assert_eq!(files().iter().map(stem).collect::<Vec<_>>(), names);
        }
    };
}

files! {
    bursty_radio: "bursty-radio",
    christie_background: "christie-background",
    christie_file: "christie-file",
    christie_small_packets: "christie-small-packets",
    christie_video: "christie-video",
    clock_drift: "clock-drift",
    crash_restart: "crash-restart",
    fading_radio: "fading-radio",
    flood: "flood",
    link_cut: "link-cut",
    lossy_radio: "lossy-radio",
    main_job: "main-job",
    promised_path: "promised-path",
    relay_chain: "relay-chain",
    stalled_subscriber: "stalled-subscriber",
    steering_loss: "steering-loss",
    thin_link: "thin-link",
    two_paths: "two-paths",
}

#[test]
fn previously_failing_seeds_pass() {
    for file in files() {
        let plan = read(&file);
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        for (_, seed) in ONCE_FAILED.iter().filter(|(failed, _)| *failed == name) {
            holds(&file, &plan, *seed);
        }
    }
}

#[test]
fn recordings_depend_only_on_the_seed() {
    for file in files() {
        let plan = read(&file).squeezed(Duration::from_secs(SECONDS));
        let record = run(&plan, 7);
        assert_eq!(record, run(&plan, 7), "{}", file.display());
        assert_ne!(record, run(&plan, 8), "{}", file.display());
    }
}
