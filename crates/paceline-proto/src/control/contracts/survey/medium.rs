//! Links on shared media in surveys: a request may get the rate that the other links of the medium leave.

use super::room::{Leg, Room};
use super::{Cow, Half};
use crate::control::Control;
use crate::control::contracts::least::least;
use crate::control::contracts::medium::Prospective;
use crate::control::data::refusal::{Refusal, RefusalReason};

impl Control {
    /// Returns the rates of the link of a pair's path, if it is on a shared medium.
    fn medium_of(&self, leg: &Leg<'_>) -> Option<(&str, Prospective)> {
        let link = leg.hop?.link_name.as_str();
        Some((self.contracts.media.name_of(link)?, self.prospective(link)?))
    }

    /// Returns this node's link of a pair's path with the rate that it could get ([`Self::room_now`]).
    pub(super) fn room(
        &self,
        half: &Half,
        leg: &Leg<'_>,
        other: Option<&Half>,
    ) -> Option<Room<'_>> {
        let most = self.medium_of(leg).map(|(_, of)| of.most);
        self.room_at(half, leg, other, most)
    }

    /// Returns this node's link of a pair's path at a rate of `bits` per second.
    fn room_at(
        &self,
        half: &Half,
        leg: &Leg<'_>,
        other: Option<&Half>,
        bits: Option<u64>,
    ) -> Option<Room<'_>> {
        let room = self.room_now(half, leg, other)?;
        let Some((bits, hop)) = bits.zip(leg.hop) else { return Some(room) };
        let links = &self.contracts.admission.links;
        let link = links.admission_at(&hop.link_name, &room.link, bits)?;
        Some(Room { link: Cow::Owned(link), ..room })
    }

    fn grants_at(&self, half: &Half, leg: &Leg<'_>, other: Option<&Half>, bits: u64) -> bool {
        self.room_at(half, leg, other, Some(bits)).is_some_and(|room| room.of(leg).is_granted())
    }

    /// Returns the refusal of a link for lack of room. The medium is the reason if the link itself would carry the request.
    pub(super) fn refusal_of_medium(
        &self,
        (half, leg, other): (&Half, &Leg<'_>, Option<&Half>),
        refusal: Refusal,
    ) -> Refusal {
        let lacks = matches!(
            refusal.reason,
            RefusalReason::Capacity | RefusalReason::Deadlines { .. } | RefusalReason::Delay { .. }
        );
        let Some((name, of)) = self.medium_of(leg).filter(|_| lacks) else { return refusal };
        let fits = |bits| self.grants_at(half, leg, other, bits);
        if of.most >= of.nominal || !fits(of.nominal) {
            return refusal;
        }
        let needed = of.others.saturating_add(least(of.most, of.nominal, fits));
        let reason = RefusalReason::Medium { needed, available: of.all };
        Refusal { class: name.to_owned(), reason, ..refusal }
    }
}
