//! The HTTP server of a node with TLS and tokens: silent and slow connections, and requests of other sites.

use crate::host::{Host, LIMIT, Running};
use crate::http::{Answer, connect_from, over_tls_from, over_tls_while};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const READ: &str = "0123456789abcdef";
/// The address of the clients that send no request.
const STRANGER: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// Another address of the same host, for a client elsewhere.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);

/// A node with HTTP behind TLS and tokens.
struct Encrypted {
    _network: crate::trust::Network,
    _host: Host,
    _node: Running,
    port: u16,
    ca: Vec<u8>,
}

impl Encrypted {
    fn start() -> Self {
        let network = crate::trust::Network::new();
        let host = Host::new();
        let (tokens, config) = (host.path("tokens"), host.path("http.toml"));
        std::fs::write(&tokens, format!("read {READ}\n")).unwrap();
        let files = network.dir().join("robot").display().to_string();
        let text = format!(
            "http = \"0.0.0.0:0\"\nhttp_tls_cert = \"{files}/robot.pem\"\n\
             http_tls_key = \"{files}/robot.key\"\nhttp_tokens = \"{}\"\n",
            tokens.display()
        );
        std::fs::write(&config, text).unwrap();
        let config = config.display().to_string();
        let mut node = Running::unread(
            host.command(&["node", "--json", "--config", &config]).spawn().unwrap(),
        );
        let line: serde_json::Value = serde_json::from_str(&node.first_line()).unwrap();
        let url = line["http"].as_str().unwrap();
        let port = url.strip_prefix("https://0.0.0.0:").expect(url).trim_end_matches('/');
        let port = port.parse().unwrap();
        let ca = std::fs::read(network.dir().join("robot/ca.pem")).unwrap();
        Self { _network: network, _host: host, _node: node, port, ca }
    }

    fn silent(&self) -> TcpStream {
        connect_from(STRANGER, self.port)
    }

    /// Sends a request for the state with this `Host` and these headers.
    fn ask(&self, from: Ipv4Addr, host: &str, headers: &str) -> Option<Answer> {
        let text = format!(
            "GET /api/v1/state HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"
        );
        Answer::parse(&over_tls_from(from, self.port, &self.ca, &text))
    }

    fn status(&self, from: Ipv4Addr, headers: &str) -> Option<u16> {
        self.ask(from, &format!("robot:{}", self.port), headers).map(|answer| answer.status)
    }

    /// Fails unless requests with and without a token are answered, from both addresses.
    fn all_are_answered(&self, during: &str) {
        for from in [STRANGER, ELSEWHERE] {
            let bearer = format!("Authorization: Bearer {READ}\r\n");
            assert_eq!(self.status(from, &bearer), Some(200), "{during}, from {from}");
            assert_eq!(self.status(from, ""), Some(401), "{during}, from {from}");
        }
    }
}

/// The first bytes of a TLS handshake: a record of 512 bytes of which the rest does not follow.
const HALF_HELLO: [u8; 9] = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc];

#[test]
fn silent_connections_keep_no_request_out() {
    let node = Encrypted::start();
    let mut open = Vec::new();
    for count in [64, 300] {
        while open.len() < count {
            open.push(node.silent());
            if open.len() % 25 == 0 {
                node.all_are_answered(&format!("with {} silent connections", open.len()));
            }
        }
        node.all_are_answered(&format!("with {count} silent connections"));
    }
}

#[test]
fn unfinished_handshakes_keep_no_request_out_and_end_soon() {
    let node = Encrypted::start();
    let begun = Instant::now();
    let mut open: Vec<TcpStream> = (0..300).map(|_| node.silent()).collect();
    for stream in &mut open {
        let _ = stream.write_all(&HALF_HELLO);
    }
    node.all_are_answered("with 300 unfinished handshakes");
    for mut stream in open {
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert!(begun.elapsed() < LIMIT / 2, "the server closes them");
}

/// Ends [`trickle`] when it is dropped, also if the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Keeps 100 connections open, each of which sends a byte per 100 ms, until `done`.
fn trickle(port: u16, bytes: &[u8], done: &AtomicBool) {
    let mut open: Vec<(TcpStream, std::iter::Cycle<std::slice::Iter<'_, u8>>)> = Vec::new();
    while !done.load(Ordering::Relaxed) {
        open.retain_mut(|(stream, next)| stream.write_all(&[*next.next().unwrap()]).is_ok());
        while open.len() < 100 {
            open.push((connect_from(STRANGER, port), bytes.iter().cycle()));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn slow_bytes_keep_no_request_out() {
    let node = Encrypted::start();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends = Ends(&done);
        scope.spawn(|| trickle(node.port, &HALF_HELLO, &done));
        let until = Instant::now() + Duration::from_secs(6);
        while Instant::now() < until {
            node.all_are_answered("with 100 slow handshakes");
            std::thread::sleep(Duration::from_millis(200));
        }
    });
}

#[test]
fn slow_heads_without_tls_keep_no_request_out_and_end_soon() {
    let host = Host::new();
    let args = ["node", "--json", "--http", "127.0.0.1:0"];
    let mut node = Running::unread(host.command(&args).spawn().unwrap());
    let line: serde_json::Value = serde_json::from_str(&node.first_line()).unwrap();
    let url = line["http"].as_str().unwrap().to_owned();
    let port = url.trim_end_matches('/').rsplit_once(':').unwrap().1.parse().unwrap();
    let ask = || {
        let mut stream = connect_from(STRANGER, port);
        let text = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
        let _ = stream.write_all(text.as_bytes());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Answer::parse(&bytes).map(|answer| answer.status)
    };
    let mut slow = connect_from(STRANGER, port);
    slow.write_all(b"GET / HTTP/1.1\r\nX: ").unwrap();
    let begun = Instant::now();
    while slow.write_all(b"x").is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(8), "a slow head is closed");
        std::thread::sleep(Duration::from_millis(50));
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends = Ends(&done);
        scope.spawn(|| trickle(port, b"GET / HTTP/1.1\r\nX: xxxxxxxxxxxxxxxxxxxxxxx", &done));
        let until = Instant::now() + Duration::from_secs(6);
        while Instant::now() < until {
            assert_eq!(ask(), Some(200));
            std::thread::sleep(Duration::from_millis(50));
        }
    });
}

#[test]
fn a_client_with_a_token_keeps_its_connection_among_strangers() {
    let node = Encrypted::start();
    let bearer = format!("Authorization: Bearer {READ}\r\n");
    let events = format!("GET /api/v1/events HTTP/1.1\r\nHost: robot\r\n{bearer}\r\n");
    let (first, seen) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            over_tls_while(STRANGER, node.port, &node.ca, &events, |bytes| {
                let text = String::from_utf8_lossy(bytes);
                let count = text.matches("event: state").count();
                let _ = first.send(count);
                count < 4
            });
        });
        // The stream of events begins, and continues among 300 connections from the same address.
        assert!(seen.recv_timeout(LIMIT).is_ok());
        let _open: Vec<TcpStream> = (0..300).map(|_| node.silent()).collect();
        while seen.recv_timeout(LIMIT).expect("the stream of events continues") < 4 {}
    });
}

#[test]
fn tokens_do_not_replace_the_checks_of_host_and_origin() {
    let node = Encrypted::start();
    let cookie = format!("Cookie: paceline-token={READ}\r\n");
    let port = node.port;
    let ask = |host: &str, more: &str| {
        node.ask(STRANGER, host, &format!("{cookie}{more}")).expect("an answer")
    };
    for host in ["robot", "ROBOT:443", "127.0.0.1:1", "[::1]:8470", "localhost:1"] {
        assert_eq!(ask(host, "").status, 200, "{host}");
    }
    for host in ["evil.example", "robot.evil.example:8470", "operator", "[::1", ""] {
        ask(host, "").refused(421, "or a name of http_tls_cert");
    }
    let robot = format!("robot:{port}");
    assert_eq!(ask(&robot, &format!("Origin: https://robot:{port}\r\n")).status, 200);
    for origin in ["https://evil.example", "null", "http://robot:{port}", "https://robot:1"] {
        let origin = origin.replace("{port}", &port.to_string());
        ask(&robot, &format!("Origin: {origin}\r\n")).refused(403, "Origin");
    }
    for site in ["cross-site", "same-site"] {
        ask(&robot, &format!("Sec-Fetch-Site: {site}\r\n")).refused(403, "another site");
    }
    let link = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";
    assert_eq!(ask(&robot, link).status, 200, "a link from another site");
}
