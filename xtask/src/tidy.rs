//! `cargo xtask tidy`: checks the style rules that a program can check.

mod docs;
mod figures;
pub(crate) mod files;
mod graph;
mod scan;
mod source;

use crate::steps::Outcome;
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;

/// The findings: errors fail the check, notes only inform.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    errors: Vec<String>,
    notes: Vec<String>,
    files: usize,
}

impl Findings {
    fn error(&mut self, text: String) {
        self.errors.push(text);
    }

    fn note(&mut self, text: String) {
        self.notes.push(text);
    }
}

pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let findings = check(root);
    println!("tidy: {}", summary(&findings));
    Ok(if findings.errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(crate) fn step(root: &Path) -> Outcome {
    let findings = check(root);
    match findings.errors.len() {
        0 => Outcome::passed(&summary(&findings)),
        _ => Outcome::failed(&summary(&findings)),
    }
}

fn check(root: &Path) -> Findings {
    let mut findings = Findings::default();
    source::check(root, &mut findings);
    graph::check(root, &mut findings);
    docs::check(root, &mut findings);
    figures::check(root, &mut findings);
    for note in &findings.notes {
        println!("note: {note}");
    }
    for error in &findings.errors {
        println!("error: {error}");
    }
    findings
}

fn summary(findings: &Findings) -> String {
    let (errors, notes) = (findings.errors.len(), findings.notes.len());
    format!("{} files, {errors} errors, {notes} notes", findings.files)
}
