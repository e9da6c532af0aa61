//! Completions and manual pages, read by real shells and by `man`.

use crate::host::{Host, arg};
use std::io::Write as _;
use std::process::{Command, Stdio};

#[test]
fn bash_reads_its_completion() {
    let host = Host::new();
    let script = host.run(&["completion", "bash"]);
    assert_eq!(script.code, Some(0), "{script:?}");
    let bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn();
    let Ok(mut bash) = bash else {
        println!("skipped: bash -n (bash is not installed)");
        return;
    };
    bash.stdin.take().unwrap().write_all(&script.stdout).unwrap();
    assert!(bash.wait().unwrap().success());
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let script = host.run(&["completion", shell]);
        assert_eq!(script.code, Some(0), "{script:?}");
        assert!(script.text().contains("doctor"), "{shell}");
    }
}

#[test]
fn pages_are_written_and_read() {
    let host = Host::new();
    let page = host.run(&["man"]);
    assert_eq!(page.code, Some(0), "{page:?}");
    assert!(page.text().contains(".TH paceline 1"), "{}", page.text());
    let dir = host.path("man1");
    std::fs::create_dir(&dir).unwrap();
    assert_eq!(host.run(&["man", "--out", arg(&dir)]).code, Some(0));
    assert!(dir.join("paceline-node.1").is_file() && dir.join("paceline-doctor.1").is_file());
}
