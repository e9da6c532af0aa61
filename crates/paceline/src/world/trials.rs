//! The search for a contract that the path of a refused one would grant.

use super::channels;
use super::service::ServiceOffer;
use super::state::Shared;
use crate::Node;
use crate::contract::Refusal;
use paceline_objects::contract::{DelayParts, PromisedService};
use paceline_objects::{InterestContract, ObjectContract, PeerId};
use paceline_proto::control::TrafficTrial;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Weak};

/// A refused contract.
pub(super) struct Refused {
    pub(super) node: Node,
    pub(super) owner: PeerId,
    /// The tag of the promised updates.
    pub(super) tag: String,
    pub(super) contract: InterestContract,
    /// The times of the ends.
    pub(super) parts: DelayParts,
    pub(super) refusal: Refusal,
    /// The number of the request.
    pub(super) number: u64,
}

/// The most refused contracts that wait for a search.
const WAITING_MAX: usize = 64;

/// The thread that searches, started with the first refusal. It blocks for at most 500 ms per question to the path, so
/// the thread of the world cannot do it.
#[derive(Default)]
pub(super) struct Searches {
    thread: Option<(SyncSender<Refused>, Receiver<Found>)>,
}

/// A refused contract and the contract that its path would grant.
type Found = (Refused, ServiceOffer);

impl Searches {
    /// Begins to search. Returns the contract if that is not possible, because there is no thread or too many others wait.
    pub(super) fn begin(&mut self, refused: Refused, shared: &Arc<Shared>) -> Option<Refused> {
        if self.thread.is_none() {
            let (jobs, inbox) = sync_channel(WAITING_MAX);
            let (outbox, found) = channel();
            let shared = Arc::downgrade(shared);
            let named = std::thread::Builder::new().name("paceline-trial".to_owned());
            match named.spawn(move || run(&inbox, &outbox, &shared)) {
                Ok(_) => self.thread = Some((jobs, found)),
                Err(error) => crate::warn_limited!("world: no thread for offers: {error}"),
            }
        }
        let Some((jobs, _)) = &self.thread else { return Some(refused) };
        jobs.try_send(refused).err().map(|failed| match failed {
            TrySendError::Full(refused) | TrySendError::Disconnected(refused) => refused,
        })
    }

    /// Returns the next end of a search.
    pub(super) fn found(&self) -> Option<Found> {
        self.thread.as_ref().and_then(|(_, found)| found.try_recv().ok())
    }
}

fn run(inbox: &Receiver<Refused>, outbox: &Sender<Found>, shared: &Weak<Shared>) {
    while let Ok(refused) = inbox.recv() {
        let offer = search(&refused, shared).unwrap_or_default();
        if outbox.send((refused, offer)).is_err() {
            return;
        }
        let Some(shared) = shared.upgrade() else { return };
        shared.change(|_| ());
    }
}

/// A dimension of a contract in which it can be smaller.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Dimension {
    Rate,
    Fidelity,
    Delay,
    All,
}

impl Dimension {
    const EACH: [Self; 4] = [Self::Rate, Self::Fidelity, Self::Delay, Self::All];

    const fn includes(self, other: Self) -> bool {
        matches!(self, Self::All) || self as u8 == other as u8
    }
}

/// The whole of a contract, of which trials leave a part in some dimensions.
const WHOLE: u64 = 1_024;
/// The parts of the first trials: each seven tenths of the one before. The second ones divide the step above the
/// largest part that was granted.
const COARSE: [u64; 15] = [716, 501, 351, 246, 172, 120, 84, 59, 41, 29, 20, 14, 10, 7, 5];
/// The fine steps in each coarse one.
const FINE: u64 = 16;

/// Returns the offer of a contract of which `left` parts are left in some dimensions.
fn smaller(contract: &ObjectContract, dimension: Dimension, left: u64) -> ServiceOffer {
    let updates = u64::from(contract.max_updates) * left / WHOLE;
    let fidelity = u64::from(contract.fidelity_permille) * left / WHOLE;
    let delay = contract.delay.mul_div(WHOLE, left).min(ObjectContract::DELAY_MAX);
    let within = |of: Dimension| dimension.includes(of);
    ServiceOffer {
        max_updates: u32::try_from(updates)
            .ok()
            .filter(|updates| *updates > 0 && within(Dimension::Rate)),
        fidelity_permille: u16::try_from(fidelity)
            .ok()
            .filter(|share| *share > 0 && within(Dimension::Fidelity)),
        delay: Some(delay.into()).filter(|_| within(Dimension::Delay)),
        together: dimension == Dimension::All,
    }
}

/// Tries contracts on the path, first in coarse and then in fine steps.
fn search(refused: &Refused, shared: &Weak<Shared>) -> Option<ServiceOffer> {
    let first = survey(refused, shared, |_| COARSE.to_vec())?;
    let fine = |dimension: Dimension| {
        let found = first.get(dimension as usize).copied().flatten();
        let place = COARSE.iter().position(|part| Some(*part) == found);
        let above =
            place.and_then(|place| place.checked_sub(1)).and_then(|place| COARSE.get(place));
        let above = above.copied().unwrap_or(WHOLE);
        let step = |found: u64| (1..FINE).map(move |step| found + (above - found) * step / FINE);
        found.map_or_else(Vec::new, |found| step(found).collect())
    };
    if first.iter().all(Option::is_none) {
        return None;
    }
    let second = survey(refused, shared, fine).unwrap_or_default();
    let best = |dimension: Dimension| {
        let place = dimension as usize;
        let found = second.get(place).copied().flatten();
        let found = found.or_else(|| first.get(place).copied().flatten());
        found.map(|left| smaller(&refused.contract.each, dimension, left))
    };
    let alone = ServiceOffer {
        max_updates: best(Dimension::Rate).and_then(|offer| offer.max_updates),
        fidelity_permille: best(Dimension::Fidelity).and_then(|offer| offer.fidelity_permille),
        delay: best(Dimension::Delay).and_then(|offer| offer.delay),
        together: false,
    };
    if alone == ServiceOffer::default() { best(Dimension::All) } else { Some(alone) }
}

/// Tries contracts on the path of which some parts are left in each dimension, and returns for each the largest part
/// that it would grant.
fn survey(
    refused: &Refused,
    shared: &Weak<Shared>,
    parts: impl Fn(Dimension) -> Vec<u64>,
) -> Option<Vec<Option<u64>>> {
    let mut trials = Vec::new();
    let mut tried = Vec::new();
    let world = shared.upgrade()?;
    for dimension in Dimension::EACH {
        for left in parts(dimension) {
            let offer = smaller(&refused.contract.each, dimension, left);
            let Some(contract) = offer.apply(&refused.contract) else { continue };
            let service = world.lock().participant.service_from(refused.owner, &contract)?;
            let network = refused.parts.network(&contract.each).map(channels::requested);
            if let Some(within) = network.filter(|_| contract.each.check().is_ok()) {
                trials.push(trial(&service, within));
                tried.push((dimension, left));
            }
        }
    }
    drop(world);
    let within = refused.parts.network(&refused.contract.each)?;
    let request = refused.node.subscriber(&refused.tag).within(within.into());
    let quotes = request.quotes_of(trials).ok()?;
    let (_, fits) =
        quotes.into_iter().find(|(quote, _)| quote.publisher == refused.refusal.publisher)?;
    let granted = |dimension: Dimension| {
        let numbered = tried.iter().enumerate().filter(|(_, (of, _))| *of == dimension);
        numbered.filter(|(bit, _)| fits >> bit & 1 == 1).map(|(_, (_, left))| *left).max()
    };
    Some(Dimension::EACH.map(granted).to_vec())
}

fn trial(service: &PromisedService, within: paceline_sched::Duration) -> TrafficTrial {
    let (period, bytes_max, envelope) = channels::declaration(&service.traffic);
    TrafficTrial { period, bytes_max, envelope, within }
}
