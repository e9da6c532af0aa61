use super::*;
use crate::api::SCHEMA;
use crate::status::StatusDocument;
use crate::status::tests::example::status;
use paceline::status::{NetworkHealth, NodeStatus};
use std::collections::BTreeSet;

/// Returns a state with these nodes.
pub(super) fn state_of(nodes: Vec<NodeStatus>) -> State {
    let nodes = StatusDocument::new(nodes).nodes;
    State {
        schema: SCHEMA,
        at_ms: 0,
        health: NetworkHealth::of(&nodes),
        nodes,
        known: vec![],
        switches: vec![],
        far: BTreeSet::new(),
    }
}

#[test]
fn values_have_their_units_and_labels() {
    let text = write(&state_of(status()));
    let robot = "{node=\"robot\",node_id=\"0000000000000b0b\"";
    for line in [
        format!(
            "paceline_publisher_samples_total{robot},publisher=\"0000000000000b0b.1\",tag=\"robot/camera\"}} 300"
        ),
        format!("paceline_link_wire_bytes_total{robot},link=\"thin\"}} 400000"),
        format!(
            "paceline_hop_wire_bytes_total{robot},link=\"thin\",hop=\"000000000000000b\"}} 400000"
        ),
        format!("paceline_link_round_trip_seconds{robot},link=\"thin\"}} 0.000150"),
        format!("paceline_link_reserved_bits_per_second{robot},link=\"thin\"}} 400000"),
        format!("paceline_link_least_capacity_bits_per_second{robot},link=\"thin\"}} 1100000"),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(text.contains("hop=\"000000000000000b\",reason=\"superseded\"} 3\n"), "{text}");
    assert!(text.contains("paceline_subscription_age_seconds_total{"), "{text}");
    for line in [
        "paceline_players_left_out_total{",
        "paceline_players_reported_packets_total{",
        "paceline_players_round_trip_max_seconds{",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(text.contains("reason=\"needs\"} 30\n"), "{text}");
    let mean =
        text.lines().find(|line| line.starts_with("paceline_subscription_age_mean_seconds{"));
    assert!(mean.is_some_and(|line| line.ends_with(" 0.021014")), "{mean:?}");
}

/// Checks the rules of the format. Each family occurs once, with its help and type before its
/// samples. Names and labels contain only allowed characters, and samples of a family differ in
/// their labels.
#[test]
fn the_text_keeps_the_rules_of_the_format() {
    let mut state = state_of(status());
    let streams = &mut state.nodes[1].links[0].streams;
    // A stream that replaces another has the same labels.
    streams.push(streams[0].clone());
    let text = write(&state);
    assert!(text.contains("hop=\"000000000000000b\",reason=\"superseded\"} 6\n"), "{text}");
    assert!(text.ends_with('\n'));
    let (mut families, mut samples) = (BTreeSet::new(), BTreeSet::new());
    let mut family = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            family = help.split(' ').next().unwrap().to_owned();
            assert!(families.insert(family.clone()), "{family} appears twice");
            let kind = lines.next().unwrap();
            let counter = kind == format!("# TYPE {family} counter");
            assert!(counter || kind == format!("# TYPE {family} gauge"), "{kind}");
            assert_eq!(counter, family.ends_with("_total"), "{family}");
            continue;
        }
        let (name, rest) = line.split_once('{').unwrap();
        assert_eq!(name, family);
        let (labels, value) = rest.rsplit_once("} ").unwrap();
        assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
        assert!(samples.insert((name.to_owned(), labels.to_owned())), "{line} appears twice");
    }
    assert!(families.len() > 30, "{families:?}");
}

#[test]
fn labels_are_escaped() {
    assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    let mut state = state_of(status());
    state.nodes[0].name = "quote \" and \\".to_owned();
    assert!(write(&state).contains("node=\"quote \\\" and \\\\\""));
}

#[test]
fn the_steps_of_an_elastic_contract_keep_one_series() {
    let mut nodes = status();
    let ladder = vec!["30 Hz".to_owned(), "15 Hz".to_owned()];
    let elastic = Some(paceline::status::ElasticStatus { step: 1, ladder });
    nodes.iter_mut().flat_map(|node| &mut node.subscriptions).for_each(|row| {
        row.elastic.clone_from(&elastic);
    });
    let text = write(&state_of(nodes));
    let mut lines = text.lines().filter(|line| line.starts_with("paceline_subscription_"));
    assert!(lines.all(|line| line.contains("form=\"30 Hz\"")), "{text}");
    let line = text.lines().find(|line| line.starts_with("paceline_subscription_reduced_steps{"));
    assert!(line.is_some_and(|line| line.ends_with("} 1")), "{line:?}");
}
