//! Runs a discipline and its twin through the same history and compares their observable state after every
//! step.

use super::coverage::{Coverage, Situation};
use super::event::{Event, Life};
use super::twin::Twin;
use paceline_sched::discipline::{
    Discipline, Head, Left, Miss, Policy, Scheduler, StreamIndex, Terms, WindowState,
};
use paceline_sched::time::{Duration, Instant};
use std::collections::VecDeque;
use std::fmt::Debug;

/// The last instant that a clock shows; [`Instant::FAR`] means never.
const LAST: Instant = Instant::from_nanos(u64::MAX - 1);

/// A discipline and its twin, and the state that a caller keeps for them.
struct Pair<'a> {
    fast: Discipline,
    slow: Twin,
    now: Instant,
    waiting: Vec<VecDeque<Head>>,
    /// The announced heads, with their remaining service.
    heads: Vec<Option<Head>>,
    windows: Vec<Option<WindowState>>,
    coverage: &'a mut Coverage,
}

/// Runs the history. Returns the number of the event after which the two differed, and the difference.
pub(crate) fn run(
    policy: Policy,
    life: &Life,
    coverage: &mut Coverage,
) -> Result<(), (usize, String)> {
    let streams = life.streams as usize;
    let mut pair = Pair {
        fast: Discipline::new(policy, life.eligibility),
        slow: Twin::new(policy, life.eligibility, life.streams),
        now: life.start.min(LAST),
        waiting: vec![VecDeque::new(); streams],
        heads: vec![None; streams],
        windows: vec![None; streams],
        coverage,
    };
    for (step, &event) in life.events.iter().enumerate() {
        pair.coverage.steps += 1;
        // The check of `next_change` needs a copy, so it runs only now and then. Each step compares it with
        // the twin as well.
        pair.step(event, step % 8 == 5).map_err(|what| (step, what))?;
    }
    Ok(())
}

fn same<T: Debug + PartialEq>(what: &str, now: Instant, fast: &T, slow: &T) -> Result<(), String> {
    if fast == slow {
        return Ok(());
    }
    Err(format!("{what} at {} ns: {fast:?}, and its twin {slow:?}", now.as_nanos()))
}

impl Pair<'_> {
    fn step(&mut self, event: Event, with_promise: bool) -> Result<(), String> {
        match event {
            Event::Join { stream, terms, keeps } => self.join(stream, terms, keeps),
            Event::Leave { stream } => {
                self.waiting[stream as usize].clear();
                self.heads[stream as usize] = None;
                self.fast.leave(StreamIndex(stream));
                self.slow.leave(StreamIndex(stream));
            }
            Event::Arrive { stream, service, age } => self.arrive(stream, service, age),
            Event::ArriveLong { stream, service, over } => {
                let follows = self.heads[stream as usize].is_some();
                self.arrive(stream, service, 0);
                if !follows {
                    let (index, over) = (StreamIndex(stream), Duration::from_nanos(over));
                    self.fast.handle_long(index, over);
                    let put_off = self.slow.handle_long(index, over);
                    self.coverage.saw_if(put_off, Situation::Long);
                }
            }
            Event::ArriveAll { service } => {
                (0..)
                    .zip(0..self.heads.len())
                    .for_each(|(stream, _)| self.arrive(stream, service, 0));
            }
            Event::Remove { stream } => self.remove(stream)?,
            Event::Skip { stream } => {
                let index = StreamIndex(stream);
                let fast = self.fast.handle_skipped(index);
                same("skipped", self.now, &fast, &self.slow.handle_skipped(index))?;
                self.coverage.saw_if(fast, Situation::SkipViolation);
            }
            Event::Earlier { stream, earlier } => {
                self.fast.handle_earlier(StreamIndex(stream), earlier);
                self.slow.handle_earlier(StreamIndex(stream), earlier);
            }
            Event::Suspend { stream } => {
                self.fast.suspend(StreamIndex(stream));
                self.slow.suspend(StreamIndex(stream));
            }
            Event::Resume { stream } => {
                self.fast.resume(StreamIndex(stream));
                let waited = self.slow.resume(StreamIndex(stream));
                self.coverage.saw_if(waited, Situation::Resume);
            }
            Event::Send { segments, longest, slip } => {
                for _ in 0..segments {
                    self.send(longest, slip)?;
                }
            }
            Event::Idle { nanos } => self.pass(nanos),
            Event::Back { nanos } => {
                self.coverage.saw(Situation::Backward);
                self.now = self.now - Duration::from_nanos(nanos);
            }
        }
        self.drain()?;
        self.compare()?;
        if !with_promise {
            return Ok(());
        }
        self.nothing_changes_before_next_change()?;
        self.sleeping_until_next_wake_changes_nothing()
    }

    fn pass(&mut self, nanos: u64) {
        self.now = (self.now + Duration::from_nanos(nanos)).min(LAST);
    }

    fn join(&mut self, stream: u32, terms: Terms, keeps: bool) {
        let head = self.heads[stream as usize].take();
        self.coverage.saw_if(head.is_some(), Situation::Change);
        self.fast.join(StreamIndex(stream), terms);
        self.slow.join(StreamIndex(stream), terms);
        if !keeps {
            self.waiting[stream as usize].clear();
        } else if let Some(head) = head {
            self.waiting[stream as usize].push_front(head);
        }
        self.announce(stream);
    }

    fn arrive(&mut self, stream: u32, service: u64, age: u64) {
        let arrived = self.now - Duration::from_nanos(age);
        let left = Left {
            service: Duration::from_nanos(service),
            segment: 1,
            last: service.is_multiple_of(2),
        };
        let head = Head { arrived, left };
        self.waiting[stream as usize].push_back(head);
        self.announce(stream);
    }

    /// Announces the next queued sample if there is no head.
    ///
    /// This includes streams that never joined, where it must change nothing.
    fn announce(&mut self, stream: u32) {
        if self.heads[stream as usize].is_some() {
            return;
        }
        let Some(&head) = self.waiting[stream as usize].front() else { return };
        self.fast.handle_head(StreamIndex(stream), head);
        self.announced(stream);
    }

    /// Makes the first queued sample the head, after the discipline was notified.
    fn announced(&mut self, stream: u32) {
        let Some(head) = self.waiting[stream as usize].pop_front() else { return };
        self.heads[stream as usize] = Some(head);
        self.slow.handle_head(StreamIndex(stream), head);
        let never = self.slow.deadline(StreamIndex(stream)) == Some(Instant::FAR);
        self.coverage.saw_if(never, Situation::Never);
    }

    fn remove(&mut self, stream: u32) -> Result<(), String> {
        let fast = self.fast.remove_head(StreamIndex(stream));
        same("removed", self.now, &fast, &self.slow.remove_head(StreamIndex(stream)))?;
        self.coverage.saw_if(fast, Situation::SkipViolation);
        self.heads[stream as usize] = None;
        self.announce(stream);
        Ok(())
    }

    fn send(&mut self, longest: u64, slip: u64) -> Result<(), String> {
        self.drain()?;
        let picked = self.pick()?;
        let Some(stream) = picked else { return Ok(()) };
        self.coverage.saw(Situation::Pick);
        let Some(head) = &mut self.heads[stream.0 as usize] else {
            return Err(format!("picked {stream:?}, which has no head"));
        };
        let left = head.left.service.as_nanos();
        let segment = left.min(longest);
        if segment < left {
            let service = Duration::from_nanos(left - segment);
            head.left = Left { service, segment: 1, last: left - segment <= longest };
            let left = head.left;
            self.fast.handle_segment(stream, 1, left);
            self.slow.handle_segment(stream, left);
            self.pass(segment);
            self.coverage.saw(Situation::Segment);
            return Ok(());
        }
        self.heads[stream.0 as usize] = None;
        self.pass(segment.saturating_add(slip));
        // Uses both forms of the call equally often: with the next head, and without it.
        let waiting = &self.waiting[stream.0 as usize];
        let next = waiting
            .front()
            .copied()
            .filter(|head| (head.left.service.as_nanos() ^ self.now.as_nanos()).is_multiple_of(2));
        let fast = self.fast.handle_served_and_next(stream, (1, self.now), next);
        same("served", self.now, &fast, &self.slow.handle_served(stream, self.now))?;
        if next.is_some() {
            self.announced(stream.0);
        }
        self.coverage.saw_if(!fast.on_time, Situation::ServedLate);
        self.coverage.saw_if(fast.violated, Situation::Violation);
        self.announce(stream.0);
        Ok(())
    }

    fn pick(&mut self) -> Result<Option<StreamIndex>, String> {
        let fast = self.fast.pick(self.now);
        same("pick", self.now, &fast, &self.slow.pick(self.now, self.coverage))?;
        Ok(fast)
    }

    fn drain(&mut self) -> Result<(), String> {
        let mut misses = 0;
        loop {
            let fast = self.fast.poll_missed(self.now);
            same("miss", self.now, &fast, &self.slow.poll_missed(self.now, self.coverage))?;
            let Some(Miss { stream, dropped, violated }) = fast else { break };
            misses += 1;
            self.coverage.saw(Situation::Miss);
            self.coverage.saw_if(violated, Situation::Violation);
            if dropped {
                self.heads[stream.0 as usize] = None;
                self.announce(stream.0);
            }
        }
        self.coverage.saw_if(misses >= 3, Situation::Burst);
        Ok(())
    }

    fn compare(&mut self) -> Result<(), String> {
        for (stream, before) in (0..).map(StreamIndex).zip(&mut self.windows) {
            let fast = (self.fast.window(stream), self.fast.deadline(stream));
            let slow = (self.slow.window(stream), self.slow.deadline(stream));
            if fast != slow {
                same(&format!("{stream:?}"), self.now, &fast, &slow)?;
            }
            let (fast_earlier, slow_earlier) =
                (self.fast.earlier(stream), self.slow.earlier(stream));
            if fast_earlier != slow_earlier {
                same(&format!("{stream:?}"), self.now, &fast_earlier, &slow_earlier)?;
            }
            if let (true, Some(window)) = (*before != fast.0, fast.0) {
                self.coverage.saw_if(window.tagged, Situation::Tag);
                self.coverage.saw_if(window.x == 0 && window.y > 5, Situation::Raised);
                self.coverage.saw_if(window.y > 1 << 15, Situation::LongWindow);
            }
            *before = fast.0;
        }
        let _ = self.pick()?;
        let change = self.fast.next_change(self.now);
        same("next change", self.now, &change, &self.slow.next_change(self.now))
    }

    /// Checks that an untouched link gives the same answers at any instant before `next_change`. At that
    /// instant a change must be possible.
    fn nothing_changes_before_next_change(&mut self) -> Result<(), String> {
        let picked = self.fast.pick(self.now);
        let change = self.fast.next_change(self.now);
        let last = change.map_or(LAST, |at| at - Duration::from_nanos(1));
        let half = self.now + Duration::from_nanos(last.since(self.now).as_nanos() / 2);
        let mut later = self.fast.clone();
        for at in [half, last] {
            same("promised no miss", at, &later.poll_missed(at), &None)?;
            same("promised pick", at, &later.pick(at), &picked)?;
            for stream in (0..).map(StreamIndex).take(self.heads.len()) {
                let then = (later.window(stream), later.deadline(stream));
                same(
                    "promised",
                    at,
                    &then,
                    &(self.fast.window(stream), self.fast.deadline(stream)),
                )?;
            }
        }
        Ok(())
    }

    /// Checks that a driver with nothing to send may sleep until `next_wake`.
    ///
    /// Nothing becomes due before it, and one step catches up with the same result as many.
    fn sleeping_until_next_wake_changes_nothing(&mut self) -> Result<(), String> {
        let change = self.fast.next_change(self.now);
        let wake = self.fast.next_wake(self.now);
        if wake == change {
            return Ok(());
        }
        self.coverage.saw(Situation::Sleep);
        let last = wake.map_or(LAST, |at| at - Duration::from_nanos(1));
        let (mut asleep, mut awake) = (self.fast.clone(), self.fast.clone());
        let mut now = self.now;
        for _ in 0..8 {
            let Some(at) = awake.next_change(now).filter(|at| *at <= last) else { break };
            same("miss before a wake", at, &awake.poll_missed(at), &None)?;
            now = at;
        }
        for link in [&mut asleep, &mut awake] {
            same("miss before a wake", last, &link.poll_missed(last), &None)?;
        }
        for stream in (0..).map(StreamIndex).take(self.heads.len()) {
            let then = (asleep.window(stream), asleep.deadline(stream));
            // At the end of the clock deadlines saturate, after a number of steps that depends on the path.
            if then.1 == Some(Instant::FAR) {
                return Ok(());
            }
            same("asleep", last, &then, &(awake.window(stream), awake.deadline(stream)))?;
        }
        same("pick after a sleep", last, &asleep.pick(last), &awake.pick(last))
    }
}
