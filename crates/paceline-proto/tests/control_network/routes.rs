//! The outputs that each node on a path installs.

use super::net::{Net, all, camera, id, one_in, promised};
use paceline_proto::control::SubscriptionSpec;
use paceline_proto::plan::Target;
use paceline_proto::{Form, Proxy, Size};
use paceline_sched::{Duration, LossTolerance};

const SMALL: Form = Form { size: Some(Size { width: 320, height: 240 }), ..Form::FULL };

#[test]
fn a_proxy_at_the_publisher_sends_the_scaled_stream_over_every_hop() {
    let mut net = Net::chain(3);
    let publisher = net.publish(0, camera("camera"));
    net.subscribe(2, SubscriptionSpec { form: SMALL, ..all("camera") });
    net.settle();
    let [first] = net.outputs(0, publisher, Form::FULL) else { panic!() };
    assert_eq!((first.target, first.form, first.scale), (Target::Hop(id(1)), SMALL, SMALL));
    let [second] = net.outputs(1, publisher, SMALL) else { panic!() };
    assert_eq!((second.target, second.form, second.scale), (Target::Hop(id(2)), SMALL, Form::FULL));
    let [last] = net.outputs(2, publisher, SMALL) else { panic!() };
    assert_eq!((last.target, last.form, last.scale), (Target::Local, SMALL, Form::FULL));
    net.assert_delivered();
}

#[test]
fn a_proxy_at_the_subscriber_sends_the_full_stream_over_every_hop() {
    let mut net = Net::chain(3);
    let publisher = net.publish(0, camera("camera"));
    net.subscribe(2, SubscriptionSpec { form: SMALL, proxy: Proxy::Subscriber, ..all("camera") });
    net.settle();
    for node in 0..2 {
        let [output] = net.outputs(node, publisher, Form::FULL) else { panic!() };
        assert_eq!((output.target, output.form), (Target::Hop(id(node + 1)), Form::FULL));
        assert_eq!(output.scale, Form::FULL);
    }
    let [last] = net.outputs(2, publisher, Form::FULL) else { panic!() };
    assert_eq!((last.target, last.form, last.scale), (Target::Local, SMALL, SMALL));
    net.assert_delivered();
}

#[test]
fn subscriptions_share_one_stream_per_form_and_hop() {
    let mut net = Net::joined(4, &[(0, 1), (1, 2), (1, 3)]);
    let publisher = net.publish(0, camera("camera"));
    let mut full = vec![net.subscribe(2, all("camera")), net.subscribe(3, all("*"))];
    full.push(net.subscribe(3, all("camera")));
    full.push(net.subscribe(1, SubscriptionSpec { form: one_in(1), ..all("camera") }));
    let same = Form { size: camera("camera").size, ..Form::FULL };
    full.push(net.subscribe(1, SubscriptionSpec { form: same, ..all("camera") }));
    let third = net.subscribe(2, SubscriptionSpec { form: one_in(3), ..all("camera") });
    net.settle();
    // The stream of all samples also carries one in three, which node 2 leaves out again.
    full.push(third);
    full.sort_unstable();
    let [output] = net.outputs(0, publisher, Form::FULL) else { panic!() };
    assert_eq!((output.form, &output.subscriptions), (Form::FULL, &full));
    let last = net.outputs(2, publisher, Form::FULL);
    let last: Vec<_> = last.iter().map(|output| (output.target, output.scale)).collect();
    assert_eq!(last, [(Target::Local, Form::FULL), (Target::Local, one_in(3))]);
    let targets: Vec<_> =
        net.outputs(1, publisher, Form::FULL).iter().map(|output| output.target).collect();
    assert_eq!(targets, [Target::Hop(id(2)), Target::Hop(id(3)), Target::Local]);
    net.assert_delivered();
}

#[test]
fn a_stream_carries_best_effort_and_never_a_contract() {
    let third = |spec| SubscriptionSpec { form: one_in(3), ..spec };
    let small = |spec| SubscriptionSpec { form: SMALL, ..spec };
    for (full, part, streams) in [
        (all("camera"), third(all("camera")), 1),
        (promised("camera"), third(all("camera")), 1),
        (all("camera"), third(promised("camera")), 2),
        (promised("camera"), third(promised("camera")), 2),
        (third(all("camera")), SubscriptionSpec { form: one_in(6), ..all("camera") }, 1),
        (third(all("camera")), SubscriptionSpec { form: one_in(2), ..all("camera") }, 2),
        (all("camera"), small(all("camera")), 2),
    ] {
        let mut net = Net::chain(3);
        let publisher = net.publish(0, camera("camera"));
        let carrier = net.subscribe(2, full.clone());
        net.subscribe(2, part.clone());
        net.settle();
        assert_eq!(net.outputs(0, publisher, Form::FULL).len(), streams, "{full:?} {part:?}");
        net.assert_delivered();
        // Without the carrier it has a stream of its own.
        net.unsubscribe(carrier);
        // The relay serves the previous stream for a while.
        net.run(Duration::from_secs(5));
        let [output] = net.outputs(0, publisher, Form::FULL) else { panic!("{part:?}") };
        assert_eq!(output.form, part.form);
        net.assert_delivered();
    }
}

#[test]
fn on_one_node_a_stream_needs_no_hop_and_no_contract() {
    let mut net = Net::new(1);
    let publisher = net.publish(0, camera("camera"));
    let within = Some(Duration::from_millis(90));
    net.subscribe(0, SubscriptionSpec { form: one_in(2), within, ..promised("**") });
    let [output] = net.outputs(0, publisher, Form::FULL) else { panic!() };
    assert_eq!((output.target, output.scale, output.contract), (Target::Local, one_in(2), None));
    assert_eq!((output.within, output.upstream), (within, Duration::ZERO));
    net.assert_delivered();
}

#[test]
fn a_size_is_ignored_for_data_without_pictures() {
    let mut net = Net::chain(2);
    let arm = paceline_proto::control::PublisherSpec {
        kind: paceline_proto::Kind::State,
        encoding: paceline_proto::Encoding::Json,
        size: None,
        ..camera("robot/arm")
    };
    let publisher = net.publish(0, arm);
    net.subscribe(1, SubscriptionSpec { form: SMALL, ..all("robot/**") });
    net.settle();
    assert_eq!(net.outputs(0, publisher, Form::FULL)[0].form, Form::FULL);
}

#[test]
fn each_hop_gets_its_part_of_the_delay_bound() {
    let mut net = Net::chain(4);
    let publisher = net.publish(0, camera("camera"));
    let near = net.subscribe(1, all("camera"));
    let within = Some(Duration::from_millis(90));
    let far = net.subscribe(3, SubscriptionSpec { within, ..promised("camera") });
    net.settle();
    for node in 0..3 {
        let [output] = net
            .outputs(node, publisher, Form::FULL)
            .iter()
            .filter(|output| output.target != Target::Local)
            .collect::<Vec<_>>()[..]
        else {
            panic!()
        };
        let contract = output.contract.unwrap();
        assert_eq!(output.upstream, Duration::from_millis(30 * node as u64));
        assert_eq!(output.within, Some(Duration::from_millis(90)));
        assert_eq!(contract.deadline, Duration::from_micros(28_500));
        assert_eq!(contract.period, Duration::from_millis(38));
        assert_eq!(contract.loss, LossTolerance::NONE);
    }
    assert_eq!(net.outputs(0, publisher, Form::FULL)[0].subscriptions, [near, far]);
    net.unsubscribe(far);
    net.settle();
    let [output] = net.outputs(0, publisher, Form::FULL) else { panic!() };
    assert_eq!((output.contract, output.within), (None, None));
}

#[test]
fn paths_are_short_and_at_most_sixteen_hops_long() {
    let mut net = Net::chain(18);
    let publisher = net.publish(0, camera("camera"));
    let far = net.subscribe(16, all("camera"));
    let too_far = net.subscribe(17, all("camera"));
    net.settle();
    assert_eq!(net.heard(far), [publisher]);
    assert!(net.heard(too_far).is_empty());
    net.join(3, 12);
    net.settle();
    assert_eq!(net.heard(too_far), [publisher]);
    assert!(net.outputs(7, publisher, Form::FULL).is_empty());
    net.assert_delivered();
}
