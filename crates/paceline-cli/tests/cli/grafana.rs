//! A running node's `/metrics` contains every metric that the Grafana dashboard queries.

use crate::host::{Host, LIMIT, arg, free_port};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

const DASHBOARD: &str = include_str!("../../../../docs/grafana/paceline.json");

/// Returns the current metric families of `/metrics`.
fn families(socket: &Path) -> BTreeSet<String> {
    let Ok(mut stream) = UnixStream::connect(socket) else { return BTreeSet::new() };
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect()
}

/// Returns the families that the dashboard queries, except those that exist only after drops or on links with
/// classes.
fn asked() -> BTreeSet<String> {
    let words = DASHBOARD.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = words.filter(|word| word.starts_with("paceline_"));
    let always = ours.filter(|word| !word.contains("_dropped_") && !word.contains("_class_"));
    always.map(ToOwned::to_owned).collect()
}

#[test]
fn a_running_node_has_the_families_of_the_dashboard() {
    let host = Host::new();
    let socket = host.path("http.sock");
    let http = format!("unix:{}", arg(&socket));
    let link = format!("name=thin,listen=tcp/127.0.0.1:{},capacity=2mbit", free_port());
    let _node = host.start(&["node", "--http", &http, "--link", &link, "--buffer", "cam=10"]);
    let _card = host.start(&["pub", "cam", "--test-card", "160x120@10"]);
    let _sub = host.start(&["sub", "cam", "--within", "500ms", "--json"]);
    let asked = asked();
    assert!(asked.len() > 20, "{asked:?}");
    let until = Instant::now() + LIMIT;
    loop {
        let there = families(&socket);
        let lacks: Vec<&String> = asked.difference(&there).collect();
        if lacks.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "/metrics has no {lacks:?}; it has {there:?}");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}
