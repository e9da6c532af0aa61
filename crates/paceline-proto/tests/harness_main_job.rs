//! The main job in virtual time: pictures and steering commands over one thin link.

use paceline_proto::control::PublisherSpec;
use paceline_proto::harness::ask::{all, data, payloads, pictures};
use paceline_proto::harness::{Delivered, LinkPlan, NodeIx, Pub, Sub, World};
use paceline_sched::{Capacity, Duration};

const SECONDS: u64 = 30;
/// A frame of 1,200 bytes with 80 below it, at 2 Mbit/s.
const SEGMENT_TIME: Duration = Duration::from_micros(5_120);

struct Job {
    world: World,
    robot: NodeIx,
    home: NodeIx,
    steering: Pub,
    commands: Sub,
    camera: Pub,
    pictures: Sub,
}

/// What came of it.
#[derive(Debug)]
struct Outcome {
    steering: usize,
    steering_max: Duration,
    steering_late: usize,
    pictures_per_s: f64,
    p50: Duration,
    p99: Duration,
    used: f64,
}

fn job(camera: PublisherSpec, contract: Option<u64>, command_bytes: u64) -> Job {
    let mut world = World::new(1);
    let (robot, home) = (world.add_node("robot"), world.add_node("home"));
    let capacity = Capacity::from_bits_per_s(2_000_000).ok();
    world.connect(robot, home, LinkPlan { capacity });
    let steering = PublisherSpec { bytes_max: Some(command_bytes), ..data("steering") }.hertz(100);
    let steering = world.publish(robot, steering);
    let camera = world.publish(robot, camera);
    let commands = world.subscribe(home, all("steering").within_ms(10));
    let mut asked = all("camera");
    asked.within = contract.map(Duration::from_millis);
    let pictures = world.subscribe(home, asked);
    world.run_for(Duration::from_secs(2));
    Job { world, robot, home, steering, commands, camera, pictures }
}

fn quantile(mut ages: Vec<Duration>, num: usize, den: usize) -> Duration {
    ages.sort_unstable();
    ages.get(ages.len() * num / den).copied().unwrap_or(Duration::MAX)
}

fn ages(delivered: &[Delivered]) -> Vec<Duration> {
    delivered.iter().map(|sample| sample.age).collect()
}

fn run(job: &mut Job, command_bytes: usize, camera: (Duration, usize)) -> Outcome {
    let Job { world, steering, .. } = job;
    let before = world.wire(job.robot, job.home).bytes;
    let (every, bytes) = camera;
    world.every(*steering, Duration::from_millis(10), SECONDS * 100, payloads(command_bytes));
    let count = Duration::from_secs(SECONDS).as_nanos() / every.as_nanos();
    world.every(job.camera, every, count, payloads(bytes));
    world.run_for(Duration::from_secs(SECONDS));
    let sent = world.wire(job.robot, job.home).bytes - before;
    world.run_for(Duration::from_secs(2));
    let (commands, pictures) = (world.delivered(job.commands), world.delivered(job.pictures));
    Outcome {
        steering: commands.len(),
        steering_max: ages(commands).into_iter().max().unwrap_or(Duration::MAX),
        steering_late: commands.iter().filter(|sample| sample.late).count(),
        pictures_per_s: pictures.len() as f64 / SECONDS as f64,
        p50: quantile(ages(pictures), 1, 2),
        p99: quantile(ages(pictures), 99, 100),
        used: sent as f64 / (250_000 * SECONDS) as f64,
    }
}

#[test]
fn steering_does_not_wait_behind_pictures() {
    for command_bytes in [64, 1_000] {
        let mut job = job(pictures("camera", 30, 30_000), None, command_bytes);
        let period = Duration::from_secs(1).mul_div(1, 30);
        let got = run(&mut job, usize::try_from(command_bytes).unwrap(), (period, 30_000));
        println!("{command_bytes} B: {got:?} {:?}", job.world.wire(job.robot, job.home));
        println!("{:?}", job.world.stream(job.robot, job.home, job.camera));
        println!("{:?}", job.world.stream(job.robot, job.home, job.steering));
        let bound = SEGMENT_TIME.mul_div(2, 1).saturating_add(Duration::from_micros(250));
        assert_eq!(got.steering as u64, SECONDS * 100, "none is lost");
        assert!(got.steering_max <= bound, "{}", got.steering_max);
    }
}
