//! A small simulated network: the messages of each hop wait in a queue until they are delivered.

use bytes::Bytes;
use core::num::NonZeroU32;
use paceline_proto::control::{
    Adaptation, BestEffort, Control, ControlOutput, Grant, HopInfo, IMPORTANCE_DEFAULT,
    OppositeStream, PublisherSpec, Refusal, SubscriptionSpec, Warning,
};
use paceline_proto::plan::{OutputPlan, SourceKey};
use paceline_proto::rights::{Lack, Right};
use paceline_proto::{
    Encoding, Excess, Form, Kind, NodeId, Pattern, Proxy, PublisherId, Rate, Size, SubscriptionId,
    Tag,
};
use paceline_sched::{Capacity, Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The number of a survey, whether it is complete, its grant and refusal, and the granted trials.
pub(crate) type Surveyed = (u64, bool, Option<Grant>, Option<Refusal>, u64);

/// The latest outputs of a node, by subject.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) installed: BTreeMap<SourceKey, (Arc<PublisherSpec>, Vec<OutputPlan>)>,
    /// The neighbours from which each source's samples may arrive.
    pub(crate) from: BTreeMap<SourceKey, Vec<NodeId>>,
    pub(crate) installs: usize,
    pub(crate) matching: BTreeMap<PublisherId, bool>,
    pub(crate) heard: BTreeMap<SubscriptionId, Vec<PublisherId>>,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) granted: BTreeMap<(SubscriptionId, PublisherId), Grant>,
    /// Grants and refusals that are still in force.
    pub(crate) standing: BTreeSet<(SubscriptionId, PublisherId)>,
    /// Notifications to local subscriptions and publishers about contracts, in order.
    pub(crate) notified: Vec<Notification>,
    pub(crate) surveyed: Vec<Surveyed>,
    /// The opposite stream of the last survey.
    pub(crate) opposite: Option<OppositeStream>,
    pub(crate) excess: Vec<(SubscriptionId, PublisherId, NodeId, Excess)>,
    /// Refusals of spares of running contracts.
    pub(crate) unspared: Vec<Refusal>,
    pub(crate) best_effort: Vec<(SubscriptionId, PublisherId, BestEffort)>,
    pub(crate) changed: Vec<(SubscriptionId, SubscriptionSpec)>,
    /// The rates of links on shared media, in bits per second.
    pub(crate) rates: BTreeMap<String, u64>,
    pub(crate) warned: Vec<(Instant, SubscriptionId, Warning)>,
    /// The new steps of elastic contracts.
    pub(crate) adapted: Vec<(Instant, SubscriptionId, Adaptation)>,
    /// The requests that came into force after a change.
    pub(crate) in_force: Vec<(SubscriptionId, u64)>,
    /// Changes that were reverted, with the refusals and the restored request.
    pub(crate) taken_back: Vec<(SubscriptionId, Vec<Refusal>, SubscriptionSpec)>,
    pub(crate) asked: Vec<(u64, NodeId, Bytes)>,
    pub(crate) used: Vec<(NodeId, NodeId, Right, String)>,
    pub(crate) answered: Vec<(u64, NodeId, Bytes)>,
    /// Streams and questions that the policy did not allow: the node that wants it, and the one without the right.
    pub(crate) denied: Vec<(NodeId, NodeId, Lack)>,
    pub(crate) changed_for: Vec<(NodeId, SubscriptionId)>,
    pub(crate) tokens: Vec<(NodeId, Bytes)>,
}

/// A notification to one end of a contract: the hops of a grant, its end, or the node that refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Notification {
    Granted(Vec<NodeId>),
    Withdrawn,
    Refused(NodeId),
}

pub(crate) struct Net {
    pub(crate) now: Instant,
    pub(crate) nodes: Vec<Control>,
    pub(crate) seen: Vec<Seen>,
    pub(crate) queues: BTreeMap<(usize, usize), VecDeque<Bytes>>,
    pub(crate) up: BTreeSet<(usize, usize)>,
    pub(crate) messages: usize,
}

pub(crate) fn id(node: usize) -> NodeId {
    NodeId(node as u64 + 1)
}

pub(crate) fn index(node: NodeId) -> usize {
    usize::try_from(node.0 - 1).unwrap()
}

pub(crate) fn link(name: &str, bytes_per_s: Option<u64>) -> HopInfo {
    let capacity = bytes_per_s.map(|bytes| Capacity::from_bytes_per_s(bytes).unwrap());
    HopInfo::new(name.into(), capacity)
}

impl Seen {
    /// Records a notification about a contract.
    fn note_installation(&mut self, node: usize, output: ControlOutput) {
        let ControlOutput::Install { source, publisher, from, outputs, .. } = output else {
            return;
        };
        self.installs += 1;
        if outputs.is_empty() {
            assert!(self.installed.remove(&source).is_some(), "removed nothing");
            self.from.remove(&source);
            return;
        }
        let now = (publisher, outputs);
        assert_eq!(from.is_empty(), source.publisher.node == id(node));
        let before = self.installed.insert(source, now.clone());
        let before_from = self.from.insert(source, from.clone());
        assert!(before != Some(now) || before_from != Some(from), "installed twice");
    }

    fn note_promise(&mut self, node: usize, output: ControlOutput) {
        match output {
            ControlOutput::Refused { subscription, publisher, refusal } => {
                let key = (subscription, publisher);
                assert_eq!((refusal.subscription, refusal.publisher), key);
                self.notified.push(Notification::Refused(refusal.node));
                self.standing.insert(key);
                // The earlier grant has ended, and the same contract may be granted again.
                self.granted.remove(&key);
                if index(subscription.node) == node {
                    self.refused.push(refusal);
                }
            }
            ControlOutput::Withdrawn { subscription, publisher } => {
                self.notified.push(Notification::Withdrawn);
                let key = (subscription, publisher);
                self.granted.remove(&key);
                assert!(self.standing.remove(&key), "there was no message");
            }
            ControlOutput::Granted { grant } => {
                let key = (grant.subscription, grant.publisher);
                self.notified
                    .push(Notification::Granted(grant.hops.iter().map(|hop| hop.node).collect()));
                self.standing.insert(key);
                let before = self.granted.insert(key, grant.clone());
                assert_ne!(before, Some(grant), "notified twice");
            }
            ControlOutput::NoSpare { refusal } => {
                let key = (refusal.subscription, refusal.publisher);
                assert!(refusal.spare && self.granted.contains_key(&key));
                self.unspared.push(refusal);
            }
            ControlOutput::BestEffort { subscription, publisher, why } => {
                assert!(!self.granted.contains_key(&(subscription, publisher)));
                self.best_effort.push((subscription, publisher, why));
            }
            ControlOutput::Send { .. }
            | ControlOutput::Install { .. }
            | ControlOutput::Matching { .. }
            | ControlOutput::Subscribed { .. }
            | ControlOutput::Excess { .. }
            | ControlOutput::Warned { .. }
            | ControlOutput::Allotted { .. }
            | ControlOutput::Changed { .. }
            | ControlOutput::InForce { .. }
            | ControlOutput::ChangeRefused { .. }
            | ControlOutput::Surveyed { .. }
            | ControlOutput::Asked { .. }
            | ControlOutput::Denied { .. }
            | ControlOutput::Used { .. }
            | ControlOutput::ChangedFor { .. }
            | ControlOutput::Unread { .. }
            | ControlOutput::Answered { .. } => panic!("no message about contracts: {output:?}"),
        }
    }
}

impl Seen {
    fn note_survey(&mut self, output: ControlOutput) {
        if let ControlOutput::Surveyed { survey, complete, grant, refusal, opposite, fits } = output
        {
            self.surveyed.push((survey, complete, grant, refusal, fits));
            self.opposite = opposite.map(|it| *it);
        }
    }
}

impl Net {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            now: Instant::from_millis(1),
            nodes: (0..nodes).map(|n| Control::new(id(n), &format!("node{n}"))).collect(),
            seen: (0..nodes).map(|_| Seen::default()).collect(),
            queues: BTreeMap::new(),
            up: BTreeSet::new(),
            messages: 0,
        }
    }

    /// Returns a network with these hops after all messages are delivered.
    pub(crate) fn joined(nodes: usize, hops: &[(usize, usize)]) -> Self {
        let mut net = Self::new(nodes);
        for &(one, other) in hops {
            net.join(one, other);
        }
        net.settle();
        net
    }

    pub(crate) fn chain(nodes: usize) -> Self {
        let hops: Vec<_> = (1..nodes).map(|n| (n - 1, n)).collect();
        Self::joined(nodes, &hops)
    }

    pub(crate) fn join(&mut self, one: usize, other: usize) {
        self.join_over(one, other, link("eth", None), link("eth", None));
    }

    pub(crate) fn join_over(&mut self, one: usize, other: usize, out: HopInfo, back: HopInfo) {
        for (from, to, hop) in [(one, other, out), (other, one, back)] {
            self.up.insert((from, to));
            self.nodes[from].handle_hop_up(self.now, id(to), hop);
            self.drain(from);
        }
    }

    /// Takes a hop down; its messages in transit are lost.
    pub(crate) fn part(&mut self, one: usize, other: usize) {
        for (from, to) in [(one, other), (other, one)] {
            self.up.remove(&(from, to));
            self.queues.remove(&(from, to));
            self.nodes[from].handle_hop_down(self.now, id(to));
            self.drain(from);
        }
    }

    pub(crate) fn drain(&mut self, node: usize) {
        let tokens = std::iter::from_fn(|| self.nodes[node].poll_token());
        self.seen[node].tokens.extend(tokens);
        let mut sending = false;
        while let Some(output) = self.nodes[node].poll_output() {
            assert!(
                !sending || matches!(output, ControlOutput::Send { .. }),
                "{output:?} after a send"
            );
            let seen = &mut self.seen[node];
            match output {
                ControlOutput::Send { hop, message } => {
                    sending = true;
                    assert!(self.up.contains(&(node, index(hop))), "sent to a hop that is down");
                    self.queues.entry((node, index(hop))).or_default().push_back(message);
                }
                output @ ControlOutput::Install { .. } => seen.note_installation(node, output),
                ControlOutput::Matching { publisher, matching } => {
                    let before = seen.matching.insert(publisher, matching);
                    assert_ne!(before.unwrap_or(false), matching);
                }
                ControlOutput::Subscribed { subscription, publishers } => {
                    let before = seen.heard.insert(subscription, publishers.clone());
                    assert_ne!(before.unwrap_or_default(), publishers);
                }
                output @ (ControlOutput::Refused { .. }
                | ControlOutput::Withdrawn { .. }
                | ControlOutput::Granted { .. }
                | ControlOutput::NoSpare { .. }
                | ControlOutput::BestEffort { .. }) => seen.note_promise(node, output),
                ControlOutput::Warned { subscription, warning, .. } => {
                    seen.warned.push((self.now, subscription, warning));
                }
                ControlOutput::Allotted { link, capacity } => {
                    seen.rates.insert(link, capacity.bits_per_s());
                }
                ControlOutput::Excess { subscription, publisher, node, node_name, excess } => {
                    assert_eq!(node_name, format!("node{}", index(node)));
                    seen.excess.push((subscription, publisher, node, excess));
                }
                ControlOutput::Changed { subscription, spec, adaptation } => {
                    let adapted = adaptation.map(|it| (self.now, subscription, *it));
                    seen.adapted.extend(adapted);
                    seen.changed.push((subscription, spec));
                }
                ControlOutput::InForce { subscription, spec } => {
                    seen.in_force.push((subscription, spec.revision));
                }
                ControlOutput::ChangeRefused { subscription, refusals, spec } => {
                    seen.taken_back.push((subscription, refusals, spec));
                }
                output @ ControlOutput::Surveyed { .. } => seen.note_survey(output),
                ControlOutput::Asked { request, from, body } => {
                    seen.asked.push((request, from, body))
                }
                ControlOutput::Used { node, at, right, tag } => {
                    seen.used.push((node, at, right, tag));
                }
                ControlOutput::Denied { node, of, lack, .. } => seen.denied.push((node, of, lack)),
                ControlOutput::ChangedFor { node, subscription } => {
                    seen.changed_for.push((node, subscription));
                }
                output @ ControlOutput::Unread { .. } => panic!("all nodes are equal: {output:?}"),
                ControlOutput::Answered { request, node, body } => {
                    seen.answered.push((request, node, body));
                }
            }
        }
        self.check_processor(node);
    }

    /// Checks that contracts and best effort together have exactly the processor time of a node.
    fn check_processor(&self, node: usize) {
        let control = &self.nodes[node];
        if let Some((best_effort, used)) = control.best_effort_time().zip(control.processor_use()) {
            assert_eq!(best_effort.share().nanos_per_s + used.held, used.most, "node {node}");
        }
    }

    /// Takes the messages of a hop that are in transit.
    pub(crate) fn take(&mut self, from: usize, to: usize) -> VecDeque<Bytes> {
        self.queues.remove(&(from, to)).unwrap_or_default()
    }

    /// Delivers the oldest message of a hop.
    pub(crate) fn deliver(&mut self, from: usize, to: usize) -> bool {
        let Some(message) = self.queues.get_mut(&(from, to)).and_then(VecDeque::pop_front) else {
            return false;
        };
        self.messages += 1;
        self.nodes[to].handle_message(self.now, id(from), message).unwrap();
        self.drain(to);
        true
    }

    /// Delivers messages until none is left, without advancing time.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100_000 {
            let ready =
                self.queues.iter().find(|(_, queue)| !queue.is_empty()).map(|(&hop, _)| hop);
            let Some((from, to)) = ready else { return };
            self.deliver(from, to);
        }
        panic!("the nodes never stop sending");
    }

    /// Advances time, and delivers every message at once.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        self.settle();
        loop {
            let next = self.nodes.iter().map(Control::poll_timeout).min().unwrap();
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            for node in 0..self.nodes.len() {
                if self.nodes[node].poll_timeout() <= self.now {
                    self.nodes[node].handle_timeout(self.now);
                    assert!(self.nodes[node].poll_timeout() >= self.now);
                    self.drain(node);
                    assert!(self.nodes[node].poll_timeout() > self.now, "requests the same wakeup");
                }
            }
            self.settle();
        }
        self.now = end;
    }

    pub(crate) fn publish(&mut self, node: usize, spec: PublisherSpec) -> PublisherId {
        let id = self.nodes[node].publish(self.now, spec);
        self.drain(node);
        id
    }

    pub(crate) fn subscribe(&mut self, node: usize, spec: SubscriptionSpec) -> SubscriptionId {
        let id = self.nodes[node].subscribe(self.now, spec);
        self.drain(node);
        id
    }

    pub(crate) fn update(&mut self, id: PublisherId, spec: PublisherSpec) {
        let node = index(id.node);
        self.nodes[node].update_publisher(self.now, id, spec);
        self.drain(node);
    }

    pub(crate) fn unsubscribe(&mut self, id: SubscriptionId) {
        let node = index(id.node);
        self.nodes[node].unsubscribe(self.now, id);
        self.drain(node);
    }

    /// Returns a node's knowledge in a form that can be compared with another node's.
    pub(crate) fn listing(&self, node: usize) -> Vec<String> {
        self.nodes[node].nodes().map(|view| format!("{view:?}")).collect()
    }

    pub(crate) fn names(&self, node: usize) -> Vec<String> {
        self.nodes[node].nodes().map(|view| view.name.to_owned()).collect()
    }

    pub(crate) fn outputs(&self, node: usize, publisher: PublisherId, form: Form) -> &[OutputPlan] {
        let installed = self.seen[node].installed.get(&SourceKey { publisher, form });
        installed.map_or(&[], |(_, outputs)| outputs)
    }

    pub(crate) fn heard(&self, subscription: SubscriptionId) -> &[PublisherId] {
        self.seen[index(subscription.node)].heard.get(&subscription).map_or(&[], Vec::as_slice)
    }
}

/// Returns a camera with 25 pictures of 10,900 bytes per second: 300,000 bytes/s on the wire.
pub(crate) fn camera(tag: &str) -> PublisherSpec {
    PublisherSpec {
        kind: Kind::Picture,
        encoding: Encoding::Jpeg,
        period: Some(Duration::from_millis(40)),
        size: Some(Size { width: 640, height: 480 }),
        bytes_max: Some(10_900),
        ..PublisherSpec::new(Tag::new(tag).unwrap())
    }
}

/// Returns a best-effort subscription to all samples of `pattern`.
pub(crate) fn all(pattern: &str) -> SubscriptionSpec {
    SubscriptionSpec {
        pattern: Pattern::new(pattern).unwrap(),
        form: Form::FULL,
        within: None,
        loss: None,
        proxy: Proxy::Publisher,
        holds: false,
        local: false,
        retransmit: paceline_proto::Retransmit::default(),
        revision: 0,
        or_stop: false,
        encrypted: false,
        level: None,
        idle: None,
        with: None,
        proves: false,
        spare: false,
        importance: IMPORTANCE_DEFAULT,
        elastic: None,
    }
}

/// Returns a subscription to all samples of `pattern` within 200 ms.
pub(crate) fn promised(pattern: &str) -> SubscriptionSpec {
    SubscriptionSpec { within: Some(Duration::from_millis(200)), ..all(pattern) }
}

pub(crate) fn one_in(n: u32) -> Form {
    Form { rate: Rate::every(NonZeroU32::new(n).unwrap()), ..Form::FULL }
}
