//! Completion of the tags and nodes that exist now: each shell runs a hidden command for them.

use crate::config::NodeArgs;
use crate::show;
use clap_complete::Shell;
use paceline::{Node, Pattern};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The name of the hidden command.
pub(crate) const COMMAND: &str = "complete-names";
/// The longest time to wait for the names; a person waits for them.
const WAIT: Duration = Duration::from_millis(600);
/// The names are complete if they have not changed for this time.
const QUIET: Duration = Duration::from_millis(100);
const STEP: Duration = Duration::from_millis(20);
/// The commands whose argument is a tag or pattern.
const COMMANDS: &str = "pub sub pull record set ls watch trace";

/// The kind of the names.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Kind {
    Tags,
    Nodes,
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
    let node = args.node.open_guest("completion")?;
    let all = Pattern::new("**")?;
    let (mut found, mut since) = (BTreeSet::new(), Instant::now());
    let end = since + WAIT;
    loop {
        let now = Instant::now();
        let next = match args.kind {
            Kind::Tags => node.sources(&all).iter().map(|source| source.tag.to_string()).collect(),
            Kind::Nodes => others(&node),
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
    let lines: String = found.iter().flat_map(|name| [name.as_str(), "\n"]).collect();
    show::text(&lines)?;
    Ok(ExitCode::SUCCESS)
}

fn others(node: &Node) -> BTreeSet<String> {
    let nodes = node.nodes().into_iter().filter(|(id, _)| *id != node.id());
    nodes.map(|(_, name)| name).collect()
}

/// Adds the completion of names to the script of a shell.
pub(super) fn extended(shell: Shell, script: String) -> String {
    match shell {
        Shell::Bash => script + &in_bash(),
        Shell::Fish => script + &in_fish(),
        Shell::Zsh => in_zsh(&script),
        Shell::Elvish | Shell::PowerShell | _ => script,
    }
}

fn in_bash() -> String {
    let commands = COMMANDS.replace(' ', "|");
    format!(
        r#"
# The tags and nodes that exist now.
_paceline_live() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="" earlier="" names="" kind=""
    (( COMP_CWORD > 0 )) && before="${{COMP_WORDS[COMP_CWORD-1]}}"
    (( COMP_CWORD > 1 )) && earlier="${{COMP_WORDS[COMP_CWORD-2]}}"
    if [[ "$word" == ":" && "$before" == "node" ]]; then
        kind=nodes word=""
    elif [[ "$before" == ":" && "$earlier" == "node" ]]; then
        kind=nodes
    elif [[ "$before" == "--with" || "$before" == "--tag" ]]; then
        kind=tags
    elif [[ "$word" != -* && "$before" != -* ]]; then
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

fn in_fish() -> String {
    let mut script = "\n# The tags and nodes that exist now.\n".to_owned();
    for command in COMMANDS.split(' ') {
        script.push_str(&format!(
            "complete -c paceline -n \"__fish_paceline_using_subcommand {command}\" -f -a \
             \"(paceline {COMMAND} tags 2>/dev/null)\"\n"
        ));
    }
    script
}

/// Replaces the default completion of the arguments that are tags or patterns.
fn in_zsh(script: &str) -> String {
    let is_tag = |line: &str| {
        let name = line.trim_start_matches(['\'', '*', ':']).split(" -- ").next();
        matches!(name, Some("tag" | "pattern" | "patterns"))
    };
    let mut out = String::with_capacity(script.len() + 300);
    for (number, line) in script.lines().enumerate() {
        match line.strip_suffix(":_default' \\").filter(|_| is_tag(line)) {
            Some(argument) => out.push_str(&format!("{argument}:_paceline_tags' \\\n")),
            None => out.push_str(&format!("{line}\n")),
        }
        if number == 0 {
            out.push_str(&format!(
                "\n_paceline_tags() {{\n    local -a tags\n    tags=(${{(f)\"$(paceline {COMMAND} tags \
                 2>/dev/null)\"}})\n    compadd -a tags\n}}\n"
            ));
        }
    }
    out
}
