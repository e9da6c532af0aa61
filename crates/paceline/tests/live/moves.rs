//! Proxies that move under load, or whose node fails.

use crate::cable::Cable;
use crate::sums;
use crate::support::{SOON, free_endpoint, isolated, wait_until};
use paceline::contract::{ChangeOutcome, Proxy, RefusalReason};
use paceline::{Capacity, Encoding, LinkConfig, Node, Subscriber, SubscriberEvent};
use paceline_media::{Size, TestCard};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const POSE_HZ: u32 = 100;
const CAMERA_HZ: u32 = 15;
const BULK_HZ: u32 = 500;
const EVERY: u32 = 5;

fn link(name: &str) -> LinkConfig {
    LinkConfig::new(name).capacity(Capacity::from_bits_per_s(20_000_000).unwrap())
}

/// Calls `step` at `hertz` until `is_over`.
fn until_over(is_over: &AtomicBool, hertz: u32, mut step: impl FnMut(u64)) {
    let (began, period) = (Instant::now(), Duration::from_secs(1) / hertz);
    let mut next = began;
    for n in 0.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        step(n);
        next += period;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// Publishes a pose, a camera and bulk data while `act` runs.
fn under_load(robot: &Node, act: impl FnOnce()) {
    let pose = robot.publisher("pose").hz(f64::from(POSE_HZ)).bytes_max(1_000);
    let mut pose = pose.declare().unwrap();
    let camera = robot.publisher("camera").encoding(Encoding::Jpeg).hz(f64::from(CAMERA_HZ));
    let mut camera = camera.declare().unwrap();
    let mut bulk = robot.publisher("bulk").declare().unwrap();
    let mut card = TestCard::new(Size::new(320, 240).unwrap()).unwrap();
    let pictures: Vec<_> = (0..8).map(|n| card.draw_jpeg(n, 7, 80).unwrap()).collect();
    let is_over = AtomicBool::new(false);
    let over = &is_over;
    std::thread::scope(|scope| {
        scope.spawn(move || until_over(over, POSE_HZ, |_| _ = pose.put(vec![1; 900]).unwrap()));
        scope.spawn(move || {
            let mut all = pictures.iter().cycle();
            until_over(over, CAMERA_HZ, |_| _ = camera.put(all.next().unwrap().clone()).unwrap());
        });
        scope.spawn(move || until_over(over, BULK_HZ, |_| _ = bulk.put(vec![2; 2_000]).unwrap()));
        // The load ends also if `act` fails.
        struct End<'a>(&'a AtomicBool);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _end = End(over);
        act();
    });
}

/// Waits until a subscription has a contract.
fn wait_until_granted(subscriber: &Subscriber) {
    wait_until("a grant", || {
        std::iter::from_fn(|| subscriber.try_event())
            .any(|event| matches!(event, SubscriberEvent::Granted(_)))
    });
}

fn move_proxies(moves: usize) {
    let ends = [(); 3].map(|()| free_endpoint());
    let robot = isolated("robot", [link("a").listen(&ends[0])]);
    let mast = isolated("mast", [link("a").connect(&ends[0]), link("b").listen(&ends[1])]);
    let relay = isolated("relay", [link("b").connect(&ends[1]), link("c").listen(&ends[2])]);
    let operator = isolated("operator", [link("c").connect(&ends[2])]);
    wait_until("all nodes know each other", || operator.nodes().len() == 4);
    let places = [
        Proxy::Publisher,
        Proxy::Node("mast".into()),
        Proxy::Node("relay".into()),
        Proxy::Subscriber,
    ];
    let began = Instant::now();
    under_load(&robot, || {
        let _bulk = operator.subscriber("bulk").declare().unwrap();
        // The camera's size and bytes are known after its first samples.
        std::thread::sleep(Duration::from_millis(300));
        let within = Duration::from_millis(700);
        let poses = operator.subscriber("pose").every(EVERY).within(within).queue(20_000);
        let pictures = operator.subscriber("camera").size(160, 120).within(within).queue(20_000);
        let mut streams = [poses, pictures].map(|asked| asked.declare().unwrap());
        streams.iter().for_each(wait_until_granted);
        let mut longest = Duration::ZERO;
        for number in 0..moves {
            // Each stream visits all places, at other times than the other one.
            let id = streams[number % 2].id();
            let place = &places[(number / 2 + number % 2 + 1) % 4];
            let asked = Instant::now();
            let outcome = operator.change_and_wait(id, SOON, |wish| wish.proxy(place.clone()));
            assert!(matches!(outcome, Ok(ChangeOutcome::InForce { .. })), "{place}: {outcome:?}");
            longest = longest.max(asked.elapsed());
            std::thread::sleep(Duration::from_millis(150));
        }
        std::thread::sleep(Duration::from_millis(800));
        let counts = streams.each_mut().map(|stream| check(&operator, stream));
        println!("{moves} moves in {:?}, the longest {longest:?}: {counts:?}", began.elapsed());
    });
    sums::check(&[&robot, &mast, &relay, &operator]);
}

/// Checks that a stream has neither gaps nor repeated samples, that none was late or dropped, and that its contract never
/// ended. Returns the number
/// of samples.
fn check(operator: &Node, stream: &mut Subscriber) -> usize {
    let seqs: Vec<u64> = std::iter::from_fn(|| stream.try_recv()).map(|it| it.seq).collect();
    let status = operator.status_of(&[operator.id()], SOON).remove(0);
    let row = status.subscriptions.iter().find(|it| it.id == stream.id()).unwrap();
    let step = if row.pattern == "pose" { u64::from(EVERY) } else { 1 };
    let wrong = seqs.windows(2).find(|pair| pair[1] != pair[0] + step);
    assert_eq!(wrong, None, "{}: {seqs:?}", row.pattern);
    assert!(seqs.len() > 20, "{}: {seqs:?}", row.pattern);
    // The test reads the samples long after their arrival.
    assert_eq!((row.late - row.overdue, row.dropped.total()), (0, 0), "{row:?}");
    let ends = |event: &SubscriberEvent| {
        matches!(event, SubscriberEvent::Refused(..) | SubscriberEvent::Withdrawn(_))
    };
    let ended = std::iter::from_fn(|| stream.try_event()).find(ends);
    assert!(ended.is_none(), "the contract ended: {ended:?}");
    seqs.len()
}

#[test]
fn proxies_move_under_load_without_a_gap_or_the_end_of_a_contract() {
    move_proxies(12);
}

#[test]
#[ignore = "a minute: cargo xtask long runs it"]
fn a_minute_of_moves_of_proxies() {
    move_proxies(100);
}

/// Two paths from the robot to the operator. The cables of a relay end with it, so that its neighbours notice its death
/// by silence only.
struct TwoPaths {
    robot: Node,
    operator: Node,
    /// The listening endpoints of robot and operator, and the relays with their cables.
    ends: [String; 4],
    relays: [Option<(Node, [Cable; 2])>; 2],
}

const RELAYS: [&str; 2] = ["mast", "relay"];

impl TwoPaths {
    fn open() -> Self {
        let ends = [(); 4].map(|()| free_endpoint());
        let [to_mast, to_relay, from_mast, from_relay] = &ends;
        let robot =
            isolated("robot", [link("mast").listen(to_mast), link("relay").listen(to_relay)]);
        let operator = isolated(
            "operator",
            [link("mast").listen(from_mast), link("relay").listen(from_relay)],
        );
        let mut net = Self { robot, operator, ends, relays: [None, None] };
        (0..2).for_each(|side| net.start(side));
        wait_until("all nodes know each other", || net.operator.nodes().len() == 4);
        net
    }

    fn start(&mut self, side: usize) {
        let cables = [side, side + 2].map(|end| Cable::new(&self.ends[end]));
        let links =
            [link("in").connect(&cables[0].endpoint()), link("out").connect(&cables[1].endpoint())];
        self.relays[side] = Some((isolated(RELAYS[side], links), cables));
    }

    /// Kills a relay. Its connections stay open and silent, as after a loss of power. Returns the time until robot and
    /// operator know only each other and the other relay.
    fn kill(&mut self, side: usize) -> Duration {
        let (node, cables) = self.relays[side].take().unwrap();
        let began = Instant::now();
        cables.iter().for_each(Cable::cut);
        drop(node);
        let others = [&self.robot, &self.operator];
        wait_until("the network settles", || others.iter().all(|node| node.nodes().len() == 3));
        began.elapsed()
    }

    fn reserved(&self) -> usize {
        let status = self.robot.status_of(&[self.robot.id()], SOON);
        status.iter().map(|node| node.reservations.len()).sum()
    }
}

/// Waits until a subscription receives a sample that was published after `since`, or is refused for the lack of its
/// proxy. Returns true for a sample.
fn runs_or_is_refused(subscriber: &mut Subscriber, since: u64) -> bool {
    let mut runs = None;
    wait_until("the stream runs or is refused", || {
        while let Some(sample) = subscriber.try_recv() {
            if sample.captured.nanos > since {
                runs = Some(true);
            }
        }
        let refused = |event: SubscriberEvent| {
            matches!(event, SubscriberEvent::Refused(_, why)
                if matches!(why.reason, RefusalReason::NoProxy { .. }) && why.link == "mast")
        };
        if std::iter::from_fn(|| subscriber.try_event()).any(refused) {
            runs = Some(false);
        }
        runs.is_some()
    });
    runs.unwrap()
}

fn unix_nanos() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_nanos()).unwrap()
}

fn kill_proxies(kills: usize) {
    let mut net = TwoPaths::open();
    let robot = net.robot.clone();
    under_load(&robot, || {
        std::thread::sleep(Duration::from_millis(300));
        let within = Duration::from_millis(700);
        let operator = net.operator.clone();
        let asked = |tag: &str| operator.subscriber(tag).within(within);
        let named = asked("pose").every(EVERY).proxy(Proxy::Node("mast".into()));
        let chosen = asked("camera").size(160, 120).proxy(Proxy::Auto);
        let plain = operator.subscriber("pose").every(EVERY).proxy(Proxy::Node("mast".into()));
        let mut streams = [named, chosen, plain].map(|asked| asked.declare().unwrap());
        streams[..2].iter().for_each(wait_until_granted);
        let (mut settled, mut resumed) = (Vec::new(), Vec::new());
        for _ in 0..kills {
            settled.push(net.kill(0));
            let (began, since) = (Instant::now(), unix_nanos());
            let runs = streams.each_mut().map(|stream| runs_or_is_refused(stream, since));
            resumed.push(began.elapsed());
            assert_eq!(runs, [false, true, false]);
            assert!(began.elapsed() <= Duration::from_secs(2), "{:?}", began.elapsed());
            net.start(0);
            let since = unix_nanos();
            for stream in &mut streams {
                wait_until("the stream runs again", || {
                    std::iter::from_fn(|| stream.try_recv()).any(|it| it.captured.nanos > since)
                });
            }
            wait_until("both are reserved again", || net.reserved() == 2);
        }
        let longest = |times: &[Duration]| times.iter().max().copied().unwrap_or_default();
        println!(
            "{kills} kills: the network settles within {:?}, then all streams run or are refused \
             within {:?}",
            longest(&settled),
            longest(&resumed)
        );
        drop(streams);
        wait_until("nothing stays reserved", || net.reserved() == 0);
    });
}

#[test]
fn streams_run_again_or_are_refused_after_their_proxy_dies() {
    kill_proxies(2);
}

#[test]
#[ignore = "two minutes: cargo xtask long runs it"]
fn more_than_a_minute_of_kills_of_proxies() {
    kill_proxies(20);
}
