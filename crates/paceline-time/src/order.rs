//! The time buffer: samples of several publishers leave in the order of their times.
//!
//! Paper: Pallickara et al. 2005, section 3.2. The buffer releases when its entries, its bytes or the age of an
//! entry reach a limit; at least a given factor of the content then leaves at once.

use crate::{TimeBounds, TimeOrder};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// The limits of a [`TimeBuffer`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BufferLimits {
    /// Entries at which it releases, from 1 to [`Self::ENTRIES_MAX`].
    pub entries: usize,
    /// Bytes at which it releases, from 1 to [`Self::BYTES_MAX`].
    pub bytes: usize,
    /// The longest time in the buffer, from 1 µs to [`Self::HOLD_MAX`]. An entry that has waited as long leaves,
    /// with all entries before it.
    pub hold: Duration,
    /// The part of the content that leaves when entries or bytes reach their limit, in thousandths, from 500 to
    /// 1,000: the release factor of the paper.
    pub factor_permille: u16,
}

impl BufferLimits {
    /// The largest number of entries.
    pub const ENTRIES_MAX: usize = 65_536;
    /// The largest number of bytes: 128 MiB.
    pub const BYTES_MAX: usize = 128 << 20;
    /// The longest time in the buffer: 60 s.
    pub const HOLD_MAX: Duration = Duration::from_secs(60);

    /// Returns limits of 4,096 entries and 64 MiB, a release factor of 1.0, and this time.
    #[must_use]
    pub const fn holding(hold: Duration) -> Self {
        Self { entries: 4_096, bytes: 64 << 20, hold, factor_permille: 1_000 }
    }

    /// Checks the values.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub const fn check(&self) -> Result<(), BufferLimitError> {
        let Self { entries, bytes, hold, factor_permille } = *self;
        if entries == 0 || entries > Self::ENTRIES_MAX {
            Err(BufferLimitError::Entries(entries))
        } else if bytes == 0 || bytes > Self::BYTES_MAX {
            Err(BufferLimitError::Bytes(bytes))
        } else if hold.as_nanos() < 1_000 || hold.as_nanos() > Self::HOLD_MAX.as_nanos() {
            Err(BufferLimitError::Hold(hold))
        } else if factor_permille < 500 || factor_permille > 1_000 {
            Err(BufferLimitError::Factor(factor_permille))
        } else {
            Ok(())
        }
    }
}

/// The error of a limit that is out of range.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BufferLimitError {
    /// The number of entries.
    Entries(usize),
    /// The number of bytes.
    Bytes(usize),
    /// The longest time in the buffer.
    Hold(Duration),
    /// The release factor, in thousandths.
    Factor(u16),
}

impl fmt::Display for BufferLimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entries(entries) => write!(
                f,
                "time buffer of {entries} samples: must be from 1 to {}, such as 256",
                BufferLimits::ENTRIES_MAX
            ),
            Self::Bytes(bytes) => write!(
                f,
                "time buffer of {bytes} bytes: must be from 1 to {}, such as 1000000",
                BufferLimits::BYTES_MAX
            ),
            Self::Hold(hold) => {
                let millis = hold.as_micros() / 1_000;
                write!(f, "hold of {millis} ms: must be from 1 µs to 60 s, such as 50 ms")
            }
            Self::Factor(permille) => write!(
                f,
                "release factor of {permille} thousandths: must be from 500 to 1000 (0.5 to 1.0), such as 1.0"
            ),
        }
    }
}

impl std::error::Error for BufferLimitError {}

/// Returns the interval of this host's monotonic clock, now at `now`, that contains the time `captured` of UTC, by a clock
/// whose present time is inside `utc`. `None` if all of `captured` is in the future: then one of the clocks is wrong.
#[must_use]
pub fn on_this_host(now: Instant, captured: TimeBounds, utc: TimeBounds) -> Option<TimeBounds> {
    // The age, from the latest to the earliest possible capture.
    let TimeBounds { earliest, latest } = captured.until(utc)?;
    let since =
        |captured: u64, utc: u64| now.as_nanos().saturating_sub(utc.saturating_sub(captured));
    let (earliest, latest) = (since(earliest, utc.latest), since(latest, utc.earliest));
    Some(TimeBounds { earliest, latest })
}

/// The treatment of a sample whose successor has left.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LateArrival {
    /// It leaves at once.
    Deliver,
    /// It leaves at once, with [`Placement::Late`]. This is the default.
    #[default]
    Flag,
    /// It is dropped.
    Drop,
}

/// The place of a sample in the order of times.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Placement {
    /// It is after the sample before it.
    InOrder,
    /// The bounds of the two times do not decide whether it is after the sample before it.
    Unknown,
    /// A later sample has left before it.
    Late,
}

/// One entry of a [`TimeBuffer`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timed<K, T> {
    /// The clock of the time. A sample is late, or its order unknown, in comparison with samples of the same clock;
    /// use one value for clocks that agree within their bounds.
    pub clock: K,
    /// The time of the sample, by which entries leave: the middle of `bounds`.
    pub nanos: u64,
    /// An interval that contains the true time. Times of one clock have an error of 0 in comparison.
    pub bounds: TimeBounds,
    /// The bytes of the sample.
    pub bytes: usize,
    /// The sample.
    pub item: T,
}

/// The result of [`TimeBuffer::handle`].
#[derive(Debug, Eq, PartialEq)]
pub enum Handled<T> {
    /// The entry waits in the buffer, or leaves with the next call of [`TimeBuffer::poll`].
    Buffered,
    /// The entry is late and leaves now.
    Deliver(T, Placement),
    /// The entry is late and is dropped.
    Drop(T),
}

impl<T> Handled<T> {
    /// Applies a function to an entry that is not buffered.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Handled<U> {
        match self {
            Self::Buffered => Handled::Buffered,
            Self::Deliver(item, place) => Handled::Deliver(of(item), place),
            Self::Drop(item) => Handled::Drop(of(item)),
        }
    }
}

#[derive(Debug)]
struct Entry<K, T> {
    timed: Timed<K, T>,
    arrived: Instant,
}

/// The entries of one clock that have left.
#[derive(Clone, Copy, Debug)]
struct Left {
    last: TimeBounds,
    /// The latest instant at which any of them is known to have been.
    earliest: u64,
}

/// A buffer from which samples leave in the order of their times.
///
/// The caller limits times to the present ([`TimeBounds::until`]): an entry from the future would make all others
/// late. Memory: at most [`BufferLimits::entries`] entries and [`BufferLimits::bytes`] bytes, plus the newest one,
/// if [`Self::poll`] is called until it returns `None` after each [`Self::handle`].
#[derive(Debug)]
pub struct TimeBuffer<K, T> {
    limits: BufferLimits,
    late: LateArrival,
    /// By time, then by arrival.
    entries: BTreeMap<(u64, u64), Entry<K, T>>,
    /// The entries' arrival times and keys; those that have left are skipped.
    arrivals: VecDeque<(Instant, (u64, u64))>,
    bytes: usize,
    arrived: u64,
    /// Entries with at most this key leave now.
    leaving: Option<(u64, u64)>,
    /// By clock; forgotten if there are more than [`CLOCKS_MAX`].
    left: BTreeMap<K, Left>,
}

/// The limit of clocks whose last entry is kept.
const CLOCKS_MAX: usize = 4_096;

impl<K: Copy + Ord, T> TimeBuffer<K, T> {
    /// Returns an empty buffer.
    ///
    /// # Errors
    /// The first limit that is out of range.
    pub fn new(limits: BufferLimits, late: LateArrival) -> Result<Self, BufferLimitError> {
        limits.check()?;
        Ok(Self {
            limits,
            late,
            entries: BTreeMap::new(),
            arrivals: VecDeque::new(),
            bytes: 0,
            arrived: 0,
            leaving: None,
            left: BTreeMap::new(),
        })
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if the buffer is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the bytes of all entries.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds an entry. Then call [`Self::poll`] until it returns `None`.
    pub fn handle(&mut self, now: Instant, timed: Timed<K, T>) -> Handled<T> {
        let left = self.left.get(&timed.clock);
        if left.is_some_and(|left| timed.bounds.latest < left.earliest) {
            return match self.late {
                LateArrival::Deliver => Handled::Deliver(timed.item, Placement::InOrder),
                LateArrival::Flag => Handled::Deliver(timed.item, Placement::Late),
                LateArrival::Drop => Handled::Drop(timed.item),
            };
        }
        let key = (timed.nanos, self.arrived);
        self.arrived += 1;
        self.bytes = self.bytes.saturating_add(timed.bytes);
        self.arrivals.push_back((now, key));
        self.entries.insert(key, Entry { timed, arrived: now });
        self.trigger();
        Handled::Buffered
    }

    /// Selects the entries that leave because entries or bytes have reached their limit.
    fn trigger(&mut self) {
        let factor = usize::from(self.limits.factor_permille);
        if self.entries.len() >= self.limits.entries {
            let leave = (self.entries.len() * factor).div_ceil(1_000);
            let last = self.entries.keys().nth(leave.saturating_sub(1)).copied();
            self.leaving = self.leaving.max(last);
        }
        if self.bytes >= self.limits.bytes {
            let (enough, mut sum) = ((self.bytes * factor).div_ceil(1_000), 0);
            let mut filled = self.entries.iter().skip_while(|(_, entry)| {
                sum += entry.timed.bytes;
                sum < enough
            });
            self.leaving = self.leaving.max(filled.next().map(|(key, _)| *key));
        }
    }

    /// Returns the next entry that leaves at `now`, with its place after the one that left before it.
    pub fn poll(&mut self, now: Instant) -> Option<(T, Placement)> {
        self.expire(now);
        let leaves = |key: &(u64, u64)| self.leaving.is_some_and(|last| *key <= last);
        let first = self.entries.first_key_value().filter(|(key, _)| leaves(key));
        let Some((&key, entry)) = first else {
            self.leaving = None;
            return None;
        };
        let Timed { bounds, clock, .. } = entry.timed;
        let left = self.left.get(&clock).copied();
        let place = match left.map(|left| left.last.order(bounds)) {
            None | Some(TimeOrder::Before) => Placement::InOrder,
            Some(TimeOrder::Unknown | TimeOrder::After) => Placement::Unknown,
        };
        let entry = self.entries.remove(&key)?;
        self.bytes = self.bytes.saturating_sub(entry.timed.bytes);
        if self.left.len() >= CLOCKS_MAX && left.is_none() {
            self.left.clear();
        }
        let earliest = left.map_or(0, |left| left.earliest).max(bounds.earliest);
        self.left.insert(clock, Left { last: bounds, earliest });
        Some((entry.timed.item, place))
    }

    /// Selects the entries that have waited for the longest time, and all before them.
    fn expire(&mut self, now: Instant) {
        while let Some((arrived, key)) = self.arrivals.front().copied() {
            let waits = self.entries.contains_key(&key);
            if waits && now < arrived + self.limits.hold {
                break;
            }
            if waits {
                self.leaving = self.leaving.max(Some(key));
            }
            self.arrivals.pop_front();
        }
    }

    /// Returns the time at which the next entry leaves if none is added; `None` if the buffer is empty.
    #[must_use]
    pub fn next_release(&self) -> Option<Instant> {
        let first = self.entries.first_key_value()?;
        if self.leaving.is_some_and(|last| *first.0 <= last) {
            return Some(first.1.arrived);
        }
        let mut waiting = self.arrivals.iter().filter(|(_, key)| self.entries.contains_key(key));
        waiting.next().map(|(arrived, _)| *arrived + self.limits.hold)
    }
}
