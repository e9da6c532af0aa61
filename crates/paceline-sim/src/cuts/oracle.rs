//! The naive account of one subscription.

use super::{CutsResult, Faults, Source};
use crate::handle::Sub;
use crate::world::World;
use std::sync::atomic::Ordering;

/// The sums of one subscription at one instant.
#[derive(Debug)]
pub(super) struct Account {
    subscription: Sub,
    /// Samples published.
    put: u64,
    /// The sequence numbers of the delivered samples, in order of delivery.
    seqs: Vec<u64>,
    /// The samples that the subscription reports as missing.
    missing: u64,
    /// The samples that all nodes report as dropped, if the publisher has no other subscription.
    reported: Option<u64>,
}

impl Account {
    pub(super) fn read(world: &World, subscription: Sub, source: &Source, alone: bool) -> Self {
        Self {
            subscription,
            put: source.put.load(Ordering::Relaxed),
            seqs: world.delivered(subscription).iter().map(|sample| sample.seq).collect(),
            missing: world.missing(subscription),
            reported: alone.then(|| world.reported(source.publisher)),
        }
    }

    /// Compares the account with an earlier one. No sample may have been in flight at either time.
    pub(super) fn check(
        &self,
        before: &Self,
        faults: Faults,
        sums: &mut CutsResult,
    ) -> Result<(), String> {
        let what = |why: &str| Err(format!("{:?}: {why}", self.subscription));
        if !self.seqs.is_sorted_by(|a, b| a < b) {
            return what("delivered twice or out of order");
        }
        for account in [before, self] {
            if account.seqs.last().map(|newest| newest + 1) != Some(account.put) {
                return what(&format!("the newest of {} samples did not arrive", account.put));
            }
        }
        let published = self.put - before.put;
        let delivered = (self.seqs.len() - before.seqs.len()) as u64;
        let missing = self.missing - before.missing;
        if published != delivered + missing {
            return what(&format!(
                "{published} published, {delivered} delivered, {missing} missing"
            ));
        }
        sums.published += published;
        sums.delivered += delivered;
        sums.missing += missing;
        let (Some(reported), Some(earlier)) = (self.reported, before.reported) else {
            return Ok(());
        };
        // A relay that restarts forgets its reports, also those from before the first cut.
        let reported = reported.saturating_sub(earlier);
        sums.reported += reported;
        sums.of += missing;
        match faults {
            Faults::Links if reported != missing => {
                what(&format!("{missing} of {published} missing, {reported} reported"))
            }
            Faults::Relays if reported > missing => {
                what(&format!("only {missing} missing, {reported} reported"))
            }
            Faults::Links | Faults::Relays => Ok(()),
        }
    }
}
