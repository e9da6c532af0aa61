//! The publishers that a link traces, and until when.

use super::super::handle::TracedStream;
use paceline_proto::PublisherId;
use paceline_proto::link::Link;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// The limit of publishers traced at once.
const PUBLISHERS_MAX: usize = 16;
/// The duration of a trace after the last request.
const KEPT_FOR: Duration = Duration::from_secs(5);

/// The traced publishers with the end of their trace.
#[derive(Default)]
pub(super) struct Traces(BTreeMap<PublisherId, Instant>);

impl Traces {
    /// Starts or extends the trace of a publisher.
    pub(super) fn keep(&mut self, now: Instant, publisher: PublisherId, link: &mut Link) {
        if self.0.len() < PUBLISHERS_MAX || self.0.contains_key(&publisher) {
            self.0.insert(publisher, now + KEPT_FOR);
            link.trace(publisher, true);
        }
    }

    /// Returns the traces, and ends expired ones.
    pub(super) fn look(&mut self, now: Instant, link: &mut Link) -> Vec<TracedStream> {
        if self.0.is_empty() {
            return Vec::new();
        }
        self.0.retain(|publisher, until| {
            let kept = now < *until;
            if !kept {
                link.trace(*publisher, false);
            }
            kept
        });
        let traced = link.streams().filter(|(_, spec, ..)| self.0.contains_key(&spec.publisher));
        let of = |(at, spec, ..): (_, &paceline_proto::link::StreamSpec, _, _)| TracedStream {
            publisher: spec.publisher,
            hop: spec.hop,
            form: spec.form,
            passages: link.passages(at).copied().collect(),
        };
        traced.map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_proto::link::{LinkSpec, StreamSpec};
    use paceline_proto::{Form, Kind, NodeId};
    use paceline_sched::discipline::StreamIndex;

    const fn publisher(index: u32) -> PublisherId {
        PublisherId { node: NodeId(1), index }
    }

    #[test]
    fn traces_are_bounded_and_end_without_requests() {
        let (mut link, mut traces) = (Link::new(LinkSpec::default()), Traces::default());
        for index in (0..).take(PUBLISHERS_MAX + 1) {
            let spec = StreamSpec::best_effort(publisher(index), NodeId(2), Form::FULL, Kind::Data);
            assert!(link.open_stream(StreamIndex(index), spec));
        }
        let begin = Instant::from_millis(1_000);
        for index in (0..).take(PUBLISHERS_MAX + 1) {
            traces.keep(begin, publisher(index), &mut link);
        }
        let traced = traces.look(begin, &mut link);
        assert_eq!(traced.len(), PUBLISHERS_MAX, "one is beyond the limit");
        let later = begin + KEPT_FOR.mul_div(1, 2);
        traces.keep(later, publisher(3), &mut link);
        let left = traces.look(begin + KEPT_FOR, &mut link);
        assert_eq!(left.iter().map(|it| it.publisher).collect::<Vec<_>>(), [publisher(3)]);
        assert!(traces.look(later + KEPT_FOR, &mut link).is_empty());
    }
}
