//! The delays and rates of the last ten minutes, one value per second, for the charts of the page.

use super::api::State;
use paceline_tool::show::micros;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// The number of kept seconds.
const SECONDS: usize = 600;
/// The most subscriptions, and the most links, whose history is kept.
const ROWS_MAX: usize = 256;

/// One value per second, the newest last.
type Values = VecDeque<u64>;

/// The history of a subscription. All lists have the same length.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct SubscriptionPast {
    /// Mean age at delivery in microseconds; 0 if no sample arrived.
    #[cfg_attr(test, ts(as = "Vec<u64>"))]
    mean_us: Values,
    /// Largest age at delivery in microseconds.
    #[cfg_attr(test, ts(as = "Vec<u64>"))]
    max_us: Values,
    /// Delivered samples per second, in thousandths.
    #[cfg_attr(test, ts(as = "Vec<u64>"))]
    rate_millihertz: Values,
}

/// The history of a link. All lists have the same length.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct LinkPast {
    #[cfg_attr(test, ts(as = "Vec<u64>"))]
    use_bits_per_s: Values,
    #[cfg_attr(test, ts(as = "Vec<u64>"))]
    reserved_bits_per_s: Values,
    /// Capacity, as configured or as measured; 0 without one.
    #[cfg_attr(test, ts(as = "Vec<u64>"))]
    capacity_bits_per_s: Values,
    /// Round trips in microseconds.
    #[cfg_attr(test, ts(as = "Vec<u64>"))]
    delay_us: Values,
    /// Their jitter in microseconds.
    #[cfg_attr(test, ts(as = "Vec<u64>"))]
    jitter_us: Values,
    /// Lost frames per million.
    #[cfg_attr(test, ts(as = "Vec<u64>"))]
    loss_ppm: Values,
}

/// The answer of `/api/v1/history`.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Past {
    /// By id of the subscription.
    subscriptions: BTreeMap<String, SubscriptionPast>,
    /// By id of the node and name of the link, with a space between them.
    links: BTreeMap<String, LinkPast>,
}

/// The recent past of everything that the server shows.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<Past>);

impl History {
    /// Adds the state of this second. What has ended is forgotten.
    pub(super) fn take(&self, state: &State) {
        let mut past = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = core::mem::take(&mut *past);
        for node in &state.nodes {
            for subscription in node.subscriptions.iter() {
                if past.subscriptions.len() >= ROWS_MAX {
                    break;
                }
                let id = subscription.id.to_string();
                let mut row = before.subscriptions.remove(&id).unwrap_or_default();
                push(&mut row.mean_us, subscription.age_mean.map_or(0, micros));
                let arrived = subscription.age_mean.is_some();
                push(&mut row.max_us, if arrived { micros(subscription.age_max) } else { 0 });
                push(&mut row.rate_millihertz, subscription.rate_millihertz);
                past.subscriptions.insert(id, row);
            }
            for link in node.links.iter() {
                if past.links.len() >= ROWS_MAX {
                    break;
                }
                let key = format!("{} {}", node.id, link.name);
                let mut row = before.links.remove(&key).unwrap_or_default();
                push(&mut row.use_bits_per_s, link.use_bits_per_s.unwrap_or_default());
                push(&mut row.reserved_bits_per_s, link.reserved_bits_per_s);
                push(&mut row.capacity_bits_per_s, link.capacity_bits_per_s.unwrap_or_default());
                push(&mut row.delay_us, micros(link.round_trip));
                push(&mut row.jitter_us, micros(link.jitter));
                push(&mut row.loss_ppm, per_million(link.loss.unwrap_or_default()));
                past.links.insert(key, row);
            }
        }
    }

    /// Returns the recent past.
    pub(super) fn past(&self) -> Past {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn push(values: &mut Values, value: u64) {
    if values.len() >= SECONDS {
        values.pop_front();
    }
    values.push_back(value);
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range after clamp")]
fn per_million(part: f64) -> u64 {
    (part * 1e6).clamp(0.0, 1e6) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_minutes_are_kept() {
        let mut values = Values::new();
        (0..1_000).for_each(|value| push(&mut values, value));
        assert_eq!((values.len(), values.front(), values.back()), (600, Some(&400), Some(&999)));
        assert_eq!((per_million(0.049_999_6), per_million(f64::NAN)), (49_999, 0));
    }
}
