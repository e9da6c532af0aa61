//! Static priority, as most systems offer it today.

use super::Terms;
use super::rules::{Arrival, Rules as CoreRules, owed};
use super::stream::Stream;

/// The position of the level in a rank, above the instant of arrival and a part of the serial number.
const LEVEL: u32 = 94;
const ARRIVED: u32 = 30;
/// The rank of a stream without a level; such a stream does not rank by its rate.
const NO_LEVEL: u128 = u128::MAX;

/// Orders heads by level, lowest first, and by arrival within a level.
#[derive(Clone, Debug)]
pub(super) struct Rules;

impl CoreRules for Rules {
    /// The rank of the head, or [`NO_LEVEL`].
    type Own = u128;

    fn open(&mut self, terms: &Terms) -> u128 {
        let due = terms.contract().map(|contract| contract.deadline.as_micros());
        let level = terms.priority.or(due.map(|due| u32::try_from(due).unwrap_or(u32::MAX)));
        level.map_or(NO_LEVEL, |level| u128::from(level) << LEVEL)
    }

    #[inline]
    fn announced(&mut self, stream: &mut Stream<u128>, Arrival { arrived, serial, .. }: Arrival) {
        if stream.own == NO_LEVEL {
            return;
        }
        let level = stream.own >> LEVEL << LEVEL;
        let serial = u128::from(serial) & ((1 << ARRIVED) - 1);
        stream.own = owed(level | u128::from(arrived.as_nanos()) << ARRIVED | serial);
    }

    #[inline]
    fn rank(&mut self, stream: &mut Stream<u128>) -> Option<u128> {
        (stream.ranks() && stream.own != NO_LEVEL).then_some(stream.own)
    }
}
