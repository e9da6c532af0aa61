//! The frames in flight, as the estimator needs them: an acknowledgement counts only for bytes that were sent.

use super::Departure;
use paceline_sched::Instant;
use std::collections::VecDeque;

/// The number of frames that are remembered. Acknowledgements of the wire format distinguish as many.
pub(super) const FRAMES_MAX: usize = 4_096;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    Waits,
    Arrived,
    Lost,
}

/// A frame that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentFrame {
    pub(super) number: u64,
    /// Bytes on the wire.
    pub(super) bytes: u64,
    /// The departure of its last byte.
    pub(super) left: Instant,
    /// The bytes that the link should have had to send by then, with its own.
    pub(super) ahead: u64,
    fate: Fate,
}

/// The last frames that were sent, in order.
#[derive(Debug, Default)]
pub(super) struct SentFrames {
    frames: VecDeque<SentFrame>,
    /// The number that the next frame has at least.
    next: u64,
    waiting: usize,
}

impl SentFrames {
    /// Adds a frame. Returns `false` without any change if its number is not higher than all earlier ones.
    pub(super) fn note(&mut self, sent: &Departure, ahead: u64) -> bool {
        let Departure { number, bytes, left, .. } = *sent;
        if number < self.next {
            return false;
        }
        if self.frames.len() >= FRAMES_MAX {
            self.forget_oldest();
        }
        self.frames.push_back(SentFrame { number, bytes, left, ahead, fate: Fate::Waits });
        self.next = number.saturating_add(1);
        self.waiting += 1;
        true
    }

    fn forget_oldest(&mut self) {
        let oldest = self.frames.pop_front();
        if oldest.is_some_and(|frame| frame.fate == Fate::Waits) {
            self.waiting -= 1;
        }
    }

    /// Returns `true` if a range of frames has no frame that was never sent.
    pub(super) const fn has_sent(&self, (first, newest): (u64, u64)) -> bool {
        first <= newest && newest < self.next
    }

    /// Marks the frames `first..=newest` as received and passes those to `count` that were not before. Returns the newest
    /// of the range; `None` if it has been forgotten.
    pub(super) fn arrive(
        &mut self,
        (first, newest): (u64, u64),
        mut count: impl FnMut(&SentFrame),
    ) -> Option<SentFrame> {
        let begin = self.frames.partition_point(|frame| frame.number < first);
        let end = self.frames.partition_point(|frame| frame.number <= newest);
        let mut last = None;
        for frame in self.frames.range_mut(begin..end.max(begin)) {
            if frame.fate != Fate::Arrived {
                self.waiting -= usize::from(frame.fate == Fate::Waits);
                frame.fate = Fate::Arrived;
                count(frame);
            }
            last = Some(*frame);
        }
        while self.frames.front().is_some_and(|frame| frame.fate == Fate::Arrived) {
            self.frames.pop_front();
        }
        last
    }

    /// Marks a frame as lost. Returns its bytes, or `None` if it does not wait.
    pub(super) fn lose(&mut self, number: u64) -> Option<u64> {
        let at = self.frames.partition_point(|frame| frame.number < number);
        let frame = self.frames.get_mut(at)?;
        if frame.number != number || frame.fate != Fate::Waits {
            return None;
        }
        frame.fate = Fate::Lost;
        self.waiting -= 1;
        Some(frame.bytes)
    }

    /// Returns `true` if a frame is neither acknowledged nor lost.
    pub(super) const fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(number: u64) -> Departure {
        let left = Instant::from_millis(number);
        Departure { number, bytes: number * 100, left, backlogged: false, probe: false }
    }

    fn five() -> SentFrames {
        let mut frames = SentFrames::default();
        for number in [2, 3, 5, 8, 9] {
            assert!(frames.note(&sent(number), 0));
        }
        frames
    }

    fn arrive(frames: &mut SentFrames, range: (u64, u64)) -> (Vec<u64>, Option<u64>) {
        let mut counted = Vec::new();
        let last = frames.arrive(range, |frame| counted.push(frame.number));
        (counted, last.map(|frame| frame.number))
    }

    #[test]
    fn each_frame_counts_once() {
        let mut frames = five();
        assert!(!frames.note(&sent(9), 0), "a number is not reused");
        assert_eq!(arrive(&mut frames, (0, 4)), (vec![2, 3], Some(3)));
        assert_eq!(arrive(&mut frames, (0, 5)), (vec![5], Some(5)));
        assert_eq!(arrive(&mut frames, (0, 8)), (vec![8], Some(8)));
        assert_eq!(arrive(&mut frames, (8, 8)), (vec![], None));
        assert_eq!(arrive(&mut frames, (9, 9)), (vec![9], Some(9)));
        assert!(!frames.is_waiting() && frames.len() == 0);
    }

    #[test]
    fn ranges_that_were_not_sent_are_recognized() {
        let mut frames = five();
        let known = [(0, 9), (4, 4), (9, 9)].map(|range| frames.has_sent(range));
        let forged = [(9, 2), (0, 10), (u64::MAX, 0), (0, u64::MAX)];
        assert_eq!((known, forged.map(|range| frames.has_sent(range))), ([true; 3], [false; 4]));
        assert_eq!(arrive(&mut frames, (9, 2)), (vec![], None));
        assert!(frames.is_waiting());
    }

    #[test]
    fn a_lost_frame_may_still_arrive() {
        let mut frames = five();
        assert_eq!((frames.lose(5), frames.lose(5), frames.lose(4)), (Some(500), None, None));
        assert_eq!(arrive(&mut frames, (3, 9)), (vec![3, 5, 8, 9], Some(9)));
        assert_eq!((frames.lose(2), frames.is_waiting()), (Some(200), false));
    }

    #[test]
    fn memory_is_bounded() {
        let mut frames = SentFrames::default();
        let many = 3 * u64::try_from(FRAMES_MAX).unwrap();
        for number in 0..many {
            frames.note(&sent(number), 0);
        }
        assert_eq!(frames.len(), FRAMES_MAX);
        let (counted, _) = arrive(&mut frames, (0, u64::MAX));
        assert_eq!((counted.len(), frames.len(), frames.is_waiting()), (FRAMES_MAX, 0, false));
    }
}
