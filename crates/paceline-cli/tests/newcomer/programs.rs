//! The README's example programs.

use crate::host::{Host, Running};
use crate::readme::{Readme, root};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs the Rust lines as the example `hello` of this workspace: a separate project would compile Zenoh
/// again, which takes minutes.
pub(crate) fn in_rust(host: &Host, readme: &Readme) {
    readme.contains("cargo build --workspace --example hello && target/debug/examples/hello");
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

/// Runs the Python lines with the interpreter that `cargo xtask python` creates; prints a note and skips if
/// there is none.
pub(crate) fn in_python(host: &Host, readme: &Readme) {
    readme.contains("cargo xtask python && target/python/bin/python hello.py");
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

/// Runs a program that publishes one picture and receives it.
fn runs(host: &Host, mut program: Command) {
    for (key, value) in host.command(&[]).get_envs().filter_map(|(key, value)| Some((key, value?)))
    {
        program.env(key, value);
    }
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = Running::gathered(program.spawn().expect("it starts")).ended();
    assert_eq!(ended.code, Some(0), "if the package is old, cargo xtask python: {ended:?}");
    let output = ended.text();
    assert!(output.starts_with("robot/camera 0 "), "tag, number and age: {output}");
}

/// Returns the number of non-empty lines.
fn code(lines: &str) -> usize {
    lines.lines().filter(|line| !line.trim().is_empty()).count()
}

/// Returns cargo's target folder.
fn target() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_paceline"));
    binary.ancestors().nth(2).expect("a folder").to_owned()
}
