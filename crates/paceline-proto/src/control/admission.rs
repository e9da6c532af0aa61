//! Which pairs the links of this node have room for, by the admission test that belongs to each link's
//! discipline (docs/admission.md).
//!
//! Each hop of a path has its part of a delay bound, which every node computes alike; a hop that can't
//! keep its part beside what it has promised already refuses, so what no hop refuses keeps its bound.
//! Only the node that owns the outgoing hop decides, in one order: pairs that have their place keep
//! it as long as nothing was changed about them, then the others by subscription and publisher. A
//! pair refused here is ignored by every node until this one releases it.
//!
//! Two nodes on a path could refuse each other's pairs for ever, each making the room that lets the
//! other try again. So a refusal is kept for a while that differs by node and pair before room alone
//! releases it; a change of what was asked for or of the link releases it at once.

use super::contract::asked;
use super::offer::explain;
use super::promises::{Promises, Wanted};
use super::refusal::{Offer, Refusal, RefusalReason};
use super::registry::{Change, PairKey, REFUSALS_MAX};
use super::routes::Pair;
use super::spec::{HopInfo, PublisherSpec, SubscriptionSpec, Target};
use crate::form::Size;
use crate::ids::NodeId;
use core::mem;
use paceline_sched::{Duration, Instant, Policy};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The shortest time for which a refusal is kept, and the spread above it.
const HOLD_MIN: Duration = Duration::from_millis(500);
const HOLD_SPREAD_NANOS: u64 = 2_000_000_000;

/// What a decision was made on.
#[derive(Clone, Debug, PartialEq)]
struct Basis {
    spec: Arc<PublisherSpec>,
    request: SubscriptionSpec,
}

impl Basis {
    fn of(pair: &Pair<'_>) -> Self {
        Self { spec: Arc::clone(pair.spec), request: pair.request.clone() }
    }

    fn holds_for(&self, pair: &Pair<'_>) -> bool {
        self.spec == *pair.spec && self.request == *pair.request
    }
}

/// A refusal of this node.
#[derive(Clone, Debug)]
struct Hold {
    refusal: Refusal,
    /// Before this instant room alone does not release it.
    until: Instant,
    basis: Basis,
    hop: Option<HopInfo>,
}

/// What the numbers say of a pair.
enum Judged<'a> {
    /// Nothing here limits it.
    Free,
    /// The link has room for it.
    Fits(&'a str, Wanted),
    /// The link has not.
    TooMuch(&'a str, Wanted),
    /// Pictures would have to be made larger.
    TooLarge { asked: Size, source: Size },
}

/// What follows from one round.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    /// Changes of this node's refusals, releases first.
    pub(crate) changes: Vec<Change>,
    /// Pairs that don't fit, but can't be refused either as the table is full: best effort.
    pub(crate) unpromised: BTreeSet<PairKey>,
}

/// The memory of past decisions.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    placed: BTreeMap<PairKey, Basis>,
    promises: Promises,
    /// Which discipline schedules each link, where one was told.
    policies: BTreeMap<String, Policy>,
    holds: BTreeMap<PairKey, Hold>,
    /// When a refusal could be released that is only kept for its time.
    wake: Option<Instant>,
    rounds: u64,
}

impl Admission {
    pub(crate) fn refuses(&self, key: PairKey) -> bool {
        self.holds.contains_key(&key)
    }

    /// Which discipline schedules a link: its test is made from the next round on.
    pub(crate) fn set_policy(&mut self, link: &str, policy: Policy) {
        self.policies.insert(link.to_owned(), policy);
    }

    pub(crate) fn wake_at(&self) -> Instant {
        self.wake.unwrap_or(Instant::FAR)
    }

    /// Decides on all `pairs`, which come in the order of their keys. `foreign` are those that other
    /// nodes refuse: they use nothing here.
    pub(crate) fn decide(
        &mut self,
        now: Instant,
        me: NodeId,
        pairs: &[Pair<'_>],
        foreign: &BTreeSet<PairKey>,
        hops: &BTreeMap<NodeId, HopInfo>,
    ) -> Decision {
        self.wake = None;
        self.rounds += 1;
        let wanted = wanted(pairs, hops);
        let on = |link: &str, key| {
            let (over, wanted) = wanted.get(&key).filter(|_| !foreign.contains(&key))?;
            (*over == link).then_some(*wanted)
        };
        self.promises.update(hops, &self.policies, on);
        let placed = mem::take(&mut self.placed);
        let mut round = Round {
            now,
            me,
            hops,
            wanted,
            old: mem::take(&mut self.holds),
            releases: Vec::new(),
            refusals: Vec::new(),
            unpromised: BTreeSet::new(),
            memory: self,
        };
        let keeps =
            |pair: &&Pair<'_>| placed.get(&pair.key()).is_some_and(|basis| basis.holds_for(pair));
        for pair in pairs.iter().filter(keeps).chain(pairs.iter().filter(|pair| !keeps(pair))) {
            round.handle(pair, foreign.contains(&pair.key()));
        }
        round.finish()
    }
}

/// What each pair asks of which link, if its hop has a capacity and the numbers are known.
fn wanted<'a>(
    pairs: &[Pair<'_>],
    hops: &'a BTreeMap<NodeId, HopInfo>,
) -> BTreeMap<PairKey, (&'a str, Wanted)> {
    let of = |pair: &Pair<'_>| {
        let Target::Hop(node) = pair.target() else { return None };
        let hop = hops.get(&node).filter(|hop| hop.capacity.is_some())?;
        let demand = asked(pair.spec, pair.leaving(), &pair.ask()?)?;
        let stream = (pair.source(), pair.target(), pair.leaving());
        Some((pair.key(), (hop.link_name.as_str(), Wanted { stream, demand })))
    };
    pairs.iter().filter_map(of).collect()
}

/// One round of decisions.
struct Round<'a> {
    now: Instant,
    me: NodeId,
    hops: &'a BTreeMap<NodeId, HopInfo>,
    wanted: BTreeMap<PairKey, (&'a str, Wanted)>,
    /// Refusals that were not looked at yet.
    old: BTreeMap<PairKey, Hold>,
    releases: Vec<Change>,
    refusals: Vec<Change>,
    unpromised: BTreeSet<PairKey>,
    memory: &'a mut Admission,
}

impl<'a> Round<'a> {
    fn hop(&self, pair: &Pair<'_>) -> Option<&'a HopInfo> {
        match pair.target() {
            Target::Hop(node) => self.hops.get(&node),
            Target::Local => None,
        }
    }

    fn handle(&mut self, pair: &Pair<'_>, foreign: bool) {
        let held = self.old.remove(&pair.key());
        match (self.judge(pair), held) {
            (Judged::Free, None) => {}
            (Judged::Fits(link, wanted), None) if !foreign => self.promise(pair, link, wanted),
            (Judged::Fits(..), None) => {}
            (judged @ (Judged::TooMuch(..) | Judged::TooLarge { .. }), None) => {
                if !foreign {
                    let refusal = self.refusal(pair, &judged);
                    self.refuse(pair, refusal);
                }
            }
            (judged @ (Judged::TooMuch(..) | Judged::TooLarge { .. }), Some(hold)) => {
                self.keep(pair, &judged, hold);
            }
            (judged @ (Judged::Free | Judged::Fits(..)), Some(hold)) => {
                self.release(pair, judged, hold, foreign);
            }
        }
    }

    fn judge(&self, pair: &Pair<'_>) -> Judged<'a> {
        let (_, publisher) = pair.key();
        if let (true, Some(asked), Some(source)) =
            (publisher.node == self.me, pair.asked.size, pair.spec.size)
            && !asked.fits_in(source)
        {
            return Judged::TooLarge { asked, source };
        }
        let Some(&(link, wanted)) = self.wanted.get(&pair.key()) else { return Judged::Free };
        let Some(promised) = self.memory.promises.get(link) else { return Judged::Free };
        match promised.fits(pair.key(), &wanted) {
            true => Judged::Fits(link, wanted),
            false => Judged::TooMuch(link, wanted),
        }
    }

    /// Why, and what would be possible.
    fn refusal(&self, pair: &Pair<'_>, judged: &Judged<'_>) -> Refusal {
        let (subscription, publisher) = pair.key();
        let mut refusal = Refusal {
            subscription,
            publisher,
            link: String::new(),
            needed_bytes_per_s: 0,
            available_bytes_per_s: 0,
            reason: RefusalReason::Capacity,
            offer: Offer::default(),
        };
        match judged {
            Judged::TooLarge { asked, source } => {
                refusal.reason = RefusalReason::SizeAboveSource { asked: *asked, source: *source };
            }
            Judged::TooMuch(link, wanted) => {
                (*link).clone_into(&mut refusal.link);
                if let Some(promised) = self.memory.promises.get(link) {
                    explain(&mut refusal, pair, promised, wanted);
                }
            }
            Judged::Free | Judged::Fits(..) => {}
        }
        refusal
    }

    fn promise(&mut self, pair: &Pair<'_>, link: &str, wanted: Wanted) {
        if let Some(promised) = self.memory.promises.get_mut(link) {
            promised.hold(pair.key(), wanted);
        }
        self.memory.placed.insert(pair.key(), Basis::of(pair));
    }

    fn refuse(&mut self, pair: &Pair<'_>, refusal: Refusal) {
        if self.memory.holds.len() + self.old.len() >= REFUSALS_MAX {
            self.unpromised.insert(pair.key());
            return;
        }
        self.refusals.push(Change::Refuse(refusal.clone()));
        self.hold(pair, refusal);
    }

    fn hold(&mut self, pair: &Pair<'_>, refusal: Refusal) {
        let until = match refusal.reason {
            RefusalReason::Capacity
            | RefusalReason::Deadlines { .. }
            | RefusalReason::Delay { .. } => self.now + self.hold_time(pair.key()),
            RefusalReason::SizeAboveSource { .. } => self.now,
        };
        let hop = self.hop(pair).cloned();
        let hold = Hold { refusal, until, basis: Basis::of(pair), hop };
        self.memory.holds.insert(pair.key(), hold);
    }

    /// A refused pair that still does not fit: the numbers are told anew only if what they were made
    /// of has changed.
    fn keep(&mut self, pair: &Pair<'_>, judged: &Judged<'_>, hold: Hold) {
        if self.unchanged(pair, &hold) {
            self.memory.holds.insert(pair.key(), hold);
            return;
        }
        let refusal = self.refusal(pair, judged);
        if refusal != hold.refusal {
            self.refusals.push(Change::Refuse(refusal.clone()));
        }
        self.hold(pair, refusal);
    }

    /// A refused pair that fits now.
    fn release(&mut self, pair: &Pair<'_>, judged: Judged<'a>, hold: Hold, foreign: bool) {
        if self.unchanged(pair, &hold) && self.now < hold.until {
            let wake = self.memory.wake.map_or(hold.until, |wake| wake.min(hold.until));
            self.memory.wake = Some(wake);
            self.memory.holds.insert(pair.key(), hold);
            return;
        }
        let (subscription, publisher) = pair.key();
        self.releases.push(Change::Release(subscription, publisher));
        match judged {
            Judged::Fits(link, wanted) if !foreign => self.promise(pair, link, wanted),
            Judged::Fits(..) | Judged::Free | Judged::TooMuch(..) | Judged::TooLarge { .. } => {}
        }
    }

    fn unchanged(&self, pair: &Pair<'_>, hold: &Hold) -> bool {
        hold.basis.holds_for(pair) && hold.hop.as_ref() == self.hop(pair)
    }

    /// Differs by node, pair and round, and is the same in every run.
    fn hold_time(&self, (subscription, publisher): PairKey) -> Duration {
        let parts = [
            self.me.0,
            subscription.node.0,
            u64::from(subscription.index),
            publisher.node.0,
            u64::from(publisher.index),
            self.memory.rounds,
        ];
        let mixed = parts.iter().fold(0, |mixed: u64, part| {
            let turned = (mixed ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            turned ^ (turned >> 29)
        });
        HOLD_MIN.saturating_add(Duration::from_nanos(mixed % HOLD_SPREAD_NANOS))
    }

    fn finish(mut self) -> Decision {
        // What was not looked at is no pair of this node any more.
        let gone = self.old.into_keys();
        self.releases.extend(gone.map(|(subscription, id)| Change::Release(subscription, id)));
        self.releases.append(&mut self.refusals);
        Decision { changes: self.releases, unpromised: self.unpromised }
    }
}
