//! A robot and an operator with a radio between them.

use core::num::NonZeroU32;
use paceline_proto::capacity::LinkCapacity;
use paceline_proto::control::{Elastic, PublisherSpec, SubscriptionSpec};
use paceline_proto::link::LinkSpec;
use paceline_proto::{Carrier, Form, Rate};
use paceline_sched::{Capacity, Duration, LossTolerance};
use paceline_sim::ask::{Ask as _, Declare as _, all, data, payloads, pictures};
use paceline_sim::impair::{Impairment, Loss};
use paceline_sim::{LinkIx, NodeIx, Sub, WireSpec, World};

/// The time of one value of a trace.
pub(super) const TICK: Duration = Duration::from_millis(50);
/// The queue of the radio: 100 ms at 2 Mbit/s.
const QUEUE_BYTES: u64 = 25_000;
const WAY: Duration = Duration::from_millis(20);
const PICTURE_BYTES: u64 = 40_000;

pub(super) struct Stage {
    pub(super) world: World,
    pub(super) steered: Sub,
    pub(super) pictures: Sub,
    /// The loss of the radio from the next value of a trace on.
    pub(super) loss: Loss,
    nodes: [NodeIx; 2],
    carrier: Carrier,
}

fn wire(kbit: u64) -> Impairment {
    let rate = Capacity::from_bits_per_s(kbit * 1_000).ok();
    Impairment { rate, delay: WAY, queue_bytes: QUEUE_BYTES, ..Impairment::NONE }
}

fn hertz(hertz: f64) -> Option<NonZeroU32> {
    NonZeroU32::new(format!("{:.0}", hertz * 1_000.0).parse().unwrap())
}

/// Returns a contract of 30 Hz that accepts 1.5.
pub(super) fn elastic() -> SubscriptionSpec {
    let rate = Rate { max_millihertz: hertz(30.0), ..Rate::ALL };
    let form = Form { rate, ..Form::FULL };
    let elastic = Elastic { min_millihertz: hertz(1.5), ..Elastic::none(form) };
    let mut spec = all("camera").within_ms(500);
    (spec.form, spec.elastic, spec.importance) = (form, Some(Box::new(elastic)), 20);
    spec.loss = LossTolerance::new(1, 5).ok();
    spec
}

impl Stage {
    /// Returns a robot that publishes for `seconds`, over a radio that begins with `kbit` kbit/s.
    pub(super) fn new(seed: u64, carrier: Carrier, kbit: u64, seconds: u64) -> Self {
        let setting: LinkCapacity = "auto 1mbit..50mbit".parse().unwrap();
        let mut world = World::new(seed);
        world.keep_deliveries(false);
        let nodes = [world.add_node("robot"), world.add_node("operator")];
        let spec = LinkSpec { capacity: Some(setting.first()), carrier, ..LinkSpec::default() };
        let links = nodes.map(|node| world.add_link(node, "radio", spec.clone()));
        links.iter().for_each(|link| world.measure(*link, setting));
        let [there, back] = [wire(kbit); 2].map(|wire| match carrier {
            Carrier::Datagrams => WireSpec::datagrams(wire),
            Carrier::Ordered | Carrier::Local => WireSpec::reliable(wire),
        });
        let [here, far] = links;
        world.join(here, far, there, back);
        let [robot, operator] = nodes;
        let steering = world
            .publish(robot, PublisherSpec { bytes_max: Some(64), ..data("steering") }.hertz(100));
        let camera = world.publish(robot, pictures("camera", 30, PICTURE_BYTES));
        let filling = world.publish(robot, data("data"));
        let mut steer = all("steering").within_ms(100);
        (steer.importance, steer.loss) = (90, LossTolerance::new(1, 10).ok());
        let steered = world.subscribe(operator, steer);
        world.subscribe(operator, all("data"));
        let millis = Duration::from_millis;
        world.every(steering, millis(10), seconds * 100, payloads(64));
        world.every(camera, millis(33), seconds * 30, payloads(40_000));
        world.every(filling, millis(10), seconds * 100, payloads(50_000));
        world.run_for(Duration::from_secs(3));
        let pictures = world.subscribe(operator, elastic());
        world.run_for(Duration::from_secs(2));
        Self { world, steered, pictures, loss: Loss::None, nodes, carrier }
    }

    /// Changes the rate of the radio over time.
    pub(super) fn drive(&mut self, trace: &[u64]) {
        let [robot, operator] = self.nodes;
        for kbit in trace {
            let loss = self.loss;
            self.world.impair(robot, operator, Impairment { loss, ..wire(*kbit) });
            self.world.run_for(TICK);
        }
    }

    /// Returns the share of the robot's link that is reserved for repairs, in thousandths.
    pub(super) fn repair_share(&self) -> u64 {
        let at = LinkIx { node: self.nodes[0], link: 0 };
        self.world.link(at).repair_counters().share_per_mille
    }

    pub(super) const fn carrier(&self) -> Carrier {
        self.carrier
    }
}
