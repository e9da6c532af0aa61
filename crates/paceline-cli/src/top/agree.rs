//! One state, displayed by `ls`, `top`, the API and the metrics: their common figures are equal.

use super::model::Order;
use super::model::tests::model;
use super::view::plain;
use crate::status::example::status;
use bytes::Bytes;
use paceline::status::{HealthState, NetworkHealth, NodeStatus, SubscriptionHealth, explain};
use paceline::{Capacity, LinkConfig, Node, NodeBuilder, Publisher, Subscriber};
use paceline_http::status::StatusDocument;
use paceline_http::{Change, HttpServer, NoPicture, Shown, Source, State, StatusCode};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
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

/// Compares all displays of the health of one subscription of a state.
fn compare(displays: &Displays, pattern: &str, health: &SubscriptionHealth) {
    let SubscriptionHealth { state, requested, delivered, lost, late, .. } = *health;
    let labels = [&format!("pattern=\"{pattern}\"")[..]];
    let of = |what: &str| {
        let name = format!("paceline_subscription_window_{what}_samples");
        metric(&displays.metrics, &name, &labels)
    };
    let counts = (of("requested"), of("delivered"), of("lost"), of("late"));
    assert_eq!(counts, (requested, Some(delivered), Some(lost), Some(late)), "{pattern}");
    let with_state = [labels[0], &format!("state=\"{}\"", state.name())];
    assert_eq!(metric(&displays.metrics, "paceline_subscription_health", &with_state), Some(1));
    let hertz = |millihertz: Option<u64>| {
        millihertz.map(|it| format!("{:.1}", it as f64 / 1_000.0)).filter(|_| delivered + lost > 0)
    };
    let rates = [hertz(health.delivered_millihertz), hertz(health.requested_millihertz)];
    let figures = rates.into_iter().flatten().chain([late, lost].map(|count| count.to_string()));
    let figures: Vec<String> = figures.collect();
    for (name, text) in [("ls", &displays.tables), ("top", &displays.top)] {
        let cells = row(text, pattern);
        for figure in &figures {
            assert!(cells.contains(&figure.as_str()), "{name} {pattern}: {figure} in {cells:?}");
        }
        let label = state.in_words().split(' ').next().unwrap();
        let names_state = cells.iter().any(|cell| cell.trim_end_matches(':') == label);
        assert!(names_state, "{name} {pattern}: {label} in {cells:?}");
    }
}

/// The texts that display one state.
struct Displays {
    page: State,
    listed: StatusDocument,
    metrics: String,
    tables: String,
    top: String,
}

impl Displays {
    fn of(status: &[NodeStatus]) -> Self {
        let document = StatusDocument::new(status.to_vec());
        let listed = serde_json::to_string(&document).unwrap();
        let nodes = document.nodes;
        let state = State {
            schema: 1,
            at_ms: 0,
            health: NetworkHealth::of(&nodes),
            nodes,
            known: Vec::new(),
            switches: Vec::new(),
            far: [].into(),
        };
        let source = Arc::new(Frozen(state));
        let server = HttpServer::start(&"127.0.0.1:0".parse().unwrap(), None, source).unwrap();
        let listed: StatusDocument = serde_json::from_str(&listed).unwrap();
        Self {
            page: serde_json::from_str(&get(&server, "/api/v1/state")).unwrap(),
            metrics: get(&server, "/metrics"),
            tables: crate::ls::tables(&listed),
            listed,
            top: plain(
                &model(&[(0, status.to_vec()), (1, status.to_vec())]).view(Order::Tag, false),
            ),
        }
    }

    /// Compares all subscriptions. Returns their number.
    fn compare(&self) -> usize {
        let of = |nodes: &[NodeStatus]| -> Vec<(String, SubscriptionHealth)> {
            let rows = nodes.iter().flat_map(|node| &node.subscriptions);
            rows.map(|row| (row.pattern.clone(), row.health.clone())).collect()
        };
        let (shown, listed) = (of(&self.page.nodes), of(&self.listed.nodes));
        assert_eq!(shown, listed, "page and ls --json");
        shown.iter().for_each(|(pattern, health)| compare(self, pattern, health));
        shown.len()
    }
}

#[test]
fn every_display_of_a_state_has_the_same_figures() {
    let displays = Displays::of(&frozen());
    assert_eq!(displays.compare(), HealthState::ALL.len());
    let failures = displays.page.health.text;
    assert!(
        failures.contains("broken now") && failures.contains("less than requested"),
        "{failures}"
    );
}

/// A live network of two or three nodes with links of random capacities, and one publisher for each subscription.
struct LiveNetwork {
    nodes: Vec<Node>,
    subscribers: Vec<Subscriber>,
    publishers: Vec<(Publisher, usize)>,
}

impl LiveNetwork {
    fn random(seed: u64) -> Self {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            usize::try_from(random >> 33).unwrap() % below
        };
        let count = 2 + next(2);
        let mut links: Vec<Vec<LinkConfig>> = vec![Vec::new(); count];
        for at in 1..count {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let capacity = Capacity::from_bits_per_s(100_000 + next(900_000) as u64).unwrap();
            let link = || LinkConfig::new(&format!("l{at}")).capacity(capacity);
            let endpoint = format!("tcp/127.0.0.1:{port}");
            links[at - 1].push(link().listen(&endpoint));
            links[at].push(link().connect(&endpoint));
        }
        let open = |(at, links): (usize, Vec<LinkConfig>)| {
            let builder = Node::builder().name(&format!("n{at}")).isolated();
            links.into_iter().fold(builder, NodeBuilder::link).open().unwrap()
        };
        let nodes: Vec<Node> = links.into_iter().enumerate().map(open).collect();
        let (mut subscribers, mut publishers) = (Vec::new(), Vec::new());
        for index in 0..2 + next(4) {
            let (tag, bytes) = (format!("t/{index}"), 50 + next(4_000));
            let publisher = nodes[0].publisher(&tag).hz(50.0).bytes_max(4_200);
            publishers.push((publisher.declare().unwrap(), bytes));
            let wish = nodes[count - 1].subscriber(&format!("{tag}/**")).queue(1 + next(40));
            let wish = match next(4) {
                0 => wish.within(Duration::from_millis(5 + next(200) as u64)).loss(1, 10),
                1 => wish.max_hz(10.0),
                2 => wish.every(3),
                _ => wish,
            };
            subscribers.push(wish.declare().unwrap());
        }
        Self { nodes, subscribers, publishers }
    }

    /// Publishes for a time. Every second subscription is not read.
    fn run(&mut self, steps: u32) {
        for _ in 0..steps {
            for (publisher, bytes) in &mut self.publishers {
                publisher.put(vec![0; *bytes]).unwrap();
            }
            for subscriber in self.subscribers.iter_mut().step_by(2) {
                while subscriber.try_recv().is_some() {}
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn status(&self) -> Vec<NodeStatus> {
        let mut status = self.nodes[self.nodes.len() - 1].status(Duration::from_millis(500));
        explain(&mut status);
        status
    }
}

#[test]
fn every_display_of_random_live_networks_has_the_same_figures() {
    let (networks, instants) = (20, 10);
    let one = |seed| {
        let mut network = LiveNetwork::random(seed);
        network.run(40);
        let mut compared = BTreeMap::new();
        for _ in 0..instants {
            network.run(10);
            let status = network.status();
            Displays::of(&status).compare();
            for row in status.iter().flat_map(|node| &node.subscriptions) {
                *compared.entry(row.health.state).or_insert(0) += 1;
            }
        }
        compared
    };
    let mut compared: BTreeMap<HealthState, u32> = BTreeMap::new();
    for lane in (0..networks).collect::<Vec<u64>>().chunks(5) {
        let lane: Vec<_> = std::thread::scope(|scope| {
            let each: Vec<_> = lane.iter().map(|seed| scope.spawn(|| one(*seed))).collect();
            each.into_iter().flat_map(|one| one.join().unwrap()).collect()
        });
        lane.into_iter().for_each(|(state, count)| *compared.entry(state).or_insert(0) += count);
    }
    println!(
        "{} instants of {networks} networks, subscriptions by state: {compared:?}",
        networks * instants
    );
    // Equal displays of one state alone would show little.
    assert!(compared.len() >= 3, "{compared:?}");
}
