//! Symmetric keys of NTP with real chronyd servers and clients.

use super::{Shifted, chronyd, fed, quick, rig};
use crate::support::wait_until;
use paceline::Node;
use paceline::time::{ClockConfig, ClockStatus, SourcePart};
use std::path::Path;
use std::process::Command;

/// The address of the node's host.
const NODE: &str = "10.77.0.1:11123";
const LINES: [&str; 3] = [
    "7 AES128 HEX:000102030405060708090A0B0C0D0E0F",
    "7 AES128 HEX:FF0102030405060708090A0B0C0D0E0F",
    "9 AES256 HEX:000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F",
];

/// Runs chronyd as a client of the node once, with key `id` of the file `keys`. Returns true if it measured the time.
fn measure(dir: &Path, keys: &Path, id: u32) -> bool {
    let conf = dir.join(format!("client{id}-{}", keys.file_name().unwrap().display()));
    let (host, port) = NODE.split_once(':').unwrap();
    let text = format!(
        "server {host} port {port} key {id} iburst maxsamples 2\nkeyfile {}\npidfile {}.pid\ncmdport 0\n",
        keys.display(),
        conf.display()
    );
    std::fs::write(&conf, text).unwrap();
    let mut client = Command::new(chronyd().unwrap());
    client.args(["-Q", "-t", "4", "-u", "root", "-f"]).arg(&conf);
    client.output().unwrap().status.success()
}

#[test]
fn keys_authenticate_nodes_and_real_servers_to_each_other() {
    let Some((hosts, dir)) = rig("keys_authenticate_nodes_and_real_servers_to_each_other") else {
        return;
    };
    let file = |name: &str, lines: &[&str]| {
        let file = dir.path().join(name);
        std::fs::write(&file, lines.join("\n") + "\n").unwrap();
        file
    };
    let ours = file("ours", &[LINES[0], LINES[2]]);
    let other = file("other", &LINES[1..2]);
    // Three servers: two have the node's keys, the third another key with the same number. It also lies.
    let with = |keys: &Path| format!("keyfile {}", keys.display());
    let servers = [
        Shifted::start(&hosts, &dir, (123, 1.5), &with(&ours)),
        Shifted::start(&hosts, &dir, (1_123, 1.5), &with(&ours)),
        Shifted::start(&hosts, &dir, (2_123, 9.0), &with(&other)),
    ];
    fed(&servers, || {
        let config = ClockConfig::new()
            .server("10.77.0.2:123 key 7")
            .server("10.77.0.2:1123 key 9")
            .server("10.77.0.2:2123 key 7")
            .keys(&ours)
            .serve(NODE);
        let open = || Node::builder().isolated().clock(quick(config)).open().unwrap();
        let node = hosts.inside(0, open);
        wait_until("it is synchronised", || node.clock().status() == ClockStatus::Synchronised);
        let part = |at: usize| node.clock().report().sources[at].selection;
        let is_used = |at| matches!(part(at), SourcePart::Selected | SourcePart::Combined);
        wait_until("both servers with the keys are used", || is_used(0) && is_used(1));
        assert_eq!(part(2), SourcePart::Unreachable);
        super::check(&node, 1_500_000_000, 500);

        // chronyd as a client of the node: by the right key, by another key of the same number, and by an unknown key.
        let run = |keys, id| hosts.inside(1, || measure(dir.path(), keys, id));
        let measured = std::thread::scope(|scope| {
            [(&ours, 7), (&other, 7)]
                .map(|(keys, id)| scope.spawn(move || run(keys, id)))
                .map(|it| it.join().unwrap())
        });
        assert_eq!(measured, [true, false]);
        wait_until("the node counts wrong keys", || {
            node.clock().report().serves.as_ref().is_some_and(|serves| serves.unauthenticated > 0)
        });

        // A node as a client of a node gets the reason.
        let wrong = quick(ClockConfig::new().server(&format!("{NODE} key 7")).keys(&other));
        let client = hosts.inside(1, || Node::builder().isolated().clock(wrong).open().unwrap());
        // The first report comes from the clock's thread.
        let source = || client.clock().report().sources.into_iter().next();
        wait_until("it is not used", || {
            source().is_some_and(|it| it.selection == SourcePart::Unauthenticated)
        });
        let rejected = source().unwrap().rejected;
        assert!(rejected.iter().any(|(cause, _)| cause == "key_refused"), "{rejected:?}");
        assert_eq!(client.clock().status(), ClockStatus::Unsynchronised);
    });
}
