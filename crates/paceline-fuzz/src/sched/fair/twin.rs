//! DRR and WF²Q+ as their papers state them: every decision scans every stream, every round visits all
//! streams, and virtual time is a sum of exact fractions.

/// The state of a stream in either scheduler.
#[derive(Clone, Default)]
struct Line {
    joined: bool,
    rate: u64,
    /// The length of the segment at its head.
    head: Option<u32>,
    suspended: bool,
    /// DRR: the deficit in units of 2^-20 bytes.
    deficit: i128,
    /// WF²Q+: S of the head or, without a head, F of the last one, in `Wf2q::UNIT`s.
    start: u128,
}

impl Line {
    fn waits(&self) -> bool {
        self.joined && self.head.is_some() && !self.suspended
    }
}

/// The events of a link. A head that is announced before any other event or check continues the head sent
/// last: the segment in transmission is not over.
pub(crate) trait Twin {
    fn join(&mut self, stream: usize, rate: u64);
    fn leave(&mut self, stream: usize);
    fn head(&mut self, stream: usize, segment: u32);
    /// A segment of `bytes` was sent. The head continues with a segment of `left` bytes, or is complete.
    fn sent(&mut self, stream: usize, bytes: u32, left: Option<u32>);
    /// The head was withdrawn.
    fn withdrawn(&mut self, stream: usize);
    fn suspend(&mut self, stream: usize);
    fn resume(&mut self, stream: usize);
    /// Returns an error with the reason if `picked` may not be next.
    fn check(&mut self, picked: Option<usize>) -> Result<(), String>;
}

#[derive(Clone)]
pub(crate) struct Drr {
    lines: Vec<Line>,
    at: usize,
    emptied: Option<usize>,
}

impl Drr {
    pub(crate) fn new(streams: usize) -> Self {
        Self { lines: vec![Line::default(); streams], at: 0, emptied: None }
    }

    fn settle(&mut self) {
        if let Some(emptied) = self.emptied.take() {
            let line = &mut self.lines[emptied];
            line.deficit = line.deficit.min(0);
        }
    }

    fn covers(&self) -> bool {
        let line = &self.lines[self.at];
        let Some(segment) = line.head else { return false };
        line.waits() && line.deficit >= i128::from(segment) << 20
    }

    /// Advances the round until a stream may send.
    fn go_round(&mut self) -> Option<usize> {
        if !self.lines.iter().any(Line::waits) {
            return None;
        }
        while !self.covers() {
            self.at = (self.at + 1) % self.lines.len();
            let line = &mut self.lines[self.at];
            if line.waits() {
                line.deficit += i128::from(line.rate);
            } else if line.head.is_none() {
                line.deficit = (line.deficit + i128::from(line.rate)).min(0);
            }
        }
        Some(self.at)
    }
}

impl Twin for Drr {
    fn join(&mut self, stream: usize, rate: u64) {
        self.settle();
        self.lines[stream] = Line { joined: true, rate, ..Line::default() };
    }

    fn leave(&mut self, stream: usize) {
        self.settle();
        self.lines[stream] = Line::default();
    }

    fn head(&mut self, stream: usize, segment: u32) {
        self.emptied.take_if(|emptied| *emptied == stream);
        self.lines[stream].head = Some(segment);
    }

    fn sent(&mut self, stream: usize, bytes: u32, left: Option<u32>) {
        self.settle();
        let served = self.go_round();
        assert_eq!(served, Some(stream), "the picked stream sends");
        self.lines[stream].deficit -= i128::from(bytes) << 20;
        self.lines[stream].head = left;
        self.emptied = left.is_none().then_some(stream);
    }

    fn withdrawn(&mut self, stream: usize) {
        self.settle();
        self.lines[stream].head = None;
        self.emptied = Some(stream);
    }

    fn suspend(&mut self, stream: usize) {
        self.settle();
        let line = &mut self.lines[stream];
        if let Some(segment) = line.head.filter(|_| !line.suspended) {
            line.deficit = line.deficit.min((i128::from(segment) << 20) - 1);
        }
        line.suspended = true;
    }

    fn resume(&mut self, stream: usize) {
        self.settle();
        self.lines[stream].suspended = false;
    }

    fn check(&mut self, picked: Option<usize>) -> Result<(), String> {
        self.settle();
        // A check must not count as a visit, so it works on a copy.
        let served = self.clone().go_round();
        if served == picked { Ok(()) } else { Err(format!("{picked:?} for {served:?}")) }
    }
}

#[derive(Clone)]
pub(crate) struct Wf2q {
    lines: Vec<Line>,
    now: u128,
    /// The advance of virtual time at the end of the segment in transmission.
    in_flight: u128,
    emptied: Option<usize>,
    latest: u128,
    /// Rates whose tags are exact are compared to the last bit. With other rates, equal tags may appear in
    /// either order, and a start equal to virtual time may or may not be eligible.
    strict: bool,
}

impl Wf2q {
    /// The least common multiple of 1 to 30: while Σr ≤ 30, every tag is a whole number of these units.
    const UNIT: u128 = 2_329_089_562_800;
    /// While Σr is a power of two up to 64, every tag is a whole number of these units too.
    const STRICT_UNIT: u128 = 64;

    pub(crate) fn new(streams: usize, strict: bool) -> Self {
        Self {
            lines: vec![Line::default(); streams],
            now: 0,
            in_flight: 0,
            emptied: None,
            latest: 0,
            strict,
        }
    }

    fn after(&self, bytes: u32, rate: u64) -> u128 {
        let unit = if self.strict { Self::STRICT_UNIT } else { Self::UNIT };
        assert_eq!(unit % u128::from(rate), 0, "the twin does not round");
        u128::from(bytes) * (unit / u128::from(rate))
    }

    fn finish(&self, stream: usize) -> u128 {
        let Line { start, rate, head, .. } = self.lines[stream];
        start + self.after(head.unwrap_or(0), rate)
    }

    fn begin(&mut self, stream: usize) {
        self.lines[stream].start = self.lines[stream].start.max(self.now);
    }

    fn settle(&mut self) {
        if self.emptied.take().is_some_and(|emptied| !self.lines[emptied].suspended) {
            self.end();
        }
    }

    fn arrived(&mut self) {
        self.now += std::mem::take(&mut self.in_flight);
    }

    /// Ends the busy period: once all queues are empty, earlier service no longer counts against a stream.
    fn end(&mut self) {
        if !self.lines.iter().any(Line::waits) {
            self.arrived();
            self.now = self.now.max(self.latest);
        }
    }
}

impl Twin for Wf2q {
    fn join(&mut self, stream: usize, rate: u64) {
        self.settle();
        self.lines[stream] = Line { joined: true, rate, ..Line::default() };
    }

    fn leave(&mut self, stream: usize) {
        self.settle();
        let waited = self.lines[stream].waits();
        self.lines[stream] = Line::default();
        if waited {
            self.end();
        }
    }

    fn head(&mut self, stream: usize, segment: u32) {
        let follows = self.emptied.take_if(|emptied| *emptied == stream).is_some();
        self.lines[stream].head = Some(segment);
        if !follows && !self.lines[stream].suspended {
            self.begin(stream);
        }
    }

    fn sent(&mut self, stream: usize, bytes: u32, left: Option<u32>) {
        self.settle();
        let rates = self.lines.iter().map(|line| line.rate).sum();
        self.arrived();
        self.in_flight = self.after(bytes, rates);
        let step = self.after(bytes, self.lines[stream].rate);
        let line = &mut self.lines[stream];
        line.start += step;
        line.head = left;
        self.emptied = left.is_none().then_some(stream);
        self.latest = self.latest.max(line.start);
    }

    fn withdrawn(&mut self, stream: usize) {
        self.settle();
        self.lines[stream].head = None;
        self.emptied = Some(stream);
    }

    fn suspend(&mut self, stream: usize) {
        self.settle();
        let waited = self.lines[stream].waits();
        self.lines[stream].suspended = true;
        if waited {
            self.end();
        }
    }

    fn resume(&mut self, stream: usize) {
        self.settle();
        let was = std::mem::take(&mut self.lines[stream].suspended);
        if was && self.lines[stream].waits() {
            self.begin(stream);
        }
    }

    fn check(&mut self, picked: Option<usize>) -> Result<(), String> {
        self.settle();
        self.arrived();
        let waiting: Vec<usize> =
            (0..self.lines.len()).filter(|&at| self.lines[at].waits()).collect();
        let starts = waiting.iter().map(|&at| self.lines[at].start);
        let Some(first) = starts.min() else {
            return picked.map_or(Ok(()), |stream| Err(format!("{stream} has no packet")));
        };
        self.now = self.now.max(first);
        let eligible = |at: &usize| self.lines[*at].start <= self.now;
        let least = waiting.iter().copied().filter(eligible);
        let least = least.min_by_key(|&at| (self.finish(at), at));
        if picked == least {
            return Ok(());
        }
        let wrong = || Err(format!("{picked:?} for {least:?}"));
        let Some(picked) = picked.filter(|at| waiting.contains(at) && !self.strict) else {
            return wrong();
        };
        let beaten = waiting
            .iter()
            .any(|&at| self.lines[at].start < self.now && self.finish(at) < self.finish(picked));
        if beaten || !eligible(&picked) { wrong() } else { Ok(()) }
    }
}
