//! Messages on their way, and the replicas that they make.

use crate::random::Random;
use crate::rules::Version;
use paceline_objects::exchange::{Exchange, ExchangeList, UpdateKind};
use paceline_objects::{GroupMask, ObjectIndex, PeerId};
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// What becomes of messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fate {
    /// Any may be late, out of order, lost, in part, or without a report.
    Random,
    /// All arrive.
    Good,
}

struct Flight {
    at: Instant,
    message: Exchange,
    versions: Vec<Vec<Version>>,
    /// The groups that arrive, and None if nothing does.
    arrives: Option<GroupMask>,
    reports: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Replica {
    /// The message and version of each group.
    pub(crate) groups: BTreeMap<usize, (u64, Version)>,
    pub(crate) exists: bool,
    /// The newest message that said that it ends.
    ended: Option<u64>,
    introduced: u64,
}

#[derive(Default)]
pub(crate) struct Network {
    flights: Vec<Flight>,
    pub(crate) replicas: BTreeMap<(PeerId, ObjectIndex), Replica>,
}

impl Network {
    /// Sends a message with the content of its objects at present.
    pub(crate) fn send(
        &mut self,
        message: Exchange,
        versions: Vec<Vec<Version>>,
        fate: Fate,
        random: &mut Random,
        now: Instant,
    ) {
        let delay = Duration::from_micros(1 + random.below(80_000));
        let all = Some(GroupMask(u32::MAX));
        let (arrives, reports) = match (fate, random.below(20)) {
            (Fate::Random, 0..4) => (None, true),
            (Fate::Random, 4) => (None, false),
            (Fate::Random, 5) => (all, false),
            (Fate::Random, 6..9) => {
                let some = u32::try_from(random.below(16)).unwrap_or(0);
                (Some(GroupMask(some)), true)
            }
            (Fate::Random | Fate::Good, _) => (all, true),
        };
        self.flights.push(Flight { at: now + delay, message, versions, arrives, reports });
    }

    /// Returns when the next message arrives or is lost.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.flights.iter().map(|flight| flight.at).min()
    }

    pub(crate) fn forget(&mut self, peer: PeerId) {
        self.flights.retain(|flight| flight.message.peer != peer);
        self.replicas.retain(|(other, _), _| *other != peer);
    }

    /// Applies messages that have arrived and reports them to the owner.
    pub(crate) fn advance(&mut self, list: &mut ExchangeList, now: Instant) {
        while let Some(place) = self.flights.iter().position(|flight| flight.at <= now) {
            let flight = self.flights.swap_remove(place);
            if let Some(groups) = flight.arrives {
                self.apply(&flight, groups);
            }
            if flight.reports {
                let (peer, number) = (flight.message.peer, flight.message.number);
                match flight.arrives {
                    Some(GroupMask(u32::MAX)) => list.delivered(peer, number, now),
                    None => list.lost(peer, number, now),
                    Some(groups) => list.arrived(peer, number, |_| Some(groups), now),
                }
            }
        }
    }

    fn apply(&mut self, flight: &Flight, arrives: GroupMask) {
        let message = &flight.message;
        for (update, versions) in message.updates.iter().zip(&flight.versions) {
            let replica = self.replicas.entry((message.peer, update.object)).or_default();
            if replica.ended.is_some_and(|ended| ended > message.number) {
                continue;
            }
            match update.kind {
                UpdateKind::Withdraw | UpdateKind::Delete => {
                    if replica.introduced < message.number {
                        replica.exists = false;
                        replica.groups.clear();
                    } else {
                        // Content of a later introduction stays; only the older goes.
                        replica.groups.retain(|_, (number, _)| *number > message.number);
                    }
                    replica.ended = Some(message.number);
                    continue;
                }
                UpdateKind::Introduce => {
                    replica.exists = true;
                    replica.introduced = replica.introduced.max(message.number);
                }
                UpdateKind::Change | UpdateKind::Refresh => {
                    assert!(replica.exists, "a change of an object that was never introduced");
                }
            }
            for group in update.groups.iter().filter(|group| arrives.has(*group)) {
                let new = (message.number, versions[group]);
                let known = replica.groups.entry(group).or_insert(new);
                if known.0 < new.0 {
                    *known = new;
                }
            }
        }
    }
}
