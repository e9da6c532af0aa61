//! A host's runtime folder and socket: a deleted socket, a folder that others can write, too few file
//! descriptors. Also a log that a neighbour cannot fill.

use crate::host::{Host, LIMIT, Running, arg, free_port};
use std::fs::{File, Permissions};
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Waits until `done` returns true.
fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + LIMIT;
    while !done() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Checks that an earlier subscriber receives the samples of a new publisher: both use the same node.
fn meets_newcomers(host: &Host, sub: Running) {
    std::fs::write(host.path("lines"), "a\nb\n").unwrap();
    let _talk = host.start(&["pub", "t", "--file", "lines", "--hz", "20", "--loop"]);
    let sub = sub.ended();
    assert_eq!(sub.code, Some(0), "{sub:?}");
}

#[test]
fn newcomers_join_where_the_socket_was_deleted() {
    let host = Host::new();
    let _node = host.start_node();
    let sub = host.start(&["sub", "t", "--count", "5", "--timeout", "35s"]);
    host.wait_for_subscriptions(1);
    std::fs::remove_file(host.path("node.sock")).unwrap();
    eventually("the socket is back", || host.path("node.sock").exists());
    meets_newcomers(&host, sub);
}

#[test]
fn newcomers_join_where_all_files_of_the_host_were_deleted() {
    let host = Host::new();
    let _node = host.start_node();
    let sub = host.start(&["sub", "t", "--count", "5", "--timeout", "35s"]);
    host.wait_for_subscriptions(1);
    for file in std::fs::read_dir(host.path("")).unwrap().flatten() {
        if file.file_name().to_string_lossy().starts_with("node.") {
            std::fs::remove_file(file.path()).unwrap();
        }
    }
    eventually("the socket is back", || host.path("node.sock").exists());
    meets_newcomers(&host, sub);
}

#[test]
fn a_runtime_folder_that_others_can_write_or_that_is_a_link_is_refused() {
    let host = Host::new();
    let (open, link) = (host.path("open"), host.path("link"));
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    let run = |dir: &str| host.run(&["sub", "a", "--timeout", "1s", "--runtime-dir", dir]);
    run(arg(&open)).said(1, "others can write to it (mode 0777); run chmod go-w '");
    run(arg(&open)).said(1, "or set PACELINE_RUNTIME_DIR to a folder that only you can write");
    assert_eq!(std::fs::read_dir(&open).unwrap().count(), 0, "nothing was made in it");
    std::fs::set_permissions(&open, Permissions::from_mode(0o700)).unwrap();
    symlink(&open, &link).unwrap();
    run(arg(&link)).said(1, "is a symbolic link, which is not followed");
    run(arg(&open)).said(3, "no publisher on a");
    // The default runtime folder lies in a temporary folder that every user can write.
    let user = rustix::process::geteuid().as_raw();
    symlink(&open, host.path(&format!("paceline-{user}"))).unwrap();
    let mut command = host.command(&["sub", "a", "--timeout", "1s"]);
    command.env_remove("PACELINE_RUNTIME_DIR").env_remove("XDG_RUNTIME_DIR");
    command.env("TMPDIR", host.path(""));
    let ended = Running::gathered(command.spawn().unwrap()).ended();
    ended.said(1, "is a symbolic link, which is not followed");
}

#[test]
fn a_limit_of_descriptors_is_an_error_and_no_panic() {
    let host = Host::new();
    let program = env!("CARGO_BIN_EXE_paceline");
    let limited = |limit: u64, line: &str| {
        let line = format!("ulimit -n {limit}; exec '{program}' {line}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).env("PACELINE_RUNTIME_DIR", host.path("run"));
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::gathered(shell.spawn().unwrap()).ended()
    };
    let sub = "sub a --timeout 1s --link connect=tcp/127.0.0.1:9";
    let refused = limited(8, sub);
    refused.said(1, "this process may open 8 files, but this node needs at least ");
    refused.said(1, "raise the limit with ulimit -n 1024, or LimitNOFILE=1024");
    for limit in [5, 6, 7, 16, 32, 64, 96, 128] {
        for line in [sub, "node --buffer a=1", "pub a -", "ls", "echo a --duration 1s", "pull a"] {
            // A node would not end by itself.
            let line = if limit >= 64 && line.starts_with("node") { "ls" } else { line };
            let ended = limited(limit, line);
            assert!(!ended.stderr.contains("panicked"), "{limit}, {line}: {}", ended.stderr);
            assert!(matches!(ended.code, Some(0..=3)), "{limit}, {line}: {ended:?}");
        }
    }
    let needed = refused.stderr.split("at least ").nth(1).unwrap().split(';').next().unwrap();
    limited(needed.parse().unwrap(), sub).said(3, "no publisher on a");
}

/// Introduces a neighbour of another version.
fn introduce(port: u16, version: u8) {
    let hello = [&b"PACE"[..], &[version], &[0; 48]].concat();
    drop(TcpStream::connect(("127.0.0.1", port)).unwrap().write_all(&hello));
}

#[test]
fn a_neighbour_cannot_fill_the_log() {
    let host = Host::new();
    let port = free_port();
    let listen = format!("name=radio,listen=tcp/127.0.0.1:{port}");
    let log = host.path("log");
    let mut command = host.command(&["node", "--link", &listen]);
    command.stderr(File::create(&log).unwrap());
    let mut node = Running::unread(command.spawn().unwrap());
    assert!(!node.first_line().is_empty());
    let begun = Instant::now();
    let text = || std::fs::read_to_string(&log).unwrap();
    // Each message is from a neighbour of another version than the one before.
    eventually("the node hears the stranger", || {
        for number in 0..50 {
            introduce(port, 200 + number % 2);
        }
        text().contains("uses wire format version")
    });
    for number in (0..2_000u16).map(|number| u8::from(number % 2 == 1)) {
        introduce(port, 200 + number % 2);
    }
    std::thread::sleep(Duration::from_millis(500));
    let lines = text().lines().filter(|line| line.contains("uses wire format version")).count();
    // The first line, and one every ten seconds.
    let most = 2 + usize::try_from(begun.elapsed().as_secs() / 10).unwrap();
    assert!((1..=most).contains(&lines), "{}", text());
}
