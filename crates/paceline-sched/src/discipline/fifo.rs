//! First in, first out.

use super::rules::{Arrival, Rules as CoreRules, owed};
use super::stream::Stream;
use super::{ServiceClass, Terms};

/// Orders heads by arrival, with or without a contract, and at equal arrival by announcement.
///
/// Samples are not interleaved: the earliest arrival stays first, whether its service has begun or not.
#[derive(Clone, Debug)]
pub(super) struct Rules;

impl CoreRules for Rules {
    /// The rank of the head.
    type Own = u128;

    fn open(&mut self, terms: &Terms) -> u128 {
        debug_assert!(terms.class != ServiceClass::Background || terms.contract().is_none());
        0
    }

    #[inline]
    fn announced(&mut self, stream: &mut Stream<u128>, Arrival { arrived, serial, .. }: Arrival) {
        stream.own = owed(u128::from(arrived.as_nanos()) << 62 | u128::from(serial));
    }

    #[inline]
    fn rank(&mut self, stream: &mut Stream<u128>) -> Option<u128> {
        Some(stream.own)
    }
}
