//! What is carried without the promise that was asked for, and why.

use super::registry::PairKey;
use super::routes::Pair;
use super::{Control, Output};
use core::fmt;
use std::collections::BTreeMap;

/// Why nothing is promised of a stream that is carried all the same, as best effort, although a promise was asked for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Unpromised {
    /// No link of its path has a capacity: nothing is in its way, and nothing could be reserved.
    NoCapacity,
    /// Its publisher does not say how often it publishes, so nobody knows what to reserve. It never will by itself.
    RateUnknown,
    /// Nobody knows how long its samples are. The first one tells, and then its path is asked.
    SizeUnknown,
}

impl Unpromised {
    /// A link of the path may be too thin for it and nobody can say: who requires a promise has been told no.
    #[must_use]
    pub const fn is_no(self) -> bool {
        matches!(self, Self::RateUnknown)
    }
}

impl fmt::Display for Unpromised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCapacity => "no link of its path has a capacity",
            Self::RateUnknown => {
                "how often it publishes is not known; the publisher can say it (pub --hz, or a period)"
            }
            Self::SizeUnknown => {
                "how long its samples are is not known before the first; then its path is asked"
            }
        })
    }
}

impl Pair<'_> {
    /// Why nothing is promised of it, if a promise is asked for.
    pub(super) fn unpromised(&self) -> Option<Unpromised> {
        let ask = self.ask()?;
        let period = self.travelling().rate.period(self.spec.period);
        if ask.owes_nothing() {
            None
        } else if !self.split().is_limited() {
            Some(Unpromised::NoCapacity)
        } else if period.is_none_or(|period| period.is_zero()) {
            Some(Unpromised::RateUnknown)
        } else {
            self.spec.bytes_max.is_none().then_some(Unpromised::SizeUnknown)
        }
    }
}

impl Control {
    /// Tells local subscriptions of what they hear without the promise that they asked for, if that is new or other.
    pub(super) fn tell_unpromised(&mut self, unpromised: BTreeMap<PairKey, Unpromised>) {
        let heard = |(subscription, publisher): &PairKey| {
            self.heard.get(subscription).is_some_and(|all| all.contains(publisher))
        };
        let mut now = unpromised;
        now.retain(|key, _| heard(key) && !self.granted.contains_key(key));
        for (&(subscription, publisher), &why) in &now {
            if self.unpromised.get(&(subscription, publisher)) != Some(&why) {
                self.outputs.push_back(Output::Unpromised { subscription, publisher, why });
            }
        }
        self.unpromised = now;
    }
}
