//! The subscriptions that clients display, each with its observation, until the requests stop.

use paceline::status::SubscriptionId;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::{Duration, Instant};

/// The largest number of subscriptions observed at a time.
const WATCHED_MAX: usize = 16;

/// The reason for a missing preview or missing values.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NoPicture {
    /// The node has no such subscription.
    Unknown,
    /// Too many subscriptions are observed.
    Busy,
    /// The samples cannot be displayed.
    NotShown(String),
    /// The node does not answer.
    NoAnswer(String),
}

/// The observed subscriptions, at most 16.
pub(super) struct Watched<T>(BTreeMap<SubscriptionId, (T, Instant)>);

impl<T> Default for Watched<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Watched<T> {
    /// Returns the observation of a subscription. `open` begins it at the first request.
    ///
    /// # Errors
    /// Returns [`NoPicture::Busy`] if too many others are observed, or the error of `open`.
    pub(super) fn get(
        &mut self,
        id: SubscriptionId,
        open: impl FnOnce() -> Result<T, NoPicture>,
    ) -> Result<&mut T, NoPicture> {
        let is_full = self.0.len() >= WATCHED_MAX;
        let (watched, asked) = match self.0.entry(id) {
            Entry::Occupied(place) => place.into_mut(),
            Entry::Vacant(_) if is_full => return Err(NoPicture::Busy),
            Entry::Vacant(place) => place.insert((open()?, Instant::now())),
        };
        *asked = Instant::now();
        Ok(watched)
    }

    /// Ends an observation.
    pub(super) fn remove(&mut self, id: SubscriptionId) {
        self.0.remove(&id);
    }

    /// Ends the observations that had no request for the time `unwatched`, and those that `ended`.
    pub(super) fn forget(&mut self, unwatched: Duration, ended: impl Fn(&T) -> bool) {
        self.0.retain(|_, (watched, asked)| !ended(watched) && asked.elapsed() < unwatched);
    }

    /// Returns the observations.
    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        self.0.values().map(|(watched, _)| watched)
    }
}

/// Parses a subscription's id.
///
/// # Errors
/// Returns [`NoPicture::Unknown`] if it is none.
pub(super) fn id(text: &str) -> Result<SubscriptionId, NoPicture> {
    text.parse().map_err(|_| NoPicture::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::status::NodeId;

    #[test]
    fn the_number_of_observed_subscriptions_is_limited() {
        let id = |index| SubscriptionId { node: NodeId(1), index };
        let mut watched = Watched::default();
        for index in 0..16 {
            assert_eq!(watched.get(id(index), || Ok(index)), Ok(&mut { index }));
        }
        assert_eq!(watched.get(id(16), || Ok(16)), Err(NoPicture::Busy));
        assert_eq!(watched.get(id(3), || Err(NoPicture::Unknown)), Ok(&mut 3), "it is observed");
        watched.forget(Duration::from_secs(60), |index| *index == 3);
        assert_eq!(watched.get(id(16), || Err(NoPicture::Unknown)), Err(NoPicture::Unknown));
        assert_eq!(watched.all().count(), 15);
        watched.forget(Duration::ZERO, |_| false);
        assert_eq!(watched.all().count(), 0);
    }
}
