//! Shell completions and manual pages, generated from the command line definition.

mod live;

pub(crate) use live::{COMMAND as NAMES, NamesArgs, names};

use crate::command_line;
use anyhow::Context as _;
use clap_complete::Shell;
use clap_mangen::Man;
use paceline_tool::{exit, show};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `paceline completion`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionArgs {
    /// Shell to complete for; bash: paceline completion bash >
    /// ~/.local/share/bash-completion/completions/paceline
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Arguments of `paceline man`.
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Folder for the pages of all commands, such as ~/.local/share/man/man1; defaults to printing the page
    /// of paceline on standard output
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints the completion script of a shell.
pub(crate) fn completion(args: &CompletionArgs) -> anyhow::Result<ExitCode> {
    show::text(&script(args.shell))?;
    Ok(ExitCode::SUCCESS)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(), "paceline", &mut script);
    live::extended(shell, String::from_utf8_lossy(&script).into_owned())
}

/// Prints the manual page, or writes the pages of all commands.
pub(crate) fn man(args: &ManArgs) -> anyhow::Result<ExitCode> {
    let Some(dir) = &args.out else {
        let mut page = Vec::new();
        Man::new(visible()).render(&mut page).context("cannot write the manual page")?;
        show::text(&String::from_utf8_lossy(&page))?;
        return Ok(ExitCode::SUCCESS);
    };
    if !dir.is_dir() {
        let dir = dir.display();
        return Err(exit::usage(format!(
            "--out {dir}: must be a folder that exists; mkdir -p {dir}"
        )));
    }
    clap_mangen::generate_to(visible(), dir)
        .with_context(|| format!("--out {}: cannot write the manual pages", dir.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the command line without hidden commands: completion scripts list them otherwise.
fn visible() -> clap::Command {
    without_hidden("paceline", &command_line())
}

/// Rebuilds a command without its hidden subcommands; clap cannot remove a subcommand.
fn without_hidden(name: &'static str, command: &clap::Command) -> clap::Command {
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let mut visible = clap::Command::new(name)
        .subcommand_required(command.is_subcommand_required_set())
        .args(command.get_arguments().cloned())
        .subcommands(shown);
    if command.get_version().is_some() {
        visible = visible.version(env!("CARGO_PKG_VERSION"));
    }
    if let Some(about) = command.get_about() {
        visible = visible.about(about.clone());
    }
    if let Some(help) = command.get_after_help() {
        visible = visible.after_help(help.clone());
    }
    visible
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the page names of all visible commands, such as `paceline-node`.
    fn names(command: &clap::Command, before: &str) -> Vec<String> {
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        shown
            .flat_map(|command| {
                let name = format!("{before}-{}", command.get_name());
                let below = names(command, &name);
                std::iter::once(name).chain(below)
            })
            .collect()
    }

    #[test]
    fn completions_know_every_command_and_flag() {
        let line = command_line();
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let script = script(shell);
            for command in line.get_subcommands().filter(|command| !command.is_hide_set()) {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
                for flag in command.get_arguments().filter_map(clap::Arg::get_long) {
                    assert!(script.contains(flag), "{shell}: {} {flag}", command.get_name());
                }
            }
            assert!(!script.contains("demo-role"), "{shell}");
        }
    }

    #[test]
    fn every_command_has_a_page() {
        let dir = std::env::temp_dir().join(format!("plm-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        man(&ManArgs { out: Some(dir.clone()) }).unwrap();
        let names = names(&command_line(), "paceline");
        assert!(names.iter().any(|name| name == "paceline-watch"), "{names:?}");
        for name in names.iter().map(String::as_str).chain(["paceline"]) {
            let page = std::fs::read_to_string(dir.join(format!("{name}.1"))).expect(name);
            assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{name}");
        }
        let pages = std::fs::read_dir(&dir).unwrap().count();
        assert_eq!(pages, names.len() + 1, "and no other page");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
