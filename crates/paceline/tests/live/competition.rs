//! Contracts next to busy programs on every core, at both ends (Juvva 1999, experiment 5).
//!
//! Without reserved processors the test only shows how late samples are, because a contract assumes that the nodes get
//! processor time. With them no window of a contract may be broken, and each form must keep its rate.

use crate::support::{SOON, at_rate, free_endpoint, wait_until};
use paceline::{Capacity, Encoding, LinkConfig, Node, Sample};
use paceline_media::{Size, TestCard};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SECONDS: u32 = 30;
const STEERING_WITHIN: Duration = Duration::from_millis(80);
const PICTURES_WITHIN: Duration = Duration::from_millis(300);

/// Threads that never sleep, two for each core, until it is dropped.
struct Busy {
    ends: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Busy {
    fn new() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let spin = |_| {
            let ends = ends.clone();
            std::thread::spawn(move || while !ends.load(Ordering::Relaxed) {})
        };
        let threads = (0..2 * cores).map(spin).collect();
        Self { ends, threads }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// The ages of samples at delivery.
type Ages = Arc<Mutex<Vec<Duration>>>;

fn note(ages: &Ages) -> impl FnMut(Sample) + Send + use<> {
    let ages = ages.clone();
    move |sample| ages.lock().unwrap().push(sample.age)
}

/// Returns the 99.9th percentile and the maximum in ms, and the number of samples later than `within`.
fn figures(ages: &Ages, within: Duration) -> (f64, f64, usize) {
    let mut ages = std::mem::take(&mut *ages.lock().unwrap());
    ages.sort_unstable();
    let ms = |age: &Duration| age.as_secs_f64() * 1e3;
    let p999 = ages.get(ages.len() * 999 / 1_000).map_or(0.0, ms);
    let late = ages.iter().filter(|age| **age > within).count();
    (p999, ages.last().map_or(0.0, ms), late)
}

/// Steers and shows scaled pictures under contracts over a link of 4 Mbit/s. Returns whether the processor was reserved.
fn compete(realtime: bool) -> bool {
    let endpoint = free_endpoint();
    let capacity = Capacity::from_bits_per_s(4_000_000).unwrap();
    let open = |name: &str, link: LinkConfig| {
        let node = Node::builder().name(name).isolated().realtime(realtime);
        node.link(link.capacity(capacity)).open().unwrap()
    };
    let robot = open("robot", LinkConfig::new("radio").listen(&endpoint));
    let operator = open("operator", LinkConfig::new("radio").connect(&endpoint));
    let mut steering = operator.publisher("cmd").hz(100.0).bytes_max(64).declare().unwrap();
    let camera = robot.publisher("camera").encoding(Encoding::Jpeg).hz(10.0);
    let mut camera = camera.declare().unwrap();
    let (steered, shown) = (Ages::default(), Ages::default());
    let steers = robot.subscriber("cmd").within(STEERING_WITHIN).callback(note(&steered)).unwrap();
    let shows = operator.subscriber("camera").size(160, 120).within(PICTURES_WITHIN);
    let shows = shows.callback(note(&shown)).unwrap();
    let mut card = TestCard::new(Size::new(320, 240).unwrap()).unwrap();
    let pictures: Vec<_> = (0..10).map(|n| card.draw_jpeg(n, 7, 80).unwrap()).collect();
    camera.put(pictures[0].clone()).unwrap();
    let grant = |publisher: &paceline::Publisher| publisher.feedback(SOON).first()?.grant.clone();
    wait_until("both have contracts", || grant(&steering).is_some() && grant(&camera).is_some());
    let reserved = grant(&steering).unwrap().hops.iter().all(|hop| hop.realtime);
    std::thread::sleep(Duration::from_millis(500));
    steered.lock().unwrap().clear();
    shown.lock().unwrap().clear();
    let busy = Busy::new();
    at_rate(100, 100 * SECONDS, |n| {
        steering.put(vec![0; 64]).unwrap();
        if n.is_multiple_of(10) {
            camera.put(pictures[n as usize / 10 % 10].clone()).unwrap();
        }
    });
    drop(busy);
    std::thread::sleep(PICTURES_WITHIN);
    // Violations of the links' contracts, by the counters of both nodes.
    let broken: u64 = [&robot, &operator]
        .into_iter()
        .flat_map(|node| node.status(SOON))
        .flat_map(|status| status.links)
        .flat_map(|link| link.streams)
        .map(|stream| stream.counters.violations)
        .sum();
    drop((steers, shows));
    let (commands, pictures) = (steered.lock().unwrap().len(), shown.lock().unwrap().len());
    let (p999, most, late) = figures(&steered, STEERING_WITHIN);
    let (of_pictures, most_of_pictures, late_pictures) = figures(&shown, PICTURES_WITHIN);
    println!(
        "busy programs on every core, processor {}: steering within 80 ms: {commands} commands, p99.9 {p999:.1}, \
         max {most:.1} ms, {late} late; pictures within 300 ms: {pictures}, p99.9 {of_pictures:.1}, \
         max {most_of_pictures:.1} ms, {late_pictures} late; {broken} violations on links",
        if reserved { "reserved" } else { "shared" }
    );
    if reserved {
        // The program's own threads compete too: samples that they publish in bursts exceed the declared rate, and lose
        // their place in the contract.
        let all = usize::try_from(SECONDS).unwrap();
        assert_eq!(broken, 0);
        assert!(commands >= 98 * all, "{commands} of {} commands", 100 * all);
        assert!(pictures * 100 >= 98 * 10 * all, "{pictures} of {} pictures", 10 * all);
        assert!(late * 50 <= commands, "{late} of {commands} commands are late");
        assert!(late_pictures * 50 <= pictures, "{late_pictures} of {pictures} pictures are late");
    } else {
        assert!(commands > 0 && pictures > 0, "nothing to show");
    }
    reserved
}

#[test]
#[ignore = "it occupies every core: cargo xtask long runs it"]
fn a_minute_of_contracts_next_to_busy_programs_on_every_core() {
    assert!(!compete(false), "nothing is reserved unless it is requested");
    if !compete(true) {
        println!(
            "skipped: contracts with a reserved processor (real-time priorities are not permitted)"
        );
    }
}
