//! The rights of other nodes at this one, and the record of their use.

mod tokens;
mod uses;

use crate::access::{AccessFile, Audit, Bearer, Entry};
use crate::config::{LinkConfig, NodeBuilder};
use crate::error::OpenError;
use bytes::Bytes;
use paceline_proto::control::{Control, ControlOutput, TOKEN_BYTES_MAX, TOKENS_MAX};
use paceline_proto::rights::{AccessPolicy, PeerName, Right, Rights};
use paceline_proto::{NodeId, PublisherId, SubscriptionId};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tokens::{Bearing, Due, Shown, Tokens};
use uses::{Use, Uses};

/// The interval of reading changed files again, and of ending expired tokens.
const RENEW_EVERY: Duration = Duration::from_secs(2);

/// The policy, the tokens and the audit log of a node.
pub(crate) struct Gate {
    file: Option<AccessFile>,
    own_token: Option<PathBuf>,
    shown: Vec<u8>,
    audit: Audit,
    /// The tokens that other nodes show.
    tokens: Tokens,
    /// The names in the certificates of neighbours; `None` for those without one.
    certified: BTreeMap<NodeId, Option<String>>,
    granted: BTreeSet<(SubscriptionId, PublisherId)>,
    uses: Uses,
    next: Instant,
}

impl Gate {
    /// Reads the files of a builder.
    pub(crate) fn open(builder: &NodeBuilder) -> Result<Self, OpenError> {
        let file = builder.policy.as_deref().map(AccessFile::open).transpose();
        let file = file.map_err(OpenError::Access)?;
        let log = file.as_ref().and_then(|file| file.access.audit.clone());
        let audit = log.map(|log| Audit::open(&log)).transpose().map_err(OpenError::Access)?;
        if let Some(token) = &builder.token {
            read_token(token).map_err(OpenError::Access)?;
        }
        Ok(Self {
            file,
            own_token: builder.token.clone(),
            shown: Vec::new(),
            audit: audit.unwrap_or_default(),
            tokens: Tokens::default(),
            certified: BTreeMap::new(),
            granted: BTreeSet::new(),
            uses: Uses::default(),
            next: Instant::ZERO,
        })
    }

    /// Returns true if the node has a policy.
    pub(crate) const fn has_policy(&self) -> bool {
        self.file.is_some()
    }

    /// Returns a handle to the audit log.
    pub(crate) fn audit(&self) -> Audit {
        self.audit.clone()
    }

    /// Applies the policy to a node with these links.
    pub(crate) fn apply<'l>(
        &self,
        control: &mut Control,
        mut links: impl Iterator<Item = &'l LinkConfig>,
    ) {
        let policy = match &self.file {
            Some(file) => Some(file.access.policy.clone()),
            // Peers with a certificate have no rights by default. Without such links nothing is restricted.
            None => {
                links.any(|link| link.tls.is_some() && !link.is_open()).then(AccessPolicy::default)
            }
        };
        control.set_policy(super::clock::now(), policy);
    }

    /// Sets the identity of a neighbour that comes up.
    pub(crate) fn meet(
        &mut self,
        (now, control): (Instant, &mut Control),
        link: &LinkConfig,
        node: NodeId,
        proven: Option<PeerName>,
    ) {
        let peer = self.identity(link, proven.as_ref());
        let entry = Entry::new("joined").text("link", &link.name).node("node", node);
        let (entry, certified) = match proven {
            Some(PeerName::Certified(name)) => (entry.text("name", &name), Some(name)),
            Some(PeerName::User(name)) => (entry.text("user", &name), None),
            Some(PeerName::Host | PeerName::Unknown) | None => (entry, None),
        };
        self.audit.note(entry);
        self.certified.insert(node, certified);
        control.set_peer(now, node, peer);
        self.follow(now, control, node);
    }

    /// Notes that the records of a neighbour contradict those of others.
    pub(crate) fn note_contradiction(&self, node: NodeId) {
        self.audit.note(Entry::new("contradicts others").node("node", node));
    }

    /// Notes that a neighbour is down.
    pub(crate) fn part(&mut self, node: NodeId) {
        self.certified.remove(&node);
        self.audit.note(Entry::new("left").node("node", node));
    }

    fn identity(&self, link: &LinkConfig, proven: Option<&PeerName>) -> PeerName {
        if self.file.is_none() && link.is_open() {
            return PeerName::Host;
        }
        match proven {
            Some(name) => name.clone(),
            None if link.is_local() => PeerName::Host,
            None => PeerName::Unknown,
        }
    }

    /// Reads changed files again, and ends expired tokens.
    pub(crate) fn renew<'l>(
        &mut self,
        now: Instant,
        control: &mut Control,
        links: impl Iterator<Item = &'l LinkConfig>,
    ) {
        self.note_grants(control);
        if now < self.next {
            return;
        }
        self.next = now + RENEW_EVERY;
        self.uses.renew(now, &self.audit);
        if self.file.as_mut().is_some_and(AccessFile::reload) {
            self.audit.note(Entry::new("policy changed"));
            self.apply(control, links);
            for node in self.tokens.nodes() {
                self.verify_again(now, control, node);
            }
        }
        self.show_token(now, control);
        for node in self.tokens.nodes() {
            self.follow(now, control, node);
        }
    }

    /// Shows this node's token to its neighbours, if it is new.
    pub(crate) fn show_token(&mut self, now: Instant, control: &mut Control) {
        let Some(file) = &self.own_token else { return };
        match read_token(file) {
            Ok(token) if token != self.shown => {
                control.show_token(now, token.clone().into());
                self.shown = token;
            }
            Ok(_) => {}
            Err(why) => crate::warn_limited!("{why}; the previous token stays in force"),
        }
    }

    /// Handles an output that concerns rights.
    pub(crate) fn handle(&mut self, now: Instant, control: &Control, output: ControlOutput) {
        if let ControlOutput::Denied { node, of, lack, tag } = output {
            let (right, why) = (lack.right(), lack.to_string());
            let other = (of != node).then_some(("relay", of));
            let denied = Use { event: "denied", node, right, tag, other, why };
            self.uses.note(now, &self.audit, denied);
        } else if let ControlOutput::Used { node, at, right, tag } = output {
            let here = at == control.me();
            let event = match right {
                Right::Pull => "pulled",
                // The change itself follows.
                Right::Set if here => return,
                Right::Set => "set",
                Right::Publish | Right::Subscribe | Right::Observe | Right::Relay => "observed",
            };
            let other = (!here).then_some(("at", at));
            let used = Use { event, node, right, tag, other, why: String::new() };
            self.uses.note(now, &self.audit, used);
        } else if let ControlOutput::ChangedFor { node, subscription } = output {
            self.note_changed(control, node, subscription);
        }
    }

    /// Verifies the tokens that neighbours have delivered, before anything is decided about their nodes.
    pub(crate) fn settle(&mut self, now: Instant, control: &mut Control) {
        while let Some((node, token)) = control.poll_token() {
            self.receive(now, control, node, token);
        }
        // The record of a node behind a neighbour follows its token.
        for node in self.tokens.unnamed() {
            self.follow(now, control, node);
        }
    }

    /// Keeps a token that a node shows, and verifies it.
    fn receive(&mut self, now: Instant, control: &mut Control, node: NodeId, token: Bytes) {
        let repeated = self.tokens.get(node).is_some_and(|shown| shown.token == token);
        if repeated || self.file.is_none() {
            return;
        }
        let bearing = self.bearing(control, node);
        let shown = Shown { token, at: now, bearing, ends: None };
        if shown.bearing != Bearing::Unknown {
            return self.verify(now, control, node, shown);
        }
        // The record of the node may follow.
        if self.tokens.get(node).is_some_and(|before| before.ends.is_some()) {
            self.end_token(now, control, node, "the node has left");
        }
        self.keep(node, shown);
    }

    /// Verifies a token. A refused one does not replace an accepted one of the same node.
    fn verify(&mut self, now: Instant, control: &mut Control, node: NodeId, shown: Shown) {
        let name = shown.bearing.name().unwrap_or_default();
        let accepted = self.tokens.get(node).filter(|before| before.ends.is_some());
        let again = accepted.is_some_and(|before| before.token == shown.token);
        match self.rights_by(node, &shown) {
            Ok((rights, ends)) => {
                if !again {
                    let entry = Entry::new("token accepted").node("node", node);
                    self.audit.note(entry.text("name", name));
                }
                let token = shown.token.clone();
                if self.keep(node, Shown { ends: Some(ends), ..shown }) {
                    control.set_token(now, node, Some((rights, token)));
                }
            }
            Err(why) if again => {
                self.keep(node, shown);
                self.end_token(now, control, node, &why);
            }
            Err(why) => {
                self.refuse(node, name, &why);
                if accepted.is_none() {
                    self.keep(node, shown);
                }
            }
        }
    }

    /// Returns the rights by a token, and their end.
    fn rights_by(&self, node: NodeId, shown: &Shown) -> Result<(Rights, SystemTime), String> {
        let file = self.file.as_ref().ok_or_else(|| "there is no policy".to_owned())?;
        let unproven = || "it needs a certificate for its name: use a quic/ link".to_owned();
        let name = shown.bearing.name().ok_or_else(unproven)?;
        file.access.verify(&shown.token, &Bearer { node, name })
    }

    fn keep(&mut self, node: NodeId, shown: Shown) -> bool {
        let kept = self.tokens.keep(node, shown);
        if !kept {
            self.refuse(node, "", &format!("{TOKENS_MAX} nodes have shown one already"));
        }
        kept
    }

    fn refuse(&self, node: NodeId, name: &str, why: &str) {
        crate::warn_limited!("the token of node {node} ('{name}') is refused: {why}");
        let entry = Entry::new("token refused").node("node", node).text("name", name);
        self.audit.note(entry.text("why", why));
    }

    /// Verifies the last token of a node again, after the node's name or the issuers may have changed.
    fn verify_again(&mut self, now: Instant, control: &mut Control, node: NodeId) {
        let bearing = self.bearing(control, node);
        let shown = self.tokens.get(node).filter(|_| bearing != Bearing::Unknown);
        if let Some(shown) = shown.cloned() {
            self.verify(now, control, node, Shown { bearing, ..shown });
        }
    }

    /// Does what is due for the last token of a node.
    fn follow(&mut self, now: Instant, control: &mut Control, node: NodeId) {
        let Some(shown) = self.tokens.get(node) else { return };
        match shown.due(now, SystemTime::now(), &self.bearing(control, node)) {
            Some(Due::Drop) => {
                let left = self.tokens.remove(node);
                if left.is_some_and(|shown| shown.ends.is_some()) {
                    self.end_token(now, control, node, "the node has left");
                }
            }
            Some(Due::Expire) => self.end_token(now, control, node, "it has expired"),
            Some(Due::Verify) => self.verify_again(now, control, node),
            None => {}
        }
    }

    /// Returns what is known of the name of a node.
    fn bearing(&self, control: &Control, node: NodeId) -> Bearing {
        match (self.certified.get(&node), control.name(node)) {
            (Some(Some(name)), _) => Bearing::Named(name.clone()),
            (Some(None), _) => Bearing::Unproven,
            (None, Some(name)) => Bearing::Named(name.to_owned()),
            (None, None) => Bearing::Unknown,
        }
    }

    fn end_token(&mut self, now: Instant, control: &mut Control, node: NodeId, why: &str) {
        self.tokens.end(node);
        control.set_token(now, node, None);
        self.audit.note(Entry::new("token ended").node("node", node).text("why", why));
    }

    /// Records that another node has changed a subscription of this one.
    fn note_changed(&self, control: &Control, node: NodeId, id: SubscriptionId) {
        let spec = control.subscription(id);
        let tag = spec.map(|spec| spec.pattern.to_string()).unwrap_or_default();
        self.audit.note(Entry::new("changed").node("node", node).text("tag", &tag));
    }

    /// Records the contracts that have been granted or released since the last call.
    fn note_grants(&mut self, control: &Control) {
        if self.audit.file().is_none() {
            return;
        }
        let now: BTreeSet<(SubscriptionId, PublisherId)> =
            control.grants().map(|grant| (grant.subscription, grant.publisher)).collect();
        for (event, pairs) in [
            ("granted", now.difference(&self.granted)),
            ("released", self.granted.difference(&now)),
        ] {
            for (subscription, publisher) in pairs {
                let entry = Entry::new(event).node("node", subscription.node);
                let entry = entry.node("publisher", publisher.node);
                let tag = control.tag_of(*publisher).map(ToString::to_string);
                self.audit.note(entry.text("tag", &tag.unwrap_or_default()));
            }
        }
        self.granted = now;
    }
}

fn read_token(file: &Path) -> Result<Vec<u8>, String> {
    let cannot = |what: String| format!("token {}: {what}", file.display());
    let size = std::fs::metadata(file).map_err(|error| cannot(error.to_string()))?.len();
    if size > TOKEN_BYTES_MAX as u64 {
        return Err(cannot(format!("{size} bytes; must be at most {TOKEN_BYTES_MAX}")));
    }
    let text = std::fs::read(file).map_err(|error| cannot(error.to_string()))?;
    let token = text.trim_ascii();
    if token.is_empty() { Err(cannot("is empty".to_owned())) } else { Ok(token.to_vec()) }
}
