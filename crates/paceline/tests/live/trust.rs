//! Links whose ends know each other, and neighbours that claim what is not theirs.

use crate::rogue::Rogue;
use crate::support::{SOON, at_rate, free_endpoint, isolated, wait_until};
use paceline::{Capacity, LinkConfig, Node};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A folder with an authority and certificates that it issued.
struct Authority {
    dir: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Authority {
    fn new(name: &str) -> Self {
        let dir = format!("paceline-trust-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(dir);
        std::fs::create_dir_all(&dir).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        std::fs::write(dir.join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Self { dir, issuer: Issuer::new(params, key) }
    }

    fn ca(&self) -> PathBuf {
        self.dir.join("ca.pem")
    }

    /// Issues a certificate; returns its file and the file of its key.
    fn issue(&self, name: &str, change: impl Fn(&mut CertificateParams)) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let [cert, private] = ["pem", "key"].map(|end| self.dir.join(format!("{name}.{end}")));
        std::fs::write(&cert, params.signed_by(&key, &self.issuer).unwrap().pem()).unwrap();
        std::fs::write(&private, key.serialize_pem()).unwrap();
        (cert, private)
    }
}

fn quic(link: LinkConfig, (cert, key): &(PathBuf, PathBuf), ca: &Path) -> LinkConfig {
    link.tls(cert, key, ca)
}

fn free_quic() -> String {
    free_endpoint().replace("tcp/", "quic/")
}

/// Opens two nodes with certificates of one authority.
fn members(capacity: Option<u64>) -> (Authority, Node, Node) {
    let authority = Authority::new(&format!("members{}", capacity.unwrap_or_default()));
    let endpoint = free_quic();
    let link = |name: &str| {
        let files = authority.issue(name, |_| ());
        let link = quic(LinkConfig::new("radio"), &files, &authority.ca());
        capacity
            .map_or(link.clone(), |bits| link.capacity(Capacity::from_bits_per_s(bits).unwrap()))
    };
    let robot = isolated("robot", [link("robot").listen(&endpoint)]);
    let operator = isolated("operator", [link("operator").connect(&endpoint)]);
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
fn a_contract_holds_over_quic() {
    let (_authority, robot, operator) = members(Some(10_000_000));
    let mut steer = robot.publisher("steer").hz(100.0).bytes_max(64).declare().unwrap();
    let mut bulk = robot.publisher("bulk").declare().unwrap();
    let within = Duration::from_millis(50);
    let mut commands = operator.subscriber("steer").within(within).queue(1_000).declare().unwrap();
    let _all = operator.subscriber("bulk").declare().unwrap();
    assert!(steer.wait_matching(SOON) && bulk.wait_matching(SOON));
    at_rate(100, 200, |_| {
        for _ in 0..4 {
            bulk.put(vec![1; 10_000]).unwrap();
        }
        steer.put(vec![0; 64]).unwrap();
    });
    for number in 0..200 {
        let command = commands.recv_timeout(SOON).unwrap();
        assert_eq!((command.seq, command.late), (number, false), "age {:?}", command.age);
    }
}

#[test]
fn certificates_of_others_are_refused() {
    let (authority, robot, _operator) = members(Some(20_000_000));
    let others = Authority::new("others");
    let endpoint = free_quic();
    let files = authority.issue("listener", |_| ());
    let listening = quic(LinkConfig::new("radio").listen(&endpoint), &files, &authority.ca());
    let listener = isolated("listener", [listening]);
    let foreign = others.issue("foreign", |_| ());
    let connect = || LinkConfig::new("radio").connect(&endpoint);
    // It trusts the authority of the network, but is not a member.
    let link = quic(connect(), &foreign, &others.ca());
    let stranger = isolated("stranger", [link]);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!((stranger.nodes().len(), listener.nodes().len()), (1, 1));
    drop(robot);
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
    let mixed = quic(LinkConfig::new("radio").listen("quic/127.0.0.1:1"), &good, &authority.ca());
    let mixed = mixed.connect("tcp/127.0.0.1:2").check().unwrap_err().to_string();
    assert!(mixed.contains("cannot share a link"), "{mixed}");
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
    let mut rogue = Rogue::join(&victim, &open);
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
