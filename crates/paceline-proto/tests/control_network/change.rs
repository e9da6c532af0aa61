//! Subscriptions that another node changes.

use super::net::{Net, all, camera, id, promised};
use bytes::Bytes;
use core::num::NonZeroU32;
use paceline_proto::control::{ChangeAnswer, SubscriptionSpec, Topic};
use paceline_proto::{Form, Pattern, Rate, SubscriptionId};
use paceline_sched::Duration;

fn rare(tag: &str) -> SubscriptionSpec {
    let rate = Rate::max(NonZeroU32::new(5_000).unwrap());
    SubscriptionSpec { form: Form { rate, ..Form::FULL }, ..all(tag) }
}

impl Net {
    /// Returns the answer of the subscription's node to a change request from `node`.
    fn change(
        &mut self,
        node: usize,
        which: SubscriptionId,
        spec: &SubscriptionSpec,
    ) -> Option<ChangeAnswer> {
        let question = self.nodes[node].change_subscription(self.now, which, spec);
        self.drain(node);
        self.settle();
        let answered = &self.seen[node].answered;
        let answer = answered.iter().find(|(request, ..)| *request == question);
        answer.map(|(_, _, body)| ChangeAnswer::decode(body.clone()).unwrap())
    }
}

#[test]
fn any_node_can_change_a_subscription_and_its_own_node_is_notified() {
    let mut net = Net::chain(4);
    let left = net.publish(0, camera("left"));
    let user = net.subscribe(3, all("left"));
    net.settle();
    for (from, spec) in [(0, rare("left")), (3, promised("left")), (2, all("left"))] {
        let Some(ChangeAnswer::Done { revision }) = net.change(from, user, &spec) else { panic!() };
        let spec = SubscriptionSpec { revision, ..spec };
        assert_eq!(net.seen[3].changed.last(), Some(&(user, spec.clone())));
        assert_eq!(net.nodes[1].subscription(user), Some(&spec), "all nodes receive it");
        let form = spec.form;
        let [output] = net.outputs(0, left, Form::FULL) else { panic!("{form}") };
        assert_eq!((output.form, output.contract.is_some()), (form, spec.within.is_some()));
    }
    // The old contract stays in force for a while on nodes that do not know yet that no samples follow.
    net.run(Duration::from_secs(5));
    net.assert_converged();
    net.assert_delivered();
    let changes = net.seen[3].changed.len();
    let again = net.change(1, user, &all("left"));
    assert_eq!(again, Some(ChangeAnswer::Done { revision: 3 }));
    assert_eq!(net.seen[3].changed.len(), changes, "its current request is no change");
}

#[test]
fn changes_of_identity_are_unknown_and_garbage_is_not_answered() {
    let mut net = Net::chain(2);
    net.publish(0, camera("left"));
    let user = net.subscribe(1, all("left"));
    let private = net.subscribe(1, all("@pull"));
    net.settle();
    let pattern = Pattern::new("right").unwrap();
    let buffer = SubscriptionSpec { holds: true, ..all("left") };
    let local = SubscriptionSpec { local: true, ..all("left") };
    for other in [SubscriptionSpec { pattern, ..all("left") }, buffer, local] {
        assert_eq!(net.change(0, user, &other), Some(ChangeAnswer::Unknown));
    }
    assert_eq!(net.change(0, private, &rare("@pull")), Some(ChangeAnswer::Unknown));
    let gone = SubscriptionId { index: 99, ..user };
    assert_eq!(net.change(0, gone, &rare("left")), Some(ChangeAnswer::Unknown));
    net.unsubscribe(user);
    net.settle();
    assert_eq!(net.change(0, user, &rare("left")), Some(ChangeAnswer::Unknown));
    assert!(net.seen[1].changed.is_empty());
    let nonsense = Bytes::from(vec![Topic::Change.code(), 1, 2, 3]);
    net.nodes[0].ask(net.now, id(1), nonsense);
    net.drain(0);
    net.settle();
    assert_eq!((net.nodes[1].rejected(), net.seen[1].asked.len()), (1, 0));
}
