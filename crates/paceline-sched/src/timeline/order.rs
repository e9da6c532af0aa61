//! Who decides: one discipline, or a tree of classes with a discipline in each leaf.

use super::{Ahead, Setup, Spec};
use crate::discipline::{
    Discipline, Eligibility, Head, Hierarchy, Left, Miss, Scheduler, Service, StreamIndex, Terms,
    WindowState,
};
use crate::hfsc::{self, ClassIndex};
use crate::time::Instant;
use alloc::boxed::Box;

impl Ahead {
    /// How often a contracted stream may use its rank.
    #[must_use]
    pub const fn eligibility(self) -> Eligibility {
        match self {
            Self::Waits | Self::Shares => Eligibility::OncePerPeriod,
            Self::Competes => Eligibility::WorkConserving,
        }
    }
}

/// The scheduler of a run.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// All streams are alike.
    Flat(Box<Discipline>),
    /// Each stream is in a leaf of a tree.
    Classes(Box<Hierarchy>),
}

/// The same call on whichever there is.
macro_rules! either {
    ($order:expr, $scheduler:ident => $call:expr) => {
        match $order {
            Self::Flat($scheduler) => $call,
            Self::Classes($scheduler) => $call,
        }
    };
}

impl Order {
    /// One discipline.
    pub(super) fn flat(setup: &Setup) -> Self {
        Self::Flat(Box::new(Discipline::new(setup.policy, setup.ahead.eligibility())))
    }

    /// Seats a stream in its class, if there are classes, and lets it take part.
    pub(super) fn enter(&mut self, stream: StreamIndex, spec: &Spec) {
        if let (Self::Classes(tree), Some(class)) = (&mut *self, spec.class) {
            tree.seat(stream, class);
        }
        self.join(stream, spec.terms);
    }

    /// What a class was served; `None` without classes.
    pub(super) fn service(&self, class: ClassIndex) -> Option<hfsc::Service> {
        match self {
            Self::Flat(_) => None,
            Self::Classes(tree) => tree.service(class),
        }
    }
}

impl Scheduler for Order {
    fn reserve(&mut self, streams: usize) {
        either!(self, scheduler => scheduler.reserve(streams));
    }

    fn join(&mut self, stream: StreamIndex, terms: impl Into<Terms>) {
        either!(self, scheduler => scheduler.join(stream, terms));
    }

    fn leave(&mut self, stream: StreamIndex) {
        either!(self, scheduler => scheduler.leave(stream));
    }

    fn handle_head(&mut self, stream: StreamIndex, head: Head) {
        either!(self, scheduler => scheduler.handle_head(stream, head));
    }

    fn suspend(&mut self, stream: StreamIndex) {
        either!(self, scheduler => scheduler.suspend(stream));
    }

    fn resume(&mut self, stream: StreamIndex) {
        either!(self, scheduler => scheduler.resume(stream));
    }

    fn pick(&mut self, now: Instant) -> Option<StreamIndex> {
        either!(self, scheduler => scheduler.pick(now))
    }

    fn handle_segment(&mut self, stream: StreamIndex, bytes: u32, left: Left) {
        either!(self, scheduler => scheduler.handle_segment(stream, bytes, left));
    }

    fn handle_served(&mut self, stream: StreamIndex, bytes: u32, finish: Instant) -> Service {
        either!(self, scheduler => scheduler.handle_served(stream, bytes, finish))
    }

    fn handle_left(&mut self, stream: StreamIndex, left: Left) {
        either!(self, scheduler => scheduler.handle_left(stream, left));
    }

    fn poll_missed(&mut self, now: Instant) -> Option<Miss> {
        either!(self, scheduler => scheduler.poll_missed(now))
    }

    fn remove_head(&mut self, stream: StreamIndex) -> bool {
        either!(self, scheduler => scheduler.remove_head(stream))
    }

    fn handle_skipped(&mut self, stream: StreamIndex) -> bool {
        either!(self, scheduler => scheduler.handle_skipped(stream))
    }

    fn next_change(&self, now: Instant) -> Option<Instant> {
        either!(self, scheduler => scheduler.next_change(now))
    }

    fn window(&self, stream: StreamIndex) -> Option<WindowState> {
        either!(self, scheduler => scheduler.window(stream))
    }

    fn deadline(&self, stream: StreamIndex) -> Option<Instant> {
        either!(self, scheduler => scheduler.deadline(stream))
    }
}
