//! Link cuts under load: every published sample is delivered or reported, for each subscriber,
//! exactly.

use crate::cable::Cable;
use crate::radio::Radio;
use crate::support::{SOON, free_endpoint, isolated, wait_until};
use crate::trust::{Authority, free_quic};
use paceline::status::{LinkStatus, NodeStatus, StreamCounters};
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
    nodes: Vec<Node>,
    wires: Vec<Wire>,
    _authority: Option<Authority>,
}

impl Diamond {
    fn over_tcp() -> Self {
        let ends = [(); 4].map(|()| free_endpoint());
        let wires = ends.iter().map(|end| Wire::Tcp(Cable::new(end))).collect();
        Self::open(&ends, wires, None)
    }

    fn over_quic() -> Self {
        let ends = [(); 4].map(|()| free_quic());
        let wires = ends.iter().map(|end| Wire::Quic(Radio::new(end))).collect();
        Self::open(&ends, wires, Some(Authority::new("cuts")))
    }

    /// Opens the nodes. The wires lead from the robot to both relays, then from the relays to the
    /// operator.
    fn open(ends: &[String; 4], wires: Vec<Wire>, authority: Option<Authority>) -> Self {
        let fronts: Vec<String> = wires
            .iter()
            .map(|wire| match wire {
                Wire::Tcp(cable) => cable.endpoint(),
                Wire::Quic(radio) => radio.endpoint(),
            })
            .collect();
        let open = |name: &str, links: Vec<LinkConfig>| match &authority {
            Some(authority) => {
                let capacity = Capacity::from_bits_per_s(20_000_000).unwrap();
                let datagrams = links.into_iter().map(|link| link.capacity(capacity));
                authority.member_of_all(name, datagrams.collect())
            }
            None => isolated(name, links),
        };
        let [left, right, left_out, right_out] = ends;
        let link = LinkConfig::new;
        let operator =
            vec![link("left").listen(left_out.as_str()), link("right").listen(right_out.as_str())];
        let operator = open("operator", operator);
        let relay = |name, listen: &str, connect: &str| {
            open(name, vec![link("in").listen(listen), link("out").connect(connect)])
        };
        let relays = [relay("left", left, &fronts[2]), relay("right", right, &fronts[3])];
        let robot = vec![link("left").connect(&fronts[0]), link("right").connect(&fronts[1])];
        let robot = open("robot", robot);
        wait_until("all nodes know each other", || robot.nodes().len() == 4);
        let flows = LOAD.map(|load| Flow::new(&robot, &operator, load)).into();
        let nodes = [robot].into_iter().chain(relays).chain([operator]).collect();
        Self { flows, nodes, wires, _authority: authority }
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
    let once = |counters: &StreamCounters| counters.drops.total() - counters.aborted;
    let link = |link: &LinkStatus| {
        let open: u64 = link.streams.iter().map(|stream| once(&stream.counters)).sum();
        open + once(&link.closed)
    };
    let links: u64 = node.links.iter().map(link).sum();
    let sinks: u64 = node.subscriptions.iter().map(|it| it.drops.total()).sum();
    links + sinks + node.drops.total()
}

/// Cuts wires under load, and compares the sums.
fn cut(mut net: Diamond, cuts: u64) {
    net.flows.iter_mut().for_each(Flow::meet);
    let mut chance = Random::new(cuts);
    std::thread::sleep(Duration::from_millis(500));
    // Samples published before the subscription was known are reported, but not missing.
    let before = net.reported();
    let first = net.accounts();
    for number in 0..cuts {
        let place = chance.place(net.wires.len());
        // Each fourth cut takes both wires of the robot, so that no path is left.
        let places = if number % 4 == 3 { 0..2 } else { place..place + 1 };
        let lasts = [50, 400, 2_500][chance.place(3)] + chance.below(400);
        net.publish_for(Duration::from_millis(chance.below(300)));
        net.wires[places.clone()].iter().for_each(Wire::cut);
        net.publish_for(Duration::from_millis(lasts));
        net.wires[places].iter().for_each(Wire::restore);
        net.publish_for(Duration::from_millis(300 + chance.below(700)));
    }
    std::thread::sleep(Duration::from_secs(1));
    net.flows.iter_mut().for_each(Flow::meet);
    let began = Instant::now();
    loop {
        let (accounts, reported) = (net.accounts(), net.reported() - before);
        let missing: u64 =
            accounts.iter().zip(&first).map(|(now, then)| now.missing - then.missing).sum();
        let closed = accounts.iter().all(|it| it.published == it.delivered + it.missing);
        if closed && missing == reported {
            println!("{cuts} cuts: {accounts:?}, {missing} missing, {reported} reported");
            // Otherwise the cuts hit nothing.
            assert!(missing > cuts, "only {missing} samples were lost");
            return;
        }
        let why = format!("{accounts:?}: {missing} missing, {reported} reported");
        assert!(began.elapsed() < SOON, "{why}");
        // A loss at the end of a stream shows with its next sample.
        net.flows.iter_mut().for_each(Flow::put);
        std::thread::sleep(Duration::from_millis(350));
    }
}

#[test]
fn each_missing_sample_is_reported_once_after_cuts_of_tcp_links() {
    cut(Diamond::over_tcp(), 8);
}

#[test]
fn each_missing_sample_is_reported_once_after_cuts_of_quic_links() {
    cut(Diamond::over_quic(), 8);
}

#[test]
#[ignore = "two minutes: cargo xtask long runs it"]
fn more_than_a_minute_of_cuts_of_tcp_links() {
    cut(Diamond::over_tcp(), 50);
}

#[test]
#[ignore = "two minutes: cargo xtask long runs it"]
fn more_than_a_minute_of_cuts_of_quic_links() {
    cut(Diamond::over_quic(), 50);
}
