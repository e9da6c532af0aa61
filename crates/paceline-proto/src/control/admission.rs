//! Which pairs the links of this node have room for: a first, simple test of load against capacity.
//!
//! Only the node that owns the outgoing hop decides, in one order: pairs that have their place keep
//! it as long as nothing was changed about them, then the others by subscription and publisher. A
//! pair refused here is ignored by every node until this one releases it.
//!
//! Two nodes on a path could refuse each other's pairs for ever, each making the room that lets the
//! other try again. So a refusal is kept for a while that differs by node and pair before room alone
//! releases it; a change of what was asked for or of the link releases it at once.

use super::contract::{load, pace, tolerance};
use super::refusal::{Refusal, RefusalReason};
use super::registry::{Change, PairKey, REFUSALS_MAX};
use super::routes::Pair;
use super::spec::{HopInfo, PublisherSpec, SourceKey, SubscriptionSpec, Target};
use crate::form::Form;
use crate::ids::NodeId;
use core::mem;
use paceline_sched::{Duration, Instant, LossTolerance};
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

/// What of a link is promised.
#[derive(Debug)]
struct Ledger {
    limit: u64,
    used: u64,
    /// The loss tolerance of each stream that has its place.
    streams: BTreeMap<Stream, LossTolerance>,
}

type Stream = (SourceKey, Target, Form);

/// One pair's place on a link, should it get it.
struct Charge<'a> {
    link: &'a str,
    stream: Stream,
    loss: LossTolerance,
    load: u64,
}

/// What the numbers say of a pair.
enum Judged<'a> {
    /// Nothing here limits it.
    Free,
    Fits(Charge<'a>),
    TooMuch(Refusal),
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
    holds: BTreeMap<PairKey, Hold>,
    /// When a refusal could be released that is only kept for its time.
    wake: Option<Instant>,
    rounds: u64,
}

impl Admission {
    pub(crate) fn refuses(&self, key: PairKey) -> bool {
        self.holds.contains_key(&key)
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
        let placed = mem::take(&mut self.placed);
        let mut round = Round {
            now,
            me,
            hops,
            ledgers: ledgers(hops),
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

/// The links with a capacity; hops that share a link share its ledger.
fn ledgers(hops: &BTreeMap<NodeId, HopInfo>) -> BTreeMap<&str, Ledger> {
    let mut ledgers: BTreeMap<&str, Ledger> = BTreeMap::new();
    for hop in hops.values() {
        let Some(capacity) = hop.capacity else { continue };
        // 5 % stay for control.
        let limit = capacity.bytes_per_s() - capacity.bytes_per_s().div_ceil(20);
        let fresh = || Ledger { limit, used: 0, streams: BTreeMap::new() };
        let ledger = ledgers.entry(&hop.link_name).or_insert_with(fresh);
        ledger.limit = ledger.limit.min(limit);
    }
    ledgers
}

/// One round of decisions.
struct Round<'a> {
    now: Instant,
    me: NodeId,
    hops: &'a BTreeMap<NodeId, HopInfo>,
    ledgers: BTreeMap<&'a str, Ledger>,
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
            (Judged::TooMuch(refusal), None) if !foreign => self.refuse(pair, refusal),
            (Judged::TooMuch(_), None) => {}
            (Judged::TooMuch(refusal), Some(hold)) => self.keep(pair, refusal, hold),
            (Judged::Free, None) => {}
            (Judged::Fits(charge), None) if !foreign => self.charge(pair, &charge),
            (Judged::Fits(_), None) => {}
            (judged @ (Judged::Free | Judged::Fits(_)), Some(hold)) => {
                self.release(pair, judged, hold, foreign);
            }
        }
    }

    fn judge(&self, pair: &Pair<'_>) -> Judged<'a> {
        let (subscription, publisher) = pair.key();
        let mut refusal = Refusal {
            subscription,
            publisher,
            link: String::new(),
            needed_bytes_per_s: 0,
            available_bytes_per_s: 0,
            reason: RefusalReason::Capacity,
        };
        if let (true, Some(asked), Some(source)) =
            (publisher.node == self.me, pair.asked.size, pair.spec.size)
            && !asked.fits_in(source)
        {
            refusal.reason = RefusalReason::SizeAboveSource { asked, source };
            return Judged::TooMuch(refusal);
        }
        if pair.is_background() {
            return Judged::Free;
        }
        let Some(charge) = self.charge_of(pair) else { return Judged::Free };
        let Some(ledger) = self.ledgers.get(charge.link) else { return Judged::Free };
        let mut available = ledger.limit.saturating_sub(ledger.used);
        let mut needed = charge.load;
        // Idle as it may be, a link that is too slow for one sample keeps no promise: all of them would
        // be late, also for those who share the stream.
        let pace = pair.ask().and_then(|ask| pace(pair.spec, pair.leaving(), &ask));
        if let Some(pace) = pace.filter(|pace| *pace > ledger.limit) {
            (needed, available) = (pace, ledger.limit);
        }
        if needed <= available {
            return Judged::Fits(charge);
        }
        charge.link.clone_into(&mut refusal.link);
        refusal.needed_bytes_per_s = needed;
        refusal.available_bytes_per_s = available;
        Judged::TooMuch(refusal)
    }

    /// What the pair would add to its link: nothing for best effort, only the difference for a
    /// stream that is there already. `None` if no number is known.
    fn charge_of(&self, pair: &Pair<'_>) -> Option<Charge<'a>> {
        let hop = self.hop(pair).filter(|hop| hop.capacity.is_some())?;
        let ledger = self.ledgers.get(hop.link_name.as_str())?;
        let asked = tolerance(pair.request, pair.spec)?;
        let stream = (pair.source(), pair.target(), pair.leaving());
        let before = ledger.streams.get(&stream).copied();
        let loss = before.map_or(asked, |before| before.strictest(asked));
        let load_at = |loss| load(pair.spec, pair.leaving(), loss);
        let present = before.map_or(Some(0), load_at)?;
        let load = load_at(loss)?.saturating_sub(present);
        Some(Charge { link: &hop.link_name, stream, loss, load })
    }

    fn charge(&mut self, pair: &Pair<'_>, charge: &Charge<'a>) {
        if let Some(ledger) = self.ledgers.get_mut(charge.link) {
            ledger.used = ledger.used.saturating_add(charge.load);
            ledger.streams.insert(charge.stream, charge.loss);
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
            RefusalReason::Capacity => self.now + self.hold_time(pair.key()),
            RefusalReason::SizeAboveSource { .. } => self.now,
        };
        let hop = self.hop(pair).cloned();
        let hold = Hold { refusal, until, basis: Basis::of(pair), hop };
        self.memory.holds.insert(pair.key(), hold);
    }

    /// A refused pair that still does not fit: the numbers are told anew only if what they were made
    /// of has changed.
    fn keep(&mut self, pair: &Pair<'_>, refusal: Refusal, hold: Hold) {
        if self.unchanged(pair, &hold) {
            self.memory.holds.insert(pair.key(), hold);
            return;
        }
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
            Judged::Fits(charge) if !foreign => self.charge(pair, &charge),
            Judged::Fits(_) | Judged::Free | Judged::TooMuch(_) => {}
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
