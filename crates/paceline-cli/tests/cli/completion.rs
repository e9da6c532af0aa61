//! The completion scripts in real shells: options, and the tags and nodes that exist now.

use crate::host::{Host, Running, arg};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Time limit of a completion, on a busy host too.
const WITHIN: Duration = Duration::from_secs(20);

/// A host with a tag and a node to complete, and the completion script of a shell.
struct Scene {
    host: Host,
    _commands: [Running; 2],
}

impl Scene {
    /// Starts the node and a publisher, and writes the script to a file of this name. Returns `None` if the shell
    /// is not installed.
    fn new(shell: &str, file: &str) -> Option<Self> {
        if Command::new(shell).arg("--version").output().is_err() {
            println!("skipped: completion in {shell} ({shell} is not installed)");
            return None;
        }
        let host = Host::new();
        let node = host.start_node();
        let publisher = host.start(&["pub", "robot/camera", "hello", "--hz", "20"]);
        std::fs::create_dir(host.path("bin")).unwrap();
        std::os::unix::fs::symlink(crate::BINARY, host.path("bin/paceline")).unwrap();
        let script = host.run(&["completion", shell]);
        assert_eq!(script.code, Some(0), "{script:?}");
        std::fs::write(host.path(file), &script.stdout).unwrap();
        Some(Self { host, _commands: [node, publisher] })
    }

    /// Runs a program of the shell with these arguments, and returns its output.
    fn run(&self, shell: &str, words: &[&str]) -> String {
        let mut command = Command::new(shell);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [self.host.path("bin")].into_iter().chain(std::env::split_paths(&path));
        command.args(words).env("PATH", std::env::join_paths(folders).unwrap());
        // Shells keep their history and settings in the home folder.
        command.env("HOME", self.host.path(".")).env("XDG_CONFIG_HOME", self.host.path("."));
        command.env("PACELINE_RUNTIME_DIR", self.host.path(".")).env("TERM", "dumb");
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

/// Calls `complete` with each line until its answer contains the expected text: the names of other processes appear
/// after a moment.
fn check(expected: &[(&str, &str)], complete: impl Fn(&str) -> String) {
    for (line, answer) in expected {
        let until = Instant::now() + WITHIN;
        let mut said = complete(line);
        while !said.contains(answer) {
            assert!(Instant::now() < until, "'{line}' completes to {answer}: {said}");
            said = complete(line);
        }
    }
}

const LINES: [(&str, &str); 7] = [
    ("paceline sub ", "robot/camera"),
    ("paceline watch robot/c", "robot/camera"),
    ("paceline sub robot/camera --max-", "--max-jitter"),
    ("paceline sub robot/camera --with r", "robot/camera"),
    ("paceline pull robot/camera --hold-at pub-", "pub-camera"),
    ("paceline sub robot/camera --proxy s", "subscriber"),
    ("paceline sub robot/camera --proxy node:pub-", "pub-camera"),
];

#[test]
fn bash_completes_the_tags_and_nodes_that_exist() {
    let Some(scene) = Scene::new("bash", "completion.bash") else { return };
    let file = scene.host.path("completion.bash");
    let program = ". \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(( $# - 1 )); \
                   _paceline_live paceline \"${@: -1}\"; echo \"${COMPREPLY[@]}\"";
    check(&LINES, |line| {
        // Bash splits words at colons too.
        let line = line.replace(':', " : ");
        let words: Vec<&str> = line.split(' ').collect();
        scene.run("bash", &[&["-c", program, "bash", arg(&file)], &words[..]].concat())
    });
}

#[test]
fn fish_completes_the_tags_and_nodes_that_exist() {
    let Some(scene) = Scene::new("fish", "completion.fish") else { return };
    let file = scene.host.path("completion.fish");
    let program = "source $argv[1]; complete -C $argv[2]";
    check(&LINES, |line| scene.run("fish", &["-c", program, arg(&file), line]));
}

/// Types a line and a tabulator in an interactive zsh, and prints the screen once it contains the expected text.
const TYPING: &str = r#"
zmodload zsh/zpty
zpty pane zsh -f -i
zpty -w pane "PROMPT='> '; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; print -r -- rea''dy"
zpty -r pane screen '*ready*'
zpty -w -n pane "$2"$'\t\t'
screen=""
for attempt in {1..50}; do
    while zpty -r -t pane part; do screen+=$part; done
    [[ $screen == *$3* ]] && break
    sleep 0.1
done
zpty -d pane
print -r -- "$screen"
"#;

#[test]
fn zsh_completes_the_tags_and_nodes_that_exist() {
    let Some(scene) = Scene::new("zsh", "_paceline") else { return };
    let folder: &Path = &scene.host.path(".");
    check(&LINES, |line| {
        let (_, answer) = LINES.iter().find(|(known, _)| *known == line).unwrap();
        scene.run("zsh", &["-f", "-c", TYPING, "zsh", arg(folder), line, answer])
    });
}
