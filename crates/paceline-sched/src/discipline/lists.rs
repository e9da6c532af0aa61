//! The order of streams on a link: which is served next, and when time alone changes a stream.

use super::StreamIndex;
use super::rules::{CLASS, Rules};
use super::stream::{Clauses, Place, Stream};
use crate::time::Instant;
use crate::tournament::{Key, Tournament};

/// The class of heads whose period begins soon.
const AHEAD: u128 = 2 << CLASS;
/// The round robin of best effort and early heads: behind all heads of the class above.
const ROUND: u128 = AHEAD | 1 << (CLASS - 1);
/// The class after all others.
const BACKGROUND: u128 = 3 << CLASS;

/// The two tournaments of a link and its round-robin counter.
#[derive(Clone, Debug)]
pub(super) struct Lists {
    pub(super) ranks: Tournament<u128>,
    /// The instants at which time alone changes a stream.
    pub(super) events: Tournament<u64>,
    pub(super) turns: u64,
}

impl Lists {
    /// Lists the head of `stream`, which has the index `index`, according to its place.
    #[inline(never)]
    pub(super) fn list<R: Rules>(
        &mut self,
        rules: &mut R,
        (stream, clauses): (&mut Stream<R::Own>, &Clauses),
        index: StreamIndex,
    ) {
        let rank = match stream.place {
            Place::Early => None,
            Place::Ahead => Some(ahead(stream, clauses)),
            _ if stream.background() => {
                stream.place = Place::Background;
                None
            }
            Place::Demoted => None,
            Place::Nowhere | Place::Ranked | Place::Round | Place::Background => {
                let rank = rules.rank(stream);
                stream.place = if rank.is_some() { Place::Ranked } else { Place::Round };
                rank
            }
        };
        let rank = rank.unwrap_or_else(|| {
            self.turns += 1;
            turn(stream.place, self.turns)
        });
        let event = stream.changes_at(rules.expires_at(stream, clauses), clauses).as_nanos();
        if stream.suspended {
            self.ranks.set(index.0, Key::ABSENT);
            self.events.set(index.0, event);
            return;
        }
        self.ranks.set(index.0, rank);
        self.events.set(index.0, event);
    }

    /// Lists a head with `rank`, and with `event` as the instant at which time alone changes it.
    #[inline(always)]
    pub(super) fn put(&mut self, index: StreamIndex, rank: u128, event: Instant) {
        self.ranks.set(index.0, rank);
        self.events.set(index.0, event.as_nanos());
    }
}

/// Returns the rank of a head whose period begins soon; the earliest release is first.
#[inline]
pub(super) fn ahead<O>(stream: &Stream<O>, clauses: &Clauses) -> u128 {
    AHEAD | u128::from(stream.release(clauses).as_nanos())
}

/// Returns the rank of a head in round robin. The turn counter increases, so a new head is last.
pub(super) const fn turn(place: Place, turn: u64) -> u128 {
    match place {
        Place::Background => BACKGROUND | turn as u128,
        Place::Nowhere
        | Place::Ranked
        | Place::Ahead
        | Place::Early
        | Place::Round
        | Place::Demoted => ROUND | turn as u128,
    }
}
