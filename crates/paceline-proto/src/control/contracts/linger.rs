//! Streams that continue for a while although they are no longer installed.
//!
//! This avoids a gap in two cases. First, a best-effort pair that now requests a promise would stop until its
//! path has answered; it continues as before. Second, nodes further from a publisher install a change first.
//! Samples still sent in the old form would find no stream, so they are forwarded as before. Both end after
//! [`LINGER`], or the delay bound of a contract, at the latest, with a refusal, or when the installed stream takes over.
//!
//! A stream may be replaced by one with a contract whose samples arrive here in another form. It then takes the samples
//! before the first one of its successor ([`OutputPlan::until`]), and has the contract of its successor if it has none: the
//! contract applies to all samples that are published after it was granted, in whichever form they arrive.

use super::pair::Pair;
use super::streams::Installed;
use crate::control::data::ids::PairKey;
use crate::form::Form;
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::plan::{OutputPlan, SourceKey};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// The longest time that a path may take to answer.
const LINGER: Duration = Duration::from_secs(4);
/// The longest time for which a replaced stream continues, whatever its delay bound.
const LINGER_MAX: Duration = Duration::from_secs(60);

/// The lingering streams of this node.
#[derive(Debug, Default)]
pub(in crate::control) struct Lingering {
    until: BTreeMap<(PairKey, SourceKey), Instant>,
    /// The pairs whose reservation was installed here in the previous round.
    booked: BTreeSet<PairKey>,
}

/// The results of a round of decisions, by pair.
pub(in crate::control) struct Carried<'r, 'a> {
    pub(in crate::control) me: NodeId,
    /// The pairs with an installed stream.
    pub(in crate::control) live: &'r BTreeMap<PairKey, &'r Pair<'a>>,
    /// The pairs whose paths are being asked, or will be.
    pub(in crate::control) waiting: &'r BTreeMap<PairKey, &'r Pair<'a>>,
}

impl Carried<'_, '_> {
    /// Returns the form of the samples of the pair's new stream, if it has a contract and they replace those of `source`.
    fn successor(&self, key: PairKey, source: SourceKey) -> Option<Form> {
        let live = self.live.get(&key).filter(|live| live.ask().is_some())?;
        Some(live.source().form).filter(|form| *form != source.form)
    }

    /// Returns an output as it continues for a pair: without a contract unless one is reserved for it now.
    fn continued(&self, key: PairKey, output: &OutputPlan, booked: bool) -> OutputPlan {
        let pair = self.live.get(&key).or_else(|| self.waiting.get(&key));
        match pair {
            Some(pair) if !booked && output.contract.is_some() => OutputPlan {
                contract: None,
                demand: None,
                is_granted: false,
                level: None,
                slack: Duration::ZERO,
                max_wait: pair.spec.max_wait(),
                ..output.clone()
            },
            Some(_) | None => output.clone(),
        }
    }
}

impl Lingering {
    /// Returns true if the previous stream of a pair must continue.
    fn goes_on(
        &self,
        carried: &Carried<'_, '_>,
        (key, source): (PairKey, SourceKey),
        output: &OutputPlan,
    ) -> bool {
        match carried.live.get(&key) {
            Some(live) => live.source() != source && key.1.node != carried.me,
            // A lost reservation must not appear to be still in force.
            None if self.booked.contains(&key) => false,
            None => carried.waiting.get(&key).is_some_and(|pair| pair.target() == output.target),
        }
    }

    /// Returns the instant at which the next stream ends.
    pub(in crate::control) fn wake_at(&self) -> Instant {
        self.until.values().copied().min().unwrap_or(Instant::FAR)
    }

    /// Adds the lingering streams of `before` to `installed`, and returns the pairs that have no other
    /// stream. `booked` are the pairs whose reservation is installed here now.
    pub(in crate::control) fn carry_on(
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
            // Samples shared with other subscriptions would be forwarded twice, by the old and the new
            // stream.
            let (shared, now_there) = match installed.get(&source) {
                Some(same) if same == old => continue,
                there => (there.is_some(), there),
            };
            let mut going = Vec::new();
            for output in &old.outputs {
                for &subscription in &output.subscriptions {
                    let key = (subscription, source.publisher);
                    let until = carried.successor(key, source);
                    let twice = shared && until.is_none() && carried.live.contains_key(&key);
                    let is_there = has(now_there, output, subscription);
                    if !is_there && !twice && self.goes_on(carried, (key, source), output) {
                        let end = known.get(&(key, source)).copied();
                        let end = end.unwrap_or_else(|| now + lasts(output, until));
                        going.push((end, key, output, until));
                    }
                }
            }
            // For the same reason, only streams of the same change linger together.
            let same = going.iter().filter(|(.., until)| until.is_none()).map(|(end, ..)| *end);
            let last = same.max().filter(|last| *last > now);
            going.sort_by_key(|(.., until)| until.is_some());
            for (end, key, output, until) in going {
                if Some(end) == last || until.is_some() && end > now {
                    let output = carried.continued(key, output, booked.contains(&key));
                    let output = succeeded(installed, source.publisher, until, output);
                    if !add(installed, source, old, &output, key.0) {
                        continue;
                    }
                    self.until.insert((key, source), end);
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

/// Returns the longest time for which an output continues. Samples under a contract may need their delay bound.
fn lasts(output: &OutputPlan, until: Option<Form>) -> Duration {
    let bound = output.within.filter(|_| until.is_some() && output.contract.is_some());
    bound.map_or(LINGER, |bound| bound.clamp(LINGER, LINGER_MAX))
}

/// Returns an output that ends with the first sample in the form `until`. It is under the contract of the stream to the same
/// target that then follows, unless it has one of its own.
fn succeeded(
    installed: &BTreeMap<SourceKey, Installed>,
    publisher: PublisherId,
    until: Option<Form>,
    output: OutputPlan,
) -> OutputPlan {
    let output = OutputPlan { until, ..output };
    let follows = until.and_then(|form| installed.get(&SourceKey { publisher, form }));
    let mut follows = follows.into_iter().flat_map(|follows| &follows.outputs);
    let same = |it: &&OutputPlan| (it.target, it.form) == (output.target, output.form);
    match follows.find(same) {
        Some(next) if output.contract.is_none() => {
            let OutputPlan { scale, until, subscriptions, .. } = output;
            OutputPlan { scale, until, subscriptions, ..next.clone() }
        }
        Some(_) | None => output,
    }
}

fn has(installed: Option<&Installed>, of: &OutputPlan, subscription: SubscriptionId) -> bool {
    let same = |it: &&OutputPlan| (it.target, it.form) == (of.target, of.form);
    let output = installed.and_then(|installed| installed.outputs.iter().find(same));
    output.is_some_and(|output| output.subscriptions.binary_search(&subscription).is_ok())
}

/// Adds one subscription to the output that equals `of`, or to a copy of it. Returns false if there is such an output
/// which ends at another time.
fn add(
    installed: &mut BTreeMap<SourceKey, Installed>,
    source: SourceKey,
    old: &Installed,
    of: &OutputPlan,
    subscription: SubscriptionId,
) -> bool {
    let entry =
        installed.entry(source).or_insert_with(|| Installed { outputs: Vec::new(), ..old.clone() });
    let place =
        entry.outputs.binary_search_by_key(&(of.target, of.form), |it| (it.target, it.form));
    match place {
        Ok(place) => {
            let Some(output) = entry.outputs.get_mut(place).filter(|it| it.until == of.until)
            else {
                return false;
            };
            if let Err(at) = output.subscriptions.binary_search(&subscription) {
                output.subscriptions.insert(at, subscription);
            }
        }
        Err(place) => {
            let subscriptions = vec![subscription];
            let alone = OutputPlan { subscriptions, ..of.clone() };
            entry.outputs.insert(place, alone);
        }
    }
    entry.from.extend(&old.from);
    true
}
