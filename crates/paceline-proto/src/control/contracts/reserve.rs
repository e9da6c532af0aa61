//! Connects `Control` to the reservation protocol, for this node's pairs and for paths through this node.

use super::admission::{Denial, Silence};
use super::booking::{Booking, Label, trunk};
use super::pair::Pair;
use super::shares::stays_apart;
use crate::control::Control;
use crate::control::data::refusal::{Refusal, RefusalReason};
use crate::control::data::route::Place;
use crate::control::data::spec::PublisherSpec;
use crate::control::data::split::Split;
use crate::control::membership::blank::blank;
use crate::control::membership::message::Message;
use crate::form::ScaledForm;
use crate::ids::{NodeId, PublisherId};
use paceline_admit::reserve::message::{Admit, Deny};
use paceline_admit::reserve::{
    self, Decision, Here, Key, LinkId, NodeIndex, PathAnswer, Reason, ReserveOutput,
};
use paceline_sched::{Duration, Instant};

impl Control {
    pub(in crate::control) fn receive_reservation(
        &mut self,
        from: NodeId,
        message: reserve::ReserveMessage,
    ) {
        if let reserve::ReserveMessage::Admit(asked) = &message
            && self.lacks_right(asked)
        {
            let (node, retry) = (NodeIndex(self.me.0), Duration::ZERO);
            let deny = Deny { name: asked.name, node, reason: Reason::Declined, retry };
            let deny = Message::Reserve(Box::new(reserve::ReserveMessage::Deny(deny)));
            self.send(from, deny.encode());
            return;
        }
        let admit =
            if let reserve::ReserveMessage::Admit(asked) = &message { Some(asked) } else { None };
        let here = admit.map(|asked| self.here(asked)).unwrap_or_default();
        let from = NodeIndex(from.0);
        self.contracts.admission.reservations.handle_message_on(self.now, from, message, here);
        self.follow_reservations();
    }

    /// Returns this node's link or class for the stream of a request. Until the names that select the class
    /// are known, that is the whole link, which promises nothing if it has classes.
    fn link_of(&self, asked: &Admit) -> Option<LinkId> {
        let at = asked.path.iter().position(|node| node.0 == self.me.0)?;
        let next = NodeId(asked.path.get(at + 1)?.0);
        let publisher = Label::read(&asked.label).ok()?.pair.1;
        Some(
            self.contracts
                .admission
                .links
                .seat(&self.membership.registry, self.me, (publisher, next))?
                .link,
        )
    }

    /// Returns the part of a request that concerns this node alone.
    fn here(&self, asked: &Admit) -> Here {
        let link = self.link_of(asked);
        self.scaling_here(asked).map_or(Here { link, ..Here::default() }, |it| Here { link, ..it })
    }

    /// Returns the processor time of scaling the stream of a request at this node, and the name of the result for
    /// subscribers here; `None` if this node does not scale it.
    fn scaling_here(&self, asked: &Admit) -> Option<Here> {
        let at = asked.path.iter().position(|node| node.0 == self.me.0)?;
        let label = Label::read(&asked.label).ok()?;
        let split = Split::from_code(asked.path.len(), label.split);
        let publisher = label.pair.1;
        let spec = self.publisher(publisher).filter(|_| split.proxy() == at)?;
        let form = spec.form_of(label.request.form);
        let own = self.contracts.admission.scaling.get(&publisher);
        let own = own.and_then(|all| PublisherSpec::measured_of(all, form));
        let work = match own {
            Some(_) => spec.scaling_work_of(form, own),
            None => spec.scaling_work(form),
        };
        let ends = at == split.hops() && form.converts();
        let delivered = ends.then(|| trunk(publisher, stays_apart(spec, &label.request), form));
        Some(Here { work, delivered, ..Here::default() })
    }

    /// Sets what this node measured of forms of a publisher of another node that it scales. Reservations of these forms
    /// are requested again if it changed.
    pub fn set_scaling(&mut self, now: Instant, publisher: PublisherId, forms: Vec<ScaledForm>) {
        self.advance(now);
        let before = self.contracts.admission.scaling.get(&publisher);
        if before.map_or(&[][..], Vec::as_slice) == forms {
            return;
        }
        match forms.is_empty() {
            true => _ = self.contracts.admission.scaling.remove(&publisher),
            false => _ = self.contracts.admission.scaling.insert(publisher, forms),
        }
        let scaled = |booking: &&Booking| {
            let place = booking.path.get(booking.split.proxy());
            let spec = self.publisher(publisher).filter(|_| booking.pair.1 == publisher);
            let converts = |spec: &PublisherSpec| spec.form_of(booking.request.form).converts();
            place == Some(&self.me) && spec.is_some_and(converts)
        };
        let keys: Vec<Key> =
            self.contracts.admission.bookings().filter(scaled).map(|it| it.name.key).collect();
        for key in keys {
            self.contracts.admission.reservations.ask_for_again(now, key);
        }
        self.follow_reservations();
    }

    /// Forgets what scaling the samples of former publishers costs.
    pub(in crate::control) fn forget_scaling(&mut self) {
        let registry = &self.membership.registry;
        self.contracts.admission.scaling.retain(|publisher, _| {
            registry.record(publisher.node).is_some_and(|it| it.publishers.contains_key(publisher))
        });
    }

    /// Returns true if a request for a reservation exceeds the rights of a node that it concerns.
    fn lacks_right(&self, asked: &Admit) -> bool {
        let Ok(label) = Label::read(&asked.label) else {
            return self.membership.access.is_restricted();
        };
        if !self.membership.access.is_restricted() && !label.request.encrypted {
            return false;
        }
        let checked = || {
            let publisher = self
                .membership
                .registry
                .record(label.pair.1.node)?
                .publishers
                .get(&label.pair.1)?;
            let path: Vec<NodeId> = asked.path.iter().map(|node| NodeId(node.0)).collect();
            let split = Split::from_code(path.len(), label.split);
            let place = Place::on(&path, split, self.me)?;
            let pair = Pair::at(label.pair, publisher, &label.request, place);
            // Nodes reserve only in the direction of the path.
            let wanted = asked.forward.filter(|_| asked.backward.is_none())?;
            let rate = |hop: usize| match &asked.scaled {
                Some(scaled) if hop >= scaled.at => scaled.wanted.traffic.rate(),
                Some(_) | None => wanted.traffic.rate(),
            };
            let rates = [rate(place.index.saturating_sub(1)), rate(place.index)];
            self.membership.access.admits(&self.membership.registry, &pair, rates).ok()
        };
        checked().is_none()
    }

    /// Handles the outputs of the reservation protocol.
    pub(in crate::control) fn follow_reservations(&mut self) {
        loop {
            while let Some(output) = self.contracts.admission.reservations.poll_output() {
                self.follow(output);
            }
            let denials = self.contracts.admission.take_denials();
            if denials.is_empty() {
                break;
            }
            for Denial { pair, is_spare, node, reason } in denials {
                // The node of its lead must learn of the refusal.
                self.dirty |= self.contracts.admission.pairs.has_followed(pair);
                let survey = match is_spare {
                    true => self.contracts.admission.spare_denied(self.now, pair, node, reason),
                    false => self.contracts.admission.denied(self.now, pair, node, reason),
                };
                self.begin_survey(survey);
                // A pair that keeps its first path may request its spare now.
                self.dirty |= self.contracts.admission.lacks_spare(pair);
            }
        }
        for Silence { pair, is_spare, node } in self.contracts.admission.take_silent() {
            let refusal = blank(pair, node, &self.membership.registry, RefusalReason::NoAnswer);
            let refusal = Refusal { spare: is_spare, ..refusal };
            self.contracts.admission.report_silence(pair, refusal);
            self.dirty = true;
        }
        self.share_processor();
        self.want_refused();
    }

    /// Gives best effort the processor time that is not reserved. Time of requests that are not answered yet counts as reserved:
    /// contracts and best effort together never have more than the budget.
    fn share_processor(&self) {
        let Some((regulator, used)) = self.best_effort_time().zip(self.processor_use()) else {
            return;
        };
        let left = used.most.saturating_sub(used.held);
        if regulator.share().nanos_per_s != left {
            regulator.set_rate(self.now, left);
        }
    }

    fn follow(&mut self, output: ReserveOutput) {
        match output {
            ReserveOutput::Send { to, message } => {
                let hop = NodeId(to.0);
                if self.membership.hops.contains_key(&hop) {
                    self.send(hop, Message::Reserve(Box::new(message)).encode());
                }
            }
            ReserveOutput::Asked { name, label, .. } => {
                // The last node of a path reserves no link, but must be ready first.
                self.dirty = true;
                let decision = self.decide(&label);
                self.contracts.admission.reservations.answer(self.now, name, decision);
            }
            ReserveOutput::Install { .. } | ReserveOutput::Release { .. } => self.dirty = true,
            ReserveOutput::Answer { key, answer } => self.answered(key, answer),
            ReserveOutput::Ended { key, reason, node } => self.ended(key, reason, NodeId(node.0)),
            ReserveOutput::Idle { key } => self.idled(key),
        }
    }

    /// Decides as the end of a path: accepts if the request equals the subscription's current one.
    fn decide(&self, label: &[u8]) -> Decision {
        let asks = Label::read(label).is_ok_and(|label| {
            let Label { pair: (subscription, publisher), request, .. } = label;
            let mine = self.membership.registry.record(self.me);
            let asked = mine.and_then(|mine| mine.subscriptions.get(&subscription));
            asked == Some(&request) && publisher.node != self.me
        });
        if asks { Decision::Accept { slack: Duration::ZERO } } else { Decision::Decline }
    }

    fn answered(&mut self, key: Key, answer: PathAnswer) {
        let Some(pair) = self.contracts.admission.pair_of(key) else { return };
        self.dirty = true;
        let is_spare = self.contracts.admission.is_spare(pair, key);
        match answer {
            PathAnswer::Granted(_) if is_spare => self.contracts.admission.spare_granted(pair),
            PathAnswer::Granted(_) => self.contracts.admission.granted(pair),
            PathAnswer::Denied { node, reason } => {
                let (now, node) = (self.now, NodeId(node.0));
                let survey = match is_spare {
                    true => self.contracts.admission.spare_denied(now, pair, node, reason),
                    false => self.contracts.admission.denied(now, pair, node, reason),
                };
                self.begin_survey(survey);
            }
        }
    }

    fn ended(&mut self, key: Key, reason: Option<Reason>, node: NodeId) {
        self.dirty = true;
        let Some(pair) = self.contracts.admission.pair_of(key) else { return };
        let reason = reason.unwrap_or(Reason::Declined);
        let survey = self.contracts.admission.ended(self.now, pair, key, (node, reason));
        self.begin_survey(survey);
    }
}
