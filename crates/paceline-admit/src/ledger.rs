//! Sums of what a link holds, in integers: what is added is what is taken away, to the last one.

use crate::demand::Demand;

/// What one stream takes of a link, or several together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Amounts {
    /// Bits per second in the long run.
    pub rate: u64,
    /// Bytes that may come at once.
    pub burst: u64,
    /// Bytes that may wait: what arrives within a deadline.
    pub buffer: u64,
    /// Nanoseconds of one processor per second.
    pub cpu: u64,
    /// Streams.
    pub streams: u64,
}

impl Amounts {
    /// Of one stream that costs `cpu`.
    pub(crate) fn of(demand: &Demand, cpu: u64) -> Self {
        let traffic = demand.traffic();
        Self {
            rate: traffic.rate(),
            burst: traffic.burst(),
            buffer: traffic.bound(demand.deadline()).max(traffic.packet()),
            cpu,
            streams: 1,
        }
    }

    /// With those of another.
    pub(crate) fn add(&mut self, more: Self) {
        self.rate += more.rate;
        self.burst += more.burst;
        self.buffer += more.buffer;
        self.cpu += more.cpu;
        self.streams += more.streams;
    }

    /// Without what was added before: never below 0, or it was not.
    pub(crate) fn take(&mut self, less: Self) {
        debug_assert!(
            self.rate >= less.rate && self.buffer >= less.buffer && self.streams >= less.streams,
            "only what was added is taken away"
        );
        self.rate -= less.rate;
        self.burst -= less.burst;
        self.buffer -= less.buffer;
        self.cpu -= less.cpu;
        self.streams -= less.streams;
    }
}

/// What a link holds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ledger {
    /// Everything that is reserved, tentative or not: what admission counts.
    pub held: Amounts,
    /// Of that, what was installed.
    pub installed: Amounts,
    /// What the streams were last measured to send, in bits per second.
    pub used: u64,
}

impl Ledger {
    /// What is reserved and not installed.
    #[must_use]
    pub const fn tentative(&self) -> Amounts {
        Amounts {
            rate: self.held.rate - self.installed.rate,
            burst: self.held.burst - self.installed.burst,
            buffer: self.held.buffer.saturating_sub(self.installed.buffer),
            cpu: self.held.cpu.saturating_sub(self.installed.cpu),
            streams: self.held.streams - self.installed.streams,
        }
    }

    /// True if nothing is reserved and nothing used.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}
