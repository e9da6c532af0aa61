use super::*;

/// A key of rmw_zenoh: domain, topic, type, type hash.
const CHATTER: &str = "0/chatter/std_msgs::msg::dds_::String_/RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";

fn pattern(text: &str) -> KeyPattern {
    KeyPattern::new(text).unwrap()
}

fn filled(from: &str, template: &str, name: &str) -> Option<String> {
    Template::new(template, "key", &pattern(from)).unwrap().fill(name)
}

#[test]
fn templates_are_filled_from_wildcards() {
    for (from, template, name, made) in [
        ("robot/**", "{key}", "robot/camera/left", "robot/camera/left"),
        ("robot/**", "lab/{key}", "robot/camera", "lab/robot/camera"),
        ("robot/**", "lab/{1}", "robot/camera/left", "lab/camera/left"),
        ("robot/*/camera/*", "{2}/of/{1}", "robot/7/camera/left", "left/of/7"),
        ("*/**/*", "{1}-{3}/{2}", "a/b/c/d", "a-d/b/c"),
        ("a/**/*/z", "{1}|{2}", "a/b/c/d/z", "b/c|d"),
        ("robot/cam$*", "pictures/{key}", "robot/cam7", "pictures/robot/cam7"),
        ("**", "x", "anything", "x"),
        // An empty `**` also removes the adjacent slash.
        ("robot/**", "lab/{1}", "robot", "lab"),
        ("robot/**", "{1}/lab", "robot", "lab"),
        ("robot/**", "lab/{1}/x", "robot", "lab/x"),
        ("a/**/b", "t/{1}/u", "a/b", "t/u"),
    ] {
        assert_eq!(filled(from, template, name).as_deref(), Some(made), "{from} {template} {name}");
    }
    // The name has fewer chunks than the pattern, or the result is empty.
    assert_eq!(filled("a/*/**/*", "{1}", "a/b"), None);
    assert_eq!(filled("a/*", "{1}", "a/b/c"), None);
    assert_eq!(filled("**", "{1}", ""), None);
    assert_eq!(filled("robot/**", "{1}", "robot"), None);
}

#[test]
fn ros_2_keys_lose_and_regain_their_domain() {
    let tag = filled("0/**/*/*", "ros2/{1}/{2}/{3}", CHATTER).unwrap();
    assert_eq!(tag, CHATTER.replacen("0/", "ros2/", 1));
    let back = Template::new("5/{1}", "tag", &pattern("ros2/**")).unwrap();
    assert_eq!(back.fill(&tag).unwrap(), CHATTER.replacen("0/", "5/", 1));
    // A topic in a namespace has several chunks.
    let deep = CHATTER.replace("chatter", "robot1/front/chatter");
    assert_eq!(filled("0/**/*/*", "{1}", &deep).unwrap(), "robot1/front/chatter");
    let typed = filled("0/**/*/*", "{1}/{2}", CHATTER).unwrap();
    assert_eq!(typed, "chatter/std_msgs::msg::dds_::String_");
}

#[test]
fn invalid_templates_are_explained() {
    for (text, what) in [
        ("", "is not a key expression of Zenoh"),
        ("/robot", "is not a key expression"),
        ("robot//camera", "is not a key expression"),
        ("robot/", "is not a key expression"),
        ("robot/ca*", "is not a key expression"),
        ("robot/#", "is not a key expression"),
        ("a/**/b/**", "more than one **"),
    ] {
        let message = KeyPattern::new(text).unwrap_err().to_string();
        assert!(message.contains(what) && message.contains(text), "{text}: {message}");
        assert!(!message.contains(".rs"), "{message}");
    }
    let from = pattern("robot/*/camera");
    for (text, what) in [
        ("{tag}", "{tag} is not known: write {key} for the whole"),
        ("{", "is not known"),
        ("a}b", "is not known"),
        ("{0}", "{0} is not known"),
        ("{10}", "{10} is not known"),
        ("{-1}", "is not known"),
        ("{1}/{2}", "names {2}, but robot/*/camera has 1 wildcards"),
    ] {
        let message = Template::new(text, "key", &from).unwrap_err().to_string();
        assert!(message.contains(what), "{text}: {message}");
    }
    for (from, text) in [("a/*", "a b//c"), ("a/*", "{1}//x"), ("a/**", "x{1}"), ("a/*", "")] {
        let template = Template::new(text, "key", &pattern(from)).unwrap();
        let message = template.makes().unwrap_err().to_string();
        assert!(message.contains("is not a key expression"), "{text}: {message}");
    }
}

#[test]
fn a_template_of_a_pattern_gives_a_pattern() {
    for (from, template, makes) in [
        ("robot/**", "{key}", "robot/**"),
        ("robot/**", "lab/{1}", "lab/**"),
        ("*/**/*", "{3}/{1}", "*/*"),
        ("robot/*", "fixed", "fixed"),
        ("robot/*", "lab-{1}", "lab-$*"),
        ("robot/cam$*", "{key}", "robot/cam$*"),
    ] {
        let template = Template::new(template, "key", &pattern(from)).unwrap();
        assert_eq!(template.makes().unwrap().as_str(), makes);
    }
    assert!(pattern("robot/**").intersects(&pattern("*/camera")));
    assert!(!pattern("robot/*").intersects(&pattern("robot/a/b")));
}

#[test]
fn made_keys_map_back_to_their_source() {
    for (from, template, name) in [
        ("robot/**", "{key}", "robot/camera/left"),
        ("robot/**", "far/{key}/x", "robot"),
        ("robot/**", "far/{1}", "robot/camera/left"),
        ("robot/*/camera/*", "{2}/of/{1}", "robot/7/camera/left"),
        ("robot/camera", "picture", "robot/camera"),
        ("ros2/**/*/*", "0/{1}/{2}/{3}", "ros2/a/b/c/d"),
    ] {
        let template = Template::new(template, "key", &pattern(from)).unwrap();
        let made = template.fill(name).unwrap();
        assert_eq!(template.inverse().unwrap().fill(&made).as_deref(), Some(name), "{from} {made}");
    }
    for (from, template) in [
        ("robot/**", "far"),
        ("robot/*/*", "far/{1}"),
        ("robot/*/*", "far/{1}/{1}"),
        ("robot/*", "far-{1}"),
        ("robot/*", "{key}/{key}"),
        ("robot/c$*", "far/{key}"),
    ] {
        let template = Template::new(template, "key", &pattern(from)).unwrap();
        assert_eq!(template.inverse(), None, "{from} {template}");
    }
}

#[test]
fn no_key_panics() {
    let from = [pattern("**"), pattern("a/*/**"), pattern("**/*/z"), pattern("a/b")];
    let names =
        ["", "/", "//", "a", "a/", "/a", "a/b/c/d/e/z", "\u{0}", "ä/ö/z", "a//z", "{1}", "*/**"];
    for from in &from {
        for text in ["{key}", "x{1}", "{1}{1}"] {
            let Ok(template) = Template::new(text, "key", from) else { continue };
            for name in names {
                let made = template.fill(name);
                assert!(made.is_none_or(|made| !made.is_empty()), "{from} {text} {name}");
            }
        }
    }
}
