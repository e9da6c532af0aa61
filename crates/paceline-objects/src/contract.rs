//! The service of one object for one participant, and its mapping to messages and packets.
//!
//! Paper: West and Schwan 1997, sections 3.1 and 3.2.

use paceline_sched::Duration;
use thiserror::Error;

/// The service of one object for one participant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ObjectContract {
    /// The greatest number of updates in [`Self::per`], `n_max` of the paper: from 1 to 1,000,000.
    pub max_updates: u32,
    /// The time in which they are counted, `t` of the paper: from 1 ms to 1 h. Two updates are at least
    /// `per / max_updates` apart, which is at least 1 ms.
    pub per: Duration,
    /// The longest time between two updates, also of an object that did not change: the minimum rate. At least the
    /// gap, at most 1 h.
    pub refresh: Duration,
    /// The size of the object's state in bytes, `s` of the paper: from 1 to 16 MiB.
    pub bytes: u32,
    /// The longest time from a change until its replica has it, `δ` of the paper, for updates that are not held back
    /// by the gap: from 1 ms to 1 min.
    pub delay: Duration,
    /// The least share of the state that an update carries, `f` of the paper, in thousandths: from 1 to 1,000.
    pub fidelity_permille: u16,
}

impl ObjectContract {
    /// The longest delay: 1 min.
    pub const DELAY_MAX: Duration = Duration::from_secs(60);
    /// The largest state: 16 MiB.
    pub const BYTES_MAX: u32 = 16 << 20;

    /// Returns a contract of `updates` per second, each complete.
    #[must_use]
    pub fn per_second(updates: u32, bytes: u32, delay: impl Into<Duration>) -> Self {
        Self {
            max_updates: updates,
            per: Duration::from_secs(1),
            refresh: Duration::from_secs(1),
            bytes,
            delay: delay.into(),
            fidelity_permille: 1_000,
        }
    }

    /// Returns the least time between two updates: `t / n_max`, rounded up.
    #[must_use]
    pub const fn gap(&self) -> Duration {
        Duration::from_nanos(self.per.as_nanos().div_ceil(if self.max_updates == 0 {
            1
        } else {
            self.max_updates as u64
        }))
    }

    /// Returns the time in which the updates of all objects leave if they are due together: a quarter of the delay, and
    /// at most the gap. It is debited from the delay.
    #[must_use]
    pub fn spread(&self) -> Duration {
        self.gap().min(self.delay.mul_div(1, 4))
    }

    /// Checks the values.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn check(&self) -> Result<(), ObjectContractError> {
        let millisecond = Duration::from_millis(1);
        let hour = Duration::from_secs(3_600);
        if self.max_updates == 0 || self.max_updates > 1_000_000 {
            Err(ObjectContractError::MaxUpdates(self.max_updates))
        } else if self.per < millisecond || self.per > hour {
            Err(ObjectContractError::Per(self.per))
        } else if self.gap() < millisecond {
            Err(ObjectContractError::Gap { max_updates: self.max_updates, per: self.per })
        } else if self.refresh < self.gap() || self.refresh > hour {
            Err(ObjectContractError::Refresh { refresh: self.refresh, gap: self.gap() })
        } else if self.bytes == 0 || self.bytes > Self::BYTES_MAX {
            Err(ObjectContractError::Bytes(self.bytes))
        } else if self.delay < millisecond || self.delay > Self::DELAY_MAX {
            Err(ObjectContractError::Delay(self.delay))
        } else if self.fidelity_permille == 0 || self.fidelity_permille > 1_000 {
            Err(ObjectContractError::Fidelity(self.fidelity_permille))
        } else {
            Ok(())
        }
    }
}

/// The error of a value of an [`ObjectContract`] that is out of range.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum ObjectContractError {
    /// The number of updates.
    #[error("max_updates {0}: must be from 1 to 1000000, such as 10")]
    MaxUpdates(u32),
    /// The time in which updates are counted.
    #[error("per {0}: must be from 1ms to 1h, such as 1s")]
    Per(Duration),
    /// The gap, `per / max_updates`.
    #[error("max_updates {max_updates} per {per}: must be at least 1ms apart, such as 1000 per 1s")]
    Gap {
        /// The number of updates.
        max_updates: u32,
        /// The time in which they are counted.
        per: Duration,
    },
    /// The longest time between two updates.
    #[error("refresh {refresh}: must be from {gap} (per / max_updates) to 1h, such as 1s")]
    Refresh {
        /// The value.
        refresh: Duration,
        /// The least permitted value.
        gap: Duration,
    },
    /// The size.
    #[error("bytes {0}: must be from 1 to 16777216, such as 64")]
    Bytes(u32),
    /// The delay.
    #[error("delay {0}: must be from 1ms to 1min, such as 100ms")]
    Delay(Duration),
    /// The fidelity.
    #[error("fidelity of {0}/1000: must be from 1 to 1000, such as 1000")]
    Fidelity(u16),
}

/// The measured times of the modules at both ends, which are debited from an object's delay.
///
/// Paper: West and Schwan 1997, sections 3.1 and 3.2, which debits twice the times of one end,
/// `δ_n ≈ δ − 2 (d_c + d_n)`. Here both ends measure their own.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DelayParts {
    /// Consistency: the greatest time to decide on updates at the owner, `d_c` there.
    pub deciding: Duration,
    /// Policing and fragmentation: the greatest time to choose the updates of messages and to write their fragments.
    pub fragmenting: Duration,
    /// The greatest time of all modules of the owner together, with passing the fragments to the links: `d_c + d_n`
    /// there. It is less than the sum of the greatest times of each.
    pub sending: Duration,
    /// Error control and consistency: the greatest time to read a fragment at the observer and apply it, `d_n + d_c`
    /// there.
    pub observer: Duration,
}

impl DelayParts {
    /// Returns the time that remains for the network, `δ_n`, after both ends and [`ObjectContract::spread`]; `None` if
    /// nothing remains, and the contract cannot be kept.
    #[must_use]
    pub fn network(&self, each: &ObjectContract) -> Option<Duration> {
        let spent = self.ends().saturating_add(each.spread());
        let left = each.delay.as_nanos().checked_sub(spent.as_nanos());
        left.filter(|left| *left > 0).map(Duration::from_nanos)
    }

    /// Returns the time of all modules at both ends.
    #[must_use]
    pub fn ends(&self) -> Duration {
        self.sending.saturating_add(self.observer)
    }
}

/// The sizes of an owner's updates, from which the traffic of a contract follows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UpdateSizes {
    /// The greatest number of groups of its schemas.
    pub groups: u32,
    /// At least the greatest number of encoded bytes of one group.
    pub largest_group: u32,
    /// The greatest size of its fragments with their headers, `l` of the paper, in bytes.
    pub fragment_bytes: u32,
}

/// The bytes of headers, in addition to the state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HeaderSizes {
    /// Of a message or fragment.
    pub message: u64,
    /// Of an update.
    pub update: u64,
    /// Of a group.
    pub group: u64,
}

/// The traffic that a contract permits an owner to send to an observer.
///
/// Promised messages leave at least [`Self::spacing`] apart, and each carries the updates that are due then. So the
/// traffic is at most [`Self::burst`] and [`Self::bytes_per_s`], whenever the objects change.
///
/// Paper: West and Schwan 1997, section 3.2: `n_max (l (1 + h) ⌈s/l⌉) / t` for each object. Here the objects share
/// packets. All fragments of a message are sent at once, each with the whole delay `δ_n` of the network, so that none
/// needs the shorter one of the paper's first fragment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ContractTraffic {
    /// Bytes per second.
    pub bytes_per_s: u64,
    /// The bytes that exceed [`Self::bytes_per_s`]: those of one update of each object, less the part that the rate
    /// carries while they leave.
    pub burst: u64,
    /// The largest fragment, in bytes.
    pub largest: u64,
    /// The least time between two fragments.
    pub spacing: Duration,
    /// The greatest number of encoded bytes of the groups of an update.
    pub carried: u64,
    /// The greatest number of groups of an object.
    pub groups: u32,
    /// The greatest number of bytes of a group: one that is larger makes a larger fragment.
    pub group_room: u64,
}

impl ContractTraffic {
    /// Returns the traffic of `objects` with a contract each.
    #[must_use]
    pub fn new(
        each: &ObjectContract,
        objects: usize,
        sizes: &UpdateSizes,
        headers: &HeaderSizes,
    ) -> Self {
        let carried =
            carried(u64::from(each.bytes), u64::from(sizes.largest_group), each.fidelity_permille);
        let limit = u64::from(sizes.fragment_bytes);
        let room = limit.saturating_sub(headers.message).max(1);
        let groups = u64::from(sizes.groups.max(1));
        let state = carried.saturating_add(groups * headers.group);
        let whole = state.saturating_add(headers.update);
        let objects = (objects as u64).max(1);
        // The fragments of one update of each object, their bytes, and those of the longest message.
        let (fragments, bytes, first) = if whole <= room {
            let fragments = objects.div_ceil(room / whole);
            let bytes = objects.saturating_mul(whole);
            (fragments, bytes, (1, bytes.min(room)))
        } else {
            let parts = parts(state, groups, room.saturating_sub(headers.update));
            let each = state.saturating_add(parts * headers.update);
            (objects.saturating_mul(parts), objects.saturating_mul(each), (parts, each))
        };
        let spacing = each.spread().mul_div(1, fragments).max(Duration::from_nanos(1));
        let (first_fragments, first) = first;
        // The updates of a burst leave over this time, in which the sustained rate counts already. Without headers, at
        // most `first` bytes leave at once, `room` more in each spacing, and `bytes` in each gap.
        let lasts = spacing.mul_div(bytes - first, room);
        let counted = u128::from(bytes) * u128::from(lasts.as_nanos());
        let counted = counted / u128::from(each.gap().as_nanos().max(1));
        let burst = bytes.saturating_sub(u64::try_from(counted).unwrap_or(u64::MAX)).max(first);
        let burst = burst.saturating_add(first_fragments.saturating_mul(headers.message));
        let updates = per_second(bytes, each.gap());
        let whole_fragments = per_second(headers.message, spacing);
        Self {
            bytes_per_s: updates.saturating_add(whole_fragments),
            burst,
            largest: burst.min(limit),
            spacing,
            carried,
            groups: sizes.groups,
            group_room: room.saturating_sub(headers.update + headers.group),
        }
    }
}

/// The service of the most important objects of an observer, and the traffic that is reserved for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PromisedService {
    /// The service of each.
    pub each: ObjectContract,
    /// Their greatest number.
    pub objects: usize,
    /// Their traffic.
    pub traffic: ContractTraffic,
}

impl PromisedService {
    /// Returns a service and the traffic that it needs.
    #[must_use]
    pub fn new(
        each: ObjectContract,
        objects: usize,
        sizes: &UpdateSizes,
        headers: &HeaderSizes,
    ) -> Self {
        Self { each, objects, traffic: ContractTraffic::new(&each, objects, sizes, headers) }
    }

    /// Returns whether every update of an object with groups of these sizes is within the traffic.
    #[must_use]
    pub fn covers(&self, group_bytes: &[u32]) -> bool {
        let state = group_bytes.iter().map(|bytes| u64::from(*bytes)).sum();
        let largest = group_bytes.iter().max().copied().unwrap_or(0);
        let most = carried(state, u64::from(largest), self.each.fidelity_permille);
        state <= u64::from(self.each.bytes)
            && group_bytes.len() as u64 <= u64::from(self.traffic.groups)
            && u64::from(largest) <= self.traffic.group_room
            && most <= self.traffic.carried
    }
}

/// Returns the greatest number of bytes that an update carries of `state` bytes: groups are added until the fidelity is
/// reached, so the last one exceeds it by less than its size.
fn carried(state: u64, largest_group: u64, fidelity_permille: u16) -> u64 {
    let needed = (u128::from(state) * u128::from(fidelity_permille)).div_ceil(1_000);
    let needed = u64::try_from(needed).unwrap_or(u64::MAX);
    if fidelity_permille >= 1_000 {
        return state;
    }
    state.min(needed.saturating_add(largest_group.saturating_sub(1)))
}

/// Returns the greatest number of fragments of an update that is split: two neighbours together exceed `room`.
pub(crate) fn parts(state: u64, groups: u64, room: u64) -> u64 {
    (2 * (state / room.max(1)) + 1).min(groups).max(1)
}

fn per_second(bytes: u64, time: Duration) -> u64 {
    let total = u128::from(bytes) * 1_000_000_000;
    u64::try_from(total.div_ceil(u128::from(time.as_nanos().max(1)))).unwrap_or(u64::MAX)
}

/// Returns how many of `fragments` may be lost, so that at least a share of `fidelity_permille` of a state of
/// `state_bytes` arrives of an update that carries `carried` bytes in fragments of at most `payload` bytes.
///
/// It is `min(⌊(f′ − f) p⌋, ⌊(f′ − f) s/l⌋)` with `f′ = carried / s`. The paper has the first term only (West and
/// Schwan 1997, section 3.2), which breaks `f` if the last fragment is short: then a lost fragment is more than
/// `1/p` of the state.
#[must_use]
pub fn losable_fragments(
    fragments: usize,
    state_bytes: usize,
    payload: usize,
    carried: usize,
    fidelity_permille: u16,
) -> usize {
    let (state, carried) = (state_bytes.max(1) as u128, carried as u128);
    // Both in thousandths of bytes.
    let spare = (carried * 1_000).saturating_sub(state * u128::from(fidelity_permille));
    let by_count = spare * fragments as u128 / (state * 1_000);
    let by_bytes = spare / (1_000 * payload.max(1) as u128);
    usize::try_from(by_count.min(by_bytes)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn delays_are_debited_at_both_ends() {
        let parts = DelayParts {
            deciding: MS,
            fragmenting: MS,
            sending: MS.mul_div(3, 1),
            observer: MS.mul_div(3, 1),
        };
        let network =
            |delay| parts.network(&ObjectContract::per_second(10, 60, MS.mul_div(delay, 1)));
        assert_eq!(network(20), Some(MS.mul_div(9, 1)), "a quarter is for the spread");
        assert_eq!(network(8), None);
    }

    const HEADERS: HeaderSizes = HeaderSizes { message: 40, update: 16, group: 2 };

    fn sizes(fragment_bytes: u32) -> UpdateSizes {
        UpdateSizes { groups: 2, largest_group: 100, fragment_bytes }
    }

    #[test]
    fn traffic_counts_headers_and_a_fragment_per_spacing() {
        let contract = ObjectContract::per_second(10, 230, Duration::from_millis(400));
        let traffic = ContractTraffic::new(&contract, 10, &sizes(1_040), &HEADERS);
        // Updates of 250 bytes, four to a fragment, within the gap of 100 ms.
        // The second half of them leaves in 50 ms, in which the rate counts as many.
        assert_eq!(traffic.burst, 1_251 + 40);
        assert_eq!(traffic.spacing, Duration::from_nanos(33_333_333));
        assert_eq!(traffic.bytes_per_s, 25_000 + 1_201);
        assert_eq!(traffic.largest, 1_040);
    }

    #[test]
    fn less_fidelity_needs_less_traffic() {
        let whole = ObjectContract::per_second(10, 1_000, Duration::from_millis(400));
        let half = ObjectContract { fidelity_permille: 500, ..whole };
        let service = PromisedService::new(half, 1, &sizes(1_200), &HEADERS);
        assert_eq!(service.traffic.carried, 500 + 99);
        assert!(service.covers(&[100; 2]));
        assert!(!service.covers(&[500; 2]), "an update carries 500 + 499 bytes at most");
        assert!(!service.covers(&[10; 3]), "more groups than declared");
        let whole = ContractTraffic::new(&whole, 1, &sizes(1_200), &HEADERS);
        assert!(service.traffic.bytes_per_s < whole.bytes_per_s);
    }

    #[test]
    fn a_short_last_fragment_reduces_the_losable_ones() {
        // Ten bytes more than nine fragments: the paper's formula permits 5 of 10, and 5 · 1000 / 9010 > 1/2.
        assert_eq!(losable_fragments(10, 9_010, 1_000, 9_010, 500), 4);
        assert_eq!(losable_fragments(10, 10_000, 1_000, 10_000, 500), 5);
        assert_eq!(losable_fragments(10, 10_000, 1_000, 10_000, 1_000), 0);
        assert_eq!(losable_fragments(10, 10_000, 1_000, 7_000, 800), 0, "less than f is carried");
    }

    #[test]
    fn wrong_values_are_named() {
        let good = ObjectContract::per_second(10, 64, Duration::from_millis(50));
        assert_eq!(good.check(), Ok(()));
        assert_eq!(good.gap(), Duration::from_millis(100));
        for (contract, text) in [
            (
                ObjectContract { max_updates: 0, ..good },
                "max_updates 0: must be from 1 to 1000000, such as 10",
            ),
            (
                ObjectContract { refresh: MS, ..good },
                "refresh 1 ms: must be from 100 ms (per / max_updates) to 1h, such as 1s",
            ),
            (
                ObjectContract { fidelity_permille: 1_001, ..good },
                "fidelity of 1001/1000: must be from 1 to 1000, such as 1000",
            ),
            (
                ObjectContract { bytes: 0, ..good },
                "bytes 0: must be from 1 to 16777216, such as 64",
            ),
            (
                ObjectContract { delay: Duration::from_nanos(5), ..good },
                "delay 5 ns: must be from 1ms to 1min, such as 100ms",
            ),
        ] {
            assert_eq!(contract.check().expect_err(text).to_string(), text);
        }
    }
}
