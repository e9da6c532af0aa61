//! Links whose ends know each other, and neighbours that claim what is not theirs.

use crate::hosts::Hosts;
use crate::radio::Radio;
use crate::rogue::Rogue;
use crate::support::{SOON, at_rate, free_endpoint, isolated, wait_until};
use paceline::{Capacity, LinkConfig, Node};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A policy that grants everything to all members.
const ALL_RIGHTS: &str = "[[rule]]\npeers = ['*']\npublish = '**'\nsubscribe = '**'\npull = '**'\n\
                          set = '**'\nobserve = true\nrelay = true\n";

/// A folder with an authority and certificates that it issued.
pub(crate) struct Authority {
    dir: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let dir = format!("paceline-trust-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(dir);
        std::fs::create_dir_all(&dir).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![rcgen::KeyUsagePurpose::KeyCertSign, rcgen::KeyUsagePurpose::CrlSign];
        std::fs::write(dir.join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        std::fs::write(dir.join("policy.toml"), ALL_RIGHTS).unwrap();
        Self { dir, issuer: Issuer::new(params, key) }
    }

    fn ca(&self) -> PathBuf {
        self.dir.join("ca.pem")
    }

    /// Returns a file of this authority's folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Opens a node at which all members have all rights.
    pub(crate) fn node(&self, name: &str, link: LinkConfig) -> Node {
        let builder = Node::builder().name(name).isolated().policy(self.file("policy.toml"));
        builder.link(link).open().unwrap()
    }

    /// Issues a certificate; returns its file and the file of its key.
    fn issue(&self, name: &str, change: impl Fn(&mut CertificateParams)) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        change(&mut params);
        let [cert, private] = ["pem", "key"].map(|end| self.dir.join(format!("{name}.{end}")));
        std::fs::write(&cert, params.signed_by(&key, &self.issuer).unwrap().pem()).unwrap();
        std::fs::write(&private, key.serialize_pem()).unwrap();
        (cert, private)
    }
}

impl Authority {
    /// Opens a node with a certificate and these links, at which all members have all rights.
    pub(crate) fn member_of_all(&self, name: &str, links: Vec<LinkConfig>) -> Node {
        let files = self.issue(name, |_| ());
        let builder = Node::builder().isolated().policy(self.file("policy.toml"));
        let links = links.into_iter().map(|link| quic(link, &files, &self.ca()));
        links.fold(builder, |builder, link| builder.link(link)).open().unwrap()
    }

    /// Gives a link a certificate of this authority.
    pub(crate) fn member(&self, name: &str, link: LinkConfig) -> LinkConfig {
        quic(link, &self.issue(name, |_| ()), &self.ca())
    }
}

fn quic(link: LinkConfig, (cert, key): &(PathBuf, PathBuf), ca: &Path) -> LinkConfig {
    link.tls(cert, key, ca)
}

/// Returns a QUIC endpoint on a free port.
pub(crate) fn free_quic() -> String {
    free_endpoint().replace("tcp/", "quic/")
}

/// Opens two nodes with certificates of one authority.
fn members(capacity: Option<u64>) -> (Authority, Node, Node) {
    let authority = Authority::new(&format!("members{}", capacity.unwrap_or_default()));
    let endpoint = free_quic();
    let link = |name: &str| {
        let number = if name == "operator" { 7u64 } else { 8 };
        let files = authority.issue(name, |params| params.serial_number = Some(number.into()));
        let link = quic(LinkConfig::new("radio"), &files, &authority.ca());
        capacity
            .map_or(link.clone(), |bits| link.capacity(Capacity::from_bits_per_s(bits).unwrap()))
    };
    let robot = authority.node("robot", link("robot").listen(&endpoint));
    let operator = authority.node("operator", link("operator").connect(&endpoint));
    (authority, robot, operator)
}

#[test]
fn members_exchange_samples_of_any_size_over_quic() {
    let (_authority, robot, operator) = members(None);
    let mut camera = robot.publisher("camera").declare().unwrap();
    let mut pictures = operator.subscriber("camera").queue(1_000).declare().unwrap();
    assert!(camera.wait_matching(SOON));
    let sizes: Vec<usize> = (0..200).map(|n| n * n).chain([1_000_000]).collect();
    for (number, size) in sizes.iter().enumerate() {
        camera.put_blocking(vec![number.to_le_bytes()[0]; *size]).unwrap();
    }
    for (number, size) in sizes.iter().enumerate() {
        let sample = pictures.recv_timeout(SOON).unwrap();
        assert_eq!((sample.seq, sample.payload.len()), (number as u64, *size));
        assert!(sample.payload.iter().all(|byte| *byte == number.to_le_bytes()[0]));
    }
}

#[test]
fn members_meet_over_ipv6() {
    let Ok(socket) = UdpSocket::bind("[::1]:0") else {
        println!("members_meet_over_ipv6: skipped, this host has no IPv6");
        return;
    };
    let endpoint = format!("quic/{}", socket.local_addr().unwrap());
    drop(socket);
    let authority = Authority::new("ipv6");
    let link = |name: &str| authority.member(name, LinkConfig::new("radio"));
    let robot = authority.node("robot", link("robot").listen(&endpoint));
    let operator = authority.node("operator", link("operator").connect(&endpoint));
    let mut camera = robot.publisher("camera").declare().unwrap();
    let mut pictures = operator.subscriber("camera").declare().unwrap();
    assert!(camera.wait_matching(SOON));
    camera.put_blocking(vec![7; 100_000]).unwrap();
    assert_eq!(pictures.recv_timeout(SOON).unwrap().payload.len(), 100_000);
}

#[test]
fn a_contract_holds_over_quic() {
    let (_authority, robot, operator) = members(Some(10_000_000));
    let mut steer = robot.publisher("steer").hz(100.0).bytes_max(64).declare().unwrap();
    let mut bulk = robot.publisher("bulk").declare().unwrap();
    // Without a schedule, steering would wait for seconds behind the bulk.
    let within = Duration::from_millis(200);
    let mut commands = operator.subscriber("steer").within(within).queue(1_000).declare().unwrap();
    let _all = operator.subscriber("bulk").declare().unwrap();
    assert!(steer.wait_matching(SOON) && bulk.wait_matching(SOON));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..200 {
                let command = commands.recv_timeout(SOON).unwrap();
                assert_eq!((command.seq, command.late), (number, false), "age {:?}", command.age);
            }
        });
        at_rate(100, 200, |_| {
            for _ in 0..4 {
                bulk.put(vec![1; 10_000]).unwrap();
            }
            steer.put(vec![0; 64]).unwrap();
        });
    });
}

#[test]
fn certificates_of_others_are_refused() {
    let (authority, others) = (Authority::new("own"), Authority::new("others"));
    let endpoint = free_quic();
    let files = authority.issue("listener", |_| ());
    let listening = quic(LinkConfig::new("radio").listen(&endpoint), &files, &authority.ca());
    let listener = authority.node("listener", listening);
    let foreign = others.issue("foreign", |_| ());
    let connect = || LinkConfig::new("radio").connect(&endpoint);
    // It trusts the authority of the network, but is not a member.
    let link = quic(connect(), &foreign, &others.ca());
    let stranger = isolated("foreign", [link]);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!((stranger.nodes().len(), listener.nodes().len()), (1, 1));
}

#[test]
fn invalid_files_are_named_with_a_fix() {
    let authority = Authority::new("files");
    let good = authority.issue("good", |_| ());
    let past = |params: &mut CertificateParams| {
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    };
    let future = |params: &mut CertificateParams| {
        params.not_before = rcgen::date_time_ymd(2900, 1, 1);
        params.not_after = rcgen::date_time_ymd(2901, 1, 1);
    };
    let server = |params: &mut CertificateParams| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    };
    let expired = authority.issue("expired", past);
    let early = authority.issue("early", future);
    let purpose = authority.issue("purpose", server);
    let others = Authority::new("files2");
    let foreign = others.issue("foreign", |_| ());
    let damaged = authority.dir.join("damaged.pem");
    std::fs::write(&damaged, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        .unwrap();
    let missing = authority.dir.join("missing.pem");
    let (cert, key) = good.clone();
    for (cert, key, ca, part) in [
        (&expired.0, &expired.1, authority.ca(), "has expired, or the clock of this host is wrong"),
        (&early.0, &early.1, authority.ca(), "is not valid yet; set the clock"),
        (&purpose.0, &purpose.1, authority.ca(), "extended key usage clientAuth"),
        (&foreign.0, &foreign.1, authority.ca(), "another authority issued the certificate"),
        (&cert, &foreign.1, authority.ca(), "use the key that belongs to the certificate"),
        (&damaged, &key, authority.ca(), "damaged"),
        (&missing, &key, authority.ca(), "missing.pem"),
        (&cert, &key, missing.clone(), "tls_ca"),
        (&key, &key, authority.ca(), "contains no certificate"),
    ] {
        let link = LinkConfig::new("radio").listen("quic/127.0.0.1:0").tls(cert, key, ca);
        let error = Node::builder().isolated().link(link).open().err().unwrap().to_string();
        assert!(error.contains(part) && error.starts_with("link 'radio': "), "{part}: {error}");
    }
    let bare = LinkConfig::new("radio").listen("quic/127.0.0.1:7600").check();
    assert!(bare.unwrap_err().to_string().contains("needs tls_cert, tls_key and tls_ca"));
}

#[test]
fn a_revoked_member_loses_its_links() {
    let (authority, robot, operator) = members(Some(30_000_000));
    wait_until("they meet", || robot.nodes().len() == 2);
    let revoked = rcgen::RevokedCertParams {
        serial_number: rcgen::SerialNumber::from(7u64),
        revocation_time: rcgen::date_time_ymd(2024, 1, 1),
        reason_code: None,
        invalidity_date: None,
    };
    // The serial number of the operator's certificate.
    let list = rcgen::CertificateRevocationListParams {
        this_update: rcgen::date_time_ymd(2024, 1, 1),
        next_update: rcgen::date_time_ymd(2900, 1, 1),
        crl_number: rcgen::SerialNumber::from(1u64),
        issuing_distribution_point: None,
        revoked_certs: vec![revoked],
        key_identifier_method: rcgen::KeyIdMethod::Sha256,
    };
    let list = list.signed_by(&authority.issuer).unwrap().pem().unwrap();
    let ca = std::fs::read_to_string(authority.ca()).unwrap();
    std::fs::write(authority.ca(), ca + &list).unwrap();
    let time = wait_until("the link of the revoked member ends", || robot.nodes().len() == 1);
    println!("closed after {time:?}");
    assert!(time < Duration::from_secs(5));
    assert_eq!(operator.nodes().len(), 1);
}

/// A stranger's attack on a listener.
#[derive(Clone, Copy, Debug)]
enum Attack {
    /// Datagrams that are no QUIC, and ones that look like it, from many addresses: 10 per second.
    FewDatagrams,
    /// 1,000 such datagrams per second.
    Datagrams,
    /// Handshakes that are begun and never continued, 500 at a time.
    HalfOpen,
    /// Handshakes without a certificate, up to 1,000 per second.
    Handshakes,
}

/// Sends datagrams, four at a time from a new port.
fn send_garbage(to: &str, pause: Duration, over: &AtomicBool) -> u64 {
    let (mut seed, mut sent) = (1u64, 0);
    while !over.load(Ordering::Relaxed) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for kind in [0u8, 0x40, 0xc0, 0xff] {
            let mut datagram = vec![kind, 0, 0, 0, 1, 8];
            datagram.resize(1_200, 0);
            for byte in &mut datagram[6..] {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = seed.to_le_bytes()[7];
            }
            sent += u64::from(socket.send_to(&datagram, to).is_ok());
        }
        std::thread::sleep(pause);
    }
    sent
}

/// Begins handshakes without a certificate. `finishes` states whether it continues them.
fn begin_handshakes(to: &str, finishes: bool, over: &AtomicBool) -> u64 {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let mut crypto = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    crypto.alpn_protocols = vec![b"paceline".to_vec()];
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(crypto).unwrap();
    let config = quinn::ClientConfig::new(std::sync::Arc::new(crypto));
    let to: SocketAddr = to.parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut begun = 0;
    runtime.block_on(async {
        let client = || quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut open = std::collections::VecDeque::new();
        while !over.load(Ordering::Relaxed) {
            let endpoint = client();
            let Ok(connecting) = endpoint.connect_with(config.clone(), to, "robot") else { break };
            begun += 1;
            if finishes {
                let _ = tokio::time::timeout(Duration::from_millis(50), connecting).await;
                tokio::time::sleep(Duration::from_micros(300)).await;
                continue;
            }
            open.push_back((endpoint, connecting));
            if open.len() > 500 {
                open.pop_front();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    begun
}

/// Attacks a listener while a neighbour has a contract, and another member joins in between.
fn attack(attack: Attack, seconds: u64) {
    let authority = Authority::new(&format!("garbage-{attack:?}"));
    let endpoint = free_quic();
    let link = |name: &str| {
        quic(LinkConfig::new("radio"), &authority.issue(name, |_| ()), &authority.ca())
    };
    let thin = Capacity::from_bits_per_s(10_000_000).unwrap();
    let robot = authority.node("robot", link("robot").listen(&endpoint).capacity(thin));
    let operator = authority.node("operator", link("operator").connect(&endpoint).capacity(thin));
    let mut steer = robot.publisher("steer").hz(100.0).bytes_max(64).declare().unwrap();
    let within = Duration::from_millis(200);
    let steps = u32::try_from(seconds * 100).unwrap();
    let samples = usize::try_from(steps).unwrap();
    let commands = operator.subscriber("steer").within(within).queue(samples);
    let mut commands = commands.declare().unwrap();
    assert!(steer.wait_matching(SOON));
    let to = endpoint.replace("quic/", "");
    let over = AtomicBool::new(false);
    let got: Vec<_> = std::thread::scope(|scope| {
        let next = || commands.recv_timeout(SOON).ok();
        let reader = scope.spawn(|| std::iter::from_fn(next).take(samples).collect());
        let attacker = scope.spawn(|| match attack {
            Attack::FewDatagrams => send_garbage(&to, Duration::from_millis(400), &over),
            Attack::Datagrams => send_garbage(&to, Duration::from_millis(4), &over),
            Attack::HalfOpen => begin_handshakes(&to, false, &over),
            Attack::Handshakes => begin_handshakes(&to, true, &over),
        });
        at_rate(100, steps, |_| {
            steer.put(vec![0; 64]).unwrap();
        });
        let began = Instant::now();
        let late = authority.node("late", link("late").connect(&endpoint).capacity(thin));
        wait_until("a newcomer joins", || late.nodes().len() == 3);
        let joined = began.elapsed();
        over.store(true, Ordering::Relaxed);
        let count = attacker.join().unwrap();
        drop(late);
        let began = Instant::now();
        let after = authority.node("after", link("after").connect(&endpoint).capacity(thin));
        wait_until("a newcomer joins afterwards", || after.nodes().len() >= 3);
        let at_once = began.elapsed();
        println!(
            "{attack:?}: {count} in {seconds} s; a newcomer joined after {joined:?}, and {at_once:?} afterwards"
        );
        assert!(joined < Duration::from_secs(2) && at_once < Duration::from_secs(2));
        reader.join().unwrap()
    });
    let late = got.iter().filter(|sample| sample.late).count();
    assert_eq!((got.len(), late), (samples, 0), "{attack:?}");
}

#[test]
fn garbage_at_a_listener_disturbs_nobody() {
    for kind in [Attack::Datagrams, Attack::HalfOpen, Attack::Handshakes] {
        attack(kind, 2);
    }
}

#[test]
#[ignore = "four minutes, run by cargo xtask long"]
fn a_minute_of_garbage_disturbs_nobody() {
    for kind in [Attack::FewDatagrams, Attack::Datagrams, Attack::HalfOpen, Attack::Handshakes] {
        attack(kind, 60);
    }
}

/// The link on which an end moves, with a contract next to bulk traffic.
fn moves(authority: &Authority, robot: &Node, operator: &Node, change: impl FnOnce()) {
    let mut steer = robot.publisher("steer").hz(100.0).bytes_max(64).declare().unwrap();
    let mut bulk = robot.publisher("bulk").declare().unwrap();
    let within = Duration::from_secs(1);
    let mut commands = operator.subscriber("steer").within(within).queue(1_000).declare().unwrap();
    let _all = operator.subscriber("bulk").declare().unwrap();
    assert!(steer.wait_matching(SOON) && bulk.wait_matching(SOON), "{:?}", authority.ca());
    let reader = std::thread::spawn(move || {
        let mut arrived = Vec::new();
        while let Ok(sample) = commands.recv_timeout(within) {
            arrived.push((Instant::now(), sample.seq, sample.late));
        }
        arrived
    });
    let mut change = Some(change);
    at_rate(100, 300, |n| {
        if n == 150 {
            change.take().unwrap()();
        }
        bulk.put(vec![1; 5_000]).unwrap();
        steer.put(vec![0; 64]).unwrap();
    });
    let arrived = reader.join().unwrap();
    assert!(arrived.iter().map(|(_, seq, _)| *seq).eq(0..300), "{} arrived", arrived.len());
    assert!(arrived.iter().all(|(_, _, late)| !late));
    let longest = arrived.windows(2).map(|pair| pair[1].0 - pair[0].0).max().unwrap();
    println!("longest silence {longest:?}");
    assert!(longest <= Duration::from_millis(500), "{longest:?}");
}

/// A link with room for little more than the contract and the bulk traffic.
fn moving(authority: &Authority, name: &str) -> LinkConfig {
    let thin = Capacity::from_bits_per_s(10_000_000).unwrap();
    authority.member(name, LinkConfig::new("radio").capacity(thin))
}

#[test]
fn a_change_of_address_keeps_the_link_and_its_contracts() {
    let authority = Authority::new("moving");
    let endpoint = free_quic();
    let radio = Radio::new(&endpoint);
    let robot = authority.node("robot", moving(&authority, "robot").listen(&endpoint));
    let operator = moving(&authority, "operator").connect(&radio.endpoint());
    let operator = authority.node("operator", operator);
    moves(&authority, &robot, &operator, || radio.change_address());
}

/// The same in network namespaces, where the address of the interface changes.
#[test]
fn a_new_address_of_the_interface_keeps_the_link_and_its_contracts() {
    let Some(hosts) = Hosts::new("pl-mv") else {
        println!("a_new_address_of_the_interface_…: skipped, it needs root and the command ip");
        return;
    };
    let authority = Authority::new("roaming");
    let robot = moving(&authority, "robot").listen("quic/10.77.0.1:7600");
    let operator = moving(&authority, "operator").connect("quic/10.77.0.1:7600");
    let robot = hosts.inside(0, || authority.node("robot", robot));
    let operator = hosts.inside(1, || authority.node("operator", operator));
    moves(&authority, &robot, &operator, || {
        hosts.ip(1, "addr del 10.77.0.2/24 dev eth");
        hosts.ip(1, "addr add 10.77.0.3/24 dev eth");
    });
    drop((robot, operator));
}

/// A neighbour opens a stream with the id of another node's publisher, and jumps ahead.
#[test]
fn a_neighbour_cannot_speak_for_a_publisher_behind_another_one() {
    let (open, closed) = (free_endpoint(), free_endpoint());
    let victim = isolated(
        "victim",
        [LinkConfig::new("open").listen(&open), LinkConfig::new("closed").listen(&closed)],
    );
    let robot = isolated("robot", [LinkConfig::new("closed").connect(&closed)]);
    let mut steer = robot.publisher("steer").declare().unwrap();
    let mut commands = victim.subscriber("steer").queue(100).declare().unwrap();
    assert!(steer.wait_matching(SOON));
    let mut rogue = Rogue::join(&open);
    wait_until("the rogue is a neighbour", || rogue.greet());
    for _ in 0..3 {
        steer.put("left").unwrap();
        rogue.send_as(steer.id(), 1_000_000);
    }
    wait_until("the forged frames were read", || rogue.is_heard());
    for _ in 0..3 {
        steer.put("right").unwrap();
    }
    let got: Vec<_> = (0..6).map(|_| commands.recv_timeout(SOON).unwrap()).collect();
    assert!(got.iter().map(|sample| sample.seq).eq(0..6), "{got:?}");
    assert!(commands.recv_timeout(Duration::from_millis(200)).is_err(), "nothing forged arrives");
}
