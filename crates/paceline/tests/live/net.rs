//! The network of live nodes on which the conformance scenarios run.

use crate::cable::Cable;
use crate::counts::Counts;
use crate::radio::Radio;
use crate::sums;
use crate::support::{SOON, free_endpoint, isolated, wait_until};
use crate::trust::{Authority, free_quic};
use bytes::Bytes;
use paceline::contract::Refusal;
use paceline::status::{LinkCounters, PublisherId};
use paceline::{Kind, LinkConfig, Node, Publisher, SubscriberEvent, Subscription};
use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_proto::{Excess, StreamCounters};
use paceline_sched::{Duration, Instant};
use paceline_sim::ask::kind_of;
use paceline_sim::{Delivered, LinkPlan, Net, NodeIx, Payload, Pub, Sub};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep};

/// The limit of links per node.
const LINKS_MAX: usize = 2;
/// The largest age of a link's counters in a status, with a margin.
const STATUS_AGE: std::time::Duration = std::time::Duration::from_millis(350);

/// A connection of two nodes: `b` listens, and `a` connects.
struct Joint {
    a: NodeIx,
    b: NodeIx,
    plan: LinkPlan,
    far: String,
    wire: Wire,
}

/// What is between the two ends of a connection.
enum Wire {
    Cable(Cable),
    Radio(Radio),
}

impl Wire {
    fn endpoint(&self) -> String {
        match self {
            Self::Cable(it) => it.endpoint(),
            Self::Radio(it) => it.endpoint(),
        }
    }

    fn cut(&self) {
        match self {
            Self::Cable(it) => it.cut(),
            Self::Radio(it) => it.cut(),
        }
    }

    fn restore(&self) {
        match self {
            Self::Cable(it) => it.restore(),
            Self::Radio(it) => it.restore(),
        }
    }
}

/// A subscription and its events so far.
struct End {
    subscription: Option<Subscription>,
    delivered: Arc<Mutex<Vec<Delivered>>>,
    heard: Vec<PublisherId>,
    refusals: Vec<(PublisherId, Refusal)>,
}

/// A network of live nodes, all reachable from each other while no cable is cut.
///
/// The nodes are opened when the topology is complete: at the first publisher, subscription or
/// passage of time. Fields are dropped in declaration order, so the nodes are closed after their
/// users.
#[derive(Default)]
pub(crate) struct Live {
    /// The issuer of the nodes' certificates, if the links use QUIC; otherwise they use TCP.
    authority: Option<Authority>,
    over: Arc<AtomicBool>,
    drivers: Vec<JoinHandle<()>>,
    publishers: Vec<(PublisherId, Arc<Mutex<Publisher>>)>,
    /// The publishers of video.
    films: BTreeSet<PublisherId>,
    ends: Vec<End>,
    nodes: Vec<Node>,
    names: Vec<String>,
    joints: Vec<Joint>,
    counts: Counts,
    /// True if the nodes' link counters include the last action.
    settled: bool,
}

impl Drop for Live {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for driver in self.drivers.drain(..) {
            let _ = driver.join();
        }
        let delivered = |end: &End| !end.delivered.lock().unwrap().is_empty();
        if !std::thread::panicking() && self.ends.iter().any(delivered) {
            sums::check(&self.nodes.iter().collect::<Vec<_>>());
        }
    }
}

impl Live {
    /// Returns a network whose links use QUIC.
    pub(crate) fn over_quic(name: &str) -> Self {
        let mut live = Self::default();
        live.authority = Some(Authority::new(name));
        live
    }

    fn open(&mut self) {
        self.settled = false;
        if self.nodes.is_empty() {
            let opened = self.names.iter().enumerate();
            let open = |(ix, name): (usize, &String)| match &self.authority {
                Some(authority) => authority.member_of_all(name, self.links(NodeIx(ix))),
                None => isolated(name, self.links(NodeIx(ix))),
            };
            self.nodes = opened.map(open).collect();
            let all = self.nodes.len();
            wait_until("all nodes know each other", || {
                self.nodes.iter().all(|node| node.nodes().len() == all)
            });
        }
    }

    /// Returns the links of a node: one per neighbour, or, if that exceeds the limit, a single link
    /// for all neighbours without a capacity.
    fn links(&self, node: NodeIx) -> Vec<LinkConfig> {
        let joints = self.joints.iter().filter(|joint| joint.a == node || joint.b == node);
        let joints: Vec<_> = joints.collect();
        let share = joints.len() > LINKS_MAX;
        let mut links = Vec::new();
        let mut shared: Option<LinkConfig> = None;
        for joint in joints {
            let (other, listens) = if joint.a == node { (joint.b, false) } else { (joint.a, true) };
            let link = match joint.plan.capacity {
                None if share => shared.take().unwrap_or_else(|| LinkConfig::new("shared")),
                _ => LinkConfig::new(&format!("to {}", self.names.get(other.0).unwrap())),
            };
            let link = match listens {
                true => link.listen(&joint.far),
                false => link.connect(&joint.wire.endpoint()),
            };
            match joint.plan.capacity {
                None if share => shared = Some(link),
                None => links.push(link),
                Some(capacity) => links.push(link.capacity(capacity)),
            }
        }
        links.extend(shared);
        links
    }

    fn node(&self, node: NodeIx) -> &Node {
        self.nodes.get(node.0).unwrap()
    }

    fn wires(&self, a: NodeIx, b: NodeIx) -> impl Iterator<Item = &Wire> {
        let joins = move |joint: &&Joint| [(a, b), (b, a)].contains(&(joint.a, joint.b));
        self.joints.iter().filter(joins).map(|joint| &joint.wire)
    }

    fn publisher(&self, publisher: Pub) -> &(PublisherId, Arc<Mutex<Publisher>>) {
        self.publishers.get(publisher.0).unwrap()
    }

    /// Returns a subscription after processing its events.
    fn end(&mut self, subscription: Sub) -> &mut End {
        let end = self.ends.get_mut(subscription.0).unwrap();
        while let Some(event) = end.subscription.as_ref().and_then(Subscription::try_event) {
            match event {
                SubscriberEvent::Publishers(publishers) => end.heard = publishers,
                SubscriberEvent::Granted(_)
                | SubscriberEvent::NoSpare(_)
                | SubscriberEvent::Withdrawn(_)
                | SubscriberEvent::BestEffort(..)
                | SubscriberEvent::Excess { .. }
                | SubscriberEvent::Silent(_)
                | SubscriberEvent::Resumed(_)
                | SubscriberEvent::ChangeRefused { .. }
                | SubscriberEvent::Changed { .. }
                | SubscriberEvent::Adapted { .. }
                | SubscriberEvent::Warned(..) => {}
                SubscriberEvent::Refused(publisher, refusal) => {
                    end.refusals.push((publisher, refusal));
                }
                _ => panic!("an unknown event"),
            }
        }
        end
    }

    /// Reads a node's stream counters, including all previous actions.
    fn look(&mut self, node: NodeIx) {
        if !self.settled {
            sleep(STATUS_AGE);
            self.settled = true;
        }
        self.counts.look(self.nodes.get(node.0).unwrap());
    }
}

impl Net for Live {
    fn add_node(&mut self, name: &str) -> NodeIx {
        assert!(self.nodes.is_empty(), "nodes come first");
        self.names.push(name.to_owned());
        NodeIx(self.names.len() - 1)
    }

    fn connect(&mut self, a: NodeIx, b: NodeIx, plan: LinkPlan) {
        assert!(self.nodes.is_empty(), "connections come before traffic");
        let (far, wire) = if self.authority.is_some() {
            let far = free_quic();
            (far.clone(), Wire::Radio(Radio::new(&far)))
        } else {
            let far = free_endpoint();
            (far.clone(), Wire::Cable(Cable::new(&far)))
        };
        self.joints.push(Joint { a, b, plan, wire, far });
    }

    fn cut(&mut self, a: NodeIx, b: NodeIx) {
        self.wires(a, b).for_each(Wire::cut);
    }

    fn restore(&mut self, a: NodeIx, b: NodeIx) {
        self.wires(a, b).for_each(Wire::restore);
    }

    fn publish(&mut self, node: NodeIx, spec: PublisherSpec) -> Pub {
        self.open();
        let builder = self.node(node).publisher(spec.tag.as_str());
        let mut builder = builder.kind(spec.kind).encoding(spec.encoding).late(spec.late);
        if let Some(period) = spec.period {
            builder = builder.period(period.into());
        }
        if let Some(size) = spec.size {
            builder = builder.picture_size(size);
        }
        if let Some(bytes) = spec.bytes_max {
            builder = builder.bytes_max(bytes);
        }
        let publisher = builder.declare().unwrap();
        if spec.kind.is_video() {
            self.films.insert(publisher.id());
        }
        self.publishers.push((publisher.id(), Arc::new(Mutex::new(publisher))));
        Pub(self.publishers.len() - 1)
    }

    fn put(&mut self, publisher: Pub, payload: Bytes) {
        self.settled = false;
        let (id, publisher) = self.publisher(publisher);
        let payload = if self.films.contains(id) { access_unit(&payload) } else { payload };
        publisher.lock().unwrap().put(payload).unwrap();
    }

    fn every(&mut self, publisher: Pub, period: Duration, count: u64, mut payload: Payload) {
        self.settled = false;
        let (id, publisher) = self.publisher(publisher);
        let film = self.films.contains(id);
        let (publisher, over) = (publisher.clone(), self.over.clone());
        self.drivers.push(std::thread::spawn(move || {
            let began = crate::support::wait_for_grid(period.into());
            for number in 0..count {
                let due = std::time::Duration::from(period.mul_div(number, 1));
                sleep(due.saturating_sub(began.elapsed()));
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let payload = payload(number);
                let payload = if film { access_unit(&payload) } else { payload };
                publisher.lock().unwrap().put(payload).unwrap();
            }
        }));
    }

    fn subscribe(&mut self, node: NodeIx, spec: SubscriptionSpec) -> Sub {
        self.open();
        let builder = self.node(node).subscriber(spec.pattern.as_str());
        let builder = builder.proxy(spec.proxy);
        let mut builder = builder.rate(spec.form.rate);
        if let Some(size) = spec.form.size {
            builder = builder.size(size.width, size.height);
        }
        if let Some(within) = spec.within {
            builder = builder.within(within.into());
        }
        if let Some(loss) = spec.loss {
            builder = builder.loss(loss.x(), loss.y());
        }
        let delivered = Arc::<Mutex<Vec<Delivered>>>::default();
        let (got, began) = (delivered.clone(), std::time::Instant::now());
        let subscription = builder.callback(move |sample| {
            let at = Instant::ZERO + began.elapsed().into();
            let (publisher, seq, late) = (sample.publisher, sample.seq, sample.late);
            let (age, bytes, kind) = (sample.age.into(), sample.payload.len(), sample.kind);
            got.lock().unwrap().push(Delivered { publisher, seq, age, at, late, bytes, kind });
        });
        let subscription = Some(subscription.unwrap());
        self.ends.push(End { subscription, delivered, heard: Vec::new(), refusals: Vec::new() });
        Sub(self.ends.len() - 1)
    }

    fn unsubscribe(&mut self, subscription: Sub) {
        // Ending the subscription may close streams and lose their counters.
        self.nodes.iter().for_each(|node| self.counts.look(node));
        self.end(subscription).subscription = None;
        self.settled = false;
    }

    fn run_for(&mut self, time: Duration) {
        self.open();
        sleep(time.into());
    }

    fn delivered(&mut self, subscription: Sub) -> Vec<Delivered> {
        self.end(subscription).delivered.lock().unwrap().clone()
    }

    fn heard(&mut self, subscription: Sub) -> Vec<PublisherId> {
        self.end(subscription).heard.clone()
    }

    fn refusals(&mut self, subscription: Sub) -> Vec<(PublisherId, Refusal)> {
        self.end(subscription).refusals.clone()
    }

    fn id(&self, publisher: Pub) -> PublisherId {
        self.publisher(publisher).0
    }

    fn matching(&mut self, publisher: Pub) -> bool {
        self.publisher(publisher).1.lock().unwrap().matching()
    }

    fn known(&mut self, node: NodeIx) -> Vec<String> {
        let mut names: Vec<_> = self.node(node).nodes().into_iter().map(|(_, name)| name).collect();
        names.sort_unstable();
        names
    }

    /// Asks the known nodes for their numbers of publishers and subscriptions.
    fn known_ends(&mut self, node: NodeIx) -> (usize, usize) {
        let all = self.node(node).status(SOON);
        all.iter().fold((0, 0), |(publishers, subscriptions), status| {
            (publishers + status.publishers.len(), subscriptions + status.subscriptions.len())
        })
    }

    fn stream(&mut self, from: NodeIx, to: NodeIx, publisher: Pub) -> StreamCounters {
        self.look(from);
        let sum = self.counts.sum(self.node(from).id(), self.node(to).id(), self.id(publisher));
        let LinkCounters {
            offered,
            sent,
            bytes,
            late,
            violations,
            aborted,
            too_early,
            too_long,
            dropped,
        } = sum;
        let excess = Excess { early: too_early, long: too_long };
        StreamCounters { offered, sent, bytes, late, violations, drops: dropped, aborted, excess }
    }

    fn streams(&mut self, from: NodeIx, to: NodeIx, publisher: Pub) -> usize {
        self.look(from);
        self.counts.open(self.node(from).id(), self.node(to).id(), self.id(publisher))
    }
}

/// Converts the simulator's video payload to an access unit of the same length and kind, which is
/// not decodable.
fn access_unit(payload: &[u8]) -> Bytes {
    let header = match kind_of(payload) {
        Kind::VideoI => 0x65,
        Kind::VideoB => 0x01,
        Kind::VideoP
        | Kind::VideoLeading
        | Kind::Data
        | Kind::State
        | Kind::Picture
        | Kind::Audio => 0x41,
    };
    let mut unit = vec![0, 0, 0, 1, header];
    unit.resize(payload.len(), 0xff);
    unit.into()
}
