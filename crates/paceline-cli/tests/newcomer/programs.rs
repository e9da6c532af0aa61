//! The README's lines, as programs.

use crate::host::{Host, Running};
use crate::readme::{Readme, root};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The lines as the example `hello`, which is built like everything else here: a project of its own would compile
/// Zenoh once more, for minutes.
pub(crate) fn in_rust(host: &Host, readme: &Readme) {
    readme.says("cargo build --workspace --example hello && target/debug/examples/hello");
    let lines = readme.block("rust");
    assert!(code(&lines) <= 12, "{lines}");
    let example = root().join("crates/paceline/examples/hello.rs");
    let example = std::fs::read_to_string(example).expect("the example");
    let (_, example) = example.split_once("\n\n").expect("what it is, and then the lines");
    assert_eq!(example, lines, "the example is what the README shows");
    let program = target().join("debug/examples/hello");
    if !program.is_file() {
        println!("skipped: the README's lines of Rust (cargo test --workspace builds them)");
        return;
    }
    runs(host, Command::new(program));
}

/// The lines as they stand there, with the Python that `cargo xtask python` has made; skipped by name where there is
/// none.
pub(crate) fn in_python(host: &Host, readme: &Readme) {
    readme.says("cargo xtask python && target/python/bin/python hello.py");
    let lines = readme.block("python");
    assert!(code(&lines) <= 12, "{lines}");
    let python = target().join("python/bin/python");
    if !python.is_file() {
        println!("skipped: the README's lines of Python (cargo xtask python makes the package)");
        return;
    }
    let program = host.path("hello.py");
    std::fs::write(&program, lines).expect("a file");
    let mut run = Command::new(python);
    run.arg(program);
    runs(host, run);
}

/// Runs a program that publishes one picture and gets it.
fn runs(host: &Host, mut program: Command) {
    for (key, value) in host.command(&[]).get_envs().filter_map(|(key, value)| Some((key, value?)))
    {
        program.env(key, value);
    }
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = Running::gathered(program.spawn().expect("it starts")).ended();
    assert_eq!(ended.code, Some(0), "if the package is old, cargo xtask python: {ended:?}");
    let said = ended.text();
    assert!(said.starts_with("robot/camera 0 "), "tag, number and age: {said}");
}

/// Lines that are not empty.
fn code(lines: &str) -> usize {
    lines.lines().filter(|line| !line.trim().is_empty()).count()
}

/// Where cargo builds.
fn target() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_paceline"));
    binary.ancestors().nth(2).expect("a folder").to_owned()
}
