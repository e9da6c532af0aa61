//! Checks that the queries of the Grafana dashboard in docs/grafana use only families and labels of
//! `/metrics`.

use super::*;
use crate::status::tests::example::status as test_status;
use paceline::status::DropReason;
use serde_json::Value;
use std::collections::BTreeSet;

const DASHBOARD: &str = include_str!("../../../../docs/grafana/paceline.json");

/// Returns the families of a full `/metrics` answer with every counter present, each with its
/// labels.
fn families() -> BTreeMap<String, BTreeSet<String>> {
    let mut status = test_status();
    for node in &mut status {
        node.dropped.add(DropReason::NoRoute, 1);
        for subscription in &mut node.subscriptions {
            subscription.dropped.add(DropReason::SubscriberFull, 1);
        }
        for link in &mut node.links {
            link.closed.dropped.add(DropReason::QueueFull, 1);
        }
    }
    let text = write(&tests::state_of(status));
    let mut families: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_once('{').unwrap();
        let (labels, _) = rest.rsplit_once("} ").unwrap();
        let labels = labels.split("\",").map(|label| label.split_once('=').unwrap().0.to_owned());
        families.entry(name.to_owned()).or_default().extend(labels);
    }
    families
}

/// Returns Paceline's metric names in an expression.
fn names(expr: &str) -> Vec<&str> {
    let words = expr.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("paceline_")).collect()
}

/// Returns every text between `open` and `close`.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    text.split(open).skip(1).filter_map(|part| Some(part.split_once(close)?.0)).collect()
}

/// Returns the labels that a query uses in grouping, matching or its legend.
fn labels(expr: &str, legend: &str) -> BTreeSet<String> {
    let lists = ["by (", "on ("].into_iter().flat_map(|open| between(expr, open, ")"));
    let matched = between(expr, "{", "}").into_iter().filter_map(|at| Some(at.split_once('=')?.0));
    let listed = lists.flat_map(|list| list.split(", "));
    listed.chain(matched).chain(between(legend, "{{", "}}")).map(ToOwned::to_owned).collect()
}

fn queries(dashboard: &Value) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let panels = dashboard["panels"].as_array().unwrap();
    let of = |panel: &Value| {
        let targets = panel["targets"].as_array().unwrap();
        let title = text(&panel["title"]);
        let query = |t: &Value| (title.clone(), text(&t["expr"]), text(&t["legendFormat"]));
        targets.iter().map(query).collect::<Vec<_>>()
    };
    panels.iter().flat_map(of).collect()
}

#[test]
fn every_query_uses_existing_families_and_labels() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let families = families();
    let queries = queries(&dashboard);
    assert!(queries.len() > 15, "{queries:?}");
    for (title, expr, legend) in &queries {
        let names = names(expr);
        assert!(!names.is_empty(), "{title}: {expr}");
        for name in names {
            let known = families.get(name);
            let known = known.unwrap_or_else(|| panic!("{title}: /metrics has no {name}"));
            for label in labels(expr, legend) {
                // A label in a query must exist in the family.
                assert!(known.contains(&label), "{title}: {name} has no label {label}: {known:?}");
            }
        }
        for (open, close) in [('(', ')'), ('{', '}'), ('[', ']')] {
            assert_eq!(expr.matches(open).count(), expr.matches(close).count(), "{title}: {expr}");
        }
        // Only the growth of a counter is meaningful.
        let counted = expr.contains("_total");
        assert_eq!(
            counted,
            expr.contains("rate(") || expr.contains("increase("),
            "{title}: {expr}"
        );
    }
    let variable = &dashboard["templating"]["list"][1];
    for name in names(variable["definition"].as_str().unwrap()) {
        assert!(families.contains_key(name), "the variable asks for {name}");
    }
}

#[test]
fn the_file_can_be_imported_by_grafana() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    for field in ["uid", "title", "schemaVersion", "time", "refresh", "templating", "panels"] {
        assert!(!dashboard[field].is_null(), "{field}");
    }
    assert!(dashboard["id"].is_null(), "an id would replace another dashboard");
    let mut ids = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let kind = panel["type"].as_str().unwrap();
        assert!(["stat", "timeseries"].contains(&kind), "{kind}");
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{panel}");
        let mut refs = BTreeSet::new();
        for target in panel["targets"].as_array().unwrap() {
            assert!(refs.insert(target["refId"].as_str().unwrap()), "{target}");
        }
        let place = |side: &str| panel["gridPos"][side].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{panel}");
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(taken.insert((x, y)), "two panels at {x}, {y}");
            }
        }
    }
}
