//! `cargo xtask tidy`: checks the style rules that a program can check.

mod architecture;
mod docs;
mod figures;
pub(crate) mod files;
mod graph;
mod language;
mod modules;
mod names;
mod ratchet;
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
    /// Groups that exceed a limit and are accepted for now.
    accepted: Vec<String>,
    /// Values of the ratchet that can be lowered.
    lower: Vec<String>,
    files: usize,
}

impl Findings {
    fn error(&mut self, text: String) {
        self.errors.push(text);
    }

    fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    fn lower(&mut self, text: String) {
        self.lower.push(text);
    }
}

/// The options of the command.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Options {
    /// Print the figures of all groups, and the places that are accepted for now.
    figures: bool,
    /// Lower the values of the ratchet to the present ones.
    lower: bool,
}

impl Options {
    /// Returns the unknown option if there is one.
    pub(crate) fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        for arg in args {
            match arg.as_str() {
                "--figures" => options.figures = true,
                "--lower" => options.lower = true,
                other => {
                    return Err(format!("tidy has no option '{other}'; try --figures or --lower"));
                }
            }
        }
        Ok(options)
    }
}

pub(crate) fn run(root: &Path, options: Options) -> Result<ExitCode> {
    let (findings, accepted) = check(root, options);
    if options.lower {
        ratchet::write(root, &accepted)?;
    }
    println!("tidy: {}", summary(&findings));
    Ok(if findings.errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(crate) fn step(root: &Path) -> Outcome {
    let (findings, _) = check(root, Options::default());
    match findings.errors.len() {
        0 => Outcome::passed(&summary(&findings)),
        _ => Outcome::failed(&summary(&findings)),
    }
}

/// Runs every check and prints the findings. Also returns the new values of the ratchet.
fn check(root: &Path, options: Options) -> (Findings, ratchet::Accepted) {
    let mut findings = Findings::default();
    source::check(root, &mut findings);
    graph::check(root, &mut findings);
    architecture::check(root, &mut findings);
    docs::check(root, &mut findings);
    figures::check(root, &mut findings);
    let mut measures = language::measures(root, options.figures);
    measures.extend(modules::measures(root));
    measures.extend(names::measures(root));
    let accepted = ratchet::check(root, &measures, options.figures, &mut findings);
    if !findings.accepted.is_empty() {
        findings.note(format!("above their limits: {}", findings.accepted.join(", ")));
    }
    if !findings.lower.is_empty() && !options.lower {
        let values = findings.lower.join("; ");
        findings.note(format!("`cargo xtask tidy --lower` can lower the ratchet: {values}"));
    }
    for note in &findings.notes {
        println!("note: {note}");
    }
    for error in &findings.errors {
        println!("error: {error}");
    }
    (findings, accepted)
}

fn summary(findings: &Findings) -> String {
    let (errors, notes) = (findings.errors.len(), findings.notes.len());
    format!("{} files, {errors} errors, {notes} notes", findings.files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_options_are_reported() {
        let parse = |args: &[&str]| {
            Options::parse(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(parse(&[]), Ok(Options::default()));
        assert_eq!(parse(&["--lower", "--figures"]), Ok(Options { figures: true, lower: true }));
        assert!(parse(&["--raise"]).is_err_and(|problem| problem.contains("'--raise'")));
    }
}
