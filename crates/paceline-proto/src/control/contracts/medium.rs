//! The links of this node on shared media: their rates follow the manager, or this node is the manager
//! ([`crate::medium`]).
//!
//! A link refuses a request that does not fit its rate. If it fits the rate that the contracts of the other links leave, the
//! link announces that it wants it, and the survey that follows the refusal ([`super::survey`]) reports no obstacle. The request
//! is then repeated after 50, 100 and 200 ms before a refusal is reported.

mod members;
mod want;

pub(super) use want::Prospective;

use crate::control::membership::registry::{Change, EntryKey};
use crate::control::{Control, ControlOutput, cut};
use crate::medium::{Holder, Ledger, LinkKey, Medium, MediumLink, MediumView, least_rate};
use members::Members;
use paceline_admit::ledger::Amounts;
use paceline_sched::{Capacity, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// The most steps of a round: a manager is a member, too, and follows itself.
const STEPS_MAX: u32 = 4;

/// The media of this node.
#[derive(Debug, Default)]
pub(in crate::control) struct State {
    /// Its links on media, by name.
    links: BTreeMap<String, Own>,
    /// The ledgers of the media that it manages.
    ledgers: BTreeMap<String, Ledger>,
    /// The last numbers of these, and of the media that it has managed.
    last: BTreeMap<String, u64>,
    wake: Option<Instant>,
}

/// A link of this node.
#[derive(Debug)]
struct Own {
    index: u32,
    medium: Medium,
    holder: Holder,
    /// True while the link has a neighbour.
    present: bool,
    /// The reservations, and the least rate that they need.
    need: (Amounts, u64),
    /// The rate that a refused request wants, and the end of that.
    wants: Option<(u64, Instant)>,
}

impl State {
    /// Returns the name of the medium of a link.
    pub(super) fn name_of(&self, link: &str) -> Option<&str> {
        self.links.get(link).map(|own| own.medium.name.as_str())
    }

    /// Returns the instant at which to call [`Control::follow_media`] without news.
    pub(in crate::control) fn wake_at(&self) -> Instant {
        self.wake.unwrap_or(Instant::FAR)
    }
}

impl Control {
    /// Sets the medium of a link, or other parameters of it. Its rate is output as [`ControlOutput::Allotted`]; it is the least
    /// one until the medium has a manager. The [capacity](crate::control::HopInfo::capacity) of the link's hops bounds it, too.
    ///
    /// The link has neither classes nor a measured capacity.
    pub fn set_medium(&mut self, link: &str, medium: Medium) {
        let link = cut(link);
        let medium = Medium { name: cut(&medium.name), ..medium };
        let index = u32::try_from(self.contracts.media.links.len()).unwrap_or(u32::MAX);
        let capacity = medium.capacity.bits_per_s();
        let holder = Holder::new((self.me, index), (least_rate(capacity), capacity));
        let (need, wants) = ((Amounts::default(), 0), None);
        let new = Own { index, medium: medium.clone(), holder, present: false, need, wants };
        let own = self.contracts.media.links.entry(link.clone()).or_insert(new);
        own.medium = medium;
        let access = own.medium.access;
        self.contracts.admission.links.set_access(&link, access);
        if !own.present {
            own.holder.lower(least_rate(capacity));
            let bits = own.holder.holding().holds;
            self.allot(&link, bits);
        }
        self.follow_links();
    }

    /// Returns the medium of a link of this node as all its nodes know it, and the rate of the link in bits per second; `None`
    /// if the link has no medium, or no neighbour.
    #[must_use]
    pub fn medium(&self, link: &str) -> Option<(MediumView, u64)> {
        let own = self.contracts.media.links.get(link).filter(|own| own.present)?;
        let members = Members::of(&self.membership.registry, &own.medium.name);
        Some((members.view(&own.medium)?, own.holder.holding().holds))
    }

    /// Follows the managers of the media of this node, and keeps the ledgers of its own.
    pub(in crate::control) fn follow_media(&mut self) {
        if self.contracts.media.links.is_empty() {
            return;
        }
        for _ in 0..STEPS_MAX {
            if !self.step_media() {
                break;
            }
        }
        let media = &mut self.contracts.media;
        let ledgers = media.ledgers.values().map(|ledger| ledger.wake_at(self.now));
        let wants = media.links.values().filter_map(|own| Some(own.wants?.1));
        media.wake = ledgers.chain(wants).min();
    }

    /// Returns true if something has changed.
    fn step_media(&mut self) -> bool {
        let before = self.membership.registry.version(self.me);
        let links: Vec<String> = self.contracts.media.links.keys().cloned().collect();
        links.iter().for_each(|link| self.follow_medium(link));
        let media = self.contracts.media.links.values();
        let media: BTreeSet<String> = media.map(|own| own.medium.name.clone()).collect();
        media.iter().for_each(|name| self.manage(name));
        self.membership.registry.version(self.me) != before
    }

    /// Lets a link of this node follow its manager, and announces its rate and its needs.
    fn follow_medium(&mut self, link: &str) {
        let present = self.membership.hops.values().any(|hop| hop.link_name == link);
        let now = self.now;
        let Self { me, ref membership, ref mut contracts, .. } = *self;
        let (links, reservations) = (&contracts.admission.links, &contracts.admission.reservations);
        let Some(own) = contracts.media.links.get_mut(link) else { return };
        let members = Members::of(&membership.registry, &own.medium.name);
        let key = (me, own.index);
        let capacity = own.medium.capacity.bits_per_s();
        if !present {
            if std::mem::take(&mut own.present) {
                own.holder.lose_neighbours(least_rate(capacity));
                (own.wants, own.need) = (None, (Amounts::default(), 0));
                let bits = own.holder.holding().holds;
                self.announce(Change::Remove(EntryKey::Medium(key.1)), None);
                self.set_rate(link, bits);
            }
            return;
        }
        let most = links.nominal(link).unwrap_or(own.medium.capacity).bits_per_s();
        let returns = !std::mem::replace(&mut own.present, true);
        if returns {
            let capacity = members.capacity().map_or(capacity, |it| it.min(capacity));
            own.holder.lower(least_rate(capacity));
        }
        let holder = &mut own.holder;
        let reserved = links.reserved(reservations, link);
        if own.need.0 != reserved {
            own.need = (reserved, links.least(reservations, link));
        }
        own.wants = own.wants.filter(|(bits, until)| now < *until && *bits > own.need.1);
        let before = holder.holding().holds;
        holder.set_need(own.need.1, own.wants.map_or(0, |(bits, _)| bits));
        holder.set_most(most);
        let manager = members.manager().map_or(me, |node| node.min(me));
        holder.follow(manager, members.allotments_of(manager));
        let holding = holder.holding();
        let allotments = membership.registry.record(me).and_then(|it| it.media.get(&key.1));
        let allotments = allotments.and_then(|it| it.allotments.clone());
        let medium = own.medium.clone();
        if returns || holding.holds != before {
            self.set_rate(link, holding.holds);
        }
        self.announce_medium(
            key,
            MediumLink { medium, link: link.to_owned(), holding, allotments },
        );
    }

    /// Keeps the ledger of a medium if this node is its manager.
    fn manage(&mut self, name: &str) {
        let Self { me, now, ref membership, ref mut contracts, .. } = *self;
        let members = Members::of(&membership.registry, name);
        let media = &mut contracts.media;
        let first = members.first().filter(|(key, _)| key.0 == me);
        // An entry that is not the first one of a manager has no allotments.
        let is_first = |key| first.is_some_and(|(it, _)| it == key);
        let others =
            members.of_node(me).filter(|(key, it)| !is_first(*key) && it.allotments.is_some());
        let mut changed: Vec<(LinkKey, MediumLink)> =
            others.map(|(key, it)| (key, MediumLink { allotments: None, ..it.clone() })).collect();
        if let Some(((key, link), capacity)) = first.zip(members.capacity()) {
            let last = media.last.entry(name.to_owned()).or_default();
            let new = || Ledger::new(now, me, *last);
            let ledger = media.ledgers.entry(name.to_owned()).or_insert_with(new);
            ledger.follow(now, capacity, &members.holdings());
            *last = ledger.last();
            changed
                .push((key, MediumLink { allotments: Some(ledger.allotments()), ..link.clone() }));
        } else {
            media.ledgers.remove(name);
        }
        changed.into_iter().for_each(|(key, link)| self.announce_medium(key, link));
    }

    fn announce_medium(&mut self, (_, index): LinkKey, link: MediumLink) {
        let record = self.membership.registry.record(self.me);
        if record.and_then(|record| record.media.get(&index)) != Some(&link) {
            self.announce(Change::Medium(index, Box::new(link)), None);
        }
    }

    /// Sets the rate of a link. Its pacer follows before other nodes know.
    fn set_rate(&mut self, link: &str, bits: u64) {
        self.allot(link, bits);
        self.follow_links();
    }

    fn allot(&mut self, link: &str, bits: u64) {
        let Ok(capacity) = Capacity::from_bits_per_s(bits.max(8)) else { return };
        self.contracts.admission.links.set_allotment(link, capacity);
        self.outputs.push_back(ControlOutput::Allotted { link: link.to_owned(), capacity });
    }
}
