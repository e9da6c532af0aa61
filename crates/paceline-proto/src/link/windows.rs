//! Where a stream's windows begin: with the same samples on every link, and for whoever counts them.
//!
//! A window holds the samples ky … ky + y − 1 of what the subscriber asked for. A link that began to
//! count with the first sample that it saw would hold other windows than the subscriber's, and after
//! another link that lost some of them the two would lose more together than either may. So a link
//! counts by the source's numbers, and what was lost before it counts as missed.

use super::Link;
use super::stream::{Queued, Stream};
use crate::form::Rate;
use crate::sample::Sample;
use paceline_sched::Scheduler;
use paceline_sched::discipline::StreamIndex;

impl Stream {
    /// Which of the samples that were asked for `sample` is. `None` where nobody can tell, or no
    /// window needs to know.
    fn place_of(&self, sample: &Sample) -> Option<u64> {
        let window = self.spec.contract.is_some_and(|contract| contract.loss.y() > 1);
        match self.spec.form.rate {
            Rate::All if window => Some(sample.seq),
            Rate::Every(n) if window => Some(sample.seq / u64::from(n.get())),
            // Which samples are taken depends on when they come.
            Rate::All | Rate::Every(_) | Rate::Max(_) => None,
        }
    }
}

impl Link {
    /// A sample comes for a stream: those before it that did not come are missed.
    pub(super) fn count_up_to(&mut self, index: StreamIndex, sample: &Sample) {
        let Some(stream) = self.stream_mut(index).filter(|stream| stream.up) else { return };
        let Some(place) = stream.place_of(sample) else { return };
        let window = stream.spec.contract.map_or(1, |contract| contract.loss.y());
        // What a neighbour sends may have any number.
        let next = stream.next_place.replace(place.saturating_add(1));
        match next {
            Some(next) if next == place => {}
            Some(next) => {
                // Of whole windows that are gone nothing is left to be judged.
                let at =
                    |place: u64| usize::try_from(place % u64::from(window)).unwrap_or_default();
                let window = usize::try_from(window).unwrap_or(usize::MAX);
                self.judge_skipped(index, (window + at(place) - at(next)) % window);
            }
            None => self.discipline.handle_earlier(index, place),
        }
    }

    /// A sample that came was dropped before anybody judged it: the next one finds that it is missing.
    pub(super) fn count_back(&mut self, index: StreamIndex) {
        let Some(stream) = self.stream_mut(index) else { return };
        stream.next_place = stream.next_place.and_then(|next| next.checked_sub(1));
    }

    /// A stream joined the discipline with what waits for it.
    pub(super) fn count_anew(&mut self, index: StreamIndex) {
        let Some(stream) = self.stream_mut(index) else { return };
        let place = |sample: Option<&Queued>| sample.and_then(|sample| stream.place_of(sample));
        let (first, last) = (place(stream.queue.front()), place(stream.queue.back()));
        stream.next_place = last.map(|last| last.saturating_add(1));
        if let Some(first) = first {
            self.discipline.handle_earlier(index, first);
        }
    }
}
