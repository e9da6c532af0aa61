//! Pairs of streams in opposite directions, of which both are carried or neither.

use super::Run;
use crate::handle::NodeIx;
use paceline_proto::control::SubscriptionSpec;
use paceline_proto::tag::Tag;
use paceline_sched::{Duration, Instant};

/// The longest time for which one half may be reserved without the other: during an attempt, on a path of slow links.
const ATTEMPT: Duration = Duration::from_secs(10);

/// Two requests in opposite directions.
#[derive(Debug)]
pub(super) struct Tie {
    /// The indices of both requests. The first one names the other's tag.
    halves: [usize; 2],
    /// Both name each other's tag.
    mutual: bool,
    /// Since when one half alone is in force, and since when one is reserved without being in force.
    uneven: Option<Instant>,
    reserved: Option<Instant>,
    /// Both were in force at once.
    granted: bool,
}

impl Tie {
    /// Checks the state of both halves: in force, and reserved.
    fn look(&mut self, now: Instant, states: [(bool, bool); 2]) -> Result<(), String> {
        let [(one, _), (other, _)] = states;
        self.granted |= one && other;
        let waits = states.iter().any(|(in_force, reserved)| *reserved && !in_force);
        self.uneven = (one != other).then(|| self.uneven.unwrap_or(now));
        self.reserved = waits.then(|| self.reserved.unwrap_or(now));
        let since = [self.uneven, self.reserved].into_iter().flatten().min();
        match since.filter(|since| now.since(*since) > ATTEMPT) {
            Some(since) => Err(format!("at {now}, one half is in force or reserved since {since}")),
            None => Ok(()),
        }
    }
}

impl Run {
    /// Adds a publisher with its subscriptions, or two in opposite directions.
    pub(super) fn add_asked_or_tied(&mut self) {
        let tied = self.mix.tied;
        if self.tie_chance.chance(tied) {
            self.add_tied();
        } else {
            self.add_asked();
        }
    }

    /// Adds two publishers on different nodes, and a subscription to each on the node of the other.
    fn add_tied(&mut self) {
        let Some(node) = self.chance.one_of(&self.nodes) else { return };
        // Nothing is reserved on paths without a capacity.
        let limited = |(_, (_, least)): &(NodeIx, (u64, u64))| *least < u64::MAX;
        let paths: Vec<_> = self.paths_from(node).into_iter().filter(limited).collect();
        let Some((to, path)) = self.chance.one_of(&paths) else { return };
        let halves = [self.asked.len(), self.asked.len() + 1];
        let places = [(node, to), (to, node)].map(|(from, to)| {
            let place = self.add_publisher(from, path, false);
            // Nobody else subscribes, so that the other half is unique.
            if let Some(it) = self.publishers.get_mut(place) {
                it.paths.clear();
            }
            self.code(place);
            (place, to)
        });
        let tag = |place: usize| Tag::new(&format!("asked/{place}")).ok();
        let mutual = self.tie_chance.chance(200);
        let [(lead, _), (follower, _)] = places;
        let with = [tag(follower), tag(lead).filter(|_| mutual)];
        for ((place, to), with) in places.into_iter().zip(with) {
            let spec = self.request(place, to, path);
            self.subscribe(place, to, SubscriptionSpec { with, ..spec });
        }
        for half in halves {
            if let Some(asked) = self.asked.get_mut(half) {
                asked.is_tied = true;
            }
        }
        self.ties.push(Tie { halves, mutual, uneven: None, reserved: None, granted: false });
    }

    /// Checks that both halves of each pair are in force, or neither, and that nothing stays reserved for one half.
    pub(super) fn look_at_ties(&mut self) -> Result<(), String> {
        let (world, now) = (&self.world, self.world.now());
        for tie in &mut self.ties {
            let [lead, follower] = tie.halves;
            let (Some(lead), Some(follower)) = (self.asked.get(lead), self.asked.get(follower))
            else {
                continue;
            };
            // The remaining half is on its own, unless it names the other one.
            if follower.ended.is_none() && lead.ended.is_some() && !tie.mutual {
                continue;
            }
            let states = [lead, follower].map(|half| {
                let Some(it) = self.publishers.get(half.place) else { return (false, false) };
                let changes = world.in_force(half.subscription, it.publisher);
                let in_force = changes.last().is_some_and(|(_, now)| *now);
                (in_force, world.is_reserved(half.subscription, it.publisher))
            });
            tie.look(now, states).map_err(|error| {
                format!("{error}: {states:?}, {:?} and {:?}", lead.spec, follower.spec)
            })?;
        }
        Ok(())
    }

    pub(super) fn count_ties(&mut self) {
        for tie in &self.ties {
            self.outcome.both += u64::from(tie.granted);
            self.outcome.neither += u64::from(!tie.granted);
        }
    }
}
