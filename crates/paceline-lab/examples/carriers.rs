//! Compares the carriers of a link, and Zenoh alone over a unix socket and TLS: throughput, processor time and the
//! delay of small samples.
//!
//! Both ends run in this process. Usage: `carriers [SECONDS]`, 3 by default.

use paceline::{Capacity, LinkConfig, Node};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use zenoh::Wait as _;
use zenoh::qos::CongestionControl;

const BULK_BYTES: usize = 100_000;
/// Zenoh reads its settings when the process starts. With more threads its TLS connections break.
const ZENOH_THREADS: &str = "ZENOH_RUNTIME";
const ONE_THREAD: &str =
    "(rx: (worker_threads: 1), tx: (handover: rx), net: (handover: rx), acc: (handover: rx))";

/// Writes an authority and a certificate to `dir`.
fn certificates(dir: &Path) -> Result<(PathBuf, PathBuf, PathBuf), Box<dyn Error>> {
    std::fs::create_dir_all(dir)?;
    let (root, key) = (KeyPair::generate()?, KeyPair::generate()?);
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let names = vec!["member".to_owned(), "localhost".to_owned()];
    let mut member = CertificateParams::new(names)?;
    member.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    let [cert, private, ca] = ["member.pem", "member.key", "ca.pem"].map(|name| dir.join(name));
    std::fs::write(&ca, authority.self_signed(&root)?.pem())?;
    std::fs::write(&private, key.serialize_pem())?;
    std::fs::write(&cert, member.signed_by(&key, &Issuer::new(authority, root))?.pem())?;
    Ok((cert, private, ca))
}

/// Returns the processor time of this process.
fn processor() -> Duration {
    let ticks = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = ticks.rsplit(')').next().unwrap_or_default().split(' ').collect();
    let field = |at: usize| fields.get(at).and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis((field(12) + field(13)) * 10)
}

fn run(
    (endpoint, capacity): (&str, Option<Capacity>),
    seconds: u64,
    (cert, key, ca): &(PathBuf, PathBuf, PathBuf),
) -> Result<(), Box<dyn Error>> {
    let protocol = endpoint.split('/').next().unwrap_or_default();
    let encrypted = matches!(protocol, "quic" | "tls");
    let policy = ca.with_file_name("policy.toml");
    std::fs::write(
        &policy,
        "[[rule]]\npeers = ['*', '@host']\npublish = '**'\nsubscribe = '**'\n",
    )?;
    let open = |link: LinkConfig| {
        let link = if encrypted { link.tls(cert, key, ca) } else { link };
        let link = capacity.into_iter().fold(link, |link, it| link.capacity(it));
        Node::builder().isolated().policy(&policy).link(link).open()
    };
    let sender = open(LinkConfig::new("link").listen(endpoint))?;
    let receiver = open(LinkConfig::new("link").connect(endpoint))?;
    let mut ping = sender.publisher("ping").declare()?;
    let mut pings = receiver.subscriber("ping").declare()?;
    if !ping.wait_matching(Duration::from_secs(10)) {
        return Err(format!("{protocol}: the nodes do not find each other").into());
    }
    let mut ages = Vec::new();
    for _ in 0..seconds * 200 {
        ping.put(vec![0; 64])?;
        ages.push(pings.recv_timeout(Duration::from_secs(5))?.age);
        std::thread::sleep(Duration::from_millis(2));
    }
    ages.sort();
    let mut bulk = sender.publisher("bulk").declare()?;
    let mut samples = receiver.subscriber("bulk").queue(1_000).declare()?;
    if !bulk.wait_matching(Duration::from_secs(10)) {
        return Err(format!("{protocol}: no subscriber").into());
    }
    let (began, before) = (Instant::now(), processor());
    let reader = std::thread::spawn(move || {
        let mut bytes = 0;
        while let Ok(sample) = samples.recv_timeout(Duration::from_secs(1)) {
            bytes += sample.payload.len();
        }
        bytes
    });
    let payload = bytes::Bytes::from(vec![7; BULK_BYTES]);
    let mut published = 0;
    while began.elapsed() < Duration::from_secs(seconds) {
        bulk.put_blocking(payload.clone())?;
        published += BULK_BYTES;
    }
    let (time, used) = (began.elapsed(), processor() - before);
    drop(bulk);
    let got = reader.join().map_err(|_| "the reader panicked")?;
    let name = capacity.map_or_else(|| protocol.to_owned(), |it| format!("{protocol}, {it}"));
    print(&name, (got, published), (time, used), &ages);
    sender.close();
    receiver.close();
    Ok(())
}

/// Prints a row; `ages` are sorted.
fn print(
    what: &str,
    (got, published): (usize, usize),
    (time, used): (Duration, Duration),
    ages: &[Duration],
) {
    let at = |part: usize| ages.get(ages.len() * part / 100).copied().unwrap_or_default();
    let megabytes = got as f64 / 1e6;
    println!(
        "{what:23} {:8.0} MB/s  {:6.2} ms of processor per MB  {:5.1} % delivered  ping p50 {:4} us, p99 {:4} us",
        megabytes / time.as_secs_f64(),
        used.as_secs_f64() * 1e3 / megabytes,
        100.0 * got as f64 / published as f64,
        at(50).as_micros(),
        at(99).as_micros(),
    );
}

/// Measures Zenoh alone, over TLS with certificates at both ends.
fn run_zenoh(
    endpoint: &str,
    seconds: u64,
    (cert, key, ca): &(PathBuf, PathBuf, PathBuf),
) -> Result<(), Box<dyn Error>> {
    let plain = |error: zenoh::Error| -> Box<dyn Error> { error };
    let open = |side: &str| {
        let mut config = zenoh::Config::default();
        let endpoint = format!("[{endpoint:?}]");
        for (name, value) in [
            ("mode", "\"peer\"".to_owned()),
            ("listen/endpoints", "[]".to_owned()),
            (side, endpoint),
            ("scouting/multicast/enabled", "false".to_owned()),
            ("transport/link/tls/root_ca_certificate", format!("{ca:?}")),
            ("transport/link/tls/listen_certificate", format!("{cert:?}")),
            ("transport/link/tls/listen_private_key", format!("{key:?}")),
            ("transport/link/tls/connect_certificate", format!("{cert:?}")),
            ("transport/link/tls/connect_private_key", format!("{key:?}")),
            ("transport/link/tls/enable_mtls", "true".to_owned()),
        ] {
            config.insert_json5(name, &value)?;
        }
        paceline_plain::open_session(config)
    };
    let sender = open("listen/endpoints").map_err(plain)?;
    let receiver = open("connect/endpoints").map_err(plain)?;
    let (arrived, samples) = std::sync::mpsc::channel();
    let subscriber = receiver.declare_subscriber("x").callback(move |sample| {
        let _ = arrived.send((Instant::now(), sample.payload().len()));
    });
    let _subscriber = subscriber.wait().map_err(plain)?;
    let publisher = sender.declare_publisher("x").congestion_control(CongestionControl::Block);
    let publisher = publisher.wait().map_err(plain)?;
    while !publisher.matching_status().wait().map_err(plain)?.matching() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut ages = Vec::new();
    for _ in 0..seconds * 200 {
        let sent = Instant::now();
        publisher.put(vec![0; 64]).wait().map_err(plain)?;
        ages.push(samples.recv_timeout(Duration::from_secs(5))?.0 - sent);
        std::thread::sleep(Duration::from_millis(2));
    }
    ages.sort();
    let (began, before) = (Instant::now(), processor());
    let payload = zenoh::bytes::ZBytes::from(vec![7; BULK_BYTES]);
    let mut published = 0;
    while began.elapsed() < Duration::from_secs(seconds) {
        publisher.put(payload.clone()).wait().map_err(plain)?;
        published += BULK_BYTES;
    }
    let mut got = 0;
    while let Ok((_, bytes)) = samples.recv_timeout(Duration::from_millis(500)) {
        got += bytes;
        if got == published {
            break;
        }
    }
    let protocol = endpoint.split('/').next().unwrap_or_default();
    print(
        &format!("Zenoh's {protocol}"),
        (got, published),
        (began.elapsed(), processor() - before),
        &ages,
    );
    Ok(())
}

/// Calls `run` with a free port, and again with others if a program takes the port in between.
fn at_free_port(run: impl Fn(u16) -> Result<(), Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
    let mut tries = 3;
    loop {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        tries -= 1;
        match run(port) {
            Err(error) if tries > 0 && error.to_string().contains("in use") => {}
            done => return done,
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(3), |it| it.parse())?;
    if std::env::var_os(ZENOH_THREADS).is_none() {
        let mut again = std::process::Command::new(std::env::current_exe()?);
        let status = again.arg(seconds.to_string()).env(ZENOH_THREADS, ONE_THREAD).status()?;
        return if status.success() { Ok(()) } else { Err("the measurement failed".into()) };
    }
    let dir = std::env::temp_dir().join(format!("paceline-carriers-{}", std::process::id()));
    let files = certificates(&dir)?;
    let socket = |name| dir.join(name).display().to_string();
    run((&format!("unix/{}", socket("own.sock")), None), seconds, &files)?;
    // With a capacity, QUIC carries datagrams instead of a stream.
    let paced = Capacity::from_bits_per_s(1_000_000_000)?;
    for (protocol, capacity) in
        [("tcp", None), ("tls", None), ("quic", None), ("quic", Some(paced))]
    {
        at_free_port(|port| {
            run((&format!("{protocol}/127.0.0.1:{port}"), capacity), seconds, &files)
        })?;
    }
    run_zenoh(&format!("unixsock-stream/{}", socket("zenoh.sock")), seconds, &files)?;
    at_free_port(|port| run_zenoh(&format!("tls/localhost:{port}"), seconds, &files))?;
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
