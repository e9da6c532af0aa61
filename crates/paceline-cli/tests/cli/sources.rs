//! The sources that a node publishes itself, as its configuration names them.

use crate::host::{Host, Running, arg};
use rustix::process::Signal;
use std::path::Path;

/// Starts a node with this configuration, whose log is a file.
fn start(host: &Host, config: &Path, log: &str) -> Running {
    let mut command = host.command(&["node", "--json", "--log", "info", "--config", arg(config)]);
    command.stderr(std::fs::File::create(host.path(log)).unwrap());
    let mut node = Running::unread(command.spawn().unwrap());
    let line: serde_json::Value = serde_json::from_str(&node.first_line()).unwrap();
    assert_eq!(line["sources"], serde_json::json!(["run/card", "run/once"]));
    node
}

fn write(host: &Host, name: &str, text: &str) -> std::path::PathBuf {
    let path = host.path(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Returns the first samples of a tag.
fn samples(host: &Host, tag: &str, count: &str) -> Vec<serde_json::Value> {
    let got = host.run(&["sub", tag, "--count", count, "--json"]);
    assert_eq!(got.code, Some(0), "{tag}: {got:?}");
    got.json()
}

fn wait_logged(host: &Host, log: &str, part: &str) {
    crate::plain::wait_for(part, || {
        let text = std::fs::read_to_string(host.path(log)).unwrap();
        text.contains(part).then_some(())
    });
}

#[test]
fn a_node_publishes_its_sources_and_follows_a_new_configuration() {
    let host = Host::new();
    let lines = write(&host, "lines.txt", "one\ntwo\nthree\n");
    let card = "[[source]]\ntag = \"run/card\"\ntest_card = \"160x120@20\"\nloss = \"1/10\"\n";
    let once = format!("[[source]]\ntag = \"run/once\"\nfile = \"{}\"\nhz = 10\n", lines.display());
    let config = write(&host, "node.toml", &format!("name = \"robot\"\n{card}{once}"));
    let node = start(&host, &config, "log");
    let pictures = samples(&host, "run/card", "5");
    assert!(pictures.len() >= 5, "{pictures:?}");
    wait_logged(&host, "log", "source run/once: it has ended");
    // The file ended. It starts again with a reload, and the test card goes on. Another one replaces the first.
    let other = "[[source]]\ntag = \"run/other\"\ntest_card = \"160x120@5\"\n";
    std::fs::write(&config, format!("name = \"robot\"\n{once}{other}")).unwrap();
    node.signal(Signal::HUP);
    wait_logged(&host, "log", "sources: now 2");
    samples(&host, "run/other", "3");
    crate::plain::wait_for("the first test card has ended", || {
        let listed = host.run(&["ls", "--json"]).text();
        (!listed.contains("run/card")).then_some(())
    });
    // An error changes nothing.
    std::fs::write(&config, format!("{other}hz = \"fast\"\n")).unwrap();
    node.signal(Signal::HUP);
    wait_logged(&host, "log", "source run/other: ");
    wait_logged(&host, "log", "the configuration is unchanged");
    samples(&host, "run/other", "3");
    let checked = host.run(&["node", "--check-config", "--config", arg(&config)]);
    checked.said(2, "source run/other: invalid value 'fast' for 'hz");
}

#[test]
fn a_source_that_cannot_be_opened_is_reported_and_disturbs_nothing() {
    let host = Host::new();
    let config = write(
        &host,
        "node.toml",
        "[[source]]\ntag = \"run/card\"\ntest_card = \"160x120@20\"\n\
         [[source]]\ntag = \"run/once\"\nfile = \"/no/such/film.264\"\n",
    );
    let mut node = start(&host, &config, "log");
    wait_logged(&host, "log", "source run/once: cannot read /no/such/film.264");
    samples(&host, "run/card", "5");
    node.signal(Signal::TERM);
    assert_eq!(node.status().code(), Some(0));
}
