//! A member of a network with few rights, which speaks in the name of others.
//!
//! The guarded node has a policy. Its good neighbour may do everything and relays for a node behind it. The
//! intruder may publish `own/**` and subscribe to `pub/**`. It sends the genuine messages of forged nodes:
//! `Control` instances with the ids of itself, of the others and of strangers. Some messages are also mutated.
//!
//! Whatever it sends, nothing changes for the others, and it gets nothing beyond its rights: no stream, no
//! reservation, no answer and no name of a tag.

use crate::mutate::{Xorshift, mutate};
use bytes::Bytes;
use paceline_proto::control::{
    Control, ControlOutput, HopInfo, NodeView, PublisherSpec, SubscriptionSpec, Topic,
};
use paceline_proto::plan::{SourceKey, Target};
use paceline_proto::pull::Question;
use paceline_proto::rights::{
    AccessPolicy, AccessRule, GrantedTags, PeerName, Right, Rights, RuleRights,
};
use paceline_proto::{Form, NodeId, Pattern, PublisherId, SubscriptionId, Tag};
use paceline_sched::{Capacity, Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

const GUARDED: NodeId = NodeId(1);
const GOOD: NodeId = NodeId(2);
const FAR: NodeId = NodeId(3);
const INTRUDER: NodeId = NodeId(4);
/// The ids in whose name the intruder speaks.
const FORGED: [NodeId; 5] = [INTRUDER, GOOD, FAR, NodeId(77), GUARDED];
const STEP: Duration = Duration::from_millis(20);
/// The most messages of each forged node that wait.
const WAITING_MAX: usize = 64;

/// The most publishers and subscriptions that each forged node knows.
const KEPT_MAX: usize = 40;

/// The result of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct IntruderOutcome {
    /// Messages that the intruder sent.
    pub sent: u64,
    /// Messages that the guarded node refused as malformed.
    pub malformed: u64,
    /// Questions and streams that its policy denied.
    pub denied: u64,
    /// Records that it refused because of their sender.
    pub contradictions: u64,
    /// Installations of the intruder's own streams: its rights do work.
    pub own: u64,
}

/// Runs until the intruder has sent `messages`. The same seed gives the same run.
///
/// # Errors
/// Returns a description of the first property that was violated.
pub fn intruder(seed: u64, messages: u64) -> Result<IntruderOutcome, String> {
    let mut world = World::new(seed);
    while world.outcome.sent < messages {
        world.step()?;
    }
    world.outcome.contradictions = world.guarded.control.contradictions();
    Ok(world.outcome)
}

/// The streams of a source: the neighbours that they come from, and their targets.
type Streams = (Vec<NodeId>, Vec<(Target, Vec<SubscriptionId>)>);

/// A node, and its latest outputs.
struct Member {
    control: Control,
    installed: BTreeMap<SourceKey, Streams>,
}

struct World {
    now: Instant,
    chance: Xorshift,
    guarded: Member,
    good: Member,
    far: Member,
    /// The nodes whose messages the intruder sends as its own.
    forged: Vec<(Control, VecDeque<Bytes>)>,
    /// A message of the past, for mutations.
    earlier: Bytes,
    promised: (SubscriptionId, PublisherId),
    outcome: IntruderOutcome,
}

fn patterns(text: &str) -> Vec<Pattern> {
    vec![Pattern::new(text).unwrap()]
}

fn policy() -> AccessPolicy {
    let rule = |peers: &[&str], rights| {
        let peers = peers.iter().map(|&peer| peer.to_owned()).collect();
        AccessRule { peers, rights: Arc::new(rights) }
    };
    let tags = GrantedTags {
        publish: patterns("own/**"),
        subscribe: patterns("pub/**"),
        ..GrantedTags::default()
    };
    let few = RuleRights { tags, ..RuleRights::default() };
    AccessPolicy {
        rules: vec![rule(&["good", "far"], RuleRights::all()), rule(&["intruder"], few)],
    }
}

fn publisher(tag: &str) -> PublisherSpec {
    PublisherSpec {
        period: Some(Duration::from_millis(20)),
        bytes_max: Some(200),
        ..PublisherSpec::new(Tag::new(tag).unwrap())
    }
}

fn wants(pattern: &str) -> SubscriptionSpec {
    let all = SubscriptionSpec::all_of(Pattern::new(pattern).unwrap());
    SubscriptionSpec { within: Some(Duration::from_millis(100)), ..all }
}

fn hop() -> HopInfo {
    HopInfo::new("radio".to_owned(), Capacity::from_bits_per_s(10_000_000).ok())
}

/// Returns the content of a record without the list of neighbours, which follows the links.
fn content(view: &NodeView<'_>) -> String {
    let NodeView { id, name, version, publishers, subscriptions, .. } = view;
    format!("{id} {name} {version} {publishers:?} {subscriptions:?}")
}

impl Member {
    fn new(id: NodeId, name: &str) -> Self {
        Self { control: Control::new(id, name), installed: BTreeMap::new() }
    }
}

/// Returns true if a question gains the intruder something. No honest node asks any here. Members with any right may ask for
/// the time and end a pull; a node ignores a question of an unknown topic.
fn gains(body: &Bytes) -> bool {
    match Topic::split(body.clone()) {
        None | Some((Topic::Time, _)) => false,
        Some((Topic::Pull, rest)) => Question::decode(rest).is_ok_and(|it| it.tag().is_some()),
        Some(_) => true,
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let now = Instant::from_millis(1_000);
        let mut guarded = Member::new(GUARDED, "guarded");
        let (mut good, mut far) = (Member::new(GOOD, "good"), Member::new(FAR, "far"));
        guarded.control.set_policy(now, Some(policy()));
        for (node, name) in [(GOOD, "good"), (INTRUDER, "intruder")] {
            guarded.control.set_peer(now, node, PeerName::Certified(name.to_owned()));
        }
        for next in [GOOD, INTRUDER] {
            guarded.control.handle_hop_up(now, next, hop());
        }
        good.control.handle_hop_up(now, GUARDED, hop());
        good.control.handle_hop_up(now, FAR, hop());
        far.control.handle_hop_up(now, GOOD, hop());
        for tag in ["pub/a", "secret/a"] {
            guarded.control.publish(now, publisher(tag));
        }
        guarded.control.subscribe(now, wants("own/*"));
        guarded.control.subscribe(now, wants("cmd/*"));
        let holds = SubscriptionSpec { holds: true, ..wants("secret/*") };
        guarded.control.subscribe(now, SubscriptionSpec { within: None, ..holds });
        for tag in ["pub/b", "secret/b", "cmd/stop"] {
            good.control.publish(now, publisher(tag));
        }
        let watched = far.control.subscribe(now, wants("secret/a"));
        let forged = |id: &NodeId| {
            let name = match *id {
                GOOD => "good",
                FAR => "far",
                GUARDED => "guarded",
                _ => "intruder",
            };
            let mut control = Control::new(*id, name);
            let next = if *id == GUARDED { NodeId(99) } else { GUARDED };
            control.handle_hop_up(now, next, hop());
            (control, VecDeque::new())
        };
        let promised = (watched, PublisherId { node: GUARDED, index: 1 });
        Self {
            now,
            chance: Xorshift::new(seed),
            guarded,
            good,
            far,
            forged: FORGED.iter().map(forged).collect(),
            earlier: Bytes::from_static(b"x"),
            promised,
            outcome: IntruderOutcome::default(),
        }
    }

    fn step(&mut self) -> Result<(), String> {
        self.now += STEP;
        for control in [&mut self.guarded.control, &mut self.good.control, &mut self.far.control] {
            control.handle_timeout(self.now);
        }
        self.deceive();
        for _ in 0..self.chance.below(4) {
            self.send();
        }
        self.settle()?;
        self.check()
    }

    /// Lets the forged nodes act, and collects their messages.
    fn deceive(&mut self) {
        let now = self.now;
        for (control, waiting) in &mut self.forged {
            if self.chance.below(6) == 0 {
                let tags = ["own/x", "pub/a", "secret/a", "cmd/stop", "secret/b", "@pull/3/1/2/1"];
                let tag = tags[self.chance.below(tags.len())];
                let patterns = ["pub/a", "secret/a", "**", "cmd/*", "own/x", "@pull/3/**"];
                let pattern = patterns[self.chance.below(patterns.len())];
                let kept =
                    control.nodes().map(|view| view.publishers.len() + view.subscriptions.len());
                let full = kept.sum::<usize>() > KEPT_MAX;
                match self.chance.below(8) {
                    0..5 if full => {}
                    0 | 1 => _ = control.publish(now, publisher(tag)),
                    2 | 3 => _ = control.subscribe(now, wants(pattern)),
                    4 => {
                        let holds = SubscriptionSpec { holds: true, ..wants(pattern) };
                        control.subscribe(now, SubscriptionSpec { within: None, ..holds });
                    }
                    5 => {
                        let to = [GUARDED, GOOD, FAR][self.chance.below(3)];
                        let topic = [Topic::Status, Topic::Pull, Topic::Passages, Topic::Feedback]
                            [self.chance.below(4)];
                        let pull =
                            Question::Order { tag: Tag::new(tag).unwrap(), samples: 1 }.encode();
                        let plain = Bytes::from(vec![topic.code()]);
                        control.ask(now, to, if topic == Topic::Pull { pull } else { plain });
                    }
                    6 => {
                        let index = u32::try_from(self.chance.below(3)).unwrap_or_default();
                        let node = [GUARDED, GOOD, FAR][self.chance.below(3)];
                        let id = SubscriptionId { node, index };
                        control.change_subscription(now, id, &wants("own/*"));
                    }
                    _ => control.show_token(now, Bytes::from_static(b"forged")),
                }
            }
            if self.chance.below(200) == 0 {
                // Other neighbours, other versions.
                let other = [GOOD, FAR, NodeId(88)][self.chance.below(3)];
                let own = self.chance.below(2) == 0;
                control.handle_hop_up(now, other, HopInfo { own, ..hop() });
            }
            control.handle_timeout(now);
            while let Some(output) = control.poll_output() {
                if let ControlOutput::Send { message, .. } = output
                    && waiting.len() < WAITING_MAX
                {
                    waiting.push_back(message);
                }
            }
        }
    }

    /// Sends one message of a forged node, perhaps mutated.
    fn send(&mut self) {
        let which = self.chance.below(self.forged.len());
        let Some(message) = self.forged[which].1.pop_front() else { return };
        let sent = match self.chance.below(4) {
            0 => mutate(&message, &self.earlier, &mut self.chance).into(),
            _ => message.clone(),
        };
        self.earlier = message;
        self.outcome.sent += 1;
        let read = self.guarded.control.handle_message(self.now, INTRUDER, sent);
        self.outcome.malformed += u64::from(read.is_err());
    }

    /// Delivers the honest messages until none is left.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..10_000 {
            let mut messages = Vec::new();
            for (from, member) in
                [(GUARDED, &mut self.guarded), (GOOD, &mut self.good), (FAR, &mut self.far)]
            {
                while let Some(output) = member.control.poll_output() {
                    match output {
                        ControlOutput::Send { hop, message } => messages.push((from, hop, message)),
                        ControlOutput::Install { source, from, outputs, .. } => {
                            let outputs = outputs.into_iter();
                            let outputs = outputs.map(|it| (it.target, it.subscriptions)).collect();
                            member.installed.insert(source, (from, outputs));
                        }
                        ControlOutput::Asked { from: asker, body, .. } if gains(&body) => {
                            return Err(format!("{asker} may ask {from} {body:?}"));
                        }
                        ControlOutput::ChangedFor { node, .. } => {
                            return Err(format!("{node} has changed a subscription"));
                        }
                        ControlOutput::Warned { subscription, .. } => {
                            return Err(format!("{subscription} was warned"));
                        }
                        ControlOutput::Allotted { link, .. } => {
                            return Err(format!("link '{link}' has no medium"));
                        }
                        ControlOutput::Denied { .. } => self.outcome.denied += 1,
                        ControlOutput::Asked { .. }
                        | ControlOutput::Used { .. }
                        | ControlOutput::Unread { .. }
                        | ControlOutput::Matching { .. }
                        | ControlOutput::Subscribed { .. }
                        | ControlOutput::Refused { .. }
                        | ControlOutput::Granted { .. }
                        | ControlOutput::NoSpare { .. }
                        | ControlOutput::Withdrawn { .. }
                        | ControlOutput::BestEffort { .. }
                        | ControlOutput::Excess { .. }
                        | ControlOutput::Surveyed { .. }
                        | ControlOutput::Changed { .. }
                        | ControlOutput::InForce { .. }
                        | ControlOutput::ChangeRefused { .. }
                        | ControlOutput::Answered { .. } => {}
                    }
                }
            }
            if messages.is_empty() {
                return Ok(());
            }
            for (from, to, message) in messages {
                let control = match to {
                    GUARDED => &mut self.guarded.control,
                    GOOD => &mut self.good.control,
                    FAR => &mut self.far.control,
                    _ => {
                        for (control, _) in &mut self.forged {
                            let _ = control.handle_message(self.now, GUARDED, message.clone());
                        }
                        continue;
                    }
                };
                let read = control.handle_message(self.now, from, message);
                read.map_err(|error| format!("{from} sends {to} a broken message: {error}"))?;
            }
        }
        Err("the honest nodes never stop sending".to_owned())
    }

    fn check(&mut self) -> Result<(), String> {
        let (few, now) = (policy().rights_of_name("intruder"), self.now);
        for (owner, id) in [(&self.good.control, GOOD), (&self.far.control, FAR)] {
            let own = owner.nodes().find(|view| view.id == id).map(|view| content(&view));
            for member in [&self.guarded, &self.good, &self.far] {
                let known = member.control.nodes().find(|view| view.id == id);
                let known = known.map(|view| content(&view));
                // The good nodes need a moment to meet.
                if known != own && now > Instant::from_millis(2_000) {
                    let me = member.control.me();
                    return Err(format!("{me} knows {id} as {known:?} instead of {own:?}"));
                }
            }
        }
        self.check_streams(&few)?;
        // The intruder's own view of the network.
        for view in self.forged[0].0.nodes().filter(|view| view.id != INTRUDER) {
            for spec in view.publishers.values() {
                if !few.grants(Right::Subscribe, &spec.tag) {
                    return Err(format!("the intruder sees {} of {}", spec.tag, view.id));
                }
            }
            for spec in view.subscriptions.values() {
                let serves = few.grants_part_of(Right::Publish, &spec.pattern);
                if !serves && !spec.pattern.is_private() {
                    return Err(format!(
                        "the intruder sees that {} wants {}",
                        view.id, spec.pattern
                    ));
                }
            }
        }
        let (subscription, publisher) = self.promised;
        let kept = self
            .far
            .control
            .grants()
            .any(|grant| (grant.subscription, grant.publisher) == (subscription, publisher));
        if !kept && now > Instant::from_millis(3_000) {
            return Err("the contract of the good nodes has ended".to_owned());
        }
        Ok(())
    }

    /// Checks the streams and reservations at the guarded node.
    fn check_streams(&mut self, few: &Rights) -> Result<(), String> {
        let tag_of = |id: PublisherId| self.guarded.control.tag_of(id).cloned();
        for (source, (from, outputs)) in &self.guarded.installed {
            let SourceKey { publisher, form } = *source;
            let Some(tag) = tag_of(publisher).filter(|_| !outputs.is_empty()) else { continue };
            if from.contains(&INTRUDER) {
                if !few.grants(Right::Publish, &tag) || publisher.node != INTRUDER {
                    return Err(format!("the intruder publishes {tag} as {publisher}"));
                }
                self.outcome.own += 1;
            }
            let leaves = outputs.iter().any(|(target, _)| *target == Target::Hop(INTRUDER));
            if leaves && !few.grants(Right::Subscribe, &tag) {
                return Err(format!("the intruder receives {tag} in {form:?}"));
            }
            if leaves && form == Form::FULL {
                self.outcome.own += 1;
            }
        }
        for grant in self.guarded.control.grants() {
            let Some(tag) = tag_of(grant.publisher) else { continue };
            let takes = grant.subscription.node == INTRUDER;
            let gives = grant.publisher.node == INTRUDER;
            if takes && !few.grants(Right::Subscribe, &tag)
                || gives && !few.grants(Right::Publish, &tag)
            {
                return Err(format!("the intruder has reserved {tag}"));
            }
        }
        Ok(())
    }
}
