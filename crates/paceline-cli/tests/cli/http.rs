//! The HTTP server of a node: its pages, and the requests that it rejects.

use crate::host::{Host, LIMIT, Running};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// A node with HTTP on a free port.
struct Served {
    _node: Running,
    address: SocketAddr,
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    body: Vec<u8>,
}

impl Served {
    fn start(host: &Host, more: &[&str]) -> Self {
        let args = [&["node", "--name", "gate", "--json", "--http", "127.0.0.1:0"], more].concat();
        let mut node = Running::unread(host.command(&args).spawn().unwrap());
        let line: serde_json::Value = serde_json::from_str(&node.first_line()).unwrap();
        let url = line["http"].as_str().unwrap();
        let address = url.trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
        Self { _node: node, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    }

    /// Sends `text` unchanged and reads until the server closes the connection.
    fn raw(&self, text: &str) -> Option<Answer> {
        let mut stream = self.connect();
        // The server may close before it has read everything; its response still counts.
        let _ = stream.write_all(text.as_bytes());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Answer::parse(&bytes)
    }

    fn ask(&self, line: &str, headers: &str) -> Answer {
        let address = self.address;
        let text =
            format!("{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n");
        self.raw(&text).expect("an answer")
    }

    fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), "")
    }

    /// Repeats the request until the response satisfies `wanted`.
    fn until(&self, path: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
        let until = Instant::now() + LIMIT;
        loop {
            let answer = self.get(path);
            if wanted(&answer) {
                return answer;
            }
            assert!(Instant::now() < until, "{path}: {answer:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Answer {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Self { status, head, body: bytes[end + 4..].to_vec() })
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Fails unless the response is an error with this status whose message contains `part`.
    pub(crate) fn refused(&self, status: u16, part: &str) {
        let output = self.json()["error"].as_str().unwrap_or_default().to_owned();
        assert_eq!(self.status, status, "{self:?}");
        assert!(output.contains(part), "'{part}' is not in: {output}");
    }
}

#[test]
fn the_api_reports_the_same_as_ls() {
    let host = Host::new();
    let node = Served::start(&host, &["--buffer", "log=10"]);
    let _talk = host.start(&["pub", "log", "--test-card", "320x240@5"]);
    let state = node.until("/api/v1/state", |answer| {
        let nodes = answer.json()["nodes"].clone();
        nodes.as_array().is_some_and(|nodes| {
            nodes.iter().any(|node| node["publishers"][0]["rate_hz"].as_f64() > Some(4.0))
        })
    });
    assert!(state.head.contains("application/json") && state.head.contains("nosniff"));
    let (shown, listed) = (node.get("/api/v1/nodes").json(), host.run(&["ls", "--json"]));
    let listed: serde_json::Value = serde_json::from_str(&listed.text()).unwrap();
    assert_eq!(shown["schema"], 1);
    let what = |document: &serde_json::Value, path: &str| {
        let nodes = document["nodes"].as_array().unwrap().clone();
        nodes.iter().map(|node| node.pointer(path).cloned()).collect::<Vec<_>>()
    };
    for path in ["/id", "/name", "/publishers/0/id", "/publishers/0/tag", "/buffers/0/pattern"] {
        assert_eq!(what(&shown, path), what(&listed, path), "{path}");
    }
    assert_eq!(node.get("/api/v1/nodes/gate").json()["name"], "gate");
    assert_eq!(node.get("/api/v1/publishers").json()["rows"][0]["tag"], "log");
    for rows in ["subscriptions", "buffers", "links", "streams", "refusals"] {
        assert!(node.get(&format!("/api/v1/{rows}")).json()["rows"].is_array(), "{rows}");
    }
    let metrics = node.get("/metrics");
    assert!(metrics.head.contains("text/plain; version=0.0.4"), "{}", metrics.head);
    let text = String::from_utf8(metrics.body).unwrap();
    assert!(text.contains("\npaceline_publisher_samples_total{node="), "{text}");
    let page = node.get("/");
    assert!(page.status == 200 && page.head.contains("text/html"), "{page:?}");
    assert!(page.head.contains("frame-ancestors 'none'"), "{}", page.head);
}

#[test]
fn events_are_sent_repeatedly() {
    let host = Host::new();
    let node = Served::start(&host, &[]);
    let mut stream = node.connect();
    let ask = format!("GET /api/v1/events HTTP/1.1\r\nHost: {}\r\n\r\n", node.address);
    stream.write_all(ask.as_bytes()).unwrap();
    let mut times = Vec::new();
    for line in BufReader::new(stream).lines() {
        if let Some(data) = line.unwrap().strip_prefix("data: ") {
            let state: serde_json::Value = serde_json::from_str(data).unwrap();
            assert_eq!(state["nodes"][0]["name"], "gate");
            times.push(state["at_ms"].as_u64().unwrap());
        }
        if times.len() == 3 {
            break;
        }
    }
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
}

#[test]
fn pictures_are_small_and_from_the_subscription() {
    let host = Host::new();
    let node = Served::start(&host, &["--buffer", "cam=10", "--buffer", "text=10"]);
    let _card = host.start(&["pub", "cam", "--test-card", "640x480@20"]);
    let buffers = node.get("/api/v1/buffers").json();
    let id = |pattern: &str| {
        let rows = buffers["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["pattern"] == pattern).unwrap();
        format!("/api/v1/pictures/{}", row["id"].as_str().unwrap())
    };
    let path = id("cam");
    let picture = node.until(&path, |answer| answer.status == 200);
    assert!(picture.head.contains("x-paceline-size: 640x480"), "{}", picture.head);
    let size = paceline_media::jpeg::dimensions(&picture.body).unwrap();
    assert_eq!((size.width, size.height), (320, 240));
    let seq = |answer: &Answer| {
        let line = answer.head.lines().find_map(|line| line.strip_prefix("x-paceline-seq: "));
        line.unwrap().parse::<u64>().unwrap()
    };
    let first = seq(&picture);
    let next = node.until(&format!("{path}?after={first}"), |answer| answer.status == 200);
    assert!(seq(&next) > first, "the pictures move");
    assert_eq!(node.get(&id("text")).status, 204, "nothing came yet");
    node.get(&format!("{path}?after=x")).refused(400, "after=NUMBER");
    node.get("/api/v1/pictures/0000000000000000.0").refused(404, "no such subscription");
    node.get("/api/v1/pictures/..%2f..").refused(404, "no such subscription");
}

#[test]
fn other_origins_and_names_are_refused() {
    let host = Host::new();
    let node = Served::start(&host, &[]);
    let state = "GET /api/v1/state";
    node.ask(state, "Origin: http://evil.example\r\n").refused(403, "Origin");
    node.ask(state, "Sec-Fetch-Site: cross-site\r\n").refused(403, "another site");
    node.ask(state, &format!("Origin: http://{}\r\n", node.address));
    let named = |name: &str| {
        let text = format!("{state} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
        node.raw(&text).unwrap()
    };
    named("evil.example").refused(421, "'evil.example', which is not this server");
    named(&format!("evil.example:{}", node.address.port())).refused(421, "not this server");
    assert_eq!(named(&format!("localhost:{}", node.address.port())).status, 200);
    node.raw("GET / HTTP/1.0\r\n\r\n").unwrap().refused(400, "Host");
}

#[test]
fn invalid_or_huge_requests_are_refused_without_harm() {
    let host = Host::new();
    let node = Served::start(&host, &[]);
    for garbage in ["GARBAGE\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\u{0}\u{1}\u{2}\r\n\r\n"] {
        assert!(node.raw(garbage).is_none_or(|answer| answer.status == 400), "{garbage:?}");
    }
    let huge = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(64 << 10));
    assert!(node.raw(&huge).is_none_or(|answer| answer.status == 431), "a huge head");
    let many: String = (0..100).map(|n| format!("X-{n}: 1\r\n")).collect();
    assert!(matches!(node.ask("GET /", &many).status, 400 | 431), "too many headers");
    node.get(&format!("/{}", "a".repeat(2_000))).refused(414, "512");
    node.ask("GET /api/v1/state", "Content-Length: 99999999999\r\n").refused(413, "no body");
    node.ask("GET /api/v1/state", "Transfer-Encoding: chunked\r\n").refused(413, "no body");
    node.ask("DELETE /api/v1/state", "").refused(405, "use GET");
    node.get("/api/v1/nothing").refused(404, "the paths are state, events");
    node.get("/nothing").refused(404, "the page is /");
    let turn = "POST /api/v1/switches/flood";
    node.ask(turn, "Content-Length: 0\r\n").refused(415, "application/json");
    let json = "Content-Type: application/json\r\n";
    node.ask(turn, &format!("{json}Content-Length: 3\r\n\r\n{{}}x")).refused(400, "{\"on\":true}");
    let long = format!("{json}Content-Length: 5000\r\n\r\n{}", "x".repeat(5_000));
    node.ask(turn, &long).refused(413, "1024");
    let right = format!("{json}Content-Length: 11\r\n\r\n{{\"on\":true}}");
    node.ask(turn, &right).refused(404, "no switch 'flood'");
    node.ask("GET /api/v1/switches/flood", "").refused(405, "use POST");
    assert_eq!(node.get("/api/v1/state").status, 200);
}

#[test]
fn a_subscription_is_changed_with_the_options_of_set() {
    let host = Host::new();
    let node = Served::start(&host, &[]);
    let _card = host.start(&["pub", "cam", "--test-card", "160x120@20"]);
    let _sub = host.start(&["sub", "cam", "--max-hz", "10"]);
    host.wait_for_subscriptions(1);
    let named = |answer: &Answer| {
        let rows = answer.json()["rows"].as_array().cloned().unwrap_or_default();
        let row = rows.into_iter().find(|row| row["pattern"] == "cam")?;
        row["id"].as_str().map(str::to_owned)
    };
    let rows = node.until("/api/v1/subscriptions", |answer| named(answer).is_some());
    let id = &named(&rows).unwrap();
    let post = |id: &str, body: &str| {
        let length = body.len();
        let head = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        node.ask(&format!("POST /api/v1/subscriptions/{id}"), &format!("{head}\r\n{body}"))
    };
    let answer = post(id, r#"{"set":"--max-hz 5 --size 80x60"}"#);
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json();
    assert_eq!(answer["answer"], "best_effort", "{answer}");
    assert!(answer["after"].as_str().unwrap().contains("80x60"), "{answer}");
    post(id, r#"{"set":""}"#).refused(400, "give --max-hz");
    post(id, r#"{"set":"--max-hz 0"}"#).refused(400, "from 0.001 to 1000000 (Hz)");
    post(id, r#"{"set":"--fast"}"#).refused(400, "--fast");
    post(id, r#"{"set":"--within 1s --idle 1s"}"#).refused(400, "--idle");
    post(id, r#"{"hz":5}"#).refused(400, "the body must be");
    post("0.0", r#"{"set":"--max-hz 5"}"#).refused(400, "there is no subscription 0.0");
    node.ask(&format!("GET /api/v1/subscriptions/{id}"), "").refused(405, "use POST");
}

#[test]
fn excess_followers_do_not_block_other_requests() {
    let host = Host::new();
    let node = Served::start(&host, &[]);
    let mut followers = Vec::new();
    loop {
        let mut stream = node.connect();
        let ask = format!("GET /api/v1/events HTTP/1.1\r\nHost: {}\r\n\r\n", node.address);
        stream.write_all(ask.as_bytes()).unwrap();
        let mut line = String::new();
        let mut reader = BufReader::new(stream);
        reader.read_line(&mut line).unwrap();
        if line.starts_with("HTTP/1.1 503") {
            break;
        }
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        followers.push(reader);
    }
    assert_eq!(followers.len(), 16);
    assert_eq!(node.get("/api/v1/state").status, 200, "who asks once is answered");
}

#[test]
fn only_this_host_is_served() {
    let host = Host::new();
    let node = host.run(&["node", "--http", "0.0.0.0:8470"]);
    node.said(2, "ssh -L").said(2, "--http");
    let first = Served::start(&host, &[]);
    let other = Host::new();
    let taken = other.run(&["node", "--http", &first.address.to_string()]);
    taken.said(1, "cannot serve HTTP on 127.0.0.1:").said(1, "give another address");
}

/// Waits for the refused requests in an audit log, which contains none of the `secrets`.
fn four_refusals_are_noted(audit: &std::path::Path, secrets: &[&str]) {
    let begun = Instant::now();
    let noted = || {
        let log = std::fs::read_to_string(audit).unwrap_or_default();
        assert!(!secrets.iter().any(|it| log.contains(it)), "{log}");
        log.lines().filter(|it| it.contains("http refused") && it.contains("127.0.0.1")).count()
    };
    while noted() < 4 {
        assert!(begun.elapsed() < LIMIT, "{} of 4 refusals in the audit log", noted());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn other_hosts_need_tls_and_a_token() {
    let network = crate::trust::Network::new();
    let host = Host::new();
    let open = host.run(&["node", "--http", "0.0.0.0:0"]);
    open.said(2, "set http_tls_cert, http_tls_key and http_tokens");
    let (read, change) = ("0123456789abcdef", "fedcba9876543210");
    let tokens = host.path("tokens");
    std::fs::write(&tokens, format!("# mine\nread {read}\nchange {change}\n")).unwrap();
    let files = network.dir().join("robot").display().to_string();
    let (config, policy, audit) =
        (host.path("http.toml"), host.path("policy.toml"), host.path("audit"));
    std::fs::write(&policy, format!("audit = \"{}\"\n", audit.display())).unwrap();
    let text = format!(
        "policy = \"{}\"\nhttp = \"0.0.0.0:0\"\nhttp_tls_cert = \"{files}/robot.pem\"\nhttp_tls_key = \"{files}/robot.key\"\n\
         http_tokens = \"{}\"\n",
        policy.display(),
        tokens.display()
    );
    std::fs::write(&config, &text).unwrap();
    let config = config.display().to_string();
    let mut node =
        Running::unread(host.command(&["node", "--json", "--config", &config]).spawn().unwrap());
    let line: serde_json::Value = serde_json::from_str(&node.first_line()).unwrap();
    let url = line["http"].as_str().unwrap();
    let port = url.strip_prefix("https://0.0.0.0:").expect(url).trim_end_matches('/');
    let port: u16 = port.parse().unwrap();
    let ca = std::fs::read(network.dir().join("robot/ca.pem")).unwrap();
    let ask = |method: &str, path: &str, more: &str| {
        let body = if method == "POST" { "{\"on\":true}" } else { "" };
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: robot:{port}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n{more}\r\n{body}",
            body.len()
        );
        Answer::parse(&over_tls(port, &ca, &text)).expect("an answer")
    };
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    ask("GET", "/api/v1/state", "").refused(401, "a token is needed");
    ask("GET", "/", "").refused(401, "a token is needed");
    ask("GET", "/metrics", &bearer("0123456789abcdeX")).refused(401, "a token is needed");
    assert_eq!(ask("GET", "/api/v1/state", &bearer(read)).status, 200);
    ask("POST", "/api/v1/switches/none", &bearer(read)).refused(403, "reading only");
    ask("POST", "/api/v1/subscriptions/0.0", &bearer(read)).refused(403, "reading only");
    ask("POST", "/api/v1/switches/none", &bearer(change)).refused(404, "no switch");
    let signed = ask("GET", &format!("/?token={read}"), "");
    assert_eq!(signed.status, 303, "{signed:?}");
    let cookie = signed.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.ends_with("; Secure"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(ask("GET", "/api/v1/state", &format!("Cookie: {cookie}\r\n")).status, 200);
    four_refusals_are_noted(&audit, &[read, change, "0123456789abcdeX"]);
    // Without TLS there is no answer.
    let mut plain = TcpStream::connect(("127.0.0.1", port)).unwrap();
    plain.set_read_timeout(Some(LIMIT)).unwrap();
    plain.write_all(b"GET /api/v1/state HTTP/1.1\r\nHost: robot\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    let _ = plain.read_to_end(&mut bytes);
    assert!(Answer::parse(&bytes).is_none(), "{}", String::from_utf8_lossy(&bytes));
    // Half a token file is an error.
    std::fs::write(&tokens, "read short\n").unwrap();
    host.run(&["node", "--config", &config]).said(2, "line 1: a token must be 16 to 256");
}

/// Sends `text` over TLS, checking the server's certificate, and returns the response.
fn over_tls(port: u16, ca: &[u8], text: &str) -> Vec<u8> {
    over_tls_from(Ipv4Addr::LOCALHOST, port, ca, text)
}

/// The same from this address of the host.
pub(crate) fn over_tls_from(from: Ipv4Addr, port: u16, ca: &[u8], text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    over_tls_while(from, port, ca, text, |read| {
        bytes = read.to_vec();
        true
    });
    bytes
}

/// Sends `text` over TLS, and calls `wants` with everything received so far, while it returns true.
pub(crate) fn over_tls_while(
    from: Ipv4Addr,
    port: u16,
    ca: &[u8],
    text: &str,
    mut wants: impl FnMut(&[u8]) -> bool,
) {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, ServerName};
    let mut roots = rustls::RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(ca) {
        roots.add(root.unwrap()).unwrap();
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("robot").unwrap();
    let mut session = rustls::ClientConnection::new(config.into(), name).unwrap();
    let mut stream = connect_from(from, port);
    let mut tls = rustls::Stream::new(&mut session, &mut stream);
    // A server that closes the connection is a response, too.
    let _ = tls.write_all(text.as_bytes());
    let (mut all, mut next) = (Vec::new(), [0; 4_096]);
    while let Ok(length @ 1..) = tls.read(&mut next) {
        all.extend_from_slice(&next[..length]);
        if !wants(&all) {
            return;
        }
    }
}

/// Connects to a port of this host from this address of it.
pub(crate) fn connect_from(from: Ipv4Addr, port: u16) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        socket.connect((Ipv4Addr::LOCALHOST, port).into()).await.unwrap().into_std().unwrap()
    });
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}
