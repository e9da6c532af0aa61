//! Link cuts under load: every published sample is delivered or reported, for each subscriber,
//! exactly.

use crate::cable::Cable;
use crate::radio::Radio;
use crate::support::{SOON, free_endpoint, isolated, wait_until};
use crate::trust::{Authority, free_quic};
use paceline::status::{LinkCounters, LinkStatus, NodeStatus};
use paceline::{LinkConfig, Node, Publisher, Subscription};
use paceline_sched::Capacity;
use paceline_sim::Random;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The tags, with the bytes and the period of their samples.
const LOAD: [(&str, usize, Duration); 2] =
    [("small", 200, Duration::from_micros(2_500)), ("large", 20_000, Duration::from_millis(20))];

/// A connection between two nodes that can be cut.
enum Wire {
    Tcp(Cable),
    Quic(Radio),
}

impl Wire {
    fn cut(&self) {
        match self {
            Self::Tcp(cable) => cable.cut(),
            Self::Quic(radio) => radio.cut(),
        }
    }

    fn restore(&self) {
        match self {
            Self::Tcp(cable) => cable.restore(),
            Self::Quic(radio) => radio.restore(),
        }
    }

    fn endpoint(&self) -> String {
        match self {
            Self::Tcp(cable) => cable.endpoint(),
            Self::Quic(radio) => radio.endpoint(),
        }
    }
}

/// A publisher and its only subscriber.
struct Flow {
    publisher: Publisher,
    subscription: Subscription,
    payload: Vec<u8>,
    period: Duration,
    due: Instant,
    put: u64,
    seqs: Arc<Mutex<Vec<u64>>>,
}

/// The sums of one flow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Account {
    /// Samples published since the first delivered one.
    published: u64,
    delivered: u64,
    missing: u64,
}

impl Flow {
    fn new(from: &Node, to: &Node, (tag, bytes, period): (&str, usize, Duration)) -> Self {
        let seqs = Arc::<Mutex<Vec<u64>>>::default();
        let got = seqs.clone();
        let subscription = to.subscriber(tag);
        let subscription =
            subscription.callback(move |sample| got.lock().unwrap().push(sample.seq));
        let publisher = from.publisher(tag).period(period).bytes_max(bytes as u64);
        Self {
            publisher: publisher.declare().unwrap(),
            subscription: subscription.unwrap(),
            payload: vec![7; bytes],
            period,
            due: Instant::now(),
            put: 0,
            seqs,
        }
    }

    fn put(&mut self) {
        assert_eq!(self.publisher.put(self.payload.clone()).unwrap().seq, self.put);
        self.put += 1;
    }

    /// Publishes the samples that are due.
    fn publish(&mut self, now: Instant) {
        while self.due <= now {
            self.due += self.period;
            self.put();
        }
    }

    /// Publishes until a sample arrives, and waits for the last one.
    fn meet(&mut self) {
        wait_until("a sample arrives", || {
            self.put();
            std::thread::sleep(Duration::from_millis(20));
            let seqs = self.seqs.lock().unwrap();
            seqs.last().is_some_and(|seq| seq + 1 == self.put)
        });
        self.due = Instant::now();
    }

    fn account(&self) -> Account {
        let seqs = self.seqs.lock().unwrap();
        assert!(seqs.is_sorted_by(|a, b| a < b), "delivered twice or out of order");
        let first = seqs.first().copied().unwrap_or_default();
        Account {
            published: self.put - first,
            delivered: seqs.len() as u64,
            missing: self.subscription.missing(),
        }
    }
}

/// A robot and an operator, joined by two paths over a relay each. Fields are dropped in declaration
/// order.
struct Diamond {
    flows: Vec<Flow>,
    /// The relays, then the robot and the operator.
    nodes: Vec<Node>,
    /// From the robot to each relay, then from each relay to the operator.
    wires: Vec<Wire>,
    /// The listening endpoints behind the wires.
    ends: Vec<String>,
    authority: Option<Authority>,
}

impl Diamond {
    fn over_tcp() -> Self {
        let ends = [(); 4].map(|()| free_endpoint());
        let wires = ends.iter().map(|end| Wire::Tcp(Cable::new(end))).collect();
        Self::open(ends.into(), wires, None)
    }

    fn over_quic() -> Self {
        let ends = [(); 4].map(|()| free_quic());
        let wires = ends.iter().map(|end| Wire::Quic(Radio::new(end))).collect();
        Self::open(ends.into(), wires, Some(Authority::new("cuts")))
    }

    fn open(ends: Vec<String>, wires: Vec<Wire>, authority: Option<Authority>) -> Self {
        let mut net = Self { flows: Vec::new(), nodes: Vec::new(), wires, ends, authority };
        let link = LinkConfig::new;
        let (left, right) = (link("left"), link("right"));
        let operator = vec![left.listen(&net.ends[2]), right.listen(&net.ends[3])];
        let (left, right) = (link("left"), link("right"));
        let robot =
            vec![left.connect(&net.wires[0].endpoint()), right.connect(&net.wires[1].endpoint())];
        net.nodes = vec![net.relay(0), net.relay(1)];
        let (robot, operator) = (net.node("robot", robot), net.node("operator", operator));
        wait_until("all nodes know each other", || robot.nodes().len() == 4);
        net.flows = LOAD.map(|load| Flow::new(&robot, &operator, load)).into();
        net.nodes.extend([robot, operator]);
        net
    }

    fn node(&self, name: &str, links: Vec<LinkConfig>) -> Node {
        let Some(authority) = &self.authority else { return isolated(name, links) };
        let capacity = Capacity::from_bits_per_s(20_000_000).unwrap();
        let datagrams = links.into_iter().map(|link| link.capacity(capacity));
        authority.member_of_all(name, datagrams.collect())
    }

    fn relay(&self, side: usize) -> Node {
        let (listen, connect) = (&self.ends[side], self.wires[side + 2].endpoint());
        let link = LinkConfig::new;
        self.node(
            ["left", "right"][side],
            vec![link("in").listen(listen), link("out").connect(&connect)],
        )
    }

    /// Closes a relay, and opens it again after a while.
    fn restart(&mut self, side: usize, after: Duration) {
        self.nodes.remove(side).close();
        self.publish_for(after);
        let relay = self.relay(side);
        self.nodes.insert(side, relay);
    }

    /// Publishes at the declared rates for a time.
    fn publish_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.flows.iter_mut().for_each(|flow| flow.publish(Instant::now()));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn accounts(&self) -> Vec<Account> {
        self.flows.iter().map(Flow::account).collect()
    }

    /// Returns the drops that all nodes report, each counted once.
    fn reported(&self) -> u64 {
        let own = |node: &Node| node.status_of(&[node.id()], SOON).into_iter().next();
        let nodes: u64 = self.nodes.iter().filter_map(own).map(|status| dropped(&status)).sum();
        let unrouted: u64 = self.flows.iter().map(|flow| flow.publisher.unrouted()).sum();
        nodes + unrouted
    }
}

/// Returns the drops that a node reports, except for those that the next node counts as lost.
fn dropped(node: &NodeStatus) -> u64 {
    let once = |counters: &LinkCounters| counters.dropped.total() - counters.aborted;
    let link = |link: &LinkStatus| {
        let open: u64 = link.streams.iter().map(|stream| once(&stream.counters)).sum();
        open + once(&link.closed)
    };
    let links: u64 = node.links.iter().map(link).sum();
    let sinks: u64 = node.subscriptions.iter().map(|it| it.dropped.total()).sum();
    links + sinks + node.dropped.total()
}

/// The faults of a test.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Faults {
    /// Only wires are cut. All nodes keep their counters.
    Cuts,
    /// Relays restart as well, and lose their counters.
    Restarts,
}

/// Cuts wires under load, and compares the sums.
fn cut(mut net: Diamond, count: u64, faults: Faults) {
    net.flows.iter_mut().for_each(Flow::meet);
    let mut chance = Random::new(count);
    std::thread::sleep(Duration::from_millis(500));
    // Samples published before the subscription was known are reported, but not missing.
    let before = (net.reported(), net.accounts());
    for number in 0..count {
        let place = chance.place(net.wires.len());
        // Each fourth cut takes both wires of the robot, so that no path is left.
        let places = if number % 4 == 3 { 0..2 } else { place..place + 1 };
        let lasts = Duration::from_millis([50, 400, 2_500][chance.place(3)] + chance.below(400));
        net.publish_for(Duration::from_millis(chance.below(300)));
        if faults == Faults::Restarts && number % 2 == 0 {
            net.restart(place % 2, lasts);
        } else {
            net.wires[places.clone()].iter().for_each(Wire::cut);
            net.publish_for(lasts);
            net.wires[places].iter().for_each(Wire::restore);
        }
        net.publish_for(Duration::from_millis(300 + chance.below(700)));
    }
    std::thread::sleep(Duration::from_secs(1));
    net.flows.iter_mut().for_each(Flow::meet);
    println!("{count} faults, {faults:?}: {}", settle(&mut net, before, faults));
}

/// Waits until the sums agree, and returns them in words.
fn settle(net: &mut Diamond, before: (u64, Vec<Account>), faults: Faults) -> String {
    let began = Instant::now();
    loop {
        let (accounts, reported) = (net.accounts(), net.reported().saturating_sub(before.0));
        let both = accounts.iter().zip(&before.1);
        let missing: u64 = both.map(|(now, then)| now.missing - then.missing).sum();
        let complete = accounts.iter().all(|it| it.published == it.delivered + it.missing);
        let explained = match faults {
            Faults::Cuts => reported == missing,
            Faults::Restarts => reported <= missing,
        };
        let sums = format!("{accounts:?}, {missing} missing, {reported} reported");
        if complete && explained {
            // Otherwise the faults hit nothing.
            assert!(missing > 0, "{sums}");
            return sums;
        }
        assert!(began.elapsed() < SOON, "{sums}");
        // A loss at the end of a stream shows with its next sample.
        net.flows.iter_mut().for_each(Flow::put);
        std::thread::sleep(Duration::from_millis(350));
    }
}

#[test]
fn each_missing_sample_is_reported_once_after_cuts_of_tcp_links() {
    cut(Diamond::over_tcp(), 8, Faults::Cuts);
}

#[test]
fn each_missing_sample_is_reported_once_after_cuts_of_quic_links() {
    cut(Diamond::over_quic(), 8, Faults::Cuts);
}

#[test]
fn each_subscriber_accounts_for_every_sample_after_restarts_of_relays() {
    cut(Diamond::over_tcp(), 6, Faults::Restarts);
}

#[test]
#[ignore = "two minutes: cargo xtask long runs it"]
fn more_than_a_minute_of_cuts_of_tcp_links() {
    cut(Diamond::over_tcp(), 50, Faults::Cuts);
}

#[test]
#[ignore = "two minutes: cargo xtask long runs it"]
fn more_than_a_minute_of_cuts_of_quic_links() {
    cut(Diamond::over_quic(), 50, Faults::Cuts);
}
