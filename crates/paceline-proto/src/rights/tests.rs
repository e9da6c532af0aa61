use super::*;

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| Pattern::new(text).unwrap()).collect()
}

fn tag(text: &str) -> Tag {
    Tag::new(text).unwrap()
}

fn rule(peers: &[&str], rights: RuleRights) -> AccessRule {
    let peers = peers.iter().map(|&peer| peer.to_owned()).collect();
    AccessRule { peers, rights: Arc::new(rights) }
}

fn subscriber(tags: &[&str], quotas: Quotas) -> RuleRights {
    let tags = GrantedTags { subscribe: patterns(tags), ..GrantedTags::default() };
    RuleRights { tags, quotas, ..RuleRights::default() }
}

#[test]
fn a_node_has_the_rights_of_all_rules_that_name_it_and_no_others() {
    let publish = GrantedTags { publish: patterns(&["robot/**"]), ..GrantedTags::default() };
    let policy = AccessPolicy {
        rules: vec![
            rule(&["robot-*"], RuleRights { tags: publish, ..RuleRights::default() }),
            rule(&["*"], subscriber(&["map"], Quotas::default())),
            rule(&["@unknown"], subscriber(&["news"], Quotas::default())),
        ],
    };
    let robot = policy.rights_of(&PeerName::Certified("robot-1".into()));
    assert!(robot.grants(Right::Publish, &tag("robot/arm")));
    assert!(robot.grants(Right::Subscribe, &tag("map")));
    assert!(!robot.grants(Right::Publish, &tag("map")) && !robot.grants_node(Right::Relay));
    let other = policy.rights_of_name("robo");
    assert!(!other.grants(Right::Publish, &tag("robot/arm")));
    assert!(other.grants(Right::Subscribe, &tag("map")));
    let unknown = policy.rights_of(&PeerName::Unknown);
    assert!(unknown.grants(Right::Subscribe, &tag("news")));
    assert!(!unknown.grants(Right::Subscribe, &tag("map")), "'*' names only certified peers");
    // A certificate that claims a reserved name gains nothing.
    assert!(policy.rights_of(&PeerName::Certified("@unknown".into())).is_empty());
    // The processes of this host need no rule, and a rule may restrict them.
    assert!(policy.rights_of(&PeerName::Host).grants_node(Right::Relay));
    let narrow =
        AccessPolicy { rules: vec![rule(&["@host"], subscriber(&["a"], Quotas::default()))] };
    assert!(!narrow.rights_of(&PeerName::Host).grants_node(Right::Relay));
    assert!(narrow.rights_of(&PeerName::Host).grants(Right::Subscribe, &tag("a")));
    let own = AccessPolicy::default();
    assert!(own.rights_of(&PeerName::Host).grants_node(Right::Relay));
    assert!(own.rights_of_name("robot-1").is_empty());
    assert!(own.rights_of(&PeerName::Certified("@host".into())).is_empty());
}

#[test]
fn users_of_the_host_have_the_rights_of_their_accounts() {
    let policy = AccessPolicy {
        rules: vec![
            rule(&["@user:alice"], subscriber(&["cam"], Quotas::default())),
            rule(&["@user:*"], subscriber(&["map"], Quotas::default())),
            rule(&["*"], subscriber(&["news"], Quotas::default())),
        ],
    };
    let granted = |peer: PeerName| {
        let rights = policy.rights_of(&peer);
        ["cam", "map", "news"].map(|name| rights.grants(Right::Subscribe, &tag(name)))
    };
    assert_eq!(granted(PeerName::User("alice".into())), [true, true, false]);
    assert_eq!(granted(PeerName::User("bob".into())), [false, true, false]);
    assert_eq!(granted(PeerName::Certified("@user:alice".into())), [false; 3]);
    assert_eq!(granted(PeerName::Certified("alice".into())), [false, false, true]);
    assert_eq!(granted(PeerName::Unknown), [false; 3]);
}

#[test]
fn a_pattern_is_granted_in_part_if_some_tag_matches_both() {
    let chunks = ["a", "*", "**"];
    let all: Vec<String> = (1..=3)
        .flat_map(|n: u32| {
            (0..3_usize.pow(n)).map(move |i| {
                let parts: Vec<&str> =
                    (0..n).map(|part| chunks[i / 3_usize.pow(part) % 3]).collect();
                parts.join("/")
            })
        })
        .collect();
    let mut tags = vec!["a".to_owned(), "b".to_owned()];
    for _ in 0..4 {
        let longer: Vec<String> = tags.iter().map(|tag| format!("{tag}/a")).collect();
        tags.extend(longer);
        tags.extend(tags.clone().iter().map(|tag| format!("{tag}/b")).take(40));
        tags.sort();
        tags.dedup();
    }
    let tags: Vec<Tag> = tags.iter().map(|text| tag(text)).collect();
    for one in patterns(&all.iter().map(String::as_str).collect::<Vec<_>>()) {
        for other in patterns(&all.iter().map(String::as_str).collect::<Vec<_>>()) {
            let common = |tag: &&Tag| one.covers(tag) && other.matches(tag);
            assert_eq!(
                one.covers_part_of(&other),
                tags.iter().any(|tag| common(&tag)),
                "{one} {other}"
            );
            let all = tags.iter().filter(|tag| other.matches(tag)).all(|tag| one.covers(tag));
            assert!(all || !one.covers_all_of(&other), "{one} {other}");
        }
    }
    let pattern = |text| Pattern::new(text).unwrap();
    // Rights include the internal chunks of rules for plain Zenoh programs.
    assert!(
        pattern("robot/**").covers(&tag("robot/@ask/7")) && pattern("*/*").covers(&tag("a/@b"))
    );
    assert!(pattern("**").covers_part_of(&pattern("robot/@tokens")));
    assert!(!pattern("a/@b").covers_part_of(&pattern("a/*")));
    for [wide, narrow] in [["**", "a/*"], ["a/*", "a/b"], ["a/**", "a"], ["a/*", "a/@b"]] {
        assert!(pattern(wide).covers_all_of(&pattern(narrow)), "{wide} {narrow}");
        assert!(
            wide == "a/**" || !pattern(narrow).covers_all_of(&pattern(wide)),
            "{wide} {narrow}"
        );
    }
}

#[test]
fn quotas_count_the_streams_of_a_rule_together() {
    let quotas = Quotas {
        max_millihertz: Some(30_000),
        bytes_per_s: Some(1_000),
        share_percent: Some(50),
        within_min: Some(Duration::from_millis(20)),
        streams: Some(3),
        importance_max: Some(60),
    };
    let rights = Rights::of([Arc::new(subscriber(&["cam/**"], quotas))]);
    let ask = StreamQuality {
        millihertz: Some(30_000),
        bytes_per_s: Some(400),
        contract: true,
        within: Some(Duration::from_millis(20)),
        link_bytes_per_s: Some(1_000),
        importance: 60,
    };
    let cam = tag("cam/left");
    let mut used = RuleUse::default();
    let mut take = |asked: StreamQuality| {
        rights.take((Right::Subscribe, &cam), &asked, &mut used).map_err(|lack| lack.to_string())
    };
    let faster = StreamQuality { millihertz: Some(30_001), ..ask };
    assert_eq!(
        take(faster).unwrap_err(),
        "the right 'subscribe' allows at most a rate of 30.0 Hz, and the request needs a rate of \
         30.0 Hz"
    );
    assert!(take(StreamQuality { millihertz: None, ..ask }).unwrap_err().ends_with("has none"));
    let sooner = StreamQuality { within: Some(Duration::from_millis(19)), ..ask };
    assert!(take(sooner).unwrap_err().contains("at least a delay bound of 20 ms"));
    let vital = take(StreamQuality { importance: 61, ..ask }).unwrap_err();
    assert!(
        vital.ends_with("at most an importance of 60, and the request needs an importance of 61")
    );
    assert!(take(StreamQuality { bytes_per_s: None, ..ask }).is_err(), "a contract of no size");
    take(ask).unwrap();
    assert!(take(ask).unwrap_err().contains("at most 50 % of the link"));
    let free = StreamQuality { contract: false, within: None, importance: 100, ..ask };
    take(free).unwrap();
    assert!(take(free).unwrap_err().contains("at most 8"));
    let unknown = StreamQuality { bytes_per_s: None, ..free };
    take(unknown).unwrap();
    assert!(take(unknown).unwrap_err().contains("at most 3 streams"));
    let elsewhere = rights.take((Right::Subscribe, &tag("map")), &ask, &mut RuleUse::default());
    assert_eq!(elsewhere, Err(Lack::Right(Right::Subscribe)));
    assert_eq!(elsewhere.unwrap_err().to_string(), "the right 'subscribe' is missing");
    let other = rights.take((Right::Publish, &cam), &ask, &mut RuleUse::default());
    assert_eq!(other, Err(Lack::Right(Right::Publish)));
}

#[test]
fn a_second_rule_grants_beyond_the_limit_of_the_first() {
    let one = Quotas { streams: Some(1), ..Quotas::default() };
    let rules = [subscriber(&["cam"], one), subscriber(&["**"], one)];
    let rights = Rights::of(rules.map(Arc::new));
    let (cam, ask, mut used) = (tag("cam"), StreamQuality::default(), RuleUse::default());
    for _ in 0..2 {
        rights.take((Right::Subscribe, &cam), &ask, &mut used).unwrap();
    }
    assert!(rights.take((Right::Subscribe, &cam), &ask, &mut used).is_err());
}
