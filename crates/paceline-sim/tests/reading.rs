//! An application that does not read for a while: what it gets late is late, and what it does not get is counted.

use paceline_proto::control::PublisherSpec;
use paceline_proto::link::LinkSpec;
use paceline_proto::reason::DropReason;
use paceline_sched::{Capacity, Duration, Instant};
use paceline_sim::ask::{Ask as _, Declare as _, all, data, payloads};
use paceline_sim::{Pub, Sub, WireSpec, World};

const WITHIN: Duration = Duration::from_millis(20);
const PERIOD: Duration = Duration::from_millis(5);

/// A stream of 200 Hz over a link, and a subscription with a contract.
struct Stream {
    world: World,
    sensor: Pub,
    reader: Sub,
}

impl Stream {
    fn new() -> Self {
        let mut world = World::new(5);
        let (here, there) = (world.add_node("here"), world.add_node("there"));
        let rate = Capacity::from_bits_per_s(2_000_000).ok();
        let spec = LinkSpec { capacity: rate, ..LinkSpec::default() };
        let (a, b) = (world.add_link(here, "a", spec.clone()), world.add_link(there, "b", spec));
        world.join(a, b, WireSpec::limited(rate), WireSpec::limited(rate));
        let spec = PublisherSpec { bytes_max: Some(100), ..data("sensor").hertz(200) };
        let sensor = world.publish(here, spec);
        let reader = world.subscribe(there, all("sensor").within_ms(20));
        world.run_for(Duration::from_secs(2));
        assert_eq!(world.grants(reader).len(), 1);
        Self { world, sensor, reader }
    }

    /// Publishes so many samples, the first one now, while the application does not read between two times of this stream.
    /// Returns the time of the first one.
    fn run(&mut self, samples: u64, (stops, resumes): (Duration, Duration)) -> Instant {
        let start = self.world.now();
        self.world.every(self.sensor, PERIOD, samples, payloads(100));
        self.world.run_for(stops);
        self.world.pause(self.reader, true);
        self.world.run_for(Duration::from_nanos(resumes.as_nanos() - stops.as_nanos()));
        self.world.pause(self.reader, false);
        self.world.run_for(PERIOD.mul_div(samples, 1).saturating_add(Duration::from_secs(1)));
        start
    }
}

#[test]
fn a_sample_is_late_if_the_application_takes_it_late() {
    let mut stream = Stream::new();
    let (stops, resumes) = (Duration::from_millis(500), Duration::from_millis(800));
    let start = stream.run(400, (stops, resumes));
    let delivered = stream.world.delivered(stream.reader);
    assert_eq!(delivered.len(), 400);
    let mut late = 0;
    for (number, sample) in (0_u64..).zip(delivered) {
        let age = sample.at.since(start + PERIOD.mul_div(number, 1));
        let error = sample.age.as_nanos().abs_diff(age.as_nanos());
        assert!(error < 200_000, "{number}: {age} {sample:?}");
        assert_eq!(sample.late, sample.age > WITHIN, "{number}: {sample:?}");
        late += u64::from(sample.late);
    }
    // Those of 280 of the 300 ms.
    assert!((55..=57).contains(&late), "{late}");
    assert_eq!(stream.world.drops(stream.reader).total(), 0, "they arrived in time");
}

#[test]
fn samples_beyond_the_queue_of_the_application_are_counted_with_their_reason() {
    let mut stream = Stream::new();
    let (stops, resumes) = (Duration::from_secs(1), Duration::from_secs(11));
    stream.run(2_400, (stops, resumes));
    let drops = stream.world.drops(stream.reader);
    let full = drops.of(DropReason::SubscriberFull);
    // 2,000 of 10 s wait, of which 1,024 are kept.
    assert!((974..=978).contains(&full), "{drops:?}");
    assert_eq!(drops.total(), full);
    assert_eq!(stream.world.delivered(stream.reader).len() as u64 + full, 2_400);
}
