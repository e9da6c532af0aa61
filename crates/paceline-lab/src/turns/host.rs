//! A simulated host in virtual time, with senders, queues and one scheduler.
//!
//! It predicts the effect of a pace, and reproduces figure 7 of seed 001: the service rate against the
//! scheduler's period.

use super::{Budget, Cost, Pace, PaceError, Turns, Volume};
use paceline_sched::discipline::{
    Discipline, Eligibility, Head, Policy, Scheduler, ServiceClass, StreamIndex,
};
use paceline_sched::time::{Duration, Instant};
use std::collections::{BTreeSet, VecDeque};

/// Senders of one kind: streams of equal packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Senders {
    /// The number of senders; their first packets are spread over one interval.
    pub(crate) count: u32,
    /// The time between two packets of a sender.
    pub(crate) interval: Duration,
    /// The size of a packet in bytes.
    pub(crate) len: u64,
    /// The time for which the enqueueing of a packet blocks its sender, by a lock shared with the
    /// scheduler or until a clock tick. The sender waits its interval afterwards. Zero if enqueueing
    /// never blocks.
    pub(crate) held_up: Duration,
}

/// The scheduler and its host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Host {
    /// The rule for starting iterations.
    pub(crate) pace: Pace,
    /// The work limit of an iteration.
    pub(crate) budget: Budget,
    /// The cost of the scheduler's work.
    pub(crate) cost: Cost,
    /// The queue limit of each sender in packets; packets above it are dropped.
    pub(crate) queue: u32,
}

/// The results of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Figures {
    /// The traffic served.
    pub(crate) served: Volume,
    /// The packets that were dropped at a full queue.
    pub(crate) dropped: u64,
    /// The number of iterations.
    pub(crate) turns: u64,
    /// The number of iterations that found no packet.
    pub(crate) empty_turns: u64,
    /// The time for which the scheduler worked.
    pub(crate) busy: Duration,
    /// The longest time from a packet's arrival to the end of the iteration that served it.
    pub(crate) longest_wait: Duration,
}

struct World {
    host: Host,
    senders: Senders,
    turns: Turns,
    discipline: Discipline,
    /// The arrival instants of queued packets, by sender.
    queues: Vec<VecDeque<Instant>>,
    waiting: Volume,
    figures: Figures,
}

/// Runs `senders` on `host` for `time`, with one step per arrival and iteration.
///
/// # Errors
/// [`PaceError`] as for [`Turns::new`].
pub(crate) fn run(host: &Host, senders: &Senders, time: Duration) -> Result<Figures, PaceError> {
    let mut discipline = Discipline::new(Policy::Fifo, Eligibility::WorkConserving);
    let mut arrivals = BTreeSet::new();
    for sender in 0..senders.count {
        discipline.join(StreamIndex(sender), ServiceClass::BestEffort);
        let offset = senders.interval.mul_div(u64::from(sender), u64::from(senders.count));
        arrivals.insert((Instant::ZERO + offset, sender));
    }
    let mut world = World {
        host: *host,
        senders: *senders,
        turns: Turns::new(host.pace, host.budget, host.cost)?,
        discipline,
        queues: (0..senders.count).map(|_| VecDeque::new()).collect(),
        waiting: Volume::default(),
        figures: Figures::default(),
    };
    let (end, mut free) = (Instant::ZERO + time, Instant::ZERO);
    let apart = senders.interval.saturating_add(senders.held_up).max(Duration::from_nanos(1));
    let mut now = Instant::ZERO;
    loop {
        let turn = world.turns.next_turn(now, world.waiting).map(|at| at.max(free));
        let arrival = arrivals.first().copied();
        match (arrival, turn) {
            (Some((at, sender)), turn) if at <= end && turn.is_none_or(|turn| at <= turn) => {
                arrivals.pop_first();
                arrivals.insert((at + apart, sender));
                now = now.max(at);
                world.arrive(at, sender);
            }
            (_, Some(at)) if at <= end => {
                now = at;
                free = world.take_turn(at);
            }
            (_, Some(_) | None) => return Ok(world.figures),
        }
    }
}

impl World {
    fn head(&self, arrived: Instant) -> Head {
        let service = self.host.cost.of(Volume::packet(self.senders.len));
        Head::whole(arrived, service, self.len())
    }

    fn len(&self) -> u32 {
        u32::try_from(self.senders.len).unwrap_or(u32::MAX)
    }

    fn arrive(&mut self, now: Instant, sender: u32) {
        let head = self.head(now);
        let Some(queue) = self.queues.get_mut(usize::try_from(sender).unwrap_or(usize::MAX)) else {
            return;
        };
        if queue.len() >= usize::try_from(self.host.queue.max(1)).unwrap_or(usize::MAX) {
            self.figures.dropped += 1;
            return;
        }
        if queue.is_empty() {
            self.discipline.handle_head(StreamIndex(sender), head);
        }
        queue.push_back(now);
        self.turns.handle_arrival(now, self.senders.len);
        self.waiting = self.waiting.plus(Volume::packet(self.senders.len));
    }

    /// Performs one iteration at `now`. Returns the instant at which the scheduler is free again.
    fn take_turn(&mut self, now: Instant) -> Instant {
        let mut turn = self.turns.begin(now);
        let one = Volume::packet(self.senders.len);
        let mut free = now + self.host.cost.turn;
        self.figures.turns += 1;
        self.figures.empty_turns += u64::from(self.waiting.packets == 0);
        while let Some(stream) = self.discipline.pick(now) {
            if !turn.take(self.senders.len) {
                break;
            }
            free += self.host.cost.of(one);
            self.serve(stream, free);
            self.figures.served = self.figures.served.plus(one);
            self.waiting = self.waiting.minus(one);
        }
        self.figures.busy = self.figures.busy.saturating_add(free.since(now));
        free
    }

    fn serve(&mut self, stream: StreamIndex, finish: Instant) {
        self.discipline.handle_served(stream, self.len(), finish);
        let Some(queue) = usize::try_from(stream.0).ok().and_then(|at| self.queues.get_mut(at))
        else {
            return;
        };
        if let Some(arrived) = queue.pop_front() {
            let waited = finish.since(arrived);
            self.figures.longest_wait = self.figures.longest_wait.max(waited);
        }
        if let Some(&arrived) = queue.front() {
            self.discipline.handle_head(stream, self.head(arrived));
        }
    }
}
