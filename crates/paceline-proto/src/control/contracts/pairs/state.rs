//! The state of the requests for one reservation.

use super::Basis;
use core::mem;
use paceline_admit::reserve::{Key, Request};
use paceline_sched::Instant;

/// A request for a reservation.
#[derive(Clone, Debug)]
pub(in crate::control::contracts) struct Asked {
    pub(in crate::control::contracts) key: Option<Key>,
    pub(in crate::control::contracts) basis: Basis,
    pub(in crate::control::contracts) request: Request,
    /// The request that the path has reserved, and its basis.
    pub(in crate::control::contracts) granted: Option<(Request, Basis)>,
    /// The earliest instant for a request over another path.
    pub(in crate::control::contracts) retry_at: Instant,
}

impl Asked {
    /// Returns the first request of a pair.
    pub(in crate::control::contracts) const fn new(basis: Basis, request: Request) -> Self {
        Self { key: None, basis, request, granted: None, retry_at: Instant::ZERO }
    }

    /// Returns true if a refusal of the last request leaves an earlier grant in force.
    pub(in crate::control::contracts) fn keeps_granted(&self) -> bool {
        self.keeps_granted_from(&self.basis)
    }

    /// Returns true if a refusal of a request on `basis` leaves an earlier grant in force. The request must
    /// be a later one, without [`SubscriptionSpec::or_stop`](crate::control::SubscriptionSpec::or_stop): the grant of a
    /// change that another path refused ends with the change. It must be the subscription's own: without the publisher's,
    /// the changed stream is carried as best effort.
    pub(in crate::control::contracts) fn keeps_granted_from(&self, basis: &Basis) -> bool {
        let before = self.granted.as_ref().map(|(_, before)| before.request.revision);
        before.is_some_and(|before| before < basis.request.revision)
            && !basis.request.or_stop
            && basis.request.wants_contract()
    }
}

/// The state of the requests for one reservation.
#[derive(Debug, Default)]
pub(in crate::control::contracts) enum PairState {
    /// Nothing is requested: the pair is new, or waits for its turn or for its opposite contract.
    #[default]
    Wanted,
    /// The path has not answered the last request.
    Asking(Asked),
    /// The path has reserved the last request.
    Granted(Asked),
    /// The path has refused the last request, or does not answer. With the request while the survey of this number asks the
    /// nodes of the path for the best possible contract; an earlier request may stay reserved until then.
    Refused(Option<(Asked, u64)>),
    /// The reservation was released because nothing was published.
    Idle,
}

impl PairState {
    /// Returns the last request, unless it has ended.
    pub(in crate::control::contracts) const fn asked(&self) -> Option<&Asked> {
        match self {
            Self::Asking(asked) | Self::Granted(asked) | Self::Refused(Some((asked, _))) => {
                Some(asked)
            }
            Self::Wanted | Self::Refused(None) | Self::Idle => None,
        }
    }

    pub(in crate::control::contracts) const fn asked_mut(&mut self) -> Option<&mut Asked> {
        match self {
            Self::Asking(asked) | Self::Granted(asked) | Self::Refused(Some((asked, _))) => {
                Some(asked)
            }
            Self::Wanted | Self::Refused(None) | Self::Idle => None,
        }
    }

    /// Ends the last request, and returns it.
    pub(in crate::control::contracts) fn take_asked(&mut self) -> Option<Asked> {
        self.asked()?;
        match mem::take(self) {
            Self::Asking(asked) | Self::Granted(asked) | Self::Refused(Some((asked, _))) => {
                Some(asked)
            }
            Self::Wanted | Self::Refused(None) | Self::Idle => None,
        }
    }

    /// Returns true if the last request has no answer.
    pub(in crate::control::contracts) const fn is_asking(&self) -> bool {
        matches!(self, Self::Asking(_))
    }

    /// Returns the last request if the path has reserved it.
    pub(in crate::control::contracts) const fn granted(&self) -> Option<&Asked> {
        match self {
            Self::Granted(asked) => Some(asked),
            Self::Wanted | Self::Asking(_) | Self::Refused(_) | Self::Idle => None,
        }
    }

    /// Returns the number of the survey about the last request.
    pub(in crate::control::contracts) const fn survey(&self) -> Option<u64> {
        match self {
            Self::Refused(Some((_, number))) => Some(*number),
            Self::Wanted
            | Self::Asking(_)
            | Self::Granted(_)
            | Self::Refused(None)
            | Self::Idle => None,
        }
    }

    /// Begins a request, or a change of the reserved one.
    pub(in crate::control::contracts) fn ask(&mut self, request: Request, basis: Basis) {
        let asked = match self.take_asked() {
            Some(asked) => Asked { request, basis, ..asked },
            None => Asked::new(basis, request),
        };
        *self = Self::Asking(asked);
    }

    /// Notes that the path has reserved the last request. Returns false if there is none.
    pub(in crate::control::contracts) fn grant(&mut self) -> bool {
        let Some(mut asked) = self.take_asked() else { return false };
        asked.granted = Some((asked.request.clone(), asked.basis.clone()));
        *self = Self::Granted(asked);
        true
    }

    /// Returns to the reserved request, which stays in force although the last one was refused, and waits until `retry_at`.
    pub(in crate::control::contracts) fn keep(
        &mut self,
        (request, basis): (Request, Basis),
        retry_at: Instant,
    ) {
        if let Some(asked) = self.take_asked() {
            *self = Self::Granted(Asked { request, basis, retry_at, ..asked });
        }
    }

    /// Notes that the path has refused the last request, and a survey begins.
    pub(in crate::control::contracts) fn refuse(&mut self, survey: u64) {
        if let Some(asked) = self.take_asked() {
            *self = Self::Refused(Some((asked, survey)));
        }
    }

    /// Abandons the last request, and returns its basis. If the path still reserves an earlier request, that one becomes
    /// the current request again.
    pub(in crate::control::contracts) fn give_up(&mut self) -> Option<Basis> {
        let mut asked = self.take_asked()?;
        let Some((request, before)) = asked.granted.clone() else { return Some(asked.basis) };
        let basis = mem::replace(&mut asked.basis, before);
        asked.request = request;
        *self = Self::Granted(asked);
        Some(basis)
    }
}
