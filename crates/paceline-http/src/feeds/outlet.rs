//! The units that wait for one player. They are bounded, and a player that does not read loses whole pictures.

use super::tally::{Heard, LeftOut, TrackTally};
use super::unit::{MediaUnit, UnitRole};
use paceline_edge::{Reception, TRACKS_MAX};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Most bytes that wait for a player. The memory is shared by all players of a feed.
const BYTES_MAX: usize = 8 << 20;
/// The longest wait. A player that reads more slowly than the stream is not late by more.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// A unit that waits.
#[derive(Debug)]
pub(crate) struct WaitingUnit {
    pub(crate) track: u8,
    pub(crate) unit: Arc<MediaUnit>,
    since: Instant,
    /// The first unit after the player joined, with the times of the pictures that precede the newest one.
    pub(crate) start: Option<paceline_edge::CatchUp>,
}

/// The state of one track.
#[derive(Debug, Default)]
struct Flow {
    /// The feed sends.
    open: bool,
    /// Pictures are left out up to the next key picture.
    needs_key: bool,
    /// Leading pictures are left out up to the next picture that is none: the player lacks those before its key picture.
    fresh: bool,
    tally: TrackTally,
}

#[derive(Debug, Default)]
struct Waiting {
    units: VecDeque<WaitingUnit>,
    bytes: usize,
    flows: [Flow; TRACKS_MAX as usize],
    /// The reason why a feed has ended.
    ended: Option<String>,
    /// The last report over UDP.
    sign: Option<Instant>,
    bye: bool,
}

/// The queue of one player.
#[derive(Debug, Default)]
pub(crate) struct Outlet {
    waiting: Mutex<Waiting>,
    wake: Notify,
}

impl Outlet {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a track, whose units begin with the pictures of `group`.
    pub(crate) fn open(
        &self,
        track: u8,
        group: &[Arc<MediaUnit>],
        catch_up: paceline_edge::CatchUp,
        now: Instant,
    ) {
        let mut waiting = self.lock();
        waiting.bye = false;
        // They are part of the group, or are not needed without it.
        waiting.forget(track);
        let empty = group.is_empty();
        if let Some(flow) = waiting.flows.get_mut(usize::from(track)) {
            *flow = Flow { open: true, needs_key: empty, fresh: true, tally: flow.tally };
        }
        for (number, unit) in group.iter().enumerate() {
            let start = (number == 0).then_some(catch_up);
            waiting.bytes += unit.bytes;
            waiting.units.push_back(WaitingUnit { track, unit: unit.clone(), since: now, start });
        }
        drop(waiting);
        self.wake.notify_one();
    }

    /// Closes all tracks: units that arrive are ignored.
    pub(crate) fn close(&self) {
        let mut waiting = self.lock();
        waiting.flows.iter_mut().for_each(|flow| flow.open = false);
        waiting.units.clear();
        waiting.bytes = 0;
    }

    /// Adds a unit, or leaves it out.
    pub(crate) fn push(&self, track: u8, unit: &Arc<MediaUnit>, now: Instant) {
        let mut waiting = self.lock();
        if !waiting.flows.get(usize::from(track)).is_some_and(|flow| flow.open) {
            return;
        }
        let old = waiting.units.front().is_some_and(|first| now - first.since > WAIT_MAX);
        if old || waiting.bytes + unit.bytes > BYTES_MAX && !waiting.units.is_empty() {
            waiting.skip();
        }
        if !waiting.takes(track, unit.role) {
            waiting.count(track, |left_out| left_out.needs += 1);
            return;
        }
        waiting.bytes += unit.bytes;
        waiting.units.push_back(WaitingUnit { track, unit: unit.clone(), since: now, start: None });
        drop(waiting);
        self.wake.notify_one();
    }

    /// Notes that a unit of a track cannot be sent.
    pub(crate) fn lose(&self, track: u8) {
        let mut waiting = self.lock();
        if let Some(flow) = waiting.flows.get_mut(usize::from(track)) {
            flow.needs_key = true;
        }
    }

    /// Notes the end of a feed.
    pub(crate) fn end(&self, why: &str) {
        self.lock().ended.get_or_insert_with(|| why.to_owned());
        self.wake.notify_one();
    }

    /// Returns the next unit.
    pub(crate) fn take(&self) -> Option<WaitingUnit> {
        let mut waiting = self.lock();
        let next = waiting.units.pop_front()?;
        waiting.bytes = waiting.bytes.saturating_sub(next.unit.bytes);
        if let Some(flow) = waiting.flows.get_mut(usize::from(next.track)) {
            flow.tally.packets += u64::try_from(next.unit.parts.len()).unwrap_or_default();
        }
        Some(next)
    }

    /// Waits for a unit, or for the end of a feed.
    pub(crate) async fn changed(&self) {
        self.wake.notified().await;
    }

    /// Returns the reason why a feed has ended, once nothing waits any more.
    pub(crate) fn ended(&self) -> Option<String> {
        let waiting = self.lock();
        waiting.ended.clone().filter(|_| waiting.units.is_empty())
    }

    /// Returns what all tracks left out.
    pub(crate) fn left_out(&self) -> LeftOut {
        let waiting = self.lock();
        waiting.flows.iter().fold(LeftOut::default(), |sum, flow| sum.plus(flow.tally.left_out))
    }

    /// Returns the counters of a track.
    pub(crate) fn tally(&self, track: u8) -> TrackTally {
        let waiting = self.lock();
        waiting.flows.get(usize::from(track)).map(|flow| flow.tally).unwrap_or_default()
    }

    /// Notes the first sequence number and the clock rate of a track.
    pub(crate) fn set_up(&self, track: u8, sequence: u16, rate: u32) {
        if let Some(flow) = self.lock().flows.get_mut(usize::from(track)) {
            flow.tally = TrackTally::new(sequence, rate);
        }
    }

    /// Notes a report of the player about a track, or that it has left. `nanos` is the time since 1970 UTC.
    pub(crate) fn report(&self, track: u8, reception: Option<Reception>, bye: bool, nanos: u64) {
        let mut waiting = self.lock();
        waiting.sign = Some(Instant::now());
        waiting.bye |= bye;
        if let (Some(flow), Some(reception)) =
            (waiting.flows.get_mut(usize::from(track)), reception)
        {
            flow.tally.hear(&reception, nanos);
        }
        if bye {
            drop(waiting);
            self.wake.notify_one();
        }
    }

    /// Returns the last report about each track.
    pub(crate) fn receptions(&self) -> Vec<(u8, Heard)> {
        let waiting = self.lock();
        let numbered = (0_u8..).zip(&waiting.flows);
        numbered.filter_map(|(track, flow)| Some((track, flow.tally.heard?))).collect()
    }

    /// Returns the time of the last report over UDP, and whether the player has left.
    pub(crate) fn sign(&self) -> (Option<Instant>, bool) {
        let waiting = self.lock();
        (waiting.sign, waiting.bye)
    }
}

impl Waiting {
    /// Leaves out everything that waits, because the player reads too slowly.
    fn skip(&mut self) {
        for WaitingUnit { track, unit, .. } in self.units.drain(..) {
            let Some(flow) = self.flows.get_mut(usize::from(track)) else { continue };
            if unit.role.is_picture() {
                flow.tally.left_out.slow += 1;
                flow.needs_key = true;
            } else {
                flow.tally.left_out.sound += 1;
            }
        }
        self.bytes = 0;
    }

    /// Counts what a track leaves out.
    fn count(&mut self, track: u8, add: impl FnOnce(&mut LeftOut)) {
        if let Some(flow) = self.flows.get_mut(usize::from(track)) {
            add(&mut flow.tally.left_out);
        }
    }

    /// Removes the units of a track.
    fn forget(&mut self, track: u8) {
        self.units.retain(|waiting| waiting.track != track);
        self.bytes = self.units.iter().map(|waiting| waiting.unit.bytes).sum();
    }

    /// Returns whether the player can decode a unit.
    fn takes(&mut self, track: u8, role: UnitRole) -> bool {
        let Some(flow) = self.flows.get_mut(usize::from(track)) else { return false };
        match role {
            UnitRole::Sound => true,
            UnitRole::Key => {
                flow.fresh |= flow.needs_key;
                flow.needs_key = false;
                true
            }
            UnitRole::Leading => !flow.needs_key && !flow.fresh,
            UnitRole::Spare => !flow.needs_key,
            UnitRole::Delta => {
                flow.fresh &= flow.needs_key;
                !flow.needs_key
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_edge::{CatchUp, PayloadPart};

    fn unit(role: UnitRole, bytes: usize) -> Arc<MediaUnit> {
        let part = PayloadPart { payload: vec![0; bytes].into(), marker: true, after: 0 };
        Arc::new(MediaUnit::new(vec![part], (0, 0), role))
    }

    fn taken(outlet: &Outlet) -> Vec<UnitRole> {
        std::iter::from_fn(|| outlet.take()).map(|waiting| waiting.unit.role).collect()
    }

    #[test]
    fn a_player_that_does_not_read_resumes_at_the_next_key_picture() {
        use UnitRole::{Delta, Key, Leading, Sound, Spare};
        let outlet = Outlet::default();
        let now = Instant::now();
        outlet.push(0, &unit(Key, 1), now);
        assert_eq!(taken(&outlet), [], "closed");
        outlet.open(0, &[], CatchUp::default(), now);
        outlet.open(1, &[], CatchUp::default(), now);
        for role in [Delta, Key, Leading, Spare, Delta, Leading] {
            outlet.push(0, &unit(role, 1), now);
        }
        outlet.push(1, &unit(Sound, 1), now);
        assert_eq!(taken(&outlet), [Key, Spare, Delta, Leading, Sound]);
        assert_eq!(outlet.left_out(), LeftOut { needs: 2, ..LeftOut::default() });
        outlet.push(0, &unit(Delta, 1), now);
        outlet.push(1, &unit(Sound, 1), now);
        let now = now + WAIT_MAX + Duration::from_millis(1);
        outlet.push(0, &unit(Delta, 1), now);
        outlet.push(0, &unit(Key, 1), now);
        assert_eq!(taken(&outlet), [Key]);
        assert_eq!(outlet.left_out(), LeftOut { slow: 1, needs: 3, sound: 1 });
        outlet.end("over");
        assert_eq!(outlet.ended().as_deref(), Some("over"));
    }

    #[test]
    fn waiting_bytes_are_bounded() {
        let outlet = Outlet::default();
        let now = Instant::now();
        let group = [unit(UnitRole::Key, 1), unit(UnitRole::Delta, 1)];
        outlet.open(0, &group, CatchUp::new(0, 90_000, 2, 90_000), now);
        assert!(outlet.take().unwrap().start.is_some() && outlet.take().unwrap().start.is_none());
        for _ in 0..100 {
            outlet.push(0, &unit(UnitRole::Key, BYTES_MAX / 4), now);
            assert!(outlet.lock().bytes <= BYTES_MAX);
        }
        assert!(outlet.left_out().slow >= 90);
        // One that is larger than the bound is sent alone.
        outlet.push(0, &unit(UnitRole::Key, BYTES_MAX * 2), now);
        assert_eq!(taken(&outlet), [UnitRole::Key]);
    }
}
