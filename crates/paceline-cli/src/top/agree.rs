//! One state, displayed by `ls`, `top`, the API and the metrics: their common figures are equal.

use super::model::Order;
use super::model::tests::model;
use super::view::plain;
use crate::status::example::status;
use bytes::Bytes;
use paceline::status::{HealthState, NetworkHealth, NodeStatus, SubscriptionHealth};
use paceline_http::status::StatusDocument;
use paceline_http::{Change, HttpServer, NoPicture, Shown, Source, State, StatusCode};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// A state that does not change.
struct Frozen(State);

impl Source for Frozen {
    fn state(&self, _viewed: bool) -> State {
        self.0.clone()
    }

    fn picture(&self, _: &str, _: Option<u64>) -> Result<Option<Shown>, NoPicture> {
        Ok(None)
    }

    fn note_refused(&self, _: &str, _: &str, _: &str) {}

    fn change(&self, _: &str, _: &Change) -> Result<Bytes, (StatusCode, String)> {
        Err((StatusCode::NOT_FOUND, String::new()))
    }

    fn values(&self, _: &str) -> Result<Bytes, (StatusCode, String)> {
        Err((StatusCode::NOT_FOUND, String::new()))
    }

    fn comparison(&self) -> Option<Bytes> {
        None
    }

    fn turn(&self, _: &str, _: bool) -> bool {
        false
    }
}

/// Returns a subscription for each state, with figures of its own.
fn frozen() -> Vec<NodeStatus> {
    let mut nodes = status();
    let of = nodes.iter_mut().find(|node| !node.subscriptions.is_empty()).unwrap();
    let first = of.subscriptions.remove(0);
    for (index, state) in (0u32..).zip(HealthState::ALL) {
        let mut row = first.clone();
        row.id.index = index;
        // Short, so that no table cuts it.
        row.pattern = format!("a/{index}");
        let [delivered, lost, late] = [53, 179, 11].map(|count: u64| count + u64::from(index));
        row.health = SubscriptionHealth {
            state,
            label: state.in_words().to_owned(),
            window: Duration::from_secs(10),
            requested: Some(delivered + lost),
            delivered,
            lost,
            lost_before: lost,
            late,
            requested_millihertz: Some((delivered + lost) * 100),
            delivered_millihertz: Some(delivered * 100),
            reason: Some(format!("{lost} of {} lost before this node", delivered + lost)),
            broken_seconds: 4,
            broken_ago: Some(Duration::from_secs(1)),
        };
        if state == HealthState::Refused {
            row.refusals.push("link 'thin' can't carry it".to_owned());
        }
        of.subscriptions.push(row);
    }
    nodes
}

fn get(server: &HttpServer, path: &str) -> String {
    let url = server.url();
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Returns the value of a metric with these labels.
fn metric(text: &str, name: &str, labels: &[&str]) -> Option<u64> {
    let mut found = text.lines().filter(|line| {
        line.starts_with(&format!("{name}{{")) && labels.iter().all(|label| line.contains(label))
    });
    found.next()?.rsplit(' ').next()?.parse().ok()
}

/// Returns the row of a table that begins with this word.
fn row<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let start = format!("{word} ");
    let found = text.lines().find(|line| line.starts_with(&start));
    found.unwrap_or_else(|| panic!("{word}: {text}")).split_whitespace().collect()
}

#[test]
fn every_display_of_a_state_has_the_same_figures() {
    let nodes = StatusDocument::new(frozen()).nodes;
    let state = State {
        schema: 1,
        at_ms: 0,
        health: NetworkHealth::of(&nodes),
        nodes: nodes.clone(),
        known: Vec::new(),
        switches: Vec::new(),
        far: [].into(),
    };
    let server =
        HttpServer::start(&"127.0.0.1:0".parse().unwrap(), None, Arc::new(Frozen(state))).unwrap();
    let (page, metrics) = (get(&server, "/api/v1/state"), get(&server, "/metrics"));
    let page: State = serde_json::from_str(&page).unwrap();
    let listed = serde_json::to_string(&StatusDocument::new(frozen())).unwrap();
    let listed: StatusDocument = serde_json::from_str(&listed).unwrap();
    let tables = crate::ls::tables(&listed);
    let top = plain(&model(&[(0, frozen()), (1, frozen())]).view(Order::Tag, false));
    let mut compared = 0;
    let (shown, rows) = (page.nodes.iter().flat_map(|node| &node.subscriptions), listed.nodes);
    for (shown, row_of) in shown.zip(rows.iter().flat_map(|node| &node.subscriptions)) {
        let SubscriptionHealth { state, requested, delivered, lost, late, .. } = shown.health;
        assert_eq!(shown.health, row_of.health, "page and ls --json");
        let pattern = &shown.pattern;
        let labels = [&format!("pattern=\"{pattern}\"")[..]];
        let of = |what: &str| {
            metric(&metrics, &format!("paceline_subscription_window_{what}_samples"), &labels)
        };
        let counts = (of("requested"), of("delivered"), of("lost"), of("late"));
        assert_eq!(counts, (requested, Some(delivered), Some(lost), Some(late)), "{pattern}");
        let with_state = [labels[0], &format!("state=\"{}\"", state.name())];
        assert_eq!(metric(&metrics, "paceline_subscription_health", &with_state), Some(1));
        let hertz = |count: u64| format!("{:.1}", count as f64 / 10.0);
        let figures =
            [hertz(delivered), hertz(requested.unwrap()), late.to_string(), lost.to_string()];
        for (name, text) in [("ls", &tables), ("top", &top)] {
            let cells = row(text, pattern);
            for figure in &figures {
                assert!(
                    cells.contains(&figure.as_str()),
                    "{name} {pattern}: {figure} in {cells:?}"
                );
            }
            let label = state.in_words().split(' ').next().unwrap();
            let names_state = cells.iter().any(|cell| cell.trim_end_matches(':') == label);
            assert!(names_state, "{name} {pattern}: {label} in {cells:?}");
        }
        compared += 1;
    }
    assert_eq!(compared, HealthState::ALL.len());
    let failures = page.health.text;
    assert!(
        failures.contains("broken now") && failures.contains("less than requested"),
        "{failures}"
    );
}
