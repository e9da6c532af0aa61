use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::JwkSet;
use paceline_proto::NodeId;
use paceline_proto::rights::{Lack, PeerName, Right, RuleUse, StreamQuality};
use paceline_proto::{Pattern, Tag};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::json;
use std::time::{Duration, UNIX_EPOCH};

fn parse(text: &str) -> Result<Access, String> {
    Access::parse(text, Path::new("/nowhere"))
}

fn tag(text: &str) -> Tag {
    Tag::new(text).unwrap()
}

#[test]
fn a_policy_grants_what_it_says() {
    let access = parse(
        "audit = 'log/audit.jsonl'\n\
         [[rule]]\npeers = ['operator-*', '@host']\npublish = 'cmd/**'\nsubscribe = ['camera/*', 'map']\n\
         rate = '12.5Hz'\nbandwidth = '8kbit'\nshare = '40%'\nwithin = '20ms'\nstreams = 3\n\
         observe = true\n[[rule]]\npeers = ['gate']\nrelay = true\n",
    )
    .unwrap();
    assert_eq!(access.audit.as_deref(), Some(Path::new("/nowhere/log/audit.jsonl")));
    let operator = access.policy.rights_of(&PeerName::Certified("operator-7".to_owned()));
    assert!(operator.grants(Right::Publish, &tag("cmd/stop")));
    assert!(operator.grants(Right::Subscribe, &tag("map")));
    assert!(!operator.grants(Right::Pull, &tag("map")) && operator.grants_node(Right::Observe));
    assert!(access.policy.rights_of_name("gate").grants_node(Right::Relay));
    let fast = StreamQuality { millihertz: Some(12_501), ..StreamQuality::default() };
    let lack =
        operator.take((Right::Subscribe, &tag("map")), &fast, &mut RuleUse::default()).unwrap_err();
    assert!(matches!(lack, Lack::Quota { limit: 12_500, .. }), "{lack}");
}

#[test]
fn errors_name_the_rule_the_field_the_value_and_the_form() {
    for (text, parts) in [
        ("[[rule]]\npublish = ['a']\n", &["rule 1: peers is missing"][..]),
        ("[[rule]]\npeers = []\n", &["rule 1: peers is missing"]),
        ("[[rule]]\npeers = ['@user:']\n", &["@user: is unknown"]),
        ("[[rule]]\npeers = ['@hosts']\n", &["@hosts is unknown"]),
        ("[[rule]]\npeers = ['@all']\n", &["@all is unknown", "@host, @unknown, @user:NAME"]),
        (
            "[[rule]]\npeers = ['a']\n[[rule]]\npeers = ['a']\nrate = 'fast'\n",
            &["rule 2: rate = \"fast\": must be a rate above 0, such as \"30Hz\""],
        ),
        ("[[rule]]\npeers = ['a']\nrate = '0Hz'\n", &["rate = \"0Hz\""]),
        ("[[rule]]\npeers = ['a']\nbandwidth = '2mbps'\n", &["bandwidth", "mbit"]),
        ("[[rule]]\npeers = ['a']\nshare = '140%'\n", &["from \"0%\" to \"100%\""]),
        ("[[rule]]\npeers = ['a']\nwithin = '5'\n", &["within", "ms"]),
        ("[[rule]]\npeers = ['a']\nstreams = -1\n", &["streams = -1: must be a whole number"]),
        ("[[rule]]\npeers = ['a']\nimportance = 101\n", &["importance = 101", "from 0 to 100"]),
        ("[[rule]]\npeers = ['a']\nimportance = 'high'\n", &["importance", "from 0 to 100"]),
        ("[[rule]]\npeers = ['a']\nrelay = 'yes'\n", &["relay = \"yes\": must be true or false"]),
        ("[[rule]]\npeers = ['a']\nsubscribe = ['a/b*']\n", &["subscribe: "]),
        (
            "[[rule]]\npeers = ['a']\npull = ['@pull/**']\n",
            &["tags that begin with @ are internal"],
        ),
        ("[[rule]]\npeers = ['a']\nwrite = ['a']\n", &["write is unknown", "publish, subscribe"]),
        ("rule = 'a'\n", &["rule must be written as [[rule]]"]),
        ("audit = 1\n", &["audit = 1: must be a file"]),
        ("[rules]\n", &["rules is unknown"]),
        ("[[rule]\n", &["line 1"]),
        ("[[issuer]]\nname = 'x'\n", &["issuer 1: audience is missing"]),
        (
            "[[issuer]]\nname = 'x'\naudience = 'y'\nkeys = 'none.json'\n",
            &["issuer 1: keys /nowhere/none.json", "JSON Web Key Set"],
        ),
    ] {
        let error = parse(text).unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
    }
}

#[test]
fn a_changed_file_is_read_again_and_a_broken_one_changes_nothing() {
    let file = std::env::temp_dir().join(format!("paceline-policy-{}.toml", std::process::id()));
    let write = |text: &str, second: u64| {
        std::fs::write(&file, text).unwrap();
        let at = UNIX_EPOCH + Duration::from_secs(1_700_000_000 + second);
        File::options().write(true).open(&file).unwrap().set_modified(at).unwrap();
    };
    use std::fs::File;
    write("[[rule]]\npeers = ['a']\nrelay = true\n", 1);
    let mut open = AccessFile::open(&file).unwrap();
    let relays =
        |open: &AccessFile| open.access.policy.rights_of_name("a").grants_node(Right::Relay);
    assert!(relays(&open) && !open.reload());
    write("[[rule]]\npeers = ['a']\nrelay = maybe\n", 2);
    assert!(!open.reload() && relays(&open));
    write("[[rule]]\npeers = ['b']\nrelay = true\n", 3);
    assert!(open.reload() && !relays(&open) && !open.reload());
    std::fs::remove_file(&file).unwrap();
    assert!(!open.reload() && AccessFile::open(&file).is_err());
}

/// An identity provider with one key.
struct Provider {
    key: Ed25519KeyPair,
}

impl Provider {
    fn new() -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self { key: Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap() }
    }

    fn issuer(&self) -> Issuer {
        let key = URL_SAFE_NO_PAD.encode(self.key.public_key().as_ref());
        let keys = json!({ "keys": [
            { "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "kid": "one", "x": key }
        ] });
        let keys: JwkSet = serde_json::from_value(keys).unwrap();
        Issuer { name: "https://id.example.org".to_owned(), audience: "paceline".to_owned(), keys }
    }

    fn sign(&self, header: &Value, claims: &Value) -> Vec<u8> {
        let text = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header.to_string().as_bytes()),
            URL_SAFE_NO_PAD.encode(claims.to_string().as_bytes())
        );
        let signature = URL_SAFE_NO_PAD.encode(self.key.sign(text.as_bytes()).as_ref());
        format!("{text}.{signature}").into_bytes()
    }

    fn token(&self, change: impl FnOnce(&mut Value)) -> Vec<u8> {
        let mut claims = claims();
        change(&mut claims);
        self.sign(&header(), &claims)
    }
}

fn header() -> Value {
    json!({ "alg": "EdDSA", "typ": "JWT", "kid": "one" })
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn claims() -> Value {
    json!({
        "iss": "https://id.example.org", "aud": "paceline", "sub": "tablet", "exp": now() + 600,
        "paceline": { "subscribe": ["camera/*"], "rate": "10Hz" },
    })
}

fn check(provider: &Provider, token: &[u8]) -> Result<(Rights, SystemTime), String> {
    let access = Access { issuers: vec![provider.issuer()], ..Access::default() };
    access.verify(token, &Bearer { node: NodeId(7), name: "tablet" })
}

#[test]
fn a_token_grants_its_rules_to_its_subject() {
    let provider = Provider::new();
    let (rights, ends) = check(&provider, &provider.token(|_| ())).unwrap();
    assert!(rights.grants_part_of(Right::Subscribe, &Pattern::new("camera/left").unwrap()));
    assert!(!rights.grants(Right::Publish, &tag("camera/left")));
    assert!(ends > SystemTime::now() + Duration::from_secs(590));
    let bound = |kid: &str| provider.token(|it| it["cnf"] = json!({ "kid": kid }));
    check(&provider, &bound("0000000000000007")).unwrap();
    let list = provider.token(|it| it["paceline"] = json!([{ "relay": true }, { "pull": "a" }]));
    assert!(check(&provider, &list).unwrap().0.grants_node(Right::Relay));
}

#[test]
fn forged_expired_foreign_and_malformed_tokens_are_refused_with_the_cause() {
    let (provider, other) = (Provider::new(), Provider::new());
    let set = |name: &'static str, value: Value| provider.token(|it| it[name] = value);
    let remove =
        |name: &'static str| provider.token(|it| _ = it.as_object_mut().unwrap().remove(name));
    let day = 86_400;
    let mut nested = json!(1);
    for _ in 0..120 {
        nested = json!([nested]);
    }
    let valid = provider.token(|_| ());
    let cut = valid[..valid.len() - 4].to_vec();
    let mut altered = valid.clone();
    let at = altered.iter().position(|byte| *byte == b'.').unwrap() + 9;
    altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
    let headed = |alg: &str| provider.sign(&json!({ "alg": alg, "kid": "one" }), &claims());
    for (case, token, part) in [
        ("another key", other.token(|_| ()), "signature is wrong"),
        ("altered", altered, ""),
        ("cut", cut, ""),
        ("expired", set("exp", json!(now() - day)), "expired"),
        ("early", set("nbf", json!(now() + day)), "not valid yet; compare the clock"),
        ("expiry as text", set("exp", json!("tomorrow")), "'exp'"),
        ("begin as text", set("nbf", json!("yesterday")), "'nbf'"),
        ("no expiry", remove("exp"), "'exp' is missing"),
        ("another audience", set("aud", json!("files")), "another audience"),
        ("no audience", remove("aud"), "'aud' is missing"),
        ("another issuer", set("iss", json!("https://evil.example.org")), "another issuer"),
        ("another subject", set("sub", json!("robot")), "issued to 'robot'"),
        ("no subject", remove("sub"), "'sub' is missing"),
        ("another node", set("cnf", json!({ "kid": "0000000000000008" })), "another key"),
        ("strange binding", set("cnf", json!({ "jkt": "x" })), "another key"),
        ("no rights", remove("paceline"), "'paceline' is missing"),
        ("nested rights", set("paceline", nested), "is no rule"),
        ("unknown right", set("paceline", json!({ "write": ["a"] })), "write is unknown"),
        ("many rules", set("paceline", json!(vec![json!({}); 65])), "at most 64"),
        ("algorithm none", headed("none"), "asymmetric"),
        ("symmetric", headed("HS256"), "only asymmetric"),
        ("another family", headed("RS256"), "no [[issuer]]"),
        ("another curve", headed("ES256"), "no [[issuer]]"),
        ("1 MB", vec![b'a'; 1 << 20], "no valid JSON Web Token"),
        ("empty", Vec::new(), "no valid JSON Web Token"),
        ("binary", vec![0xff, b'.', 0, b'.', 0xfe], "no valid JSON Web Token"),
    ] {
        let error = check(&provider, &token).expect_err(case);
        assert!(error.contains(part), "{case}: {error}");
    }
    let none = Access::default().verify(&valid, &Bearer { node: NodeId(7), name: "tablet" });
    assert!(none.unwrap_err().contains("no [[issuer]]"));
}

#[test]
fn symmetric_keys_of_an_issuer_are_refused() {
    let dir = std::env::temp_dir().join(format!("paceline-keys-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let policy = "[[issuer]]\nname = 'x'\naudience = 'y'\nkeys = 'keys.json'\n";
    for (keys, part) in [
        (r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#, "symmetric key"),
        (r#"{"keys":[]}"#, "contains no key"),
        ("{", "JSON Web Key Set"),
    ] {
        std::fs::write(dir.join("keys.json"), keys).unwrap();
        let error = Access::parse(policy, &dir).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
