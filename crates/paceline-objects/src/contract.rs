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
        } else if self.delay < millisecond || self.delay > Duration::from_secs(60) {
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

/// The measured processing times that are debited from an object's delay.
///
/// Paper: West and Schwan 1997, sections 3.1 and 3.2, which debits twice the times of one end,
/// `δ_n ≈ δ − 2 (d_c + d_n)`. Here both ends measure their own.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DelayParts {
    /// The greatest time to decide on an update at the owner, to write, fragment and send it: `d_c + d_n` there.
    pub sending: Duration,
    /// The greatest time to read it at the observer and apply it: `d_n + d_c` there.
    pub observer: Duration,
}

impl DelayParts {
    /// Returns the time that remains for the network, `δ_n`; `None` if nothing remains, and the contract cannot be
    /// kept.
    #[must_use]
    pub fn network(&self, delay: Duration) -> Option<Duration> {
        let spent = self.sending.saturating_add(self.observer);
        let left = delay.as_nanos().checked_sub(spent.as_nanos());
        left.filter(|left| *left > 0).map(Duration::from_nanos)
    }
}

/// The traffic that a contract permits an owner to send to an observer.
///
/// Paper: West and Schwan 1997, section 3.2: `n_max (l (1 + h) ⌈s/l⌉) / t` for each object, where the last packet
/// counts with its useful bytes. All fragments of a message are sent at once, each with the whole delay `δ_n` of the
/// network, so that none needs the shorter one of the paper's first fragment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ContractTraffic {
    /// Bytes per second.
    pub bytes_per_s: u64,
    /// The bytes of one update of each object.
    pub burst: u64,
    /// The largest fragment, in bytes.
    pub largest: u64,
    /// Fragments per second.
    pub fragments_per_s: u64,
}

impl ContractTraffic {
    /// Returns the traffic of `objects` with a contract each, in fragments of at most `fragment_bytes` with a header of
    /// `header` bytes, and `head` bytes for each update in addition to its state.
    #[must_use]
    pub fn new(
        each: &ObjectContract,
        objects: usize,
        head: u64,
        fragment_bytes: usize,
        header: usize,
    ) -> Self {
        let payload = fragment_bytes.saturating_sub(header).max(1) as u64;
        let round = u64::from(each.bytes).saturating_add(head).saturating_mul(objects as u64);
        let fragments = round.div_ceil(payload) + 1;
        let burst = round.saturating_add(fragments * header as u64);
        let per_second = |amount: u64| {
            let total = u128::from(amount) * u128::from(each.max_updates) * 1_000_000_000;
            u64::try_from(total.div_ceil(u128::from(each.per.as_nanos().max(1))))
                .unwrap_or(u64::MAX)
        };
        Self {
            bytes_per_s: per_second(burst),
            burst,
            largest: burst.min(fragment_bytes as u64),
            fragments_per_s: per_second(fragments),
        }
    }
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
        let parts = DelayParts { sending: MS.mul_div(3, 1), observer: MS.mul_div(3, 1) };
        assert_eq!(parts.network(Duration::from_millis(20)), Some(Duration::from_millis(14)));
        assert_eq!(parts.network(Duration::from_millis(6)), None);
    }

    #[test]
    fn traffic_counts_headers_and_the_useful_bytes_of_the_last_fragment() {
        let contract = ObjectContract::per_second(10, 230, Duration::from_millis(50));
        let traffic = ContractTraffic::new(&contract, 10, 20, 1_040, 40);
        // 2,500 bytes need three fragments, and one more that is not full because no update is split.
        assert_eq!(traffic.burst, 2_500 + 4 * 40);
        assert_eq!((traffic.bytes_per_s, traffic.fragments_per_s), (10 * traffic.burst, 40));
        assert_eq!(traffic.largest, 1_040);
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
