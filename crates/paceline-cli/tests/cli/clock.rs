//! `paceline clock`: the clock of a node, and servers without a node.

use crate::host::{Host, LIMIT, arg};
use rustix::process::Signal;
use serde_json::Value;
use std::time::{Duration, Instant};

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// The fields of the document, and of a server in it.
const FIELDS: [&str; 17] = [
    "disruption",
    "disruptions",
    "epoch",
    "error_ns",
    "follows_host",
    "frequency_ppm",
    "jitter_ns",
    "leap",
    "node",
    "schema",
    "servers",
    "serves",
    "status",
    "stratum",
    "system_offset_ns",
    "time_ns",
    "updates",
];
const SERVER_FIELDS: [&str; 13] = [
    "address",
    "answers",
    "delay_ns",
    "error_ns",
    "jitter_ns",
    "key",
    "kind",
    "offset_ns",
    "part",
    "poll_us",
    "reach",
    "rejected",
    "stratum",
];

#[test]
fn a_node_shows_its_clock_and_serves_it() {
    let host = Host::new();
    let none = host.run(&["clock"]);
    assert_eq!(none.code, Some(1), "{none:?}");
    assert!(none.stderr.contains("no node runs on this host"), "{none:?}");

    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    drop(socket);
    let file = host.path("node.toml");
    std::fs::write(&file, format!("[clock]\nsystem = \"1ms\"\nserve = \"{address}\"\n")).unwrap();
    let node = host.start(&["node", "--name", "gate", "--config", arg(&file)]);
    let until = Instant::now() + LIMIT;
    let shown = loop {
        let shown = host.run(&["clock", "--json"]);
        if shown.code == Some(0) || Instant::now() > until {
            break shown;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let document = json(&shown.stdout);
    assert_eq!(keys(&document), FIELDS);
    assert_eq!((&document["node"], &document["status"]), (&"gate".into(), &"synchronised".into()));
    assert!(document["error_ns"].as_u64().is_some_and(|error| error >= 1_000_000), "{document}");
    let system = &document["servers"][0];
    assert_eq!((&system["part"], &system["kind"]), (&"selected".into(), &"system".into()));
    let text = String::from_utf8(host.run(&["clock", "--of", "gate"]).stdout).unwrap();
    assert!(text.contains("status     synchronised") && text.contains("SERVERS"), "{text}");

    // The same time without a node, by the protocol.
    let measured =
        host.run(&["clock", "--server", &address, "--poll", "250ms", "--timeout", "20s", "--json"]);
    assert_eq!(measured.code, Some(0), "{measured:?}");
    let document = json(&measured.stdout);
    let server = &document["servers"][0];
    assert_eq!(keys(server), SERVER_FIELDS);
    assert_eq!((&server["kind"], &server["address"]), (&"server".into(), &address.into()));
    assert_eq!((&server["stratum"], &server["answers"]), (&10.into(), &4.into()), "{server}");
    assert!(document["error_ns"].as_u64().is_some_and(|error| error >= 1_000_000), "{document}");
    node.signal(Signal::TERM);
    assert_eq!(node.ended().code, Some(0));
}

#[test]
fn wrong_servers_are_named_and_silent_ones_give_an_unknown_error() {
    let host = Host::new();
    let wrong = host.run(&["clock", "--server", "ntp.example"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("--server 'ntp.example': must be HOST:PORT"), "{wrong:?}");
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let ended = host.run(&["clock", "--server", &address, "--poll", "250ms", "--timeout", "500ms"]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let text = String::from_utf8(ended.stdout).unwrap();
    assert!(text.contains("of unknown error") && text.contains("unreachable"), "{text}");
}

/// Answers one request of an NTP client with the time of the system clock, as a server of stratum 1.
fn answer_once(server: &std::net::UdpSocket) {
    let mut request = [0; 48];
    let (_, client) = server.recv_from(&mut request).unwrap();
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    // Seconds since 1900, and their fraction.
    let fraction = (u64::from(since.subsec_nanos()) << 32) / 1_000_000_000;
    let time = (((since.as_secs() + 2_208_988_800) << 32) | fraction).to_be_bytes();
    let mut answer = [0; 48];
    // No leap second, version 4, a server, stratum 1, a precision of 2^-20 s.
    answer[..4].copy_from_slice(&[0x24, 1, 0, 0xec]);
    answer[24..32].copy_from_slice(&request[40..48]);
    answer[32..40].copy_from_slice(&time);
    answer[40..48].copy_from_slice(&time);
    server.send_to(&answer, client).unwrap();
}

#[test]
fn the_offset_of_a_server_that_answers_once_is_that_from_the_system_clock() {
    let host = Host::new();
    let server = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    let answering = std::thread::spawn(move || {
        answer_once(&server);
        // It stays open, so that the later requests are silent instead of refused.
        server
    });
    let measured =
        host.run(&["clock", "--server", &address, "--poll", "250ms", "--timeout", "1s", "--json"]);
    let _server = answering.join().unwrap();
    assert_eq!(measured.code, Some(3), "{measured:?}");
    let document = json(&measured.stdout);
    let server = &document["servers"][0];
    assert_eq!((&server["answers"], &document["error_ns"]), (&1.into(), &Value::Null), "{server}");
    let offset = server["offset_ns"].as_i64().unwrap().unsigned_abs();
    assert!(offset <= server["error_ns"].as_u64().unwrap() + 10_000_000, "{server}");
}
