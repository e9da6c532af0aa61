//! The reservations of a version on the links of this node.

use super::message::{Accept, Admit, HopShare, Name, NodeIndex, Reason, Share, Wanted, bears_loss};
use super::state::{Leg, Version};
use super::{LinkId, RefusedDemand, Reservations, ReserveOutput};
use crate::demand::StreamDemand;
use crate::link::{Admission, Holder, Trunk};
use crate::verdict::AdmissionResult;
use paceline_sched::{Duration, Instant, LossTolerance};
use std::collections::BTreeMap;

pub(super) fn holder(name: Name) -> Holder {
    Holder { origin: u128::from(name.key.origin.0), number: name.key.number }
}

/// Combines a stream and its next hop to one name, because a link sends a stream once per
/// neighbour. Names that are far apart keep their order.
pub(super) fn trunk_to(trunk: Trunk, next: NodeIndex) -> Trunk {
    let mixed = (next.0 ^ next.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    trunk.mixed(mixed ^ mixed >> 31)
}

/// One leg of a reservation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) name: Name,
    pub(super) to: NodeIndex,
    pub(super) forward: bool,
    pub(super) here: Here,
    /// The delay that the earlier hops have reserved.
    pub(super) spent: Duration,
}

/// The part of a request that concerns this node alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Here {
    /// The class of the link to the next node; `None` for the link itself.
    pub link: Option<LinkId>,
    /// Processor time besides forwarding, in nanoseconds per second, such as that of scaling.
    pub work: u64,
    /// The name of the stream that the node at the end of the path makes of it for its subscribers; `None` if they
    /// receive it as it arrives. Streams with the same name are made once.
    pub delivered: Option<Trunk>,
}

/// The part of a delay bound for the end of a path, which is none; demands must have one.
const NO_PART: Duration = Duration::from_nanos(1);

fn share_of(leg: &Leg) -> Share {
    let traffic = leg.demand.traffic();
    Share { rate: traffic.rate(), burst: traffic.burst(), bound: leg.bound }
}

/// Returns `wanted` as the hop after node `at` sees it. Only one hop of the path may use the loss
/// tolerance.
pub(super) fn borne(ask: &Admit, wanted: Wanted, at: usize) -> Wanted {
    let loss = if bears_loss(&ask.weights, at) { wanted.loss } else { LossTolerance::NONE };
    Wanted { loss, ..wanted }
}

impl Reservations {
    /// Reserves both directions of `ask` tentatively, or neither; forward as `here` says.
    pub(super) fn reserve(&mut self, ask: Admit, at: usize, here: Here) -> Result<Version, Reason> {
        let mut onward = ask.clone();
        let mut version = Version {
            onward: ask.clone(),
            ask,
            at,
            forward: None,
            backward: None,
            until: self.now + self.timing.tentative,
            answer: None,
        };
        if let (Some(mut wanted), Some(next)) = (version.ask.forward_at(at), version.next()) {
            let turns = version.ask.scaled.as_ref().filter(|scaled| scaled.at == at);
            if let (Some(_), Some(before)) = (turns, version.ask.forward) {
                wanted.bunched = wanted.bunched.saturating_add(before.bunched);
            }
            let rest = wanted.within.saturating_sub(version.ask.spent);
            let place = Place {
                name: version.ask.name,
                to: next,
                forward: true,
                here,
                spent: version.ask.spent,
            };
            let mine = borne(&version.ask, wanted, at);
            let leg = self.leg(place, &mine, version.ask.part(at, rest))?;
            version.forward = Some(leg);
            let wanted = Wanted { bunched: self.bunched_behind(&leg), ..wanted };
            match onward.scaled.as_mut().filter(|scaled| at >= scaled.at) {
                Some(scaled) => scaled.wanted = wanted,
                None => onward.forward = Some(wanted),
            }
            onward.spent = version.ask.spent.saturating_add(leg.bound);
        }
        if let (Some(wanted), None, Some(link)) =
            (version.ask.forward_at(at), version.next(), self.delivery)
        {
            // The end of the path sends nothing: the leg reserves space for its subscribers, and the time of scaling
            // for them.
            let trunk = here.delivered.unwrap_or(wanted.trunk);
            let (wanted, here) = (Wanted { trunk, ..wanted }, Here { link: Some(link), ..here });
            let (name, spent) = (version.ask.name, version.ask.spent);
            let place = Place { name, to: self.me, forward: true, here, spent };
            let mine = borne(&version.ask, wanted, at);
            version.forward =
                Some(Leg { bound: Duration::ZERO, ..self.leg(place, &mine, NO_PART)? });
        }
        if let (Some(wanted), Some(previous)) = (version.ask.backward, version.previous()) {
            // The hops before this one on the data's path have not reserved yet. Assume the worst
            // delay variation that their shares of the delay allow; ACCEPT relaxes it.
            let ask = &version.ask;
            let (all, left) = (ask.weight_from(0), ask.weight_from(at));
            let behind = wanted.within.mul_div(left, all.max(1));
            let worst = Wanted { bunched: wanted.bunched.saturating_add(behind), ..wanted };
            let worst = borne(ask, worst, at - 1);
            let mine = wanted.within.mul_div(ask.weight_from(at - 1) - left, all.max(1));
            let name = version.ask.name;
            let spent = wanted.within.saturating_sub(mine);
            let place = Place { name, to: previous, forward: false, here: Here::default(), spent };
            match self.leg(place, &worst, mine) {
                Ok(leg) => version.backward = Some(leg),
                Err(reason) => {
                    self.cancel(&version);
                    return Err(reason);
                }
            }
        }
        version.onward = onward;
        Ok(version)
    }

    pub(super) fn leg(
        &mut self,
        place: Place,
        wanted: &Wanted,
        bound: Duration,
    ) -> Result<Leg, Reason> {
        let Place { name, to, forward, here: Here { link, work, .. }, spent } = place;
        let installed = self.entries.get(&name.key).and_then(|entry| entry.installed.as_ref());
        let earlier = installed.and_then(|it| if forward { it.forward } else { it.backward });
        let next = self.neighbours.get(&to).map(|it| it.link);
        let next = next.or(self.delivery.filter(|_| to == self.me)).ok_or(Reason::NoRoute)?;
        let link = link.unwrap_or(next);
        let admission = self.links.get_mut(&link).ok_or(Reason::NoRoute)?;
        let demand = StreamDemand::new(wanted.traffic, bound).map_err(|_| Reason::Impossible)?;
        let demand = demand.with_loss(wanted.loss);
        let demand = demand.with_bunched(admission.arriving(wanted.bunched));
        let demand = demand.after_hops(spent, wanted.within).with_work(work);
        let demand = wanted.level.map_or(demand, |level| demand.with_level(level));
        let (demand, trunk) = (admission.seen(&demand), trunk_to(wanted.trunk, to));
        let instead = earlier.filter(|it| it.link == link && it.trunk != trunk).map(|it| it.trunk);
        let verdict = match instead {
            Some(old) => admission.hold_instead(trunk, holder(name), &demand, old),
            None => admission.hold(trunk, holder(name), &demand),
        };
        self.share_host();
        match verdict {
            AdmissionResult::Granted(_) => Ok(Leg { link, trunk, demand, instead, bound }),
            AdmissionResult::Refused(refusal) => {
                let holder = holder(name);
                if self.refused.len() >= Self::REFUSED_MAX {
                    self.refused.remove(0);
                }
                self.refused.push(RefusedDemand { link, trunk, holder, demand });
                Err(Reason::Refused { forward, refusal })
            }
        }
    }

    /// Returns the delay variation after a leg.
    fn bunched_behind(&self, leg: &Leg) -> Duration {
        let demand = leg.demand.with_deadline(leg.bound).unwrap_or(leg.demand);
        self.links.get(&leg.link).map_or(leg.bound, |admission| admission.bunches(&demand))
    }

    /// Cancels a tentative version. The installed one remains.
    pub(super) fn cancel(&mut self, version: &Version) {
        let holder = holder(version.ask.name);
        for Leg { link, trunk, instead, .. } in version.legs() {
            if let Some(admission) = self.links.get_mut(&link) {
                admission.cancel(trunk, holder);
                if let Some(old) = instead {
                    admission.stay(old, holder);
                }
            }
        }
        self.share_host();
    }

    /// Releases an installed version, except the legs that `kept` shares.
    pub(super) fn release(&mut self, version: &Version, kept: Option<&Version>) {
        let holder = holder(version.ask.name);
        for Leg { link, trunk, .. } in version.legs() {
            let stays = |leg: Leg| leg.link == link && leg.trunk == trunk;
            if kept.is_some_and(|kept| kept.legs().any(stays)) {
                continue;
            }
            if let Some(admission) = self.links.get_mut(&link) {
                admission.release(trunk, holder);
            }
            self.update_policer(link, trunk);
        }
        self.share_host();
    }

    /// Installs a version, relaxed by the values of the answer. Returns the answer with this node's
    /// reservation added.
    pub(super) fn install(&mut self, version: &mut Version, accept: &Accept) -> Accept {
        let holder = holder(version.ask.name);
        let mut accepted = accept.clone();
        if let Some(leg) = &mut version.forward {
            let sharing = version.at as u64 + 1;
            let more = accepted.slack.mul_div(1, sharing);
            let bound = leg.bound.saturating_add(more);
            if let Ok(relaxed) = leg.demand.with_deadline(leg.demand.deadline().max(bound)) {
                accepted.slack = accepted.slack.saturating_sub(more);
                (leg.demand, leg.bound) = (relaxed, bound);
            }
        }
        if let (Some(leg), Some(bunched)) = (&mut version.backward, accept.backward) {
            let bunched = self.links.get(&leg.link).map_or(bunched, |link| link.arriving(bunched));
            leg.demand = leg.demand.with_bunched(bunched);
        }
        for leg in [&mut version.forward, &mut version.backward].into_iter().flatten() {
            if let Some(admission) = self.links.get_mut(&leg.link) {
                admission.commit(leg.trunk, holder, Some(&leg.demand));
                leg.demand = admission.held_by(leg.trunk, holder).unwrap_or(leg.demand);
                if admission.spec().timed {
                    leg.bound = leg.demand.deadline();
                }
            }
            let (link, trunk) = (leg.link, leg.trunk);
            self.update_policer(link, trunk);
        }
        self.share_host();
        if let Some(leg) = &version.backward {
            accepted.backward = Some(self.bunched_behind(leg));
        }
        accepted.hops.push(HopShare {
            node: self.me,
            forward: version.forward.as_ref().map(share_of),
            backward: version.backward.as_ref().map(share_of),
        });
        version.until = Instant::FAR;
        version.answer = Some(accepted.clone());
        accepted
    }

    /// Informs each link of the processor time and of its buffer's space that the other links have
    /// reserved.
    pub(super) fn share_host(&mut self) {
        let all = HostUse::of(self.links.values());
        self.links.values_mut().for_each(|link| all.apply_to(link));
    }

    /// Returns a link as it would be if a link of this node also had the reservation `more` of a holder; nothing is
    /// reserved. A demand that would be refused changes nothing. Returns `None` if there is no such link.
    #[must_use]
    pub fn link_with(
        &self,
        link: LinkId,
        (at, trunk, holder): (LinkId, Trunk, Holder),
        more: &StreamDemand,
    ) -> Option<Admission> {
        let mut other = self.links.get(&at)?.clone();
        let _ = other.hold(trunk, holder, &other.seen(more));
        if at == link {
            return Some(other);
        }
        let mut own = self.links.get(&link)?.clone();
        let all = self.links.iter().map(|(number, it)| if *number == at { &other } else { it });
        HostUse::of(all).apply_to(&mut own);
        Some(own)
    }

    /// Outputs the demand that a stream's policer has to enforce now.
    pub(super) fn update_policer(&mut self, link: LinkId, trunk: Trunk) {
        let installed = self.links.get(&link).and_then(|admission| admission.installed(trunk));
        let output = match installed {
            Some(demand) => ReserveOutput::Install { link, trunk, demand: *demand },
            None => ReserveOutput::Release { link, trunk },
        };
        self.outputs.push_back(output);
    }
}

/// What all links of a node have reserved of its processor and buffers.
#[derive(Default)]
pub(super) struct HostUse {
    /// In nanoseconds per second.
    pub(super) processor: u64,
    /// The queue space of all links that count for the host's buffer, in bytes.
    pub(super) host_buffer: u64,
    /// The queue space of the links with each buffer, in bytes.
    buffers: BTreeMap<u32, u64>,
}

impl HostUse {
    pub(super) fn of<'a>(links: impl Iterator<Item = &'a Admission>) -> Self {
        let mut all = Self::default();
        for link in links {
            let (spec, held) = (link.spec(), link.ledger().held);
            all.processor = all.processor.saturating_add(held.cpu);
            if spec.host_buffer.is_some() {
                all.host_buffer = all.host_buffer.saturating_add(held.buffer);
            }
            if let Some(buffer) = spec.buffer {
                *all.buffers.entry(buffer.number).or_default() += held.buffer;
            }
        }
        all
    }

    /// Informs a link of what the other links have reserved.
    fn apply_to(&self, link: &mut Admission) {
        let held = link.ledger().held;
        link.set_cpu_elsewhere(self.processor.saturating_sub(held.cpu));
        if link.spec().host_buffer.is_some() {
            link.set_host_buffer_elsewhere(self.host_buffer.saturating_sub(held.buffer));
        }
        if let Some(sum) = link.spec().buffer.and_then(|buffer| self.buffers.get(&buffer.number)) {
            link.set_buffer_elsewhere(sum.saturating_sub(held.buffer));
        }
    }
}
