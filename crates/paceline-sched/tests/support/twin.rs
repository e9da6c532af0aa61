//! A link that does everything the slow and obvious way: every question scans every stream, every
//! deadline passes one by one, and windows are cut from the full history of verdicts.

use paceline_sched::contract::{Contract, Late};
use paceline_sched::discipline::{
    Class, Eligibility, Head, Miss, Service, StreamIndex, WindowState,
};
use paceline_sched::time::{Duration, Instant};
use std::cmp::Ordering;

/// The rules of one discipline, as its paper states them.
pub(crate) trait Rules {
    /// Current window state of a stream.
    type Window: Copy;
    fn open(contract: &Contract) -> Self::Window;
    /// The head was served in time.
    fn met(window: &mut Self::Window, contract: &Contract);
    /// One deadline of the head passed; `first` if it is its first.
    fn missed(window: &mut Self::Window, contract: &Contract, first: bool);
    /// Which of two eligible heads goes first, deadlines in nanoseconds; ties are left equal.
    fn order(a: &Rank<Self::Window>, b: &Rank<Self::Window>) -> Ordering;
    fn state(window: &Self::Window) -> WindowState;
}

/// What the rules may look at.
pub(crate) struct Rank<W> {
    pub(crate) deadline: u64,
    pub(crate) contract: Contract,
    pub(crate) window: W,
}

struct Waiting {
    service: u64,
    release: u64,
    deadline: u64,
    late: bool,
    /// In round robin since that turn.
    turn: Option<u64>,
}

struct Line<W> {
    contract: Option<(Contract, W)>,
    background: bool,
    next_release: u64,
    head: Option<Waiting>,
    verdicts: Vec<bool>,
}

pub(crate) struct Twin<R: Rules> {
    eligibility: Eligibility,
    lines: Vec<Option<Line<R::Window>>>,
    turns: u64,
}

fn index(line: usize) -> StreamIndex {
    StreamIndex(u32::try_from(line).unwrap_or(u32::MAX))
}

impl<R: Rules> Twin<R> {
    pub(crate) fn new(eligibility: Eligibility, streams: usize) -> Self {
        Self { eligibility, lines: (0..streams).map(|_| None).collect(), turns: 0 }
    }

    fn line(&mut self, stream: StreamIndex) -> Option<&mut Line<R::Window>> {
        self.lines[stream.0 as usize].as_mut()
    }

    pub(crate) fn join(&mut self, stream: StreamIndex, class: Class) {
        let contract = match class {
            Class::Contracted(contract) => Some((contract, R::open(&contract))),
            Class::BestEffort | Class::Background => None,
        };
        let background = class == Class::Background;
        let line = Line { contract, background, next_release: 0, head: None, verdicts: Vec::new() };
        self.lines[stream.0 as usize] = Some(line);
    }

    pub(crate) fn leave(&mut self, stream: StreamIndex) {
        self.lines[stream.0 as usize] = None;
    }

    pub(crate) fn handle_head(&mut self, stream: StreamIndex, head: Head) {
        self.turns += 1;
        let (turn, eligibility) = (self.turns, self.eligibility);
        let Some(line) = self.line(stream).filter(|line| line.head.is_none()) else { return };
        let arrived = head.arrived.as_nanos();
        let (mut release, mut deadline, mut ranked) = (arrived, u64::MAX, false);
        if let Some((contract, _)) = &line.contract {
            let (period, jitter) = (contract.period.as_nanos(), contract.jitter.as_nanos());
            if arrived + jitter < line.next_release {
                release = line.next_release - jitter;
            }
            line.next_release = line.next_release.max(arrived) + period;
            deadline = release + contract.deadline.as_nanos();
            ranked = release == arrived || eligibility == Eligibility::WorkConserving;
        }
        let turn = (!ranked).then_some(turn);
        let service = head.left.service.as_nanos();
        line.head = Some(Waiting { service, release, deadline, late: false, turn });
    }

    pub(crate) fn handle_segment(&mut self, stream: StreamIndex, service_left: Duration) {
        self.turns += 1;
        let turn = self.turns;
        let Some(head) = self.line(stream).and_then(|line| line.head.as_mut()) else { return };
        head.service = service_left.as_nanos();
        head.turn = head.turn.map(|_| turn);
    }

    pub(crate) fn pick(&mut self, now: Instant) -> Option<StreamIndex> {
        let lines = self.lines.iter_mut().flatten();
        for line in lines.filter(|line| line.contract.is_some()) {
            if let Some(head) = line.head.as_mut().filter(|h| h.release <= now.as_nanos()) {
                head.turn = None;
            }
        }
        let mut ranked: Vec<(usize, Rank<R::Window>)> = Vec::new();
        let mut turns: Vec<(bool, u64, usize)> = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let Some(Line { contract, background, head: Some(head), .. }) = line else { continue };
            match (head.turn, contract) {
                (Some(turn), _) => turns.push((*background, turn, at)),
                (None, &Some((contract, window))) => {
                    ranked.push((at, Rank { deadline: head.deadline, contract, window }));
                }
                (None, None) => unreachable!("best effort without a turn"),
            }
        }
        // min_by returns the first of equals: the lowest index.
        let first = ranked.iter().min_by(|(_, a), (_, b)| R::order(a, b)).map(|&(at, _)| at);
        first.or_else(|| turns.iter().min().map(|&(_, _, at)| at)).map(index)
    }

    pub(crate) fn handle_served(&mut self, stream: StreamIndex, finish: Instant) -> Service {
        let mut service = Service { on_time: true, violated: false };
        let Some(line) = self.line(stream) else { return service };
        let Some(head) = line.head.take() else { return service };
        let Some((contract, window)) = &mut line.contract else { return service };
        if finish.as_nanos() > head.deadline {
            R::missed(window, contract, !head.late);
            service.violated = !head.late && line.judge(true);
        } else if !head.late {
            R::met(window, contract);
            line.judge(false);
            return service;
        }
        service.on_time = false;
        service
    }

    pub(crate) fn poll_missed(&mut self, now: Instant) -> Option<Miss> {
        let starts = self.lines.iter().enumerate().filter_map(|(at, line)| {
            let Some(Line { contract: Some(_), head: Some(head), .. }) = line else { return None };
            Some((head.deadline.saturating_sub(head.service), at))
        });
        let mut missed: Vec<_> = starts.filter(|&(start, _)| now.as_nanos() > start).collect();
        missed.sort_unstable();
        missed.into_iter().find_map(|(_, at)| self.miss(index(at), now))
    }

    fn miss(&mut self, stream: StreamIndex, now: Instant) -> Option<Miss> {
        let line = self.line(stream)?;
        let (contract, window) = line.contract.as_mut()?;
        let head = line.head.as_mut()?;
        let first = !head.late;
        head.late = true;
        let dropped = contract.late == Late::Drop;
        if dropped {
            R::missed(window, contract, true);
            line.head = None;
        } else {
            let mut first_deadline = first;
            while now.as_nanos() + head.service > head.deadline {
                R::missed(window, contract, first_deadline);
                first_deadline = false;
                head.deadline += contract.period.as_nanos();
            }
        }
        first.then(|| Miss { stream, dropped, violated: line.judge(true) })
    }

    pub(crate) fn remove_head(&mut self, stream: StreamIndex) -> bool {
        let Some(line) = self.line(stream) else { return false };
        let Some(head) = line.head.take() else { return false };
        let Some((contract, window)) = line.contract.as_mut().filter(|_| !head.late) else {
            return false;
        };
        R::missed(window, contract, true);
        line.judge(true)
    }

    pub(crate) fn window(&self, stream: StreamIndex) -> Option<WindowState> {
        let (_, window) = self.lines[stream.0 as usize].as_ref()?.contract.as_ref()?;
        Some(R::state(window))
    }

    pub(crate) fn deadline(&self, stream: StreamIndex) -> Option<Instant> {
        let line = self.lines[stream.0 as usize].as_ref()?;
        line.contract.as_ref()?;
        line.head.as_ref().map(|head| Instant::from_nanos(head.deadline))
    }
}

impl<W> Line<W> {
    /// Adds a verdict; true if it takes its aligned window from x misses to x + 1.
    fn judge(&mut self, missed: bool) -> bool {
        self.verdicts.push(missed);
        let Some((contract, _)) = &self.contract else { return false };
        let (x, y) = (contract.loss.x() as usize, contract.loss.y() as usize);
        let window = self.verdicts.chunks(y.max(1)).next_back().unwrap_or_default();
        let misses = window.iter().filter(|&&missed| missed).count();
        y > 0 && missed && misses == x + 1
    }
}
