//! The model of the papers: unit slots, every sample one slot long, every stream always backlogged since
//! slot 0, first deadline at the end of the first period.

use paceline_sched::contract::{Contract, LossTolerance};
use paceline_sched::discipline::{
    Discipline, Eligibility, Head, Policy, Scheduler, StreamIndex, WindowState,
};
use paceline_sched::time::{Duration, Instant};

/// x, y, T in slots. 0/0 requests deadlines without a window.
pub(crate) type Spec = (u32, u32, u64);

/// A link under that model.
pub(crate) struct Slots {
    pub(crate) discipline: Discipline,
    specs: Vec<Spec>,
    eligibility: Eligibility,
    slot: u64,
    /// For each stream, whether each counted sample missed.
    pub(crate) missed: Vec<Vec<bool>>,
    /// The slot and the stream of each violation that the discipline reported.
    pub(crate) violations: Vec<(u64, usize)>,
}

fn index(stream: usize) -> StreamIndex {
    StreamIndex(u32::try_from(stream).unwrap_or(u32::MAX))
}

fn contract(&(x, y, period): &Spec) -> Contract {
    let period = Duration::from_millis(period);
    let loss = LossTolerance::new(x, y).unwrap_or(LossTolerance::EDF);
    Contract { period, deadline: period, loss, late: Default::default(), jitter: Duration::ZERO }
}

impl Slots {
    pub(crate) fn new(policy: Policy, eligibility: Eligibility, specs: &[Spec]) -> Self {
        let mut slots = Self {
            discipline: Discipline::new(policy, eligibility),
            specs: specs.to_vec(),
            eligibility,
            slot: 0,
            missed: vec![Vec::new(); specs.len()],
            violations: Vec::new(),
        };
        for (stream, spec) in specs.iter().enumerate() {
            slots.discipline.join(index(stream), Some(contract(spec)));
            slots.announce(stream);
        }
        slots
    }

    fn announce(&mut self, stream: usize) {
        let head = Head::whole(Instant::ZERO, Duration::from_millis(1), 1);
        self.discipline.handle_head(index(stream), head);
    }

    fn judge(&mut self, stream: usize, missed: bool, violated: bool) {
        self.missed[stream].push(missed);
        if violated {
            self.violations.push((self.slot, stream));
        }
    }

    /// Returns the stream served in the next slot, if one was eligible.
    pub(crate) fn step(&mut self) -> Option<usize> {
        let now = Instant::from_millis(self.slot);
        let picked = self.discipline.pick(now).filter(|&stream| self.is_eligible(stream, now));
        self.slot += 1;
        let finish = Instant::from_millis(self.slot);
        let served = picked.map(|stream| stream.0 as usize);
        if let Some(stream) = served {
            let service = self.discipline.handle_served(index(stream), 1, finish);
            self.judge(stream, !service.on_time, service.violated);
            self.announce(stream);
        }
        while let Some(miss) = self.discipline.poll_missed(finish) {
            self.judge(miss.stream.0 as usize, true, miss.violated);
            self.announce(miss.stream.0 as usize);
        }
        served
    }

    pub(crate) fn run(&mut self, slots: u32) {
        for _ in 0..slots {
            self.step();
        }
    }

    /// Returns true if the model permits the service; it leaves a slot empty where round robin would use
    /// it.
    fn is_eligible(&self, stream: StreamIndex, now: Instant) -> bool {
        let (_, _, period) = self.specs[stream.0 as usize];
        let release = self.discipline.deadline(stream).map(|d| d - Duration::from_millis(period));
        self.eligibility == Eligibility::WorkConserving || release.is_some_and(|at| at <= now)
    }

    pub(crate) fn window(&self, stream: usize) -> Option<WindowState> {
        self.discipline.window(index(stream))
    }

    pub(crate) fn deadline(&self, stream: usize) -> Option<Instant> {
        self.discipline.deadline(index(stream))
    }

    /// Returns true if any aligned window of `stream` has more than x misses.
    pub(crate) fn is_violated(&self, stream: usize) -> bool {
        let (x, y, _) = self.specs[stream];
        let windows = self.missed[stream].chunks(y.max(1) as usize);
        let most = windows.map(|window| window.iter().filter(|&&missed| missed).count()).max();
        y > 0 && most.unwrap_or(0) > x as usize
    }
}
