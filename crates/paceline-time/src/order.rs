//! The time buffer: samples of several publishers leave in the order of their times.
//!
//! Paper: Pallickara et al. 2005, section 3.2. The buffer releases when its entries, its bytes or the age of an
//! entry reach a limit; at least a given factor of the content then leaves at once.

use crate::{TimeBounds, TimeOrder};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
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

/// The zero of the time line of [`on_this_host`] is so many nanoseconds before the start of the host, some 146 years: a
/// recording may be replayed with times from before the start.
pub const BEFORE_START: u64 = 1 << 62;

/// Returns the time `captured` of UTC by this host's monotonic clock, now at `now`, plus [`BEFORE_START`]: the best
/// estimate in nanoseconds, and an interval that contains it. The host's present time is inside `utc`. `None` if all of
/// `captured` is in the future: then one of the clocks is wrong.
///
/// The estimate is not the middle of the interval, which ends at the present: the middle would depend on the age.
#[must_use]
pub fn on_this_host(
    now: Instant,
    captured: TimeBounds,
    utc: TimeBounds,
) -> Option<(u64, TimeBounds)> {
    // The age, from the latest to the earliest possible capture.
    let TimeBounds { earliest, latest } = captured.until(utc)?;
    let now = BEFORE_START.saturating_add(now.as_nanos());
    let since = |captured: u64, utc: u64| now.saturating_sub(utc.saturating_sub(captured));
    let (earliest, latest) = (since(earliest, utc.latest), since(latest, utc.earliest));
    let estimate = since(captured.middle(), utc.middle()).clamp(earliest, latest);
    Some((estimate, TimeBounds { earliest, latest }))
}

/// The treatment of a sample whose successor has left. The earlier ones of its publisher leave before it.
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
    /// Entries of one source leave in the order in which they were added: their numbers count more than their times.
    /// `None` for an entry whose time alone counts.
    pub source: Option<K>,
    /// The best estimate of the time, by which entries leave; the buffer limits it to `bounds`.
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
    /// The entry is late and is dropped.
    Drop(T),
}

/// The use of an entry's time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Standing {
    Timed,
    /// A later entry has left, or leaves before it.
    Late,
    /// It has no time.
    Timeless,
}

#[derive(Debug)]
struct Entry<K, T> {
    /// `nanos` is the time by which it leaves: that of a later entry of its source limits it.
    timed: Timed<K, T>,
    arrived: Instant,
    standing: Standing,
    /// The number of the entry before it of its source, which may have left.
    before: Option<u64>,
    /// The latest instant at which any of its source up to this one is known to have been.
    floor: u64,
}

/// The entries of one clock that have left.
#[derive(Clone, Copy, Debug)]
struct Left<K> {
    last: TimeBounds,
    source: Option<K>,
    /// The latest instant at which any of them is known to have been.
    earliest: u64,
}

impl<K: PartialEq> Left<K> {
    /// Returns the place of an entry that leaves after these.
    fn place(&self, bounds: TimeBounds, source: Option<&K>) -> Placement {
        match self.last.order(bounds) {
            TimeOrder::Before => Placement::InOrder,
            TimeOrder::Unknown if source.is_some() && self.source.as_ref() == source => {
                Placement::InOrder
            }
            TimeOrder::Unknown | TimeOrder::After => Placement::Unknown,
        }
    }
}

/// A buffer from which samples leave in the order of their times, and those of one source in the order of their numbers.
///
/// A true time lies between those of the neighbours of its source. So an entry whose estimate is before that of an
/// earlier one of its source moves behind it, and one whose estimate is after all possible times of a later one moves
/// before that.
///
/// The caller limits times to the present ([`TimeBounds::until`]): an entry from the future would make all others
/// late. Memory: at most [`BufferLimits::entries`] entries and [`BufferLimits::bytes`] bytes, plus the newest one,
/// if [`Self::poll`] is called until it returns `None` after each [`Self::handle`].
#[derive(Debug)]
pub struct TimeBuffer<K, T> {
    limits: BufferLimits,
    late: LateArrival,
    /// By number: in the order of arrival.
    entries: BTreeMap<u64, Entry<K, T>>,
    /// The entries by time, then by number.
    order: BTreeSet<(u64, u64)>,
    /// The number of the newest entry of each source that has entries here.
    newest: BTreeMap<K, u64>,
    bytes: usize,
    /// The number of the next entry.
    next: u64,
    /// Entries with a lower number have waited for the longest time.
    expired: u64,
    /// Entries with at most this key leave now.
    leaving: Option<(u64, u64)>,
    /// By clock; forgotten if there are more than [`CLOCKS_MAX`].
    left: BTreeMap<K, Left<K>>,
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
            order: BTreeSet::new(),
            newest: BTreeMap::new(),
            bytes: 0,
            next: 0,
            expired: 0,
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
    ///
    /// An entry is late if another one is certainly later and has left, or leaves before it because of their numbers. A
    /// late entry leaves at once, behind those of its source.
    pub fn handle(&mut self, now: Instant, timed: Timed<K, T>) -> Handled<T> {
        let latest = timed.bounds.latest;
        let floor = self.before(timed.source).map_or(0, |(_, before)| before.floor);
        let left = self.left.get(&timed.clock).map_or(0, |left| left.earliest);
        if latest >= left.max(floor) {
            self.limit_earlier(timed.source, latest);
            let nanos = timed.nanos.clamp(timed.bounds.earliest, latest);
            self.add(now, Standing::Timed, Timed { nanos, ..timed });
        } else if self.late == LateArrival::Drop {
            return Handled::Drop(timed.item);
        } else {
            self.add(now, Standing::Late, Timed { nanos: 0, ..timed });
        }
        Handled::Buffered
    }

    /// Adds an entry that leaves at once, behind those of its source, because it has no time. It makes no other entry
    /// late. Then call [`Self::poll`] until it returns `None`.
    pub fn pass(&mut self, now: Instant, source: K, bytes: usize, item: T) {
        let bounds = TimeBounds { earliest: 0, latest: u64::MAX };
        let timed = Timed { clock: source, source: Some(source), nanos: 0, bounds, bytes, item };
        self.add(now, Standing::Timeless, timed);
    }

    /// Returns the newest entry of a source, with its number.
    fn before(&self, source: Option<K>) -> Option<(u64, &Entry<K, T>)> {
        let number = *self.newest.get(&source?)?;
        Some((number, self.entries.get(&number)?))
    }

    /// Moves the entries of a source that would leave after `latest`, the latest possible time of the next one.
    fn limit_earlier(&mut self, source: Option<K>, latest: u64) {
        let mut next = self.before(source).map(|(number, _)| number);
        while let Some(number) = next
            && let Some(entry) = self.entries.get_mut(&number)
            && entry.timed.nanos > latest
        {
            self.order.remove(&(entry.timed.nanos, number));
            entry.timed.nanos = latest;
            self.order.insert((latest, number));
            next = entry.before;
        }
    }

    /// Adds an entry behind those of its source.
    fn add(&mut self, now: Instant, standing: Standing, mut timed: Timed<K, T>) {
        let number = self.next;
        self.next += 1;
        let before = self.before(timed.source);
        let (nanos, floor) = before.map_or((0, 0), |(_, it)| (it.timed.nanos, it.floor));
        let before = before.map(|(number, _)| number);
        timed.nanos = timed.nanos.max(nanos);
        let leaves = standing != Standing::Timed && before.is_none();
        if leaves {
            self.leaving = self.leaving.max(Some((timed.nanos, number)));
        }
        if let Some(source) = timed.source {
            self.newest.insert(source, number);
        }
        self.bytes = self.bytes.saturating_add(timed.bytes);
        self.order.insert((timed.nanos, number));
        let floor = floor.max(timed.bounds.earliest);
        self.entries.insert(number, Entry { timed, arrived: now, standing, before, floor });
        if !leaves {
            self.trigger();
        }
    }

    /// Selects the entries that leave because entries or bytes have reached their limit.
    fn trigger(&mut self) {
        let factor = usize::from(self.limits.factor_permille);
        if self.entries.len() >= self.limits.entries {
            let leave = (self.entries.len() * factor).div_ceil(1_000);
            let last = self.order.iter().nth(leave.saturating_sub(1)).copied();
            self.leaving = self.leaving.max(last);
        }
        if self.bytes >= self.limits.bytes {
            let (enough, mut sum) = ((self.bytes * factor).div_ceil(1_000), 0);
            let mut filled = self.order.iter().skip_while(|(_, number)| {
                sum += self.entries.get(number).map_or(0, |entry| entry.timed.bytes);
                sum < enough
            });
            self.leaving = self.leaving.max(filled.next().copied());
        }
    }

    /// Returns the next entry that leaves at `now`, with its place after the one that left before it.
    pub fn poll(&mut self, now: Instant) -> Option<(T, Placement)> {
        self.expire(now);
        let leaves = |key: &(u64, u64)| self.leaving.is_some_and(|last| *key <= last);
        let Some(key) = self.order.first().copied().filter(leaves) else {
            self.leaving = None;
            return None;
        };
        self.order.remove(&key);
        let entry = self.entries.remove(&key.1)?;
        let Timed { bounds, clock, source, bytes, item, .. } = entry.timed;
        self.bytes = self.bytes.saturating_sub(bytes);
        if let Some(source) = source
            && self.newest.get(&source) == Some(&key.1)
        {
            self.newest.remove(&source);
        }
        let place = match entry.standing {
            Standing::Timed => self.leave(clock, source, bounds),
            Standing::Late if self.late == LateArrival::Flag => Placement::Late,
            Standing::Late => Placement::InOrder,
            Standing::Timeless => Placement::Unknown,
        };
        Some((item, place))
    }

    /// Records that an entry with a time leaves. Returns its place.
    fn leave(&mut self, clock: K, source: Option<K>, bounds: TimeBounds) -> Placement {
        let left = self.left.get(&clock).copied();
        let place = left.map_or(Placement::InOrder, |left| left.place(bounds, source.as_ref()));
        if self.left.len() >= CLOCKS_MAX && left.is_none() {
            self.left.clear();
        }
        let earliest = left.map_or(0, |left| left.earliest).max(bounds.earliest);
        self.left.insert(clock, Left { last: bounds, source, earliest });
        place
    }

    /// Selects the entries that have waited for the longest time, and all before them.
    fn expire(&mut self, now: Instant) {
        let waited = |entry: &Entry<K, T>| now >= entry.arrived + self.limits.hold;
        let due = self.entries.range(self.expired..).take_while(|(_, entry)| waited(entry));
        for (number, entry) in due {
            self.leaving = self.leaving.max(Some((entry.timed.nanos, *number)));
            self.expired = number + 1;
        }
    }

    /// Returns the time at which the next entry leaves if none is added; `None` if the buffer is empty.
    #[must_use]
    pub fn next_release(&self) -> Option<Instant> {
        let first = self.order.first()?;
        if self.leaving.is_some_and(|last| *first <= last) {
            return self.entries.get(&first.1).map(|first| first.arrived);
        }
        let mut waiting = self.entries.range(self.expired..);
        waiting.next().map(|(_, first)| first.arrived + self.limits.hold)
    }
}
