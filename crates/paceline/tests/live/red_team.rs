//! Attempts without rights: each verb over each carrier, and each kind of bad credentials. None may succeed,
//! and each must be in the audit log.

use crate::support::{free_endpoint, isolated, wait_until};
use crate::trust::{Authority, free_quic};
use paceline::pull::History;
use paceline::status::SubscriptionId;
use paceline::{LinkConfig, Node, Publisher, Subscriber};
use std::time::Duration;

/// A node that guards its tags, and its ends of them.
struct Target {
    node: Node,
    secret: Publisher,
    commands: Subscriber,
    watched: SubscriptionId,
}

impl Target {
    fn open(authority: &Authority, link: LinkConfig) -> Self {
        // The rule names nobody that attacks.
        let policy = "audit = 'audit.jsonl'\n[[rule]]\npeers = ['friend']\nsubscribe = '**'\n";
        std::fs::write(authority.file("guard.toml"), policy).unwrap();
        let builder = Node::builder().isolated().policy(authority.file("guard.toml")).link(link);
        let node = builder.open().unwrap();
        let secret = node.publisher("secret").hz(100.0).bytes_max(100);
        let secret = secret.history(History::new().samples(10)).declare().unwrap();
        let commands = node.subscriber("command").declare().unwrap();
        let watched = node.subscriber("watched").declare().unwrap();
        let id = watched.id();
        std::mem::forget(watched);
        Self { node, secret, commands, watched: id }
    }

    /// Returns the verbs in which an attack succeeds.
    fn attacked_by(&mut self, attacker: &Node) -> Vec<&'static str> {
        let mut successes = Vec::new();
        let mut plain = attacker.subscriber("secret").declare().unwrap();
        let mut all = attacker.subscriber("**").declare().unwrap();
        let reserved = attacker.subscriber("secret").within(Duration::from_millis(100));
        let mut reserved = reserved.declare().unwrap();
        let mut command = attacker.publisher("command").declare().unwrap();
        for _ in 0..30 {
            self.secret.put("secret").unwrap();
            command.put("stop").unwrap();
            std::thread::sleep(Duration::from_millis(10));
        }
        for (verb, subscriber) in
            [("subscribe", &mut plain), ("subscribe to all", &mut all), ("reserve", &mut reserved)]
        {
            let foreign = std::iter::from_fn(|| subscriber.try_recv());
            if foreign.filter(|sample| sample.tag.as_str() == "secret").count() > 0 {
                successes.push(verb);
            }
        }
        if std::iter::from_fn(|| self.commands.try_recv()).count() > 0 {
            successes.push("publish");
        }
        let me = self.node.id();
        let own = self.node.status(Duration::ZERO);
        let mine = own.iter().find(|status| status.id == me).unwrap();
        if mine.reservations.iter().any(|grant| grant.subscription.node == attacker.id()) {
            successes.push("hold a reservation");
        }
        let pulled = attacker.pull("secret").newest(1).timeout(Duration::from_millis(500)).run();
        if pulled.is_ok_and(|mut it| {
            it.next_timeout(Duration::from_millis(300)).is_ok_and(|sample| sample.is_some())
        }) {
            successes.push("pull");
        }
        if attacker.change(self.watched, |now| now.max_hz(1.0)).is_ok() {
            successes.push("set");
        }
        if attacker.status_of(&[me], Duration::from_millis(500)).iter().any(|it| it.id == me) {
            successes.push("observe");
        }
        let seen = attacker.sources(&paceline::Pattern::new("**").unwrap());
        if seen.iter().any(|source| source.tag.as_str() == "secret") {
            successes.push("see a tag");
        }
        successes
    }
}

fn audited(authority: &Authority, parts: &[&str]) {
    wait_until(&format!("{parts:?} in the audit log"), || {
        let log = std::fs::read_to_string(authority.file("audit.jsonl")).unwrap_or_default();
        log.lines().any(|line| parts.iter().all(|part| line.contains(part)))
    });
}

/// The capacity of both ends, so that contracts are possible.
const CAPACITY: u64 = 50_000_000;

#[test]
fn nothing_succeeds_without_rights_on_any_carrier() {
    for carrier in ["quic", "tls", "tcp"] {
        let certified = carrier != "tcp";
        let authority = Authority::new(&format!("red-{carrier}"));
        let link = |name: &str| {
            let link = LinkConfig::new("link").capacity_bits_per_s(CAPACITY);
            if certified { authority.member(name, link) } else { link.insecure() }
        };
        // A listener at all addresses counts as beyond the host, wherever its peers are.
        let connect = free_endpoint().replace("tcp/", &format!("{carrier}/"));
        let listen = connect.replace("127.0.0.1", "0.0.0.0");
        let mut target = Target::open(&authority, link("target").listen(&listen));
        let attacker = isolated(
            if certified { "mallory" } else { "friend" },
            [link("mallory").connect(&connect)],
        );
        wait_until("they meet", || attacker.nodes().len() == 2);
        assert_eq!(target.attacked_by(&attacker), Vec::<&str>::new(), "{carrier}");
        // The attacker does not even see the subscription that it would change, nor a buffer to pull from.
        for right in ["subscribe", "publish", "observe"] {
            audited(&authority, &["\"denied\"", &format!("\"{right}\"")]);
        }
    }
}

#[test]
fn bad_credentials_never_join_and_are_in_the_audit_log() {
    let (authority, others) = (Authority::new("red-credentials"), Authority::new("red-others"));
    for endpoint in [free_quic(), free_endpoint().replace("tcp/", "tls/")] {
        foreign_certificates_never_join(&authority, &others, &endpoint);
    }
    // Expired and revoked certificates are in `trust.rs`, tokens in `rights.rs` and `access/tests.rs`.
}

fn foreign_certificates_never_join(authority: &Authority, others: &Authority, endpoint: &str) {
    let link = LinkConfig::new("link").capacity_bits_per_s(CAPACITY).listen(endpoint);
    let mut target = Target::open(authority, authority.member("target", link));
    let connect = || LinkConfig::new("link").connect(endpoint);
    let foreign = isolated("friend", [others.member("friend", connect())]);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(target.attacked_by(&foreign), Vec::<&str>::new(), "another authority");
    assert_eq!(target.node.nodes().len(), 1);
    let protocol = endpoint.split('/').next().unwrap_or_default();
    audited(authority, &["\"refused\"", protocol, "another authority"]);
}
