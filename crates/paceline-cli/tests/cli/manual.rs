//! Completions and manual pages, read by real shells and by `man`.

use crate::host::{Host, arg};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
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

/// Returns the README and the guides.
fn guides() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::fs::read_dir(root.join("docs/guides")).unwrap();
    let pages = folder.map(|page| page.unwrap().path()).chain([root.join("README.md")]);
    pages.map(|page| std::fs::read_to_string(page).unwrap()).collect()
}

/// Returns the examples of a command: the block in its help, and the lines of code in the guides.
fn examples(command: &str, help: &str, guides: &str) -> String {
    let block = help.split("Examples:\n").nth(1).and_then(|rest| rest.split("\n\n").next());
    let joined = guides.replace("\\\n", " ");
    let lines = joined.lines().filter(|line| line.contains(&format!("paceline {command} ")));
    lines.chain(block).flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn every_flag_of_pub_and_sub_has_an_example() {
    let (host, guides) = (Host::new(), guides());
    for command in ["pub", "sub"] {
        let help = host.run(&[command, "--help"]).text();
        let examples = examples(command, &help, &guides);
        let words: Vec<&str> = examples.split_whitespace().collect();
        let options = help.lines().filter(|line| line.starts_with("      --"));
        let options = options.filter_map(|line| line.trim_start().strip_prefix("--"));
        let flags = options.filter_map(|line| line.split([' ', ',', '.']).next());
        let flags = flags.filter(|flag| flag.chars().all(|c| c.is_ascii_lowercase() || c == '-'));
        let missing: Vec<String> = flags
            .map(|flag| format!("--{flag}"))
            .filter(|flag| !words.iter().any(|word| word.trim_matches('`') == flag))
            .collect();
        assert!(missing.is_empty(), "paceline {command}: {missing:?}\n{examples}");
        assert!(words.len() > 40, "{examples}");
    }
}

#[test]
fn pictures_are_played_by_ffplay_or_the_fix_is_named() {
    let host = Host::new();
    let without =
        host.command(&["sub", "a", "--play"]).env("PATH", host.path("bin")).output().unwrap();
    let said = String::from_utf8_lossy(&without.stderr).into_owned();
    assert_eq!(without.status.code(), Some(2), "{said}");
    assert!(said.contains("--play: ffplay is not on the PATH; install ffmpeg"), "{said}");
    std::fs::create_dir(host.path("bin")).unwrap();
    let player = host.path("bin/ffplay");
    // Stores its arguments and input in place of a window.
    std::fs::write(&player, "#!/bin/sh\necho \"$@\" > \"$OUT.args\"\nexec cat > \"$OUT\"\n")
        .unwrap();
    std::fs::set_permissions(&player, std::fs::Permissions::from_mode(0o700)).unwrap();
    let paths = [host.path("bin"), "/usr/bin".into(), "/bin".into()];
    let path = std::env::join_paths(paths).unwrap();
    let play = |tag: &str, count: &str| {
        let mut sub = host.command(&["sub", tag, "--play", "--count", count, "--timeout", "20s"]);
        sub.env("PATH", &path).env("OUT", host.path("played")).output().unwrap()
    };
    let publisher = host.start(&["pub", "a", "--test-card", "160x120@30"]);
    let played = play("a", "5");
    assert!(played.status.success(), "{played:?}");
    let (words, bytes) = (host.path("played.args"), std::fs::read(host.path("played")).unwrap());
    let words = std::fs::read_to_string(words).unwrap();
    assert!(words.contains("-f mjpeg -i -"), "{words}");
    assert!(bytes.starts_with(&[0xff, 0xd8]), "{} bytes of JPEG", bytes.len());
    drop(publisher);
    let _text = host.start(&["pub", "a", "hello", "--hz", "20"]);
    let refused = play("a", "5");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("only pictures and video can be played"),
        "{said}"
    );
    // Pictures in messages of ROS 2.
    let session = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ros2/session.mcap");
    let _robot = host.start(&["replay", arg(&session), "--loop"]);
    for (tag, format, bytes) in [
        ("robot/camera/image_raw/*/*", "-f rawvideo -pixel_format rgb24 -video_size 160x120", None),
        ("robot/camera/image_raw/compressed/*/*", "-f mjpeg", Some([0xff, 0xd8])),
    ] {
        let played = play(tag, "2");
        assert!(played.status.success(), "{tag}: {played:?}");
        let words = std::fs::read_to_string(host.path("played.args")).unwrap();
        assert!(words.contains(format), "{tag}: {words}");
        let shown = std::fs::read(host.path("played")).unwrap();
        match bytes {
            Some(first) => assert!(shown.starts_with(&first), "{tag}"),
            None => assert_eq!(shown.len(), 2 * 160 * 120 * 3, "{tag}"),
        }
    }
}
