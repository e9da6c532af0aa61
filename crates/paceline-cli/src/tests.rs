//! The commands that help texts, the documentation and messages show are valid.

use super::*;
use clap::error::ErrorKind;
use std::path::{Path, PathBuf};

#[test]
fn the_command_line_definition_is_consistent() {
    command_line().debug_assert();
}

/// Splits a line of a shell into the words of its `paceline` commands.
fn commands(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut words, mut word, mut quote) = (Vec::new(), Vec::new(), None, None);
    for c in line.chars().chain(['\n']) {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_with(String::new);
            }
            (None, ' ' | '\n' | '|' | '&' | ';' | '>' | '<') => {
                words.extend(word.take());
                if c != ' ' {
                    all.push(core::mem::take(&mut words));
                }
            }
            (None, '#') if word.is_none() => break,
            (_, c) => word.get_or_insert_with(String::new).push(c),
        }
    }
    all.push(words);
    all.retain(|words: &Vec<String>| words.first().is_some_and(|word| word == "paceline"));
    all
}

/// Checks the commands of a shell script and returns their number.
fn check(script: &str, from: &str) -> usize {
    let mut checked = 0;
    for words in script.replace("\\\n", "").lines().flat_map(commands) {
        let parsed = Cli::try_parse_from(&words);
        let error = parsed.err().filter(|error| error.use_stderr());
        assert!(error.is_none(), "{from}: {words:?}: {error:?}");
        checked += 1;
    }
    checked
}

#[test]
fn every_command_of_the_documentation_is_valid() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let folders = ["guides", "reference", "concepts", "."].map(|name| format!("{docs}/{name}"));
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let pages = entries.map(|entry| entry.unwrap().path());
    let pages = pages.filter(|page| page.extension().is_some_and(|end| end == "md"));
    let mut checked = 0;
    for page in pages.chain([PathBuf::from(format!("{docs}/../README.md"))]) {
        let text = std::fs::read_to_string(&page).unwrap();
        let blocks = text.split("```sh\n").skip(1);
        for block in blocks.filter_map(|rest| rest.split("```").next()) {
            checked += check(block, &page.display().to_string());
        }
    }
    assert!(checked > 100, "{checked} commands");
}

#[test]
fn every_command_of_the_help_is_valid() {
    fn of(command: &clap::Command) -> usize {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let here = check(&help, command.get_name());
        here + command.get_subcommands().map(of).sum::<usize>()
    }
    let checked = of(&command_line());
    assert!(checked > 20, "{checked} commands");
}

/// Returns all Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Returns the words that follow `paceline` in the strings of a source text, each up to a punctuation mark.
fn mentions(source: &str) -> Vec<Vec<String>> {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    // A backslash at the end of a line continues a string without the spaces of the next line, and an escaped one
    // continues a command of a shell.
    let mut text = String::new();
    for line in code {
        match text.strip_suffix(r"\\").or(text.strip_suffix('\\')).map(str::len) {
            Some(end) => {
                text.truncate(end);
                text.push_str(line.trim_start());
            }
            None => text.push_str(&format!("\n{line}")),
        }
    }
    let ends = |c: char| "\n\"`;()".contains(c);
    let after = text.match_indices("paceline ").filter(|(at, _)| {
        let before = text[..*at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "-_/.".contains(c))
    });
    let words = after.map(|(at, _)| {
        let sentence = text[at..].split(ends).next().unwrap_or_default();
        let mut words = Vec::new();
        for word in sentence.split_whitespace() {
            words.push(word.trim_end_matches([',', '.', ':']).replace('\'', ""));
            if word.ends_with([',', '.', ':']) {
                break;
            }
        }
        words
    });
    words.collect()
}

/// Returns true if the words name a command and flags of it, without values.
fn names_flags(words: &[String]) -> bool {
    let line = command_line();
    let command = words.get(1).and_then(|name| line.find_subcommand(name));
    let has = |flag: &String| {
        let name = flag.strip_prefix("--");
        name.is_some_and(|name| {
            command.is_some_and(|it| it.get_arguments().any(|arg| arg.get_long() == Some(name)))
        })
    };
    words.len() > 2 && words[2..].iter().all(has)
}

/// Returns true if a command is valid that begins with `paceline` and continues at least to the last flag of `words`, or if
/// they name flags only.
fn is_valid(words: &[String]) -> bool {
    if names_flags(words) {
        return true;
    }
    let flag = words.iter().rposition(|word| word.starts_with('-')).unwrap_or(1);
    let named = |word: &String| if word.contains('{') { "1".to_owned() } else { word.clone() };
    (flag + 1..=words.len()).any(|end| {
        let words: Vec<String> = words[..end].iter().map(named).collect();
        match Cli::try_parse_from(&words) {
            Ok(_) => true,
            Err(error) => {
                let lacks = matches!(
                    error.kind(),
                    ErrorKind::MissingRequiredArgument
                        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                );
                // The name of a command in a sentence has no arguments.
                error.kind() == ErrorKind::DisplayHelp || lacks && end <= 3 && flag == 1
            }
        }
    })
}

#[test]
fn every_command_that_a_message_names_is_valid() {
    let mut files = Vec::new();
    for name in ["paceline", "paceline-cli", "paceline-http", "paceline-tool"] {
        sources(Path::new(&format!("{}/../{name}/src", env!("CARGO_MANIFEST_DIR"))), &mut files);
    }
    let names: Vec<String> =
        command_line().get_subcommands().map(|it| it.get_name().to_owned()).collect();
    let (mut checked, mut wrong) = (0, Vec::new());
    for file in files.iter().filter(|file| !file.ends_with("tests.rs")) {
        for words in mentions(&std::fs::read_to_string(file).unwrap()) {
            if words.get(1).is_some_and(|word| names.contains(word)) {
                checked += 1;
                if !is_valid(&words) {
                    wrong.push(format!("{}: {}", file.display(), words.join(" ")));
                }
            }
        }
    }
    assert!(checked > 40, "{checked} commands");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_wrong_command_in_a_message_is_found() {
    let valid = |text: &str| mentions(text).iter().all(|words| is_valid(words));
    assert!(valid("\"create one with paceline trust init, or give --dir\""));
    assert!(valid("\"paceline ls shows the losses of \\\n   the link\""));
    assert!(valid("\"the option of paceline node --buffer.\""));
    assert!(!valid("\"the option of paceline pub --stdin.\""));
    assert!(!valid("\"try paceline pub a --stdin\""));
    assert!(!valid("\"try paceline sub a \\\n   --no-such-flag\""));
}

#[test]
fn the_help_fits_one_screen() {
    let mut line = command_line();
    line.build();
    let visible = line.get_subcommands().filter(|command| !command.is_hide_set()).count();
    assert!((10..=20).contains(&visible), "{visible} commands");
    let help = line.render_help().to_string();
    assert!((24..=40).contains(&help.lines().count()), "{help}");
}
