//! Best effort on a node that knows the processor cost of samples.

use super::*;
use paceline_proto::control::{CpuBudget, CpuCost};

const COST: CpuCost = CpuCost { sample_nanos: 200_000, byte_picos: 0 };

fn fast() -> TestLink {
    let capacity = Capacity::from_bits_per_s(20_000_000).ok();
    TestLink { capacity, delay: millis(1), loss_ppm: 0 }
}

/// Returns a, b and c in a row. The node `slow` has half of a processor and needs 0.2 ms per sample.
fn row(slow: Option<usize>) -> (TestNetwork, [NodeId; 3]) {
    let mut network = TestNetwork::new(1);
    let nodes = ["a", "b", "c"].map(|name| network.add_node(name));
    network.connect(nodes[0], nodes[1], fast());
    network.connect(nodes[1], nodes[2], fast());
    let budget = CpuBudget { cost: COST, nanos_per_s: 500_000_000 };
    slow.into_iter()
        .for_each(|slow| network.node_mut(nodes[slow]).control_mut().set_processor(budget));
    (network, nodes)
}

/// The samples of each subscription that arrived, the late ones of the contract, and the drops of each node.
struct Outcome {
    steer: Vec<u64>,
    late: usize,
    flood: u64,
    drops: [Drops; 3],
}

/// Returns the drops at the links of a node, and of its subscriptions.
fn drops_of(node: &Node) -> Drops {
    let streams = node.links().iter().flat_map(|end| end.link().streams());
    let of_links = streams.map(|(_, _, counters, _)| counters.drops);
    let ends = node.subscriptions().filter_map(|id| node.delivery(id));
    let mut all = Drops::default();
    of_links.chain(ends.map(|end| end.counts().drops())).for_each(|drops| all.merge(&drops));
    all
}

/// Sends 50 samples per second under a contract and 5,000 of best effort from a to c for 4 s.
fn run((mut network, nodes): (TestNetwork, [NodeId; 3])) -> Outcome {
    let [a, _, c] = nodes;
    let spec =
        PublisherSpec { period: Some(millis(20)), bytes_max: Some(64), ..publisher("a/steer") };
    let steer = network.publish(a, spec);
    let noise = network.publish(a, publisher("a/noise"));
    let within = Some(millis(40));
    let steered = network.subscribe(c, SubscriptionSpec { within, ..subscription("a/steer") });
    let flooded = network.subscribe(c, subscription("a/noise"));
    network.run_for(secs(2));
    let granted = |event: &ControlOutput| matches!(event, ControlOutput::Granted { .. });
    assert!(network.take_events(c).iter().any(granted));
    for number in 0..20_000 {
        if number % 100 == 0 {
            network.put(steer, NewSample::data(vec![1; 64]));
        }
        network.put(noise, NewSample::data(vec![2; 64]));
        network.run_for(Duration::from_micros(200));
    }
    network.run_for(SECOND);
    let (steer, flood) = (network.take(steered), network.take(flooded));
    Outcome {
        late: steer.iter().filter(|sample| sample.late).count(),
        steer: steer.into_iter().map(|sample| sample.seq).collect(),
        flood: flood.len() as u64,
        drops: nodes.map(|node| drops_of(network.node(node))),
    }
}

#[test]
fn a_flood_gets_the_processor_time_that_contracts_leave_wherever_the_slow_node_is() {
    for slow in [0, 1, 2] {
        let Outcome { steer, late, flood, drops } = run(row(Some(slow)));
        assert!(steer.into_iter().eq(0..200), "node {slow}");
        assert_eq!(late, 0, "node {slow}");
        // The contract takes 10 of 500 ms per second if its link is here, and nothing at the last node. The rest is 2,450
        // samples per second; then the burst, and one more sample.
        let share: u64 = if slow == 2 { 500_000 } else { 490_000 };
        let most = 4 * share / 200 + 5 + 1;
        assert!((most - 20..=most).contains(&flood), "node {slow}: {flood} of {most}");
        // Each sample is dropped once, and counted where that happens; the link to the next node reports it as well.
        let busy = drops.map(|drops| drops.of(DropReason::ProcessorBusy));
        assert_eq!(busy[slow], 20_000 - flood, "node {slow}: {busy:?}");
        assert!(busy[..slow].iter().all(|busy| *busy == 0), "node {slow}: {busy:?}");
        assert!(drops.iter().zip(busy).all(|(drops, busy)| drops.total() == busy), "{drops:?}");
    }
}

#[test]
fn a_node_without_a_calibration_drops_nothing() {
    let Outcome { steer, late, flood, drops } = run(row(None));
    assert_eq!((steer.len(), late, flood), (200, 0, 20_000));
    assert!(drops.iter().all(Drops::is_empty), "{drops:?}");
}
