//! The naive model of a link: every decision scans every stream, deadlines pass one by one, and windows are
//! cut from the full history of results.
//!
//! Time may step back. A released head stays released, and a counted result stays counted. Everything else is
//! evaluated at the given instant.

use super::coverage::{Coverage, Situation};
use super::line::{Line, NEVER, Waiting};
use super::rules::{self, Seen};
use super::window::Window;
use paceline_sched::contract::{Late, LossTolerance};
use paceline_sched::discipline::{
    Earlier, Eligibility, Head, Left, Miss, Policy, Service, ServiceClass, StreamIndex, Terms,
    WindowState,
};
use paceline_sched::time::{Duration, Instant};

pub(crate) struct Twin {
    policy: Policy,
    eligibility: Eligibility,
    lines: Vec<Option<Line>>,
    turns: u64,
    serial: u64,
}

fn index(line: usize) -> StreamIndex {
    StreamIndex(u32::try_from(line).unwrap_or(u32::MAX))
}

impl Twin {
    pub(crate) fn new(policy: Policy, eligibility: Eligibility, streams: u32) -> Self {
        let lines = (0..streams).map(|_| None).collect();
        Self { policy, eligibility, lines, turns: 0, serial: 0 }
    }

    fn line(&mut self, stream: StreamIndex) -> Option<&mut Line> {
        self.lines[stream.0 as usize].as_mut()
    }

    pub(crate) fn join(&mut self, stream: StreamIndex, terms: Terms) {
        let contract = terms.contract();
        let loss = contract.map_or(LossTolerance::EDF, |contract| contract.loss);
        // Priorities default to deadline-monotonic, in microseconds.
        let due = contract.map(|contract| contract.deadline.as_nanos() / 1_000);
        let due = due.map_or(u32::MAX, |due| u32::try_from(due).unwrap_or(u32::MAX));
        self.lines[stream.0 as usize] = Some(Line {
            contract,
            background: terms.class == ServiceClass::Background,
            begins_early: terms.begins_early,
            prior: terms.priority.is_some(),
            level: terms.priority.unwrap_or(due),
            window: Window::open(loss),
            next_release: 0,
            suspended: false,
            head: None,
            misses: Vec::new(),
        });
    }

    pub(crate) fn leave(&mut self, stream: StreamIndex) {
        self.lines[stream.0 as usize] = None;
    }

    pub(crate) fn handle_head(&mut self, stream: StreamIndex, head: Head) {
        self.turns += 1;
        let (turn, serial, policy) = (self.turns, self.serial, self.policy);
        let waits = self.eligibility == Eligibility::OncePerPeriod && policy != Policy::Fifo;
        let Some(line) = self.line(stream).filter(|line| line.head.is_none()) else { return };
        let arrived = head.arrived.as_nanos();
        let (mut release, mut deadline, mut early) = (arrived, NEVER, false);
        if let Some(contract) = &line.contract {
            let (period, jitter) = (contract.period.as_nanos(), contract.jitter.as_nanos());
            early = arrived.saturating_add(jitter) < line.next_release;
            if early {
                release = line.next_release - jitter;
            }
            deadline = release.saturating_add(contract.deadline.as_nanos());
            line.next_release = line.next_release.max(arrived).saturating_add(period);
            if line.next_release == NEVER {
                // No further period exists, so an early head waits forever.
                release = NEVER;
            }
        }
        let ranked = match line.contract {
            Some(_) => !(early && waits),
            None => policy == Policy::Fifo || policy == Policy::StaticPriority && line.prior,
        };
        let ranked = ranked && !line.background;
        let (turn, service) = ((!ranked).then_some(turn), head.left.service.as_nanos());
        line.head = Some(Waiting {
            arrived,
            released: if early && waits { release } else { arrived },
            serial,
            service,
            release,
            deadline,
            late: false,
            turn,
            ahead: false,
            whole: head.left.last,
            begun: false,
            frame_begun: false,
            late_begin: None,
        });
        // The round-robin position is evaluated as of the head's arrival, even if `handle_head` runs later.
        let soon = line.soon().filter(|soon| early && waits && *soon <= arrived);
        line.head.as_mut().into_iter().for_each(|head| head.ahead = soon.is_some());
        self.serial += 1;
    }

    /// Delays the just announced head and its successors by `over`. Returns true if this applied.
    pub(crate) fn handle_long(&mut self, stream: StreamIndex, over: Duration) -> bool {
        self.turns += 1;
        let (turn, over) = (self.turns, over.as_nanos());
        if self.eligibility != Eligibility::OncePerPeriod || self.policy == Policy::Fifo {
            return false;
        }
        let Some(line) = self.line(stream) else { return false };
        let (Some(contract), Some(head)) = (&line.contract, &mut line.head) else { return false };
        line.next_release = line.next_release.saturating_add(over);
        head.deadline = head.deadline.saturating_add(over);
        head.released = head.released.saturating_add(over);
        head.release = match line.next_release {
            NEVER => NEVER,
            next => {
                let own = next.saturating_sub(contract.period.as_nanos());
                own.saturating_sub(contract.jitter.as_nanos())
            }
        };
        (head.turn, head.ahead) = (Some(turn), false);
        true
    }

    pub(crate) fn suspend(&mut self, stream: StreamIndex) {
        if let Some(line) = self.line(stream) {
            line.suspended = true;
        }
    }

    /// Returns true if a suspended head waits. It then follows all others in round robin.
    pub(crate) fn resume(&mut self, stream: StreamIndex) -> bool {
        self.turns += 1;
        let turn = self.turns;
        let Some(line) = self.line(stream).filter(|line| line.suspended) else { return false };
        line.suspended = false;
        let Some(head) = &mut line.head else { return false };
        head.turn = head.turn.map(|_| turn);
        true
    }

    pub(crate) fn handle_segment(&mut self, stream: StreamIndex, left: Left) {
        self.turns += 1;
        let turn = self.turns;
        let Some(line) = self.line(stream) else { return };
        let owed = line.remaining().1 > 0 && line.loss().x() > 0 && line.begins_early;
        let begins = owed && line.contract.is_some_and(|it| it.late == Late::Drop);
        let Some(head) = line.head.as_mut() else { return };
        head.service = left.service.as_nanos();
        head.begun |= head.turn.is_none() && begins && !head.whole && head.late_begin.is_none();
        head.turn = head.turn.map(|_| turn);
    }

    /// Ranks each head whose period has begun.
    fn release(&mut self, now: u64) {
        let policy = self.policy;
        for line in self.lines.iter_mut().flatten() {
            if let Some(late) = line.late_to_begin_at(policy).filter(|at| *at <= now) {
                line.head.as_mut().into_iter().for_each(|head| head.late_begin = Some(late));
            }
            if line.suspended || line.contract.is_none() {
                continue;
            }
            let soon = line.soon();
            let Some(head) = line.head.as_mut() else { continue };
            head.ahead |= soon.is_some_and(|soon| soon <= now);
            if head.release <= now {
                head.turn = None;
            }
        }
        for line in self.lines.iter_mut().flatten() {
            let begins = rules::waits_for_frame(policy, line).is_some_and(|at| at <= now);
            line.head.as_mut().into_iter().for_each(|head| head.frame_begun |= begins);
        }
    }

    pub(crate) fn pick(&mut self, now: Instant, coverage: &mut Coverage) -> Option<StreamIndex> {
        self.release(now.as_nanos());
        let mut first: Option<(usize, Seen<'_>)> = None;
        let mut next: Option<(u8, u64, usize)> = None;
        for (at, line) in self.lines.iter().enumerate() {
            let Some(line) = line.as_ref().filter(|line| !line.suspended) else { continue };
            let Some(head) = &line.head else { continue };
            if let Some(turn) = head.turn {
                let turn = match head.ahead {
                    true => (0, head.release, at),
                    false => (1 + u8::from(line.background), turn, at),
                };
                next = Some(next.map_or(turn, |next| next.min(turn)));
                continue;
            }
            let seen = Seen { line, head };
            let Some((_, before)) = first else {
                first = Some((at, seen));
                continue;
            };
            let (ordering, rule) = rules::order(self.policy, seen, before);
            coverage.settled(rule);
            if ordering.is_lt() {
                first = Some((at, seen)); // a tie keeps the lower index
            }
        }
        let early = |at: usize| self.lines[at].as_ref().is_some_and(|line| line.contract.is_some());
        let picked = first.map(|(at, _)| at).or(next.map(|(_, _, at)| at));
        coverage.saw_if(first.is_none() && picked.is_some_and(early), Situation::EarlyPick);
        picked.map(index)
    }

    pub(crate) fn handle_served(&mut self, stream: StreamIndex, finish: Instant) -> Service {
        let (mut service, policy) = (Service { on_time: true, violated: false }, self.policy);
        let Some(line) = self.line(stream) else { return service };
        let Some(head) = line.head.take().filter(|_| line.contract.is_some()) else {
            return service;
        };
        if finish.as_nanos() > head.deadline {
            line.missed(policy);
            service.violated = !head.late && line.record(true);
        } else if !head.late {
            line.met(policy);
            line.record(false);
            return service;
        }
        service.on_time = false;
        service
    }

    pub(crate) fn poll_missed(&mut self, now: Instant, coverage: &mut Coverage) -> Option<Miss> {
        let now = now.as_nanos();
        self.release(now);
        loop {
            let starts = self.lines.iter().enumerate().filter_map(|(at, line)| {
                let start = line.as_ref()?.missed_at()?;
                (start <= now && start != NEVER).then_some((start, at))
            });
            let (_, at) = starts.min()?;
            if let Some(miss) = self.miss(index(at), now, coverage) {
                return Some(miss);
            }
        }
    }

    fn miss(&mut self, stream: StreamIndex, now: u64, coverage: &mut Coverage) -> Option<Miss> {
        let policy = self.policy;
        let line = self.line(stream)?;
        let contract = line.contract?;
        let mut head = line.head.take()?;
        coverage.saw_if(line.suspended, Situation::SuspendedMiss);
        let first = !head.late;
        head.late = true;
        let dropped = contract.late == Late::Drop;
        if dropped {
            line.missed(policy);
        } else {
            let finish = u128::from(now) + u128::from(head.service);
            let mut deadline = u128::from(head.deadline);
            let mut passed = 0;
            while finish > deadline {
                line.missed(policy);
                deadline += u128::from(contract.period.as_nanos().max(1));
                passed += 1;
            }
            coverage.saw_if(passed > 1, Situation::Postponed);
            coverage.saw_if(passed >= 100, Situation::Stalled);
            head.deadline = u64::try_from(deadline).unwrap_or(NEVER);
            line.head = Some(head);
        }
        first.then(|| Miss { stream, dropped, violated: line.record(true) })
    }

    pub(crate) fn remove_head(&mut self, stream: StreamIndex) -> bool {
        let policy = self.policy;
        let Some(line) = self.line(stream) else { return false };
        let exempt = line.contract.is_none();
        let Some(_) = line.head.take().filter(|head| !exempt && !head.late) else { return false };
        line.missed(policy);
        line.record(true)
    }

    pub(crate) fn handle_skipped(&mut self, stream: StreamIndex) -> bool {
        let policy = self.policy;
        let Some(line) = self.line(stream).filter(|line| line.contract.is_some()) else {
            return false;
        };
        line.missed(policy);
        line.record(true)
    }

    pub(crate) fn handle_earlier(&mut self, stream: StreamIndex, earlier: Earlier) {
        let policy = self.policy;
        let Some(line) = self.line(stream).filter(|line| line.contract.is_some()) else { return };
        let window = u64::from(line.loss().y());
        let mut left = earlier.samples;
        while window > 0 && left >= window {
            left -= window;
        }
        for at in 0..if window > 0 { left } else { 0 } {
            let missed = at < u64::from(earlier.missed);
            if missed {
                line.missed(policy);
            } else {
                line.met(policy);
            }
            line.record(missed);
        }
    }

    pub(crate) fn earlier(&self, stream: StreamIndex) -> Option<Earlier> {
        let line = self.lines[stream.0 as usize].as_ref().filter(|line| line.contract.is_some())?;
        let (loss, (left, required)) = (line.loss(), line.remaining());
        let samples = loss.y() - left;
        let missed = samples - (loss.y() - loss.x() - required);
        if !line.head.as_ref().is_some_and(|head| head.late) {
            return Some(Earlier { samples: samples.into(), missed });
        }
        let before = if samples == 0 { loss.y().max(1) - 1 } else { samples - 1 };
        Some(Earlier { samples: before.into(), missed: missed.saturating_sub(1) })
    }

    pub(crate) fn next_change(&self, now: Instant) -> Option<Instant> {
        let heads = self.lines.iter().flatten().filter_map(|line| {
            let head = line.head.as_ref().filter(|_| line.contract.is_some())?;
            let missed = line.missed_at()?;
            let missed = line.late_to_begin_at(self.policy).map_or(missed, |at| at.min(missed));
            let missed =
                rules::waits_for_frame(self.policy, line).map_or(missed, |at| at.min(missed));
            let early = head.turn.is_some() && !line.suspended;
            let moves = line.soon().filter(|_| !head.ahead).unwrap_or(head.release);
            Some(if early { missed.min(moves) } else { missed })
        });
        let next = heads.min().filter(|&at| at != NEVER)?;
        Some(Instant::from_nanos(next.max(now.as_nanos() + 1)))
    }

    pub(crate) fn window(&self, stream: StreamIndex) -> Option<WindowState> {
        let line = self.lines[stream.0 as usize].as_ref().filter(|line| line.contract.is_some())?;
        if let Policy::Dwcs { .. } = self.policy {
            let Window { x, y, tagged } = line.window;
            return Some(WindowState { x, y, tagged });
        }
        let (left, required) = line.remaining();
        Some(WindowState { x: left.saturating_sub(required), y: left, tagged: false })
    }

    pub(crate) fn deadline(&self, stream: StreamIndex) -> Option<Instant> {
        let line = self.lines[stream.0 as usize].as_ref().filter(|line| line.contract.is_some())?;
        line.head.as_ref().map(|head| Instant::from_nanos(head.deadline))
    }
}
