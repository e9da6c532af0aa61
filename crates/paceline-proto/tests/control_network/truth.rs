//! A reference model of a network, and the required state of every node. The model computes it for all nodes
//! at once, from every publisher, subscription and path.

use super::net::{Net, id};
use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_proto::plan::{OutputPlan, SourceKey, Target};
use paceline_proto::{
    Form, Kind, NodeId, Pattern, Proxy, PublisherId, Rate, Size, SubscriptionId, Tag,
};
use paceline_sched::{Duration, Late};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(crate) struct Truth {
    pub(crate) publishers: BTreeMap<PublisherId, PublisherSpec>,
    pub(crate) subscriptions: BTreeMap<SubscriptionId, SubscriptionSpec>,
    /// The hops that are up, one entry per direction.
    pub(crate) hops: BTreeSet<(NodeId, NodeId)>,
}

/// A publisher and a matching subscription, with the path between them.
struct Pair<'a> {
    publisher: PublisherId,
    spec: &'a PublisherSpec,
    subscription: SubscriptionId,
    request: &'a SubscriptionSpec,
    /// The nodes from the publisher's to the subscription's.
    path: Vec<NodeId>,
    /// The index of the node that scales.
    proxy: usize,
    form: Form,
}

/// One stream that leaves a source.
#[derive(Debug, Eq, PartialEq)]
struct Stream {
    scale: Form,
    promised: bool,
    upstream: Option<Duration>,
    within: Option<Duration>,
    kind: Kind,
    background: bool,
    max_wait: Option<Duration>,
    subscriptions: Vec<SubscriptionId>,
}

type Streams = BTreeMap<(SourceKey, Target, Form), Stream>;

impl Truth {
    /// Returns the lexicographically first of all shortest paths.
    fn path(&self, from: NodeId, to: NodeId) -> Option<Vec<NodeId>> {
        let mut ways = vec![vec![from]];
        for _ in 0..=self.hops.len() {
            if let Some(way) = ways.iter().filter(|way| way.last() == Some(&to)).min() {
                return Some(way.clone());
            }
            let further = |way: &Vec<NodeId>| {
                let way = way.clone();
                let next = self.hops.iter().filter(|(from, _)| way.last() == Some(from));
                let fresh = next.filter(|(_, to)| !way.contains(to));
                fresh.map(|(_, to)| [&way[..], &[*to]].concat()).collect::<Vec<_>>()
            };
            ways = ways.iter().flat_map(further).collect();
        }
        None
    }

    /// Returns the path through a proxy and its index; `None` if there is none without a loop.
    fn through(&self, direct: Vec<NodeId>, proxy: &Proxy) -> Option<(Vec<NodeId>, usize)> {
        let (from, to) = (direct[0], *direct.last().unwrap());
        match proxy {
            Proxy::Subscriber => {
                let last = direct.len() - 1;
                Some((direct, last))
            }
            Proxy::Node(name) if from != to => {
                let proxy = id(name.strip_prefix("node")?.parse().unwrap());
                let (mut path, rest) = (self.path(from, proxy)?, self.path(proxy, to)?);
                let at = path.len() - 1;
                let twice = rest[1..].iter().any(|node| path.contains(node));
                path.extend(&rest[1..]);
                (!twice).then_some((path, at))
            }
            Proxy::Publisher | Proxy::Node(_) | Proxy::Auto => Some((direct, 0)),
        }
    }

    /// Returns all pairs that are not refused, and the keys of those that are.
    fn pairs(&self) -> (Vec<Pair<'_>>, BTreeSet<(SubscriptionId, PublisherId)>) {
        let (mut live, mut refused) = (Vec::new(), BTreeSet::new());
        for (&subscription, request) in &self.subscriptions {
            for (&publisher, spec) in &self.publishers {
                let near = !request.local || publisher.node == subscription.node;
                let Some(path) = self.path(publisher.node, subscription.node) else { continue };
                if !near || !matches(&request.pattern, &spec.tag) {
                    continue;
                }
                let form = form(request.form, spec);
                let too_large = form.size.is_some_and(|asked| larger(asked, spec.size));
                if too_large {
                    refused.insert((subscription, publisher));
                    continue;
                }
                let Some((path, proxy)) = self.through(path, &request.proxy) else {
                    refused.insert((subscription, publisher));
                    continue;
                };
                live.push(Pair { publisher, spec, subscription, request, path, proxy, form });
            }
        }
        (live, refused)
    }

    /// Asserts that every node is in the required state. No link has a capacity that could cause a refusal.
    pub(crate) fn assert_holds(&self, net: &Net) {
        let (pairs, refused) = self.pairs();
        for (node, seen) in net.seen.iter().enumerate() {
            let me = id(node);
            self.assert_listed(net, node, &refused);
            assert_eq!(installed(&seen.installed), streams(&pairs, me), "streams at {me}");
            for SourceKey { publisher, .. } in seen.installed.keys() {
                let (declared, _) = seen
                    .installed
                    .iter()
                    .find_map(|(key, installed)| (key.publisher == *publisher).then_some(installed))
                    .unwrap();
                assert_eq!(**declared, self.publishers[publisher]);
            }
            for &publisher in self.publishers.keys().filter(|publisher| publisher.node == me) {
                let wanted = pairs.iter().any(|pair| pair.publisher == publisher);
                let notified = seen.matching.get(&publisher).copied().unwrap_or(false);
                assert_eq!(notified, wanted, "matching of {publisher}");
            }
            for &subscription in self.subscriptions.keys().filter(|user| user.node == me) {
                let hears = pairs.iter().filter(|pair| pair.subscription == subscription);
                let hears: Vec<_> = hears.map(|pair| pair.publisher).collect();
                assert_eq!(net.heard(subscription), hears, "{subscription} hears");
            }
            let notified =
                seen.refused.iter().map(|notified| (notified.subscription, notified.publisher));
            let notified: BTreeSet<_> = notified.collect();
            for pair in refused.iter().filter(|(user, _)| user.node == me) {
                assert!(notified.contains(pair), "{pair:?} was refused and not notified");
            }
        }
    }

    /// Asserts that a node lists the connected nodes with their real contents.
    fn assert_listed(
        &self,
        net: &Net,
        node: usize,
        refused: &BTreeSet<(SubscriptionId, PublisherId)>,
    ) {
        let reached = (0..net.nodes.len()).map(id).filter(|&to| self.path(id(node), to).is_some());
        let views: Vec<_> = net.nodes[node].nodes().collect();
        let listed: Vec<_> = views.iter().map(|view| view.id).collect();
        assert_eq!(listed, reached.collect::<Vec<_>>(), "what {node} lists");
        for view in views {
            let mine = |node| node == view.id;
            let publishers: Vec<_> =
                view.publishers.iter().map(|(id, spec)| (*id, (**spec).clone())).collect();
            let own = self.publishers.iter().filter(|(id, _)| mine(id.node));
            assert_eq!(publishers, own.map(|(id, spec)| (*id, spec.clone())).collect::<Vec<_>>());
            let own = self.subscriptions.iter().filter(|(id, _)| mine(id.node));
            assert!(view.subscriptions.iter().eq(own), "subscriptions of {}", view.id);
            let hops = self.hops.iter().filter(|(from, _)| mine(*from)).map(|(_, to)| to);
            assert!(view.neighbours.keys().eq(hops), "neighbours of {}", view.id);
            // The publisher's node detects that a size is too large.
            let own = refused.iter().filter(|(_, publisher)| mine(publisher.node));
            assert!(view.refusals.keys().eq(own), "refusals of {}", view.id);
        }
    }
}

/// Returns the installed streams of a node, without the figures of contracts.
fn installed(
    installed: &BTreeMap<SourceKey, (std::sync::Arc<PublisherSpec>, Vec<OutputPlan>)>,
) -> Streams {
    let mut streams = Streams::new();
    for (&source, (_, outputs)) in installed {
        for plan in outputs {
            let local = plan.target == Target::Local;
            let stream = Stream {
                scale: plan.scale,
                promised: plan.contract.is_some(),
                upstream: local.then_some(plan.upstream),
                within: plan.within,
                kind: plan.kind,
                background: plan.background,
                max_wait: plan.max_wait,
                subscriptions: plan.subscriptions.clone(),
            };
            let before = streams.insert((source, plan.target, plan.form), stream);
            assert!(before.is_none(), "{source:?} leaves twice in one form");
        }
    }
    streams
}

impl Pair<'_> {
    fn behind(&self) -> Form {
        let between = self.proxy > 0 && self.proxy + 1 < self.path.len();
        Form { via: between.then(|| self.path[self.proxy]), ..self.form }
    }

    /// Returns the form of its samples on a hop of the path, if no other stream carries them.
    fn travels(&self, hop: usize) -> Form {
        if hop >= self.proxy { self.behind() } else { Form::FULL }
    }

    fn travels_on(&self, hop: (NodeId, NodeId)) -> Form {
        let at = self.path.windows(2).position(|pair| (pair[0], pair[1]) == hop);
        self.travels(at.unwrap())
    }

    fn promised(&self) -> bool {
        self.request.within.is_some() || self.request.loss.is_some()
    }

    fn crosses(&self, hop: (NodeId, NodeId)) -> bool {
        self.path.windows(2).any(|pair| (pair[0], pair[1]) == hop)
    }
}

/// Returns the form in which the samples of a pair cross a hop, if `form` alone would do.
fn carrier(pairs: &[Pair<'_>], of: &Pair<'_>, form: Form, hop: (NodeId, NodeId)) -> Form {
    if background(of.spec) || of.spec.kind.is_video() {
        return form;
    }
    let behind = || pairs.iter().filter(|it| it.publisher == of.publisher && it.crosses(hop));
    let promised = |form| behind().any(|pair| pair.travels_on(hop) == form && pair.promised());
    let carries = |one: Form, other: Form| {
        let counted = one.rate == Rate::every(one.rate.every) && other.rate.bits_per_s.is_none();
        let nested = counted && other.rate.every.get().is_multiple_of(one.rate.every.get());
        let rate = one.rate == other.rate || nested;
        let alike = (one.size, one.via) == (other.size, other.via);
        rate && alike && one != other && !promised(other)
    };
    let forms: BTreeSet<Form> = behind().map(|pair| pair.travels_on(hop)).collect();
    let carried = |form: &Form| forms.iter().any(|one| carries(*one, *form));
    let found = forms.iter().filter(|one| !carried(one)).find(|one| carries(**one, form));
    found.copied().unwrap_or(form)
}

/// Returns the required streams of a node.
fn streams(pairs: &[Pair<'_>], me: NodeId) -> Streams {
    let mut streams = Streams::new();
    for pair in pairs {
        let Some(place) = pair.path.iter().position(|&node| node == me) else { continue };
        let next = pair.path.get(place + 1).copied();
        // The samples are scaled according to the subscription: before the first link, after the last or in between. On each hop
        // another stream of the publisher may carry them.
        let last = if place >= pair.proxy { pair.behind() } else { Form::FULL };
        let leaves =
            next.map_or(last, |next| carrier(pairs, pair, pair.travels(place), (me, next)));
        let before = place.checked_sub(1).map(|before| pair.path[before]);
        let scales_here = place > 0 && place == pair.proxy;
        let wanted = if scales_here { Form::FULL } else { leaves };
        let arrives =
            before.map_or(Form::FULL, |before| carrier(pairs, pair, wanted, (before, me)));
        let source = SourceKey { publisher: pair.publisher, form: arrives };
        let target = next.map_or(Target::Local, Target::Hop);
        let local = next.is_none();
        let stream = streams.entry((source, target, leaves)).or_insert(Stream {
            scale: if arrives == leaves { Form::FULL } else { leaves.without_via() },
            promised: false,
            upstream: local.then_some(Duration::ZERO),
            within: None,
            kind: pair.spec.kind,
            background: background(pair.spec),
            max_wait: max_wait(pair.spec).filter(|_| !local),
            subscriptions: Vec::new(),
        });
        let promised = pair.promised();
        // Traffic of the system itself is background and has no contract on any link.
        stream.promised |= promised && !local && !background(pair.spec);
        stream.max_wait = stream.max_wait.filter(|_| !stream.promised);
        stream.within = [stream.within, pair.request.within].into_iter().flatten().min();
        if local && place > 0 {
            stream.upstream = Some(stream.within.unwrap_or_default());
        }
        stream.subscriptions.push(pair.subscription);
    }
    streams
}

/// Returns two seconds for best effort, unless the publisher sends late samples or waits for room. A picture
/// or state waits until a newer one arrives.
fn max_wait(spec: &PublisherSpec) -> Option<Duration> {
    let replaced = matches!(spec.kind, Kind::Picture | Kind::State);
    let waits = spec.waits || spec.late == Late::Send || replaced || background(spec);
    (!waits).then_some(Duration::from_millis(2_000))
}

fn background(spec: &PublisherSpec) -> bool {
    spec.tag.as_str().starts_with('@')
}

fn form(asked: Form, spec: &PublisherSpec) -> Form {
    let picture = spec.kind == Kind::Picture;
    Form {
        rate: asked.rate,
        size: asked.size.filter(|_| picture).filter(|size| Some(*size) != spec.size),
        ..Form::FULL
    }
}

fn larger(asked: Size, source: Option<Size>) -> bool {
    source.is_some_and(|source| asked.width > source.width || asked.height > source.height)
}

fn matches(pattern: &Pattern, tag: &Tag) -> bool {
    fn chunks(pattern: &[&str], tag: &[&str]) -> bool {
        match (pattern, tag) {
            ([], []) => true,
            (["**", rest @ ..], _) => {
                let open = tag.iter().take_while(|chunk| !chunk.starts_with('@')).count();
                (0..=open).any(|taken| chunks(rest, &tag[taken..]))
            }
            ([first, rest @ ..], [have, more @ ..]) => {
                (first == have || *first == "*" && !have.starts_with('@')) && chunks(rest, more)
            }
            ([], [_, ..]) | ([_, ..], []) => false,
        }
    }
    let split = |text| str::split(text, '/').collect::<Vec<_>>();
    chunks(&split(pattern.as_str()), &split(tag.as_str()))
}
