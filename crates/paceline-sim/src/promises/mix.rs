//! The mix of requests, and the results of runs.

use core::fmt;

/// The mix of requests, in subscriptions per thousand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Mix {
    /// Subscriptions that tolerate loss.
    pub lossy: u32,
    /// Subscriptions that ask for one sample in n.
    pub every: u32,
    /// Subscriptions that ask for a maximum rate, per thousand of the others.
    pub max: u32,
    /// Publishers whose samples vary in size, and that declare an envelope.
    pub varies: u32,
    /// Publishers with the sizes of a film's pictures, per thousand of the others, and that declare its envelope.
    pub films: u32,
    /// Links, per thousand of those with a capacity, that are divided into classes.
    pub classes: u32,
    /// Publishers of pictures, per thousand of those slow enough for scaling.
    pub scaled: u32,
    /// Pairs of streams in opposite directions of which both are granted, or neither.
    pub tied: u32,
    /// Publishers that pause, and whose subscriptions release idle reservations.
    pub idle: u32,
    /// Publishers that request contracts for subscriptions without one.
    pub by_publisher: u32,
    /// Publishers that several subscriptions with contracts request at different rates, which come and go.
    pub shared: u32,
    /// Refused requests that take an offer before the publishers begin: none, or any number for all.
    pub offers: u32,
}

impl Mix {
    /// A mix with every kind of request.
    pub const FULL: Self = Self {
        lossy: 200,
        every: 125,
        max: 125,
        varies: 200,
        films: 150,
        classes: 250,
        scaled: 500,
        tied: 200,
        idle: 200,
        by_publisher: 200,
        shared: 300,
        offers: 0,
    };
}

impl Default for Mix {
    fn default() -> Self {
        Self {
            lossy: 0,
            every: 125,
            max: 125,
            varies: 0,
            films: 0,
            classes: 0,
            scaled: 0,
            tied: 0,
            idle: 0,
            by_publisher: 0,
            shared: 0,
            offers: 0,
        }
    }
}

/// The result of one run or of several.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PromisesResult {
    /// Samples under a contract.
    pub samples: u64,
    /// Samples that links carried, counted once per link, including best effort.
    pub carried: u64,
    /// Windows checked. Without a loss tolerance each sample is a window.
    pub windows: u64,
    /// Samples that were late or lost within these windows.
    pub missed: u64,
    /// Requests granted.
    pub granted: u64,
    /// Requests refused.
    pub refused: u64,
    /// The greatest queue of contracted samples on a link, in thousandths of the reserved buffer.
    pub deepest: u64,
    /// The longest delay, in thousandths of its requested bound.
    pub worst: u64,
    /// The reserved share of each run's fullest link, in thousandths, summed over the runs.
    pub used: u64,
    /// Number of runs.
    pub runs: u64,
    /// Samples under a contract that were scaled.
    pub scaled: u64,
    /// Samples under a contract with the size of a film's picture.
    pub films: u64,
    /// Pairs in opposite directions that were granted.
    pub both: u64,
    /// Pairs in opposite directions of which neither was granted.
    pub neither: u64,
    /// Idle reservations that were released.
    pub released: u64,
    /// Contracts that only the publisher requested.
    pub by_publisher: u64,
    /// Contracts with a publisher that others request at other rates.
    pub shared: u64,
    /// Offers that were taken and granted.
    pub offers: u64,
    /// Those of a rate and a size together.
    pub pairs: u64,
    /// Refusals without an offer.
    pub unoffered: u64,
}

impl PromisesResult {
    /// Adds the result of another run.
    pub fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.carried += other.carried;
        self.windows += other.windows;
        self.missed += other.missed;
        self.granted += other.granted;
        self.refused += other.refused;
        self.worst = self.worst.max(other.worst);
        self.deepest = self.deepest.max(other.deepest);
        self.used += other.used;
        self.runs += other.runs;
        self.scaled += other.scaled;
        self.films += other.films;
        self.both += other.both;
        self.neither += other.neither;
        self.released += other.released;
        self.by_publisher += other.by_publisher;
        self.shared += other.shared;
        self.offers += other.offers;
        self.pairs += other.pairs;
        self.unoffered += other.unoffered;
    }
}

impl fmt::Display for PromisesResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { samples, carried, windows, missed, granted, refused, .. } = self;
        let Self { worst, deepest, used, runs, .. } = self;
        let used = used / (*runs).max(1);
        write!(
            f,
            "{runs} networks, {samples} samples (links carried {carried}), {windows} windows, \
             {missed} missed within them; "
        )?;
        write!(
            f,
            "{granted} granted, {refused} refused; the worst used {}.{} % of ",
            worst / 10,
            worst % 10
        )?;
        write!(f, "its bound; of the fullest link {}.{} % promised; ", used / 10, used % 10)?;
        write!(
            f,
            "the deepest queue filled {}.{} % of its reserved buffer",
            deepest / 10,
            deepest % 10
        )?;
        if self.offers > 0 {
            let Self { offers, pairs, unoffered, .. } = self;
            write!(
                f,
                "; {offers} offers granted, {pairs} of a rate and a size, {unoffered} refusals without one"
            )?;
        }
        let Self { scaled, films, both, neither, released, by_publisher, shared, .. } = self;
        write!(
            f,
            "; {scaled} scaled samples, {films} of films, {both} pairs in both directions and {neither} refused, {released} idle \
             releases, {by_publisher} granted to publishers, {shared} at several rates"
        )
    }
}
