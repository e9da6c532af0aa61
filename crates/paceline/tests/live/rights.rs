//! Rights over QUIC: a node gives each member only the rights in its policy.

use crate::support::{SOON, isolated, wait_until};
use crate::trust::{Authority, free_quic};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use paceline::contract::{Refusal, RefusalReason};
use paceline::status::DropReason;
use paceline::{LinkConfig, Node, Publisher, PublisherEvent, Subscriber, SubscriberEvent};
use std::time::{Duration, Instant};

/// Opens a node with a policy that listens.
fn guarded(authority: &Authority, policy: &str) -> (Node, String) {
    let endpoint = free_quic();
    std::fs::write(authority.file("own.toml"), policy).unwrap();
    let link = authority.member("robot", LinkConfig::new("radio").listen(&endpoint));
    let builder = Node::builder().isolated().policy(authority.file("own.toml"));
    (builder.link(link).open().unwrap(), endpoint)
}

fn member(authority: &Authority, name: &str, endpoint: &str) -> Node {
    let link = authority.member(name, LinkConfig::new("radio").connect(endpoint));
    isolated(name, [link.capacity_bits_per_s(50_000_000)])
}

/// Waits for a refusal for lack of rights, and returns its text.
fn refusal(subscriber: &Subscriber) -> String {
    let mut why = None;
    wait_until("a refusal", || {
        if let Some(SubscriberEvent::Refused(_, refusal)) = subscriber.try_event() {
            assert!(matches!(refusal.reason, RefusalReason::Rights { .. }), "{refusal}");
            why = Some(refusal.to_string());
        }
        why.is_some()
    });
    why.unwrap()
}

fn wait_until_received(camera: &mut Publisher, subscriber: &mut Subscriber) {
    wait_until("a picture", || {
        camera.put("picture").unwrap();
        let sample = subscriber.recv_timeout(Duration::from_millis(10)).ok();
        sample.map(|sample| assert_eq!(sample.payload.as_ref(), b"picture")).is_some()
    });
}

fn silent(subscriber: &mut Subscriber, time: Duration) {
    assert!(subscriber.recv_timeout(time).is_err(), "a sample without the right");
}

fn audit(authority: &Authority, parts: &[&str]) {
    wait_until("an entry in the audit log", || {
        let log = std::fs::read_to_string(authority.file("audit.jsonl")).unwrap_or_default();
        log.lines().any(|line| parts.iter().all(|part| line.contains(part)))
    });
}

#[test]
fn without_a_policy_a_member_that_connects_has_no_rights() {
    let authority = Authority::new("deny");
    let endpoint = free_quic();
    let link = authority.member("robot", LinkConfig::new("radio").listen(&endpoint));
    let robot = isolated("robot", [link]);
    let viewer = member(&authority, "viewer", &endpoint);
    let mut camera = robot.publisher("camera").declare().unwrap();
    let mut all = robot.subscriber("**").declare().unwrap();
    let mut pictures = viewer.subscriber("camera").declare().unwrap();
    let mut command = viewer.publisher("command").declare().unwrap();
    let why = refusal(&pictures);
    assert!(why.contains("the policy of 'robot' does not allow it"), "{why}");
    assert!(why.contains("the right 'subscribe' is missing"), "{why}");
    camera.put("picture").unwrap();
    command.put("stop").unwrap();
    silent(&mut pictures, Duration::from_millis(300));
    assert_eq!(all.recv_timeout(SOON).unwrap().tag.as_str(), "camera");
    silent(&mut all, Duration::from_millis(300));
    wait_until("the publisher is notified", || {
        matches!(
            command.try_event(),
            Some(PublisherEvent::Refused(Refusal { reason: RefusalReason::Rights { .. }, .. }))
        )
    });
    assert!(viewer.status(Duration::from_secs(1)).iter().all(|node| node.name != "robot"));
}

#[test]
fn a_policy_grants_tags_and_quality_and_follows_its_file() {
    let authority = Authority::new("policy");
    let rules = "audit = 'audit.jsonl'\n\
                 [[rule]]\npeers = ['viewer']\nsubscribe = 'camera/**'\nrate = '20Hz'\nwithin = '100ms'\n\
                 [[rule]]\npeers = ['arm']\npublish = 'arm/**'\n";
    let (robot, endpoint) = guarded(&authority, rules);
    let (viewer, arm) =
        (member(&authority, "viewer", &endpoint), member(&authority, "arm", &endpoint));
    let mut camera = robot.publisher("camera/front").hz(100.0).declare().unwrap();
    let mut pictures = viewer.subscriber("camera/front").max_hz(10.0).declare().unwrap();
    let fast = viewer.subscriber("camera/front").declare().unwrap();
    let mut joints = robot.subscriber("arm/joints").declare().unwrap();
    let mut mine = arm.publisher("arm/joints").declare().unwrap();
    let mut forbidden = arm.publisher("camera/front").declare().unwrap();
    assert!(mine.wait_matching(SOON));
    let why = refusal(&fast);
    assert!(why.contains("at most a rate of 20.0 Hz"), "{why}");
    mine.put("1").unwrap();
    forbidden.put("forged").unwrap();
    assert_eq!(joints.recv_timeout(SOON).unwrap().payload.as_ref(), b"1");
    wait_until_received(&mut camera, &mut pictures);
    audit(&authority, &["\"denied\"", "\"subscribe\"", "camera/front"]);
    audit(&authority, &["\"denied\"", "\"publish\"", "camera/front"]);
    audit(&authority, &["\"joined\"", "\"viewer\""]);
    // The viewer loses its right, and gets it back.
    std::fs::write(authority.file("own.toml"), "audit = 'audit.jsonl'\n").unwrap();
    let began = Instant::now();
    let why = refusal(&pictures);
    assert!(why.contains("'subscribe' is missing"), "{why}");
    println!("withdrawn after {:?}", began.elapsed());
    while pictures.recv_timeout(Duration::from_millis(50)).is_ok() {}
    camera.put("picture").unwrap();
    silent(&mut pictures, Duration::from_millis(300));
    audit(&authority, &["\"policy changed\""]);
    std::fs::write(authority.file("own.toml"), rules).unwrap();
    wait_until_received(&mut camera, &mut pictures);
}

#[test]
fn questions_of_members_need_rights() {
    let authority = Authority::new("questions");
    let (robot, endpoint) = guarded(
        &authority,
        "audit = 'audit.jsonl'\n[[rule]]\npeers = ['viewer']\npull = 'log/*'\nset = 'log/*'\n",
    );
    let viewer = member(&authority, "viewer", &endpoint);
    let mut open = Vec::new();
    for tag in ["log/a", "secret"] {
        let buffer = robot.buffer(tag).declare().unwrap();
        let mut publisher = robot.publisher(tag).declare().unwrap();
        publisher.put(tag.to_owned()).unwrap();
        open.push((buffer, publisher));
    }
    wait_until("they meet", || viewer.nodes().len() == 2);
    let pulled = |tag: &str| {
        let pulled = viewer.pull(tag).newest(1).timeout(Duration::from_secs(1)).run();
        pulled.is_ok_and(|mut pulled| {
            pulled.next_timeout(Duration::from_secs(1)).is_ok_and(|sample| sample.is_some())
        })
    };
    wait_until("a pull that is granted", || pulled("log/a"));
    assert!(!pulled("secret"));
    let ordered = viewer.pull("secret").hold_at("robot", 5).timeout(SOON).run();
    let why = ordered.map(drop).unwrap_err().to_string();
    assert!(why.contains("node robot: the policy of 'robot' does not allow it"), "{why}");
    audit(&authority, &["\"pulled\"", "log/a"]);
    assert!(viewer.status(Duration::from_secs(1)).iter().all(|node| node.name != "robot"));
    audit(&authority, &["\"denied\"", "\"observe\""]);
}

#[test]
fn a_publisher_is_held_to_the_rate_and_bandwidth_of_its_rule() {
    let authority = Authority::new("policed");
    let (robot, endpoint) = guarded(
        &authority,
        "[[rule]]\npeers = ['fast']\npublish = 'fast'\nrate = '10Hz'\n\
         [[rule]]\npeers = ['wide']\npublish = ['wide/**']\nbandwidth = '80kbit'\n\
         [[rule]]\npeers = ['honest']\npublish = 'honest'\nrate = '10Hz'\nbandwidth = '80kbit'\n",
    );
    let [fast, wide, honest] =
        ["fast", "wide", "honest"].map(|name| member(&authority, name, &endpoint));
    let received = |pattern: &str| robot.subscriber(pattern).queue(65_536).declare().unwrap();
    let mut heard = [received("fast"), received("wide/**"), received("honest")];
    let declare =
        |node: &Node, tag: &str| node.publisher(tag).hz(10.0).bytes_max(100).declare().unwrap();
    // Each declares 10 Hz and 100 bytes. One sends 1,000 Hz, one two streams of 10 times the bytes per second that it may.
    let mut fast = (declare(&fast, "fast"), fast);
    let mut wides = ["wide/a", "wide/b"].map(|tag| declare(&wide, tag));
    let mut honest = (declare(&honest, "honest"), honest);
    assert!(fast.0.wait_matching(SOON) && honest.0.wait_matching(SOON));
    assert!(wides.iter_mut().all(|publisher| publisher.wait_matching(SOON)));
    let seconds = 8;
    crate::support::at_rate(1_000, seconds * 1_000, |n| {
        fast.0.put(vec![0; 10]).unwrap();
        if n % 10 == 0 {
            wides.iter_mut().for_each(|it| _ = it.put(vec![0; 1_000]).unwrap());
        }
        if n % 100 == 0 {
            honest.0.put(vec![0; 90]).unwrap();
        }
    });
    std::thread::sleep(Duration::from_millis(500));
    let counted = heard.each_mut().map(|subscriber| {
        let all = std::iter::from_fn(|| subscriber.try_recv());
        all.map(|sample| (1u32, sample.payload.len() as u64))
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    });
    let [(samples, _), (_, bytes), (complete, _)] = counted;
    // 10 Hz and 10,000 bytes per second, and bursts of 5 s.
    let burst = 5;
    assert!((40..=10 * (seconds + burst + 1)).contains(&samples), "{samples}");
    let most = 10_000 * u64::from(seconds + burst + 1);
    assert!((40_000..=most).contains(&bytes), "{bytes}");
    assert_eq!(complete, seconds * 10);
    let excess = heard.each_ref().map(|subscriber| subscriber.drops().of(DropReason::OverRights));
    assert_eq!(u64::from(samples) + excess[0], u64::from(seconds) * 1_000, "each drop is counted");
    assert!(excess[1] > 0 && excess[2] == 0, "{excess:?}");
}

#[test]
fn a_process_behind_a_node_with_a_policy_is_as_guarded_as_that_node() {
    let authority = Authority::new("behind");
    let rules = "audit = 'audit.jsonl'\n\
                 [[rule]]\npeers = ['viewer']\nsubscribe = 'pub/**'\npull = 'log/*'\n\
                 [[rule]]\npeers = ['operator']\nobserve = true\nset = 'p/*'\n";
    std::fs::write(authority.file("own.toml"), rules).unwrap();
    let endpoint = free_quic();
    let socket = format!("unix/{}", authority.file("host.sock").display());
    let radio = authority.member("robot", LinkConfig::new("radio").listen(&endpoint));
    let border = Node::builder().isolated().policy(authority.file("own.toml"));
    let border = border.link(radio).link(LinkConfig::new("host").listen(&socket)).open().unwrap();
    // A process of the same account, without a policy.
    let process = isolated("process", [LinkConfig::new("host").connect(&socket)]);
    let mut open = Vec::new();
    for tag in ["log/a", "secret/a"] {
        let buffer = process.buffer(tag).declare().unwrap();
        let mut publisher = process.publisher(tag).declare().unwrap();
        publisher.put(tag.to_owned()).unwrap();
        open.push((buffer, publisher));
    }
    let command = process.subscriber("p/cmd").max_hz(10.0).declare().unwrap();
    let viewer = member(&authority, "viewer", &endpoint);
    let operator = member(&authority, "operator", &endpoint);
    wait_until("they meet", || viewer.nodes().len() >= 3 && operator.nodes().len() >= 3);
    let pulled = |tag: &str| {
        let pulled = viewer.pull(tag).newest(1).timeout(Duration::from_secs(1)).run();
        pulled.is_ok_and(|mut pulled| {
            pulled.next_timeout(Duration::from_secs(1)).is_ok_and(|sample| sample.is_some())
        })
    };
    wait_until("a pull that is granted", || pulled("log/a"));
    assert!(!pulled("secret/a"));
    let ordered = viewer.pull("secret/a").hold_at("process", 5).timeout(SOON).run();
    let why = ordered.map(drop).unwrap_err().to_string();
    assert!(why.contains("does not allow it"), "{why}");
    let sees = |node: &Node| {
        node.status(Duration::from_secs(1)).iter().any(|status| status.name == "process")
    };
    assert!(sees(&operator) && !sees(&viewer));
    let id = command.id();
    for (node, may) in [(&viewer, false), (&operator, true)] {
        let changed = node.change(id, |wish| wish.max_hz(2.0));
        assert_eq!(changed.is_ok(), may, "{changed:?}");
    }
    audit(&authority, &["\"observed\"", &operator.id().to_string()]);
    audit(&authority, &["\"set\"", &operator.id().to_string(), "p/cmd"]);
    audit(&authority, &["\"pulled\"", &viewer.id().to_string(), "log/a"]);
    audit(&authority, &["\"denied\"", &viewer.id().to_string(), "secret/a"]);
    drop((border, open));
}

/// Returns an identity provider, whose key is in `jwks.json`: it signs tokens that let their subject subscribe to
/// `camera` for so many seconds.
fn identity_provider(authority: &Authority) -> impl Fn(&str, u64) -> String {
    use ring::rand::SystemRandom;
    use ring::signature::{Ed25519KeyPair, KeyPair as _};
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let key = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
    let public = URL_SAFE_NO_PAD.encode(key.public_key().as_ref());
    let keys = format!(
        r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","kid":"a","x":"{public}"}}]}}"#
    );
    std::fs::write(authority.file("jwks.json"), keys).unwrap();
    move |subject, seconds| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let ends = now.as_secs() + seconds;
        let header = URL_SAFE_NO_PAD.encode(br#"{"alg":"EdDSA","kid":"a"}"#);
        let claims = URL_SAFE_NO_PAD.encode(
            format!(
                r#"{{"iss":"https://id.example.org","aud":"net","sub":"{subject}","exp":{ends},"paceline":{{"subscribe":"camera"}}}}"#
            )
            .as_bytes(),
        );
        let text = format!("{header}.{claims}");
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(key.sign(text.as_bytes()).as_ref()))
    }
}

/// A policy without rules that accepts the tokens of [`identity_provider`].
const ISSUER: &str = "audit = 'audit.jsonl'\n[[issuer]]\nname = 'https://id.example.org'\naudience = 'net'\n\
    keys = 'jwks.json'\n";

/// Opens a node that shows a token.
fn shows(authority: &Authority, name: &str, endpoint: &str, token: &str) -> Node {
    let file = authority.file(&format!("{name}.token"));
    std::fs::write(&file, token).unwrap();
    let link = authority.member(name, LinkConfig::new("radio").connect(endpoint));
    Node::builder().name(name).isolated().link(link).token(file).open().unwrap()
}

#[test]
fn a_node_that_joins_with_a_token_is_never_refused() {
    let authority = Authority::new("joins");
    let sign = identity_provider(&authority);
    let (robot, endpoint) = guarded(&authority, ISSUER);
    let mut camera = robot.publisher("camera").hz(50.0).declare().unwrap();
    for _ in 0..8 {
        let tablet = shows(&authority, "tablet", &endpoint, &sign("tablet", 600));
        let mut seen = tablet.subscriber("camera").declare().unwrap();
        wait_until_received(&mut camera, &mut seen);
        while let Some(event) = seen.try_event() {
            assert!(!matches!(event, SubscriberEvent::Refused(..)), "{event:?}");
        }
    }
    audit(&authority, &["\"token accepted\"", "\"tablet\""]);
    let log = std::fs::read_to_string(authority.file("audit.jsonl")).unwrap();
    assert!(!log.contains("\"denied\""), "{log}");
}

#[test]
fn a_token_of_an_identity_provider_grants_rights_to_its_subject_alone() {
    let authority = Authority::new("token");
    let sign = identity_provider(&authority);
    let (robot, endpoint) = guarded(&authority, "audit = 'audit.jsonl'\n");
    let mut camera = robot.publisher("camera").hz(50.0).declare().unwrap();
    let token = sign("tablet", 600);
    let (tablet, thief) = (
        shows(&authority, "tablet", &endpoint, &token),
        shows(&authority, "thief", &endpoint, &token),
    );
    let mut seen = tablet.subscriber("camera").declare().unwrap();
    let mut stolen = thief.subscriber("camera").declare().unwrap();
    audit(&authority, &["\"token refused\"", "\"tablet\"", "no [[issuer]]"]);
    // The policy gains the issuer, and the token has not to be shown again.
    std::fs::write(authority.file("own.toml"), ISSUER).unwrap();
    wait_until_received(&mut camera, &mut seen);
    audit(&authority, &["\"token accepted\"", "\"tablet\""]);
    audit(&authority, &["\"token refused\"", "\"thief\"", "issued to 'tablet'"]);
    for _ in 0..20 {
        camera.put("picture").unwrap();
        silent(&mut stolen, Duration::from_millis(10));
    }
    let log = std::fs::read_to_string(authority.file("audit.jsonl")).unwrap();
    assert!(!log.contains(&token[token.len() - 20..]), "a log never contains a token");
}

#[test]
fn a_path_with_an_unencrypted_link_is_refused_on_request() {
    let authority = Authority::new("encrypted");
    let (secure, beyond) = (free_quic(), "tcp/0.0.0.0:0");
    let quic = authority.member("robot", LinkConfig::new("radio").listen(&secure));
    let port = crate::support::free_endpoint();
    let port = port.rsplit_once(':').unwrap().1.to_owned();
    let open = beyond.replace(":0", &format!(":{port}"));
    let lan = LinkConfig::new("lan").listen(&open).insecure();
    let robot = Node::builder().isolated().policy(authority.file("policy.toml"));
    std::fs::write(
        authority.file("policy.toml"),
        "[[rule]]\npeers = ['*', '@unknown']\nsubscribe = '**'\n",
    )
    .unwrap();
    let robot = robot.link(quic).link(lan).open().unwrap();
    let mut camera = robot.publisher("camera").hz(50.0).bytes_max(100).declare().unwrap();
    let near = member(&authority, "near", &secure);
    // An address of this host that is not a loopback address would need a network; the link itself is open.
    let far = isolated("far", [LinkConfig::new("lan").connect(&format!("tcp/127.0.0.1:{port}"))]);
    let wish = |node: &Node| node.subscriber("camera").require_encrypted().declare().unwrap();
    let (mut encrypted, mut refused, mut plain) =
        (wish(&near), wish(&far), far.subscriber("camera").declare().unwrap());
    for subscriber in [&mut encrypted, &mut plain] {
        wait_until_received(&mut camera, subscriber);
    }
    let mut why = None;
    wait_until("a refusal", || {
        if let Some(SubscriberEvent::Refused(_, refusal)) = refused.try_event() {
            why = Some(refusal);
        }
        why.is_some()
    });
    let why = why.unwrap();
    assert_eq!(why.reason, RefusalReason::Unencrypted);
    assert!(why.to_string().starts_with("link 'lan' of 'robot' is not encrypted"), "{why}");
    camera.put("picture").unwrap();
    silent(&mut refused, Duration::from_millis(200));
}

#[test]
fn processes_of_the_host_keep_all_rights_next_to_a_policy_for_others() {
    let authority = Authority::new("host");
    let dir = crate::support::HostDir::new("rights");
    std::fs::write(authority.file("own.toml"), "[[rule]]\npeers = ['nobody']\npublish = 'a'\n")
        .unwrap();
    let link = authority.member("robot", LinkConfig::new("radio").listen(&free_quic()));
    let daemon = Node::builder().runtime_dir(dir.path()).policy(authority.file("own.toml"));
    let daemon = daemon.link(link).open().unwrap();
    let guest = Node::builder().name("tool").runtime_dir(dir.path()).guest().open().unwrap();
    let mut camera = daemon.publisher("camera").declare().unwrap();
    let mut pictures = guest.subscriber("camera").declare().unwrap();
    let mut tool = guest.publisher("tool").declare().unwrap();
    let mut all = daemon.subscriber("tool").declare().unwrap();
    assert!(camera.wait_matching(SOON) && tool.wait_matching(SOON));
    camera.put("picture").unwrap();
    tool.put("result").unwrap();
    assert!(pictures.recv_timeout(SOON).is_ok() && all.recv_timeout(SOON).is_ok());
    assert!(guest.status(SOON).iter().any(|node| node.name == "robot"));
}
