//! What is carried on for a while though nothing is installed for it any more.
//!
//! Two things would leave a gap otherwise. A pair that is carried and asks for a promise from now on would
//! stand still until its path has answered: it is carried on as it was. And nodes further from a
//! publisher install a change first, so that what is still sent in the form of before would find nobody:
//! it is handed on as before. Both end with [`LINGER`] at the latest, with a refusal, and when what is
//! installed takes the samples over.

use super::registry::PairKey;
use super::routes::{Installed, Pair};
use super::spec::{OutputPlan, SourceKey};
use crate::ids::{NodeId, SubscriptionId};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// As long as a path may take to answer.
const LINGER: Duration = Duration::from_secs(4);

/// What lingers at this node.
#[derive(Debug, Default)]
pub(super) struct Lingering {
    until: BTreeMap<(PairKey, SourceKey), Instant>,
    /// The pairs whose reservation was installed here in the round before.
    booked: BTreeSet<PairKey>,
}

/// The pairs that a round of decisions has ended with, by key.
pub(super) struct Carried<'r, 'a> {
    pub(super) me: NodeId,
    /// What is installed for good.
    pub(super) live: &'r BTreeMap<PairKey, &'r Pair<'a>>,
    /// Those whose paths are asked, or are to be.
    pub(super) waiting: &'r BTreeMap<PairKey, &'r Pair<'a>>,
}

impl Lingering {
    /// Whether what was carried for a pair is to go on.
    fn goes_on(
        &self,
        carried: &Carried<'_, '_>,
        (key, source): (PairKey, SourceKey),
        output: &OutputPlan,
    ) -> bool {
        match carried.live.get(&key) {
            Some(live) => live.source() != source && key.1.node != carried.me,
            // What was granted and is lost may not look as if it were still held.
            None if self.booked.contains(&key) => false,
            None => carried.waiting.get(&key).is_some_and(|pair| pair.target() == output.target),
        }
    }

    /// When the first of it ends.
    pub(super) fn wake_at(&self) -> Instant {
        self.until.values().copied().min().unwrap_or(Instant::FAR)
    }

    /// Adds to `installed` what goes on of what was installed `before`; the pairs among it that are only
    /// carried so. `booked` are those whose reservation is installed here now.
    pub(super) fn carry_on(
        &mut self,
        now: Instant,
        carried: &Carried<'_, '_>,
        booked: BTreeSet<PairKey>,
        before: &BTreeMap<SourceKey, Installed>,
        installed: &mut BTreeMap<SourceKey, Installed>,
    ) -> BTreeSet<PairKey> {
        let known = core::mem::take(&mut self.until);
        let mut only = BTreeSet::new();
        for (&source, old) in before {
            // What still comes for others would be handed on twice by the way of before and of now.
            let (shared, now_there) = match installed.get(&source) {
                Some(same) if same == old => continue,
                there => (there.is_some(), there),
            };
            let mut going = Vec::new();
            for output in &old.outputs {
                for &subscription in &output.subscriptions {
                    let key = (subscription, source.publisher);
                    let twice = shared && carried.live.contains_key(&key);
                    let is_there = has(now_there, output, subscription);
                    if !is_there && !twice && self.goes_on(carried, (key, source), output) {
                        let end = known.get(&(key, source)).copied().unwrap_or(now + LINGER);
                        going.push((end, key, output));
                    }
                }
            }
            // For the same reason only what was changed together lingers together.
            let last = going.iter().map(|(end, ..)| *end).max().filter(|last| *last > now);
            for (end, key, output) in going {
                if Some(end) == last {
                    self.until.insert((key, source), end);
                    add(installed, source, old, output, key.0);
                    if !carried.live.contains_key(&key) {
                        only.insert(key);
                    }
                }
            }
        }
        self.booked = booked;
        only
    }
}

fn has(installed: Option<&Installed>, of: &OutputPlan, subscription: SubscriptionId) -> bool {
    let same = |it: &&OutputPlan| (it.target, it.form) == (of.target, of.form);
    let output = installed.and_then(|installed| installed.outputs.iter().find(same));
    output.is_some_and(|output| output.subscriptions.binary_search(&subscription).is_ok())
}

/// Puts one subscription behind an output like `of`.
fn add(
    installed: &mut BTreeMap<SourceKey, Installed>,
    source: SourceKey,
    old: &Installed,
    of: &OutputPlan,
    subscription: SubscriptionId,
) {
    let entry = installed
        .entry(source)
        .or_insert_with(|| Installed { publisher: old.publisher.clone(), outputs: Vec::new() });
    let place =
        entry.outputs.binary_search_by_key(&(of.target, of.form), |it| (it.target, it.form));
    match place {
        Ok(place) => {
            let output = entry.outputs.get_mut(place).map(|output| &mut output.subscriptions);
            if let Some(behind) = output
                && let Err(at) = behind.binary_search(&subscription)
            {
                behind.insert(at, subscription);
            }
        }
        Err(place) => {
            let subscriptions = vec![subscription];
            let alone = OutputPlan { subscriptions, ..of.clone() };
            entry.outputs.insert(place, alone);
        }
    }
}
