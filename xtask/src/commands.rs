//! Checks that the commands in the documents exist, with all their flags.

use crate::steps::Outcome;
use crate::tidy::files;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

const XTASK: &[&str] = &["test", "demo", "impair", "tidy", "long", "dist", "web", "python"];

/// A command line: the words after the program's name up to the first flag, and the flags.
#[derive(Debug, Eq, PartialEq)]
struct Shown {
    program: &'static str,
    words: Vec<String>,
    flags: Vec<String>,
}

pub(crate) fn step(root: &Path) -> Outcome {
    let binaries = [crate::web::binary(root), crate::web::lab(root)];
    if let Some(lack) = binaries.iter().find(|binary| !binary.is_file()) {
        return Outcome::failed(&format!("{} was not built", lack.display()));
    }
    let mut help = BTreeMap::new();
    let (mut commands, mut wrong) = (0_usize, Vec::new());
    for path in files::with_extension(root, "md") {
        let name = files::relative(root, &path);
        for shown in fs::read_to_string(&path).unwrap_or_default().lines().scan(false, in_code) {
            let Some(shown) = shown.and_then(parse) else { continue };
            commands += 1;
            if let Some(problem) = problem(root, &shown, &mut help) {
                println!("{name}: {problem}");
                wrong.push(problem);
            }
        }
    }
    match wrong.len() {
        0 => Outcome::passed(&format!("{commands} commands in documents exist")),
        n => Outcome::failed(&format!("{n} of {commands} commands in documents do not exist")),
    }
}

/// Returns the line if it is within a fenced block.
#[expect(clippy::unnecessary_wraps, reason = "the shape that Iterator::scan asks for")]
fn in_code<'a>(inside: &mut bool, line: &'a str) -> Option<Option<&'a str>> {
    if line.trim_start().starts_with("```") {
        *inside = !*inside;
        return Some(None);
    }
    Some(inside.then_some(line))
}

fn parse(line: &str) -> Option<Shown> {
    let line = line.trim().trim_start_matches("$ ");
    let line = line.split(" #").next().unwrap_or_default();
    let line = line.split(['|', '>', '&', ';']).next().unwrap_or_default();
    let programs =
        [("cargo xtask ", "xtask"), ("paceline ", "paceline"), ("paceline-lab ", "paceline-lab")];
    let (program, rest) =
        programs.into_iter().find_map(|(start, name)| Some((name, line.strip_prefix(start)?)))?;
    let plain = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let words = rest.split_whitespace();
    let commands = words.clone().take_while(|word| plain(word) && !word.starts_with('-'));
    let flags = words.filter(|word| word.starts_with("--") && word.len() > 2);
    let flags = flags.map(|flag| flag.split('=').next().unwrap_or(flag).to_owned()).collect();
    Some(Shown { program, words: commands.map(str::to_owned).collect(), flags })
}

fn problem(root: &Path, shown: &Shown, help: &mut BTreeMap<String, String>) -> Option<String> {
    let command = shown.words.join(" ");
    let Some(first) = shown.words.first() else {
        let known = ["--help", "--version"];
        let flag = shown.flags.iter().find(|flag| !known.contains(&flag.as_str()));
        return flag.map(|flag| format!("'{}' has no {flag}", shown.program));
    };
    if shown.program == "xtask" {
        let known = XTASK.contains(&first.as_str());
        return (!known).then(|| format!("'cargo xtask {command}' does not exist"));
    }
    let program = shown.program;
    let binary = match program {
        "paceline-lab" => crate::web::lab(root),
        _ => crate::web::binary(root),
    };
    // A tag may be a plain word too ("paceline sub camera"), so only the first word is certainly a
    // command. `bench` has subcommands.
    let depth = if first == "bench" { 2 } else { 1 };
    let words = shown.words.iter().take(depth).cloned().collect::<Vec<_>>();
    let command = format!("{program} {}", words.join(" "));
    let text = help.entry(command.clone()).or_insert_with(|| help_of(&binary, &words));
    if text.is_empty() {
        return Some(format!("'{command}' does not exist"));
    }
    let known =
        |flag: &str| text.split([' ', ',', '=', '\n', '[', ']', '<', '>']).any(|word| word == flag);
    let flag = shown.flags.iter().find(|flag| !known(flag));
    flag.map(|flag| format!("'{command}' has no {flag}"))
}

/// Returns the help text of a command, or an empty text if the command does not exist.
fn help_of(binary: &Path, words: &[String]) -> String {
    match Command::new(binary).args(words).arg("--help").output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(program: &'static str, words: &[&str], flags: &[&str]) -> Option<Shown> {
        let own = |list: &[&str]| list.iter().map(|&word| word.to_owned()).collect();
        Some(Shown { program, words: own(words), flags: own(flags) })
    }

    #[test]
    fn commands_and_flags_are_found() {
        assert_eq!(parse("cargo xtask demo"), shown("xtask", &["demo"], &[]));
        assert_eq!(
            parse("$ paceline sub robot/** --max-hz 10 --loss=1/10 | head # ten"),
            shown("paceline", &["sub"], &["--max-hz", "--loss"])
        );
        assert_eq!(
            parse("  paceline-lab bench main-job --quick"),
            shown("paceline-lab", &["bench", "main-job"], &["--quick"])
        );
        assert_eq!(parse("let node = paceline::Node::open()?;"), None);
    }

    #[test]
    fn only_fenced_lines_count() {
        let text = "paceline a\n```sh\npaceline b\n```\npaceline c\n";
        let lines: Vec<&str> = text.lines().scan(false, in_code).flatten().collect();
        assert_eq!(lines, ["paceline b"]);
    }
}
