//! The frames in flight on a carrier that keeps order.

use paceline_sched::Instant;
use std::collections::VecDeque;

/// A frame that was sent and not yet acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub(super) seq: u64,
    pub(super) bytes: u64,
    pub(super) sent: Instant,
    /// Requested an immediate acknowledgement, so its round trip is a valid sample.
    pub(super) asked: bool,
    /// Carries only background streams.
    pub(super) background: bool,
}

/// The frames that were sent and not yet acknowledged, in order.
#[derive(Debug, Default)]
pub(super) struct InOrder {
    frames: VecDeque<InFlight>,
    bytes: u64,
    background: u64,
}

impl InOrder {
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the bytes of background frames.
    pub(super) const fn background(&self) -> u64 {
        self.background
    }

    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(super) fn oldest(&self) -> Option<InFlight> {
        self.frames.front().copied()
    }

    pub(super) fn push(&mut self, frame: InFlight) {
        self.bytes += frame.bytes;
        self.frames.push_back(frame);
    }

    pub(super) fn pop_oldest(&mut self) {
        let Some(oldest) = self.frames.pop_front() else { return };
        self.bytes -= oldest.bytes;
        self.background -= if oldest.background { oldest.bytes } else { 0 };
    }

    /// Marks the last frame as one that carries only background streams.
    pub(super) fn note_background(&mut self) {
        if let Some(newest) = self.frames.back_mut().filter(|newest| !newest.background) {
            newest.background = true;
            self.background += newest.bytes;
        }
    }

    /// Returns the number of frames that were sent before `time`.
    pub(super) fn sent_before(&self, time: Instant) -> usize {
        self.frames.partition_point(|frame| frame.sent < time)
    }

    /// Returns the bytes of the live frames that were sent before `time`.
    pub(super) fn live_before(&self, time: Instant) -> u64 {
        let before = self.frames.iter().take_while(|frame| frame.sent < time);
        before.filter(|frame| !frame.background).map(|frame| frame.bytes).sum()
    }

    /// Returns the bytes of the frames that were sent since `time`.
    pub(super) fn bytes_since(&self, time: Instant) -> u64 {
        let since = self.frames.iter().rev().take_while(|frame| frame.sent >= time);
        since.map(|frame| frame.bytes).sum()
    }
}
