//! Streams that are carried without the requested promise, and the reasons.

use super::registry::PairKey;
use super::routes::Pair;
use super::{Control, Output};
use core::fmt;
use std::collections::BTreeMap;

/// The reason why a stream is carried with best effort although a promise was requested.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Unpromised {
    /// No link of its path has a capacity: nothing limits the stream, and nothing can be reserved.
    NoCapacity,
    /// Its publisher declares no rate, so the required reservation is unknown. This does not change by
    /// itself.
    RateUnknown,
    /// The size of its samples is unknown. After the first sample, a reservation is requested.
    SizeUnknown,
}

impl Unpromised {
    /// Returns true if a link of the path may lack capacity without any means to find out. For a subscription
    /// that requires a promise, this is a refusal.
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
                "its publishing rate is unknown; declare it at the publisher (pub --hz, or a period)"
            }
            Self::SizeUnknown => {
                "its sample size is unknown before the first sample; its path is asked after that"
            }
        })
    }
}

impl Pair<'_> {
    /// Returns the reason why nothing is promised, if a promise is requested.
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
    /// Reports streams without the requested promise to local subscriptions, if new or changed.
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
