//! Alignment of loss windows: every link and every subscriber counts the same windows.
//!
//! A window consists of the requested samples ky … ky + y − 1. If a link started counting at the first sample
//! that it received, its windows would differ from the subscriber's. Behind another link that loses some
//! samples, the two together could then lose more than the tolerance allows. So a link counts by the source's
//! sequence numbers, and a sample lost upstream counts as a miss.
//!
//! A link may not have counted the first samples of the present window, because another stream or link has carried them.
//! They may have used up the tolerance, so the link misses none of the rest.

use super::Link;
use super::stream::{Queued, Stream};
use crate::sample::RawSample;
use paceline_sched::discipline::{Earlier, StreamIndex};
use paceline_sched::{LossTolerance, Scheduler};

/// The window of a stream that leaves the discipline to join it again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    loss: LossTolerance,
    earlier: Earlier,
}

impl Stream {
    /// Returns the position of `sample` among the requested samples. `None` if the position is unknown, or if
    /// no window needs it.
    fn place_of(&self, sample: &RawSample) -> Option<u64> {
        let window = self.spec.contract.is_some_and(|contract| contract.loss.y() > 1);
        // The selection of other rates depends on times, so positions are unknown.
        let one_in = self.spec.form.rate.one_in().filter(|_| window)?;
        Some(sample.seq / u64::from(one_in.get()))
    }

    /// Returns the samples before the one at `place`, if this link has not counted them.
    fn uncounted(&self, place: u64) -> Earlier {
        let loss = self.spec.contract.map(|contract| contract.loss);
        // No windows of video are promised.
        let missed = loss.filter(|_| !self.spec.kind.is_video()).map_or(0, LossTolerance::x);
        // Samples from before the contract count when the next one replaces them.
        let demoted = u32::try_from(self.demoted).unwrap_or(u32::MAX);
        Earlier { samples: place, missed: missed.saturating_sub(demoted) }
    }
}

impl Link {
    /// Counts the samples before `sample` that did not arrive as misses.
    pub(super) fn count_up_to(&mut self, index: StreamIndex, sample: &RawSample) {
        let Some(stream) = self.streams.get_mut(index).filter(|stream| stream.up) else { return };
        let Some(place) = stream.place_of(sample) else { return };
        let window = stream.spec.contract.map_or(1, |contract| contract.loss.y());
        // A neighbour may send any number, so the sum must not overflow.
        let next = stream.next_place.replace(place.saturating_add(1));
        match next {
            Some(next) if next == place => {}
            Some(next) => {
                // Completely missed windows are over and are not counted.
                let at =
                    |place: u64| usize::try_from(place % u64::from(window)).unwrap_or_default();
                let window = usize::try_from(window).unwrap_or(usize::MAX);
                self.judge_skipped(index, (window + at(place) - at(next)) % window);
            }
            None => {
                let earlier = stream.uncounted(place);
                self.discipline.handle_earlier(index, earlier);
            }
        }
    }

    /// Reverts the position after a sample that was dropped without a count, so that the next sample finds
    /// the gap.
    pub(super) fn count_back(&mut self, index: StreamIndex) {
        let Some(stream) = self.streams.get_mut(index) else { return };
        stream.next_place = stream.next_place.and_then(|next| next.checked_sub(1));
    }

    /// Returns the counted samples of a stream's window before its head.
    pub(super) fn counted(&self, index: StreamIndex) -> Option<Counted> {
        let loss = self.streams.get(index)?.spec.contract?.loss;
        Some(Counted { loss, earlier: self.discipline.earlier(index)? })
    }

    /// Realigns the window after a stream has joined the discipline again, possibly with queued samples. With the same
    /// loss tolerance the window continues from `before`.
    pub(super) fn count_anew(&mut self, index: StreamIndex, before: Option<Counted>) {
        let Some(stream) = self.streams.get_mut(index) else { return };
        let loss = stream.spec.contract.map(|contract| contract.loss);
        if let Some(Counted { earlier, .. }) = before.filter(|before| Some(before.loss) == loss) {
            self.discipline.handle_earlier(index, earlier);
            return;
        }
        let place = |sample: Option<&Queued>| sample.and_then(|sample| stream.place_of(sample));
        let (first, last) = (place(stream.queue.front()), place(stream.queue.back()));
        stream.next_place = last.map(|last| last.saturating_add(1));
        if let (Some(first), Some(last)) = (first, last) {
            let (earlier, queued) = (stream.uncounted(first), stream.queue.len() as u64);
            let between = last.saturating_add(1).saturating_sub(first).saturating_sub(queued);
            let window = loss.map_or(1, |loss| u64::from(loss.y().max(1)));
            self.discipline.handle_earlier(index, earlier);
            // The samples missing in the queue were lost upstream.
            self.judge_skipped(index, usize::try_from(between % window).unwrap_or_default());
        }
    }
}
