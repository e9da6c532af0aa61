//! Traces of single samples on this node and on others.

use super::super::handle::LinkCommand;
use super::super::passages;
use super::Engine;
use super::questions::Question;
use crate::status::{NodePassages, StreamPassages};
use bytes::Bytes;
use paceline_proto::control::Topic;
use paceline_proto::{NodeId, PublisherId};
use paceline_sched::Instant;
use std::sync::PoisonError;
use std::sync::mpsc::Sender;

impl Engine {
    /// Sends each node's answer to `reply` on arrival.
    pub(super) fn ask_passages(
        &mut self,
        now: Instant,
        (publisher, from): (PublisherId, u64),
        nodes: &[NodeId],
        reply: &Sender<NodePassages>,
    ) {
        for node in nodes {
            if *node == self.control.me() {
                let streams = self.passages(publisher, from);
                let _ = reply.send(NodePassages { node: *node, streams });
                continue;
            }
            let mut body = vec![Topic::Passages.code()];
            passages::put_question(publisher, from, &mut body);
            let question = self.control.ask(now, *node, body.into());
            self.questions.add(question, Question::Passages(reply.clone()));
        }
    }

    /// Answers another node's request for a trace, and keeps tracing the publisher.
    pub(super) fn send_passages(&mut self, now: Instant, request: u64, from: NodeId, body: Bytes) {
        match passages::read_question(body) {
            Ok((publisher, first)) => {
                let streams = self.passages(publisher, first);
                self.control.answer(now, request, from, passages::encode(&streams).into());
            }
            Err(error) => tracing::debug!("invalid query from {from}: {error}"),
        }
    }

    fn passages(&self, publisher: PublisherId, first: u64) -> Vec<StreamPassages> {
        let mut streams = Vec::new();
        for link in &self.links {
            let snapshot = link.handle.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
            let theirs = snapshot.traced.iter().filter(|stream| stream.publisher == publisher);
            streams.extend(theirs.map(|stream| StreamPassages {
                link: link.config.name.clone(),
                hop: stream.hop,
                form: stream.form,
                passages: stream.passages.iter().filter(|it| it.seq >= first).copied().collect(),
            }));
            drop(snapshot);
            link.handle.send(LinkCommand::Trace(publisher));
        }
        streams
    }
}

/// Forwards the traces of `node`.
pub(super) fn passages_answered(reply: &Sender<NodePassages>, node: NodeId, body: Bytes) {
    match passages::decode(node, body) {
        // The caller may have stopped waiting.
        Ok(told) => _ = reply.send(told),
        Err(error) => tracing::debug!("invalid passages from {node}: {error}"),
    }
}
