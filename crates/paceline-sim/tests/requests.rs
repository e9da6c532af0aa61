//! Thousands of simultaneous requests over a link with little capacity: all are answered, and no reservation
//! remains.

use paceline_proto::control::{PublisherSpec, RefusalReason};
use paceline_proto::link::LinkSpec;
use paceline_sched::{Capacity, Duration};
use paceline_sim::ask::{Ask as _, Declare as _, all, data};
use paceline_sim::{Sub, WireSpec, World};

const PUBLISHERS: usize = 50;
const REQUESTS: usize = 2_500;

#[test]
fn thousands_of_simultaneous_requests_over_a_slow_link_are_answered() {
    let mut world = World::new(1);
    let (robot, operator) = (world.add_node("robot"), world.add_node("operator"));
    let capacity = Capacity::from_bits_per_s(100_000).ok();
    let spec = LinkSpec { capacity, ..LinkSpec::default() };
    let (out, back) =
        (world.add_link(robot, "radio", spec.clone()), world.add_link(operator, "radio", spec));
    world.join(out, back, WireSpec::limited(capacity), WireSpec::limited(capacity));
    for number in 0..PUBLISHERS {
        let spec = data(&format!("tag/{number}")).hertz(1);
        world.publish(robot, PublisherSpec { bytes_max: Some(64), ..spec });
    }
    world.run_for(Duration::from_secs(3));
    let subscriptions: Vec<Sub> = (0..REQUESTS)
        .map(|number| {
            let wish = all(&format!("tag/{}", number % PUBLISHERS)).within_ms(2_000);
            world.subscribe(operator, wish)
        })
        .collect();
    let mut seconds = 0;
    let granted =
        |world: &World| subscriptions.iter().filter(|it| !world.grants(**it).is_empty()).count();
    while granted(&world) < REQUESTS && seconds < 120 {
        world.run_for(Duration::from_secs(1));
        seconds += 1;
    }
    println!("{} of {REQUESTS} granted after {seconds} s", granted(&world));
    let silent = subscriptions.iter().flat_map(|it| world.refusals(*it));
    let silent = silent.filter(|(_, it)| it.reason == RefusalReason::NoAnswer).count();
    assert_eq!((granted(&world), silent), (REQUESTS, 0));
    for subscription in subscriptions {
        world.unsubscribe(subscription);
    }
    world.run_for(Duration::from_secs(30));
    assert_eq!(world.control(robot).grants().count(), 0);
}
