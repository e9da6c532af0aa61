//! The node as a daemon: configuration, signals, service manager.

use crate::host::{Host, LIMIT, Running, arg, free_port};
use rustix::process::Signal;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Writes a file in the host's folder.
fn write(host: &Host, name: &str, text: &str) -> PathBuf {
    let path = host.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

/// The service manager's socket.
struct Manager(UnixDatagram);

impl Manager {
    fn new(host: &Host) -> Self {
        let socket = UnixDatagram::bind(host.path("notify")).unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        Self(socket)
    }

    fn heard(&self) -> String {
        let mut bytes = [0; 1_000];
        let length = self.0.recv(&mut bytes).expect("the node reports its state");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    fn expect(&self, start: &str) -> String {
        let heard = self.heard();
        assert!(heard.starts_with(start), "{heard}");
        heard
    }
}

/// Starts a node that logs to a file and notifies a service manager.
fn daemon(host: &Host, config: &Path, log: &str) -> (Running, Manager) {
    let manager = Manager::new(host);
    let mut command = host.command(&["node", "--config", arg(config)]);
    command.env("NOTIFY_SOCKET", host.path("notify"));
    command.stderr(std::fs::File::create(host.path(log)).unwrap());
    let node = Running::unread(command.spawn().unwrap());
    manager.expect("READY=1\nSTATUS=node ");
    (node, manager)
}

fn logged(host: &Host, log: &str) -> String {
    let mut text = String::new();
    std::fs::File::open(host.path(log)).unwrap().read_to_string(&mut text).unwrap();
    text
}

fn wait_logged(host: &Host, log: &str, part: &str) {
    let until = Instant::now() + LIMIT;
    while !logged(host, log).contains(part) {
        assert!(Instant::now() < until, "'{part}' is not in: {}", logged(host, log));
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn reload(node: &Running, manager: &Manager) -> String {
    node.signal(Signal::HUP);
    manager.expect("RELOADING=1\nMONOTONIC_USEC=");
    manager.expect("READY=1\n")
}

#[test]
fn a_file_configures_the_node_and_flags_override_it() {
    let host = Host::new();
    let port = free_port();
    let file = write(
        &host,
        "p.toml",
        &format!(
            "name = \"gate\"\n[[link]]\nname = \"radio\"\nlisten = [\"tcp/127.0.0.1:{port}\"]\n\
             capacity = \"2mbit\"\npolicy = \"dwcs\"\n"
        ),
    );
    for (flags, name) in [(&[][..], "gate"), (&["--name", "flag"][..], "flag")] {
        let args = [&["node", "--json", "--config", arg(&file)], flags].concat();
        let mut node = Running::unread(host.command(&args).spawn().unwrap());
        let line: serde_json::Value = serde_json::from_str(&node.first_line()).unwrap();
        assert_eq!(line["name"], name);
        assert_eq!(line["links"][0]["name"], "radio");
        assert_eq!(line["links"][0]["capacity_bits_per_s"], 2_000_000);
        assert_eq!(line["links"][0]["policy"], "dwcs");
        node.signal(Signal::TERM);
        assert_eq!(node.status().code(), Some(0));
    }
    let args = ["node", "--json", "--config", arg(&file), "--link", "connect=tcp/127.0.0.1:1"];
    let mut node = Running::unread(host.command(&args).spawn().unwrap());
    let line: serde_json::Value = serde_json::from_str(&node.first_line()).unwrap();
    assert_eq!(line["links"][0]["connect"][0], "tcp/127.0.0.1:1", "flags replace all links");
    assert_eq!(line["links"].as_array().map(Vec::len), Some(1));
}

/// Returns the names of the Zenoh thread pools in which a node runs threads.
fn pools(config: &str, setting: Option<&str>, (expected, threads): (&str, usize)) -> Vec<String> {
    let host = Host::new();
    let file = write(&host, "node.toml", config);
    let mut command = host.command(&["node", "--json", "--config", arg(&file)]);
    command.env_remove("ZENOH_RUNTIME").envs(setting.map(|setting| ("ZENOH_RUNTIME", setting)));
    let mut node = Running::unread(command.spawn().unwrap());
    node.first_line();
    let tasks = format!("/proc/{}/task", node.child().id());
    // A thread has its parent's name until it first runs.
    crate::plain::wait_for("the threads of Zenoh have their names", || {
        let tasks = std::fs::read_dir(&tasks).unwrap().filter_map(Result::ok);
        let names = tasks.filter_map(|it| std::fs::read_to_string(it.path().join("comm")).ok());
        let pool = |name: String| name.split('-').next().unwrap_or_default().to_owned();
        let mut pools: Vec<_> = names.map(pool).collect();
        pools.retain(|it| ["rx", "tx", "net", "acc", "app"].contains(&it.as_str()));
        pools.sort();
        (pools.iter().filter(|it| *it == expected).count() >= threads).then_some(pools)
    })
}

#[test]
fn tasks_of_zenoh_share_two_threads_by_default() {
    let tcp = "[plain]\nconnect = [\"tcp/127.0.0.1:1\"]\n[[export]]\ntag = \"a\"\n";
    let shared = pools(tcp, None, ("rx", 2));
    assert_eq!(shared.iter().filter(|it| *it == "rx").count(), 2, "{shared:?}");
    assert!(shared.iter().all(|it| ["rx", "app"].contains(&it.as_str())), "{shared:?}");
    assert!(pools(tcp, Some("()"), ("net", 1)).contains(&"net".to_owned()));
}

#[test]
fn tasks_of_zenoh_share_one_thread_where_tls_is_used() {
    let tls = "[plain]\nconnect = [\"tls/127.0.0.1:1\"]\n[[export]]\ntag = \"a\"\n";
    let one = pools(tls, None, ("rx", 1));
    assert_eq!(one.iter().filter(|it| *it == "rx").count(), 1, "{one:?}");
    assert!(one.iter().all(|it| ["rx", "app"].contains(&it.as_str())), "{one:?}");
}

#[test]
fn a_file_found_by_default_configures_only_the_node() {
    let host = Host::new();
    let port = free_port();
    let text = format!("name = \"gate\"\n[[link]]\nlisten = [\"tcp/127.0.0.1:{port}\"]\n");
    let file = write(&host, "config/paceline/config.toml", &text);
    let mut node = Running::unread(host.command(&["node"]).spawn().unwrap());
    let line = node.first_line();
    assert!(line.starts_with("node gate ") && line.contains("link1 listens on"), "{line}");
    // `ls` finds the same file by default, but uses neither its name nor its port.
    let ls = host.run(&["ls", "--json"]);
    assert_eq!(ls.code, Some(0), "{ls:?}");
    let document: serde_json::Value = serde_json::from_str(&ls.text()).unwrap();
    let named = |node: &&serde_json::Value| node["name"] == "gate";
    assert_eq!(document["nodes"].as_array().unwrap().iter().filter(named).count(), 1, "{document}");
    // A file named with `--config` applies to every command.
    host.run(&["ls", "--config", arg(&file)]).said(1, &format!("cannot open tcp/127.0.0.1:{port}"));
}

#[test]
fn an_invalid_file_is_refused_with_lines_before_the_node_opens() {
    let host = Host::new();
    let text = "nmae = \"gate\"\n[[link]]\nlisten = [\"tcp/127.0.0.1:1\"]\ncapacity = \"0mbit\"\n";
    let file = write(&host, "p.toml", text);
    for args in [&["node", "--check-config"][..], &["node"][..], &["ls"][..]] {
        let ended = host.run(&[args, &["--config", arg(&file)]].concat());
        ended.said(2, "p.toml:1: nmae is not known: did you mean name?");
        ended.said(2, "p.toml:4: link 1: capacity = \"0mbit\": capacity is 0 bit/s");
    }
    let open = write(&host, "open.toml", "[[link]]\nlisten = [\"tcp/0.0.0.0:7600\"]\n");
    let ended = host.run(&["node", "--check-config", "--config", arg(&open)]);
    ended.said(
        2,
        "open.toml: link 'link1': listening on tcp/0.0.0.0:7600 accepts connections from any host",
    );
    let right = write(&host, "right.toml", "[[link]]\nlisten = [\"tcp/127.0.0.1:7600\"]\n");
    let ended = host.run(&["node", "--check-config", "--config", arg(&right)]);
    assert_eq!(
        (ended.code, ended.text().contains("valid; links: 1")),
        (Some(0), true),
        "{ended:?}"
    );
    let none = host.run(&["node", "--check-config"]);
    assert_eq!(
        (none.code, none.text().contains("all defaults apply")),
        (Some(0), true),
        "{none:?}"
    );
}

#[test]
fn the_printed_configuration_is_valid() {
    let host = Host::new();
    let printed = host.run(&["node", "--print-config"]);
    assert_eq!(printed.code, Some(0));
    let file = write(&host, "p.toml", &printed.text());
    let ended = host.run(&["node", "--check-config", "--config", arg(&file)]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_reload_changes_capacity_and_log_and_names_what_needs_a_restart() {
    let host = Host::new();
    let link = |capacity: &str, policy: &str| {
        format!(
            "log = \"info\"\n[[link]]\nname = \"radio\"\nconnect = [\"tcp/127.0.0.1:1\"]\n\
             capacity = \"{capacity}\"\npolicy = \"{policy}\"\n"
        )
    };
    let file = write(&host, "p.toml", &link("2mbit", "vds").replace("info", "error"));
    let (mut node, manager) = daemon(&host, &file, "log");
    assert!(logged(&host, "log").is_empty());
    write(&host, "p.toml", &link("1mbit", "dwcs"));
    let ready = reload(&node, &manager);
    assert!(ready.contains("at 1 Mbit/s"), "{ready}");
    wait_logged(&host, "log", "link 'radio': the capacity is now 1 Mbit/s");
    wait_logged(&host, "log", "policy of link 'radio' changed: restart the node to apply it");
    let ls = host.run(&["ls", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&ls.text()).unwrap();
    let nodes = document["nodes"].as_array().unwrap();
    let mut links = nodes.iter().flat_map(|node| node["links"].as_array().unwrap());
    let radio = links.find(|link| link["name"] == "radio").unwrap();
    assert_eq!(radio["capacity_bits_per_s"], 1_000_000);

    write(&host, "p.toml", "capacity = \"5mbit\"\n");
    let ready = reload(&node, &manager);
    assert!(ready.contains("at 1 Mbit/s"), "the old configuration stays: {ready}");
    wait_logged(&host, "log", "p.toml:1: capacity is not known");
    wait_logged(&host, "log", "the configuration is unchanged");
    node.signal(Signal::TERM);
    manager.expect("STOPPING=1");
    assert_eq!(node.status().code(), Some(0));
}

#[test]
fn classes_of_the_file_apply_and_change_with_a_reload() {
    let host = Host::new();
    let link = "log = \"info\"\n[[link]]\nname = \"radio\"\nconnect = [\"tcp/127.0.0.1:1\"]\n\
                capacity = \"2mbit\"\n";
    let video = "[[link.class]]\nname = \"video\"\nshare = 60\ntags = [\"robot/*/video\"]\n";
    let file = write(&host, "p.toml", &format!("{link}{video}"));
    let (mut node, manager) = daemon(&host, &file, "log");
    let classes = || {
        let document: serde_json::Value =
            serde_json::from_str(&host.run(&["ls", "--json"]).text()).unwrap();
        let nodes = document["nodes"].as_array().unwrap().clone();
        let links = nodes.iter().flat_map(|node| node["links"].as_array().unwrap().clone());
        let radio = links.into_iter().find(|link| link["name"] == "radio").unwrap();
        let class = |class: &serde_json::Value| {
            (class["name"].as_str().unwrap().to_owned(), class["share"].as_f64().unwrap())
        };
        radio["classes"].as_array().unwrap().iter().map(class).collect::<Vec<_>>()
    };
    assert_eq!(classes(), [("video".to_owned(), 0.6), ("default".to_owned(), 0.4)]);
    assert!(host.run(&["ls"]).text().contains("CLASSES"));
    let peers = "[[link.class]]\nname = \"peers\"\nper_peer = true\n";
    write(&host, "p.toml", &format!("{link}{peers}"));
    reload(&node, &manager);
    wait_logged(&host, "log", "link 'radio': the number of classes is now 1");
    let until = Instant::now() + LIMIT;
    while classes() != [("peers".to_owned(), 1.0)] {
        assert!(Instant::now() < until, "{:?}", classes());
    }
    write(&host, "p.toml", &format!("{link}{peers}{peers}"));
    reload(&node, &manager);
    wait_logged(
        &host,
        "log",
        "p.toml:10: link 1: class 'peers': name: class \"peers\" is listed twice",
    );
    wait_logged(&host, "log", "the configuration is unchanged");
    node.signal(Signal::TERM);
    manager.expect("STOPPING=1");
    assert_eq!(node.status().code(), Some(0));
}

#[test]
fn buffers_of_the_file_apply_and_change_with_a_reload() {
    let host = Host::new();
    let file = write(&host, "p.toml", "[[buffer]]\npattern = \"a/**\"\nsamples = 16\n");
    let (node, manager) = daemon(&host, &file, "log");
    let pulled = || host.run(&["pull", "a/b", "--json"]);
    let until = Instant::now() + LIMIT;
    let publish = || host.run(&["pub", "a/b", "--file", arg(&write(&host, "lines", "hello\n"))]);
    while !(publish().code == Some(0) && pulled().text().contains("a/b")) {
        assert!(Instant::now() < until, "{:?}", pulled());
    }
    write(&host, "p.toml", "[[buffer]]\npattern = \"c/**\"\nsamples = 5\n");
    let ready = reload(&node, &manager);
    assert!(ready.contains("buffers c/**: 5 samples") && !ready.contains("a/**"), "{ready}");
    assert_eq!(pulled().code, Some(3), "no node buffers it any more");
}

#[test]
fn a_second_signal_ends_a_node_at_once() {
    let host = Host::new();
    let file = write(&host, "p.toml", "");
    let (mut node, _manager) = daemon(&host, &file, "log");
    node.signal(Signal::TERM);
    // The node may have exited already, in an orderly shutdown.
    let id = i32::try_from(node.child().id()).unwrap();
    let _ = rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), Signal::INT);
    assert!(matches!(node.status().code(), Some(0 | 130)));
}

#[test]
fn the_flag_overrides_the_environment_which_overrides_the_file() {
    let host = Host::new();
    let file = write(&host, "p.toml", "log = \"info\"\nisolated = true\n");
    // Connecting to a closed port and loading a file both log at level info or above.
    let logs = |flag: Option<&str>, environment: Option<&str>| {
        let (log, manager) = (host.path("log"), Manager::new(&host));
        let mut command = host.command(&["node", "--config", arg(&file)]);
        command.args(flag.map(|level| ["--log", level]).into_iter().flatten());
        command.envs(environment.map(|level| ("PACELINE_LOG", level)));
        command.env("NOTIFY_SOCKET", host.path("notify"));
        command.stderr(std::fs::File::create(&log).unwrap());
        let mut node = Running::unread(command.spawn().unwrap());
        manager.expect("READY=1");
        reload(&node, &manager);
        node.signal(Signal::TERM);
        node.status();
        std::fs::remove_file(host.path("notify")).unwrap();
        logged(&host, "log").contains("reloaded ")
    };
    assert!(logs(None, None), "the file sets info");
    assert!(!logs(None, Some("warn")));
    assert!(logs(Some("info"), Some("warn")));
    let wrong = host.command(&["ls"]).env("PACELINE_LOG", "wran").spawn().unwrap();
    Running::gathered(wrong).ended().said(2, "PACELINE_LOG 'wran': must be one of off, error");
}

#[test]
fn messages_in_the_journal_have_no_timestamps() {
    let host = Host::new();
    let file = write(&host, "p.toml", "name = 5\n");
    let lines = |journal: bool| {
        let log = std::fs::File::create(host.path("log")).unwrap();
        let meta = log.metadata().unwrap();
        let right = write(&host, "right.toml", "log = \"info\"\n");
        let manager = Manager::new(&host);
        let mut command = host.command(&["node", "--config", arg(&right)]);
        command.env("NOTIFY_SOCKET", host.path("notify")).stderr(log);
        if journal {
            command.env("JOURNAL_STREAM", format!("{}:{}", meta.dev(), meta.ino()));
        }
        let mut node = Running::unread(command.spawn().unwrap());
        manager.expect("READY=1");
        std::fs::copy(&file, &right).unwrap();
        reload(&node, &manager);
        node.signal(Signal::TERM);
        node.status();
        std::fs::remove_file(host.path("notify")).unwrap();
        logged(&host, "log")
    };
    let plain = lines(false);
    assert!(plain.lines().all(|line| line.starts_with("20")), "{plain}");
    let journal = lines(true);
    assert!(journal.lines().all(|line| line.trim_start().starts_with("ERROR ")), "{journal}");
    assert!(journal.contains("name = 5: must be text"), "{journal}");
}

#[test]
fn systemd_accepts_the_unit() {
    let host = Host::new();
    let unit = host.run(&["node", "--print-unit"]);
    assert_eq!(unit.code, Some(0), "{unit:?}");
    // Verification requires that the installed binary exists; use the built one.
    let unit = unit.text().replace("/usr/local/bin/paceline", env!("CARGO_BIN_EXE_paceline"));
    let file = write(&host, "paceline.service", &unit);
    let verify = Command::new("systemd-analyze").arg("verify").arg(&file).output();
    let Ok(verify) = verify else {
        println!("skipped: systemd-analyze verify (systemd-analyze is not installed)");
        return;
    };
    let output = String::from_utf8_lossy(&verify.stderr);
    // Ignore errors in other units of this host.
    let about_ours: Vec<&str> =
        output.lines().filter(|line| line.contains("paceline.service")).collect();
    assert!(about_ours.is_empty(), "{about_ours:?}");
}
