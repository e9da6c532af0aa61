//! Calls the methods of a discipline in any order with any values.

use crate::input::Input;
use paceline_sched::contract::{Contract, Late, LossTolerance};
use paceline_sched::discipline::{
    Discipline, Eligibility, Head, Left, Policy, Scheduler, ServiceClass, StreamIndex, Terms,
};
use paceline_sched::time::{Duration, Instant};

/// Streams that may join. Calls use indices beyond these too.
const STREAMS: usize = 8;
const STEPS_MAX: usize = 2_000;

/// The expected state of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    joined: bool,
    contract: Option<Contract>,
    head: bool,
    suspended: bool,
}

struct Link {
    fast: Discipline,
    known: [Known; STREAMS],
}

/// Runs `data` as a policy and a sequence of calls: in any order, with any values and unknown streams.
///
/// # Panics
/// Panics if a call panics or returns a result that the trait does not permit.
pub fn body(data: &[u8]) {
    let mut input = Input::new(data);
    let policy = input.one_of(&Policy::ALL);
    let eligibility = input.one_of(&[Eligibility::OncePerPeriod, Eligibility::WorkConserving]);
    let fast = Discipline::new(policy, eligibility);
    let mut link = Link { fast, known: [Known::default(); STREAMS] };
    let mut now = Instant::ZERO;
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        now = match input.below(8) {
            0 => Instant::from_nanos(number(&mut input)), // set, possibly backward
            1..=5 => now + Duration::from_nanos(number(&mut input) % 64),
            _ => now,
        };
        link.call(&mut input, now);
        link.check(now);
    }
}

/// Returns a small number most of the time, otherwise one up to the largest.
fn number(input: &mut Input<'_>) -> u64 {
    let small = u64::from(input.byte());
    match input.below(8) {
        0 => u64::MAX - small,
        1 => (1 << 63) + small,
        2 => small << input.below(57),
        _ => small,
    }
}

fn word(input: &mut Input<'_>) -> u32 {
    u32::try_from(number(input)).unwrap_or(u32::MAX)
}

fn terms(input: &mut Input<'_>) -> Terms {
    let y = word(input) % (LossTolerance::Y_MAX + 1);
    let x = word(input) % (y + 1);
    let contract = Contract {
        period: Duration::from_nanos(number(input)),
        deadline: Duration::from_nanos(number(input)),
        loss: LossTolerance::new(x, y).unwrap_or(LossTolerance::EDF),
        late: input.one_of(&[Late::Drop, Late::Send]),
        jitter: Duration::from_nanos(number(input)),
    };
    let contracted = ServiceClass::Contracted(contract);
    let class =
        input.one_of(&[contracted, contracted, ServiceClass::BestEffort, ServiceClass::Background]);
    let terms = Terms::new(class).with_early_begin(input.flag());
    match input.below(4) {
        0 => terms.with_priority(word(input)),
        1 => terms.with_rate(number(input)),
        _ => terms,
    }
}

impl Link {
    fn call(&mut self, input: &mut Input<'_>, now: Instant) {
        let stream = match input.byte() {
            255 => u32::MAX,
            byte => u32::from(byte % 10),
        };
        let index = StreamIndex(stream);
        let mut nobody = Known::default();
        let known = self.known.get_mut(stream as usize).unwrap_or(&mut nobody);
        match input.below(16) {
            0 | 1 if (stream as usize) < STREAMS => {
                let terms = terms(input);
                *known = Known { joined: true, contract: terms.contract(), ..Known::default() };
                self.fast.join(index, terms);
            }
            0 | 1 => self.fast.reserve(usize::from(input.byte())),
            2 => {
                *known = Known::default();
                self.fast.leave(index);
            }
            3..=6 => {
                known.head |= known.joined;
                let left = left(input);
                let arrived = now - Duration::from_nanos(number(input));
                let head = Head { arrived, left };
                if left.segment.is_multiple_of(5) {
                    self.fast.handle_demoted(index, head);
                } else {
                    self.fast.handle_head(index, head);
                }
                if left.segment.is_multiple_of(7) {
                    self.fast.handle_long(index, left.service);
                }
            }
            7 => {
                known.suspended |= known.joined;
                self.fast.suspend(index);
            }
            8 => {
                known.suspended = false;
                self.fast.resume(index);
            }
            9 => self.fast.handle_segment(index, word(input), left(input)),
            10 => {
                let finish = now + Duration::from_nanos(number(input));
                let served = self.fast.handle_served(index, word(input), finish);
                let promised = known.head && known.contract.is_some();
                assert!(promised || served.on_time && !served.violated, "nothing was promised");
                known.head = false;
            }
            11 => {
                let violated = self.fast.remove_head(index);
                assert!(!violated || known.head && known.contract.is_some());
                known.head = false;
            }
            12 => assert!(!self.fast.handle_skipped(index) || known.contract.is_some()),
            13 => drop(self.fast.pick(now)), // before the misses are drained
            _ => self.serve(input, now),
        }
    }

    /// Serves a head as a caller does that follows the rules of the trait.
    fn serve(&mut self, input: &mut Input<'_>, now: Instant) {
        self.drain(now);
        let Some(stream) = self.fast.pick(now) else { return };
        if input.flag() {
            self.fast.handle_segment(stream, word(input), left(input));
        } else {
            let _ = self.fast.handle_served(stream, word(input), now);
            self.known[stream.0 as usize].head = false;
        }
    }

    /// Drains the misses. A head is reported only once unless it is announced again, so this terminates.
    fn drain(&mut self, now: Instant) {
        let mut heads = self.known.iter().filter(|known| known.head).count();
        while let Some(miss) = self.fast.poll_missed(now) {
            let known = &mut self.known[miss.stream.0 as usize];
            assert!(heads > 0 && known.head, "{miss:?}: reported twice");
            let contract = known.contract.unwrap();
            assert_eq!(miss.dropped, contract.late == Late::Drop, "{miss:?}");
            assert!(!miss.violated || contract.loss.y() > 0, "{miss:?}: no window");
            known.head = !miss.dropped;
            heads -= 1;
        }
    }

    fn check(&mut self, now: Instant) {
        for (stream, known) in (0..).map(StreamIndex).zip(&self.known) {
            let due = known.head && known.contract.is_some();
            assert_eq!(self.fast.deadline(stream).is_some(), due, "{stream:?}");
            let window = self.fast.window(stream);
            assert_eq!(window.is_some(), known.contract.is_some(), "{stream:?}");
            let (Some(window), Some(contract)) = (window, known.contract) else { continue };
            assert!(window.x <= window.y && window.x <= contract.loss.x(), "{window:?}");
            assert_eq!(window.y == 0, contract.loss.y() == 0, "{window:?} of {}", contract.loss);
        }
        for unknown in [8, 9, u32::MAX].map(StreamIndex) {
            assert_eq!((self.fast.window(unknown), self.fast.deadline(unknown)), (None, None));
        }
        // Works on a copy, since the checks must not release heads.
        let mut copy = Self { fast: self.fast.clone(), known: self.known };
        copy.drain(now);
        let ready = |known: &Known| known.head && !known.suspended;
        match copy.fast.pick(now) {
            Some(stream) => {
                assert!(ready(&copy.known[stream.0 as usize]), "{stream:?} has nothing to send");
            }
            None => assert!(!copy.known.iter().any(ready), "some stream has a packet to send"),
        }
        assert_eq!(copy.fast.pick(now), copy.fast.pick(now));
        let change = copy.fast.next_change(now);
        assert!(change.is_none_or(|at| at > now || now == Instant::FAR), "{change:?} at {now}");
        let wake = copy.fast.next_wake(now);
        assert!(wake.is_none_or(|wake| change.is_some_and(|at| at <= wake)), "{change:?} {wake:?}");
    }
}

fn left(input: &mut Input<'_>) -> Left {
    let service = Duration::from_nanos(number(input));
    Left { service, segment: word(input), last: word(input).is_multiple_of(2) }
}
