//! This node's request for a pair.

use super::Basis;
use paceline_admit::reserve::{Key, Request};
use paceline_sched::Instant;

/// The state of a pair's last request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Standing {
    /// The path has not answered yet.
    Pending,
    /// The path has reserved it.
    Granted,
    /// It was refused, and the survey with this number asks the nodes of the path for the best possible contract.
    Surveyed(u64),
}

/// This node's request for a pair.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) key: Option<Key>,
    pub(super) basis: Basis,
    pub(super) request: Request,
    pub(super) standing: Standing,
    /// The request that the path has reserved, and its basis.
    pub(super) granted: Option<(Request, Basis)>,
    /// The earliest instant for a request over another path.
    pub(super) retry_at: Instant,
}

impl Asked {
    /// Returns a request in transit.
    pub(super) const fn new(basis: Basis, request: Request) -> Self {
        let (standing, granted, retry_at) = (Standing::Pending, None, Instant::ZERO);
        Self { key: None, basis, request, standing, granted, retry_at }
    }

    /// Returns true if a refusal of the last request leaves an earlier grant in force.
    pub(super) fn keeps_granted(&self) -> bool {
        self.keeps_granted_from(&self.basis)
    }

    /// Returns true if a refusal of a request on `basis` leaves an earlier grant in force. The request must
    /// be a later one, without [`SubscriptionSpec::or_stop`]: the grant of a change that another path
    /// refused ends with the change. It must be the subscription's own: without the publisher's, the changed stream
    /// is carried as best effort.
    pub(super) fn keeps_granted_from(&self, basis: &Basis) -> bool {
        let before = self.granted.as_ref().map(|(_, before)| before.request.revision);
        before.is_some_and(|before| before < basis.request.revision)
            && !basis.request.or_stop
            && basis.request.wants_contract()
    }
}
