//! Completion of the tags and nodes that exist now: each shell runs a hidden command for them.

use crate::config::NodeArgs;
use clap_complete::Shell;
use paceline::{Node, Pattern};
use paceline_tool::show;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The name of the hidden command.
pub(crate) const COMMAND: &str = "complete-names";
/// The name of the node that reads the names. Nodes of earlier completions may still be known.
const READER: &str = "completion";
/// The longest time to wait for the names; a person waits for them.
const WAIT: Duration = Duration::from_millis(600);
/// The names are complete if they have not changed for this time.
const QUIET: Duration = Duration::from_millis(100);
const STEP: Duration = Duration::from_millis(20);
/// The commands whose argument is a tag or pattern.
const COMMANDS: &str = "pub sub pull record set ls watch trace";
/// The options whose values are names, each with the name of its value in the help.
const OPTIONS: &[(&str, &str, Kind)] = &[
    ("with", "TAG", Kind::Tags),
    ("at", "NODE", Kind::Nodes),
    ("hold-at", "NODE", Kind::Nodes),
    ("proxy", "WHERE", Kind::Places),
];

/// The kind of the names.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Kind {
    Tags,
    Nodes,
    /// The values of `--proxy`.
    Places,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Tags, Self::Nodes, Self::Places];

    const fn name(self) -> &'static str {
        match self {
            Self::Tags => "tags",
            Self::Nodes => "nodes",
            Self::Places => "places",
        }
    }
}

/// Arguments of `paceline complete-names`.
#[derive(Debug, clap::Args)]
pub(crate) struct NamesArgs {
    /// The names to print
    kind: Kind,
    #[command(flatten)]
    node: NodeArgs,
}

/// Prints the names, one per line.
pub(crate) fn names(args: &NamesArgs) -> anyhow::Result<ExitCode> {
    let node = args.node.open_guest(READER)?;
    let all = Pattern::new("**")?;
    let (mut found, mut since) = (BTreeSet::new(), Instant::now());
    let end = since + WAIT;
    loop {
        let now = Instant::now();
        let next = match args.kind {
            Kind::Tags => node.sources(&all).iter().map(|source| source.tag.to_string()).collect(),
            Kind::Nodes | Kind::Places => others(&node),
        };
        if next != found {
            (found, since) = (next, now);
        }
        if now >= end || !found.is_empty() && now >= since + QUIET {
            break;
        }
        std::thread::sleep(STEP);
    }
    node.close();
    if args.kind == Kind::Places {
        found = found.iter().map(|name| format!("node:{name}")).collect();
        found.extend(["publisher", "subscriber", "auto"].map(str::to_owned));
    }
    let lines: String = found.iter().flat_map(|name| [name.as_str(), "\n"]).collect();
    show::text(&lines)?;
    Ok(ExitCode::SUCCESS)
}

fn others(node: &Node) -> BTreeSet<String> {
    let nodes = node.nodes().into_iter().filter(|(id, name)| *id != node.id() && name != READER);
    nodes.map(|(_, name)| name).collect()
}

/// Adds the completion of names to the script of a shell.
pub(super) fn extended(shell: Shell, script: String) -> String {
    match shell {
        Shell::Bash => script + &in_bash(),
        Shell::Fish => in_fish(&script),
        Shell::Zsh => in_zsh(&script),
        Shell::Elvish | Shell::PowerShell | _ => script,
    }
}

fn in_bash() -> String {
    let commands = COMMANDS.replace(' ', "|");
    let mut options = String::new();
    for (option, _, kind) in OPTIONS {
        options.push_str(&format!("        --{option}) kind={} ;;\n", kind.name()));
    }
    format!(
        r#"
# The tags and nodes that exist now.
_paceline_live() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="" earlier="" names="" kind=""
    (( COMP_CWORD > 0 )) && before="${{COMP_WORDS[COMP_CWORD-1]}}"
    (( COMP_CWORD > 1 )) && earlier="${{COMP_WORDS[COMP_CWORD-2]}}"
    case "$before" in
{options}    esac
    if [[ "$word" == ":" && "$before" == "node" ]]; then
        kind=nodes word=""
    elif [[ "$before" == ":" && "$earlier" == "node" ]]; then
        kind=nodes
    elif [[ -z "$kind" && "$word" != -* && "$before" != -* ]]; then
        case "${{COMP_WORDS[1]}}" in
            {commands}) (( COMP_CWORD > 1 )) && kind=tags ;;
        esac
    fi
    if [[ -n "$kind" ]]; then
        names="$(paceline {COMMAND} $kind 2>/dev/null)"
        COMPREPLY=( $(compgen -W "$names" -- "$word") )
        (( ${{#COMPREPLY[@]}} > 0 )) && return 0
    fi
    _paceline "$@"
}}
complete -F _paceline_live -o bashdefault -o default paceline
"#
    )
}

/// Adds the values of options to their lines, and the arguments of commands.
fn in_fish(script: &str) -> String {
    let kind = |line: &str| {
        let known =
            |(option, ..): &&(&str, &str, Kind)| line.contains(&format!(" -l {option} -d "));
        OPTIONS.iter().find(known).map(|(_, _, kind)| kind.name())
    };
    let mut out = String::with_capacity(script.len() + 2_000);
    for line in script.lines() {
        out.push_str(line);
        if let Some(kind) = kind(line) {
            out.push_str(&format!(" -f -a \"(paceline {COMMAND} {kind} 2>/dev/null)\""));
        }
        out.push('\n');
    }
    out.push_str("\n# The tags that exist now.\n");
    for command in COMMANDS.split(' ') {
        out.push_str(&format!(
            "complete -c paceline -n \"__fish_paceline_using_subcommand {command}\" -f -a \
             \"(paceline {COMMAND} tags 2>/dev/null)\"\n"
        ));
    }
    out
}

/// Replaces the default completion of the arguments and options that are names.
fn in_zsh(script: &str) -> String {
    let kind = |line: &str| {
        let name = line.trim_start_matches(['\'', '*', ':']).split(" -- ").next();
        if matches!(name, Some("tag" | "pattern" | "patterns")) {
            return Some(Kind::Tags);
        }
        let is_of = |(option, value, _): &&(&str, &str, Kind)| {
            line.contains(&format!("--{option}=[")) && line.ends_with(&format!("]:{value}"))
        };
        OPTIONS.iter().find(is_of).map(|(_, _, kind)| *kind)
    };
    let mut out = String::with_capacity(script.len() + 1_000);
    for (number, line) in script.lines().enumerate() {
        let argument = line.strip_suffix(":_default' \\");
        match argument.and_then(|argument| kind(argument).map(|kind| (argument, kind.name()))) {
            Some((argument, kind)) => out.push_str(&format!("{argument}:_paceline_{kind}' \\\n")),
            None => out.push_str(&format!("{line}\n")),
        }
        if number == 0 {
            for kind in Kind::ALL.map(Kind::name) {
                out.push_str(&format!(
                    "\n_paceline_{kind}() {{\n    local -a names\n    names=(${{(f)\"$(paceline {COMMAND} \
                     {kind} 2>/dev/null)\"}})\n    compadd -a names\n}}\n"
                ));
            }
        }
    }
    out
}
