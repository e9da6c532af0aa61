//! The rights to ask: who asks, what the question needs, and the answer to a refused one.

mod need;

use crate::control::contracts::change::ChangeAnswer;
use crate::control::membership::access::{Asker, Missing};
use crate::control::membership::ask::TTL;
use crate::control::membership::message::Errand;
use crate::control::{Control, ControlOutput};
use crate::pull::Answer;
use crate::rights::{Lack, Right};
use crate::topic::Topic;
use bytes::Bytes;
use need::Need;

impl Control {
    /// Checks the rights of the nodes that ask: where the question enters and on its whole way, before it is passed on or
    /// answered. Returns false, and answers, if they do not suffice.
    pub(super) fn admits_question(&mut self, asker: &Asker, errand: &Errand, body: &Bytes) -> bool {
        if !self.membership.access.is_restricted() || asker.via == self.me {
            return true;
        }
        let speaks_for =
            |via| errand.from == via || self.membership.registry.is_own(via, errand.from);
        if !speaks_for(asker.via)
            && self.membership.access.is_leaf(&self.membership.registry, asker.via)
        {
            // The node in whose name it asks gets no answer: that would let a leaf answer for others.
            let (node, of, lack) = (errand.from, asker.via, Lack::Right(Right::Relay));
            let tag = String::new();
            self.outputs.push_back(ControlOutput::Denied { node, of, lack, tag });
            return false;
        }
        let Ok(need) = Need::of(&self.membership.registry, errand.to, body) else {
            self.rejected += 1;
            return false;
        };
        match self
            .membership
            .access
            .check(&self.membership.registry, asker, |rights| need.check(rights))
        {
            Ok(checked) => {
                if checked && need.is_use() {
                    let (node, at) = (errand.from, errand.to);
                    let (right, tag) = (need.right(), need.tag());
                    self.outputs.push_back(ControlOutput::Used { node, at, right, tag });
                }
                true
            }
            Err(missing) => {
                self.refuse_question(errand, body, &need, missing);
                false
            }
        }
    }

    /// Refuses a question for lack of rights. A puller and a changing node get an answer that says so, in the name of the
    /// node that they asked.
    fn refuse_question(&mut self, errand: &Errand, body: &Bytes, need: &Need, (of, lack): Missing) {
        let node = errand.from;
        self.outputs.push_back(ControlOutput::Denied { node, of, lack, tag: need.tag() });
        let body = match Topic::split(body.clone()) {
            Some((Topic::Change, _)) => ChangeAnswer::Denied(lack).encode(),
            Some((Topic::Pull, _)) => self.pull_refused(lack).encode(),
            Some(_) | None => return,
        };
        let (from, to) = (errand.to, node);
        self.receive_answer(Errand { from, to, ttl: TTL, who: None, ..*errand }, body);
    }

    fn pull_refused(&self, lack: Lack) -> Answer {
        let name = self.name(self.me).unwrap_or_default();
        Answer::Refused(format!("the policy of '{name}' does not allow it: {lack}"))
    }
}
