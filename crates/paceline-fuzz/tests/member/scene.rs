//! A network with a node under attack: an honest console with promised streams, newcomers, and the member.

use crate::attacks::{ATTACK, CARRIER, DIR, ENDPOINT, LONG, SECONDS};
use crate::carrier::{Carrier, NOBODY, Place};
use crate::victim::{BUDGET, Counters, PROMISED, Victim};
use paceline::status::NodeId;
use paceline::{Node, Subscriber, SubscriberEvent};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The delay bound and the loss tolerance of the promised streams.
const WITHIN: Duration = Duration::from_millis(150);
const LOSS: (u32, u32) = (1, 10);
/// The time in which a newcomer gets its first sample.
const NEWCOMER_MAX: Duration = Duration::from_secs(2);
/// The time in which the memory is free again.
const FREE_WITHIN: Duration = Duration::from_secs(30);
/// The longest time that a member may need to end.
const END_MAX: Duration = Duration::from_secs(90);

/// A promised stream at the console: the samples of each number that arrived in time.
struct Promise {
    subscriber: Subscriber,
    /// The node of the publisher.
    publisher: NodeId,
    /// The first sequence number that counts, and the highest one so far.
    first: u64,
    last: u64,
    in_time: BTreeMap<u64, bool>,
    changes: u64,
    foreign: u64,
}

impl Promise {
    fn read(&mut self) {
        while let Some(sample) = self.subscriber.try_recv() {
            if !sample.payload.starts_with(b"work") {
                self.foreign += 1;
                continue;
            }
            self.in_time.insert(sample.seq, !sample.late);
            self.last = self.last.max(sample.seq);
        }
        while let Some(event) = self.subscriber.try_event() {
            // Publishers of the member are reported too.
            let changed = matches!(event, SubscriberEvent::Changed { .. })
                || matches!(
                    event,
                    SubscriberEvent::Refused(of, _)
                    | SubscriberEvent::Withdrawn(of)
                    | SubscriberEvent::BestEffort(of, _) if of.node == self.publisher
                );
            self.changes += u64::from(changed);
        }
    }

    /// Returns the windows since the last call that have broken the loss tolerance, and their number.
    fn windows(&mut self) -> (u64, u64) {
        let y = u64::from(LOSS.1);
        let (mut broken, mut all) = (0, 0);
        let mut start = self.first.next_multiple_of(y);
        while start + y <= self.last {
            let missed = (start..start + y).filter(|seq| self.in_time.get(seq) != Some(&true));
            broken += u64::from(missed.count() > LOSS.0 as usize);
            (all, start) = (all + 1, start + y);
        }
        self.in_time.retain(|seq, _| *seq >= start);
        self.first = start;
        (broken, all)
    }
}

/// The result of one attack.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) attack: String,
    /// The windows of the promised streams, and those that were broken.
    pub(crate) windows: u64,
    pub(crate) broken: u64,
    pub(crate) foreign: u64,
    pub(crate) changes: u64,
    /// The bits in a second beyond the share of connections that only introduce themselves.
    pub(crate) excess: u64,
    /// The longest time until a newcomer had a sample, and the number of newcomers.
    pub(crate) newcomer: Duration,
    pub(crate) newcomers: u32,
    /// The resident memory in bytes.
    pub(crate) idle: u64,
    pub(crate) most: u64,
    pub(crate) after: u64,
    /// The time until the memory was free; `None` if it was not waited for.
    pub(crate) free: Option<Duration>,
    /// The accepted samples of the member.
    pub(crate) own: u64,
    pub(crate) seconds: f64,
    pub(crate) did: String,
}

impl Row {
    /// Returns the parts of the requirement that the row misses.
    pub(crate) fn misses(&self) -> Vec<&'static str> {
        let memory = self.idle * 3 / 2 + BUDGET;
        let checks = [
            (self.broken == 0, "windows"),
            (self.windows > 0, "no windows"),
            (self.foreign == 0, "foreign samples"),
            (self.changes == 0, "changes"),
            (self.excess == 0, "greetings"),
            (self.newcomers > 0 && self.newcomer <= NEWCOMER_MAX, "newcomer"),
            (self.most <= memory, "memory"),
            (self.free.is_none() || self.after <= self.idle * 11 / 10, "memory after"),
            // 10 Hz, and bursts of 5 s.
            (self.own as f64 <= 10.0 * (self.seconds + 6.0), "rate"),
            (self.own > 0 || self.attack != "fast-publisher", "its own samples"),
        ];
        checks.into_iter().filter(|(ok, _)| !ok).map(|(_, what)| what).collect()
    }

    fn print(&self, carrier: &str) {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let after = match self.free {
            Some(free) => format!("{:.1} after {free:.1?}", mb(self.after)),
            None => format!("{:.1} at the end", mb(self.after)),
        };
        let line = format!(
            "{carrier} {}: {} of {} windows broken, {} foreign samples, {} changes, {} newcomers after at most {} ms, \
             resident {:.1} MB idle, {:.1} at most, {after}; {} of its samples accepted in {:.1} s; {}; misses {:?}",
            self.attack,
            self.broken,
            self.windows,
            self.foreign,
            self.changes,
            self.newcomers,
            self.newcomer.as_millis(),
            mb(self.idle),
            mb(self.most),
            self.own,
            self.seconds,
            self.did,
            self.misses(),
        );
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// The network.
pub(crate) struct Scene {
    place: Place,
    victim: Victim,
    promises: Vec<Promise>,
    _console: Node,
    /// The program of the member, which the account of the member can execute.
    program: PathBuf,
    idle: u64,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.place.remove();
    }
}

/// A newcomer that waits for its first sample.
struct Newcomer {
    begun: Instant,
    subscriber: Subscriber,
    _node: Node,
}

impl Scene {
    pub(crate) fn open(place: Place) -> Self {
        let program = program(&place);
        let victim = Victim::open(&place);
        let link = place.link("console").connect(&place.endpoint);
        let console = Node::builder().name("console").isolated().link(link).open().unwrap();
        let promise = |number: usize| {
            let subscriber = console.subscriber(&format!("work/{number}")).within(WITHIN);
            let subscriber = subscriber.loss(LOSS.0, LOSS.1).queue(4_096).declare().unwrap();
            let publisher = NodeId(0);
            Promise {
                subscriber,
                publisher,
                first: 0,
                last: 0,
                in_time: BTreeMap::new(),
                changes: 0,
                foreign: 0,
            }
        };
        let mut promises: Vec<_> = (0..PROMISED).map(promise).collect();
        for promise in &mut promises {
            wait("a contract", || {
                let event = promise.subscriber.try_event();
                let Some(SubscriberEvent::Granted(grant)) = event else { return false };
                promise.publisher = grant.publisher.node;
                true
            });
        }
        let mut scene = Self { place, victim, promises, _console: console, program, idle: 0 };
        // The first newcomer is part of the idle node.
        let mut first = scene.newcomer();
        wait("the first newcomer", || first.subscriber.try_recv().is_some());
        drop(first);
        std::thread::sleep(Duration::from_secs(1));
        for promise in &mut scene.promises {
            promise.read();
            promise.first = promise.last + 1;
            (promise.changes, promise.foreign) = (0, 0);
        }
        scene.idle = scene.victim.resident();
        scene
    }

    pub(crate) const fn carrier(&self) -> Carrier {
        self.place.carrier
    }

    fn newcomer(&self) -> Newcomer {
        let begun = Instant::now();
        let link = self.place.link("newcomer").connect(&self.place.endpoint);
        let node = Node::builder().name("newcomer").isolated().link(link).open().unwrap();
        let subscriber = node.subscriber("news").declare().unwrap();
        Newcomer { begun, subscriber, _node: node }
    }

    fn start(&self, attack: &str, seconds: f64, long: bool) -> Child {
        let mut command = Command::new("nice");
        // The member has a machine of its own, in effect.
        command.args(["-n", "19"]).arg(&self.program);
        command.args([
            "--exact",
            "attacks::a_member_for_the_other_tests",
            "--ignored",
            "--nocapture",
        ]);
        command.env(ATTACK, attack).env(ENDPOINT, &self.place.endpoint).env(DIR, &self.place.dir);
        command.env(CARRIER, self.place.carrier.name()).env(SECONDS, seconds.to_string());
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped());
        if long {
            command.env(LONG, "1");
        }
        if !self.place.carrier.is_certified() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.spawn().unwrap()
    }

    /// Lets the member attack for so long, and waits for free memory afterwards if `settles`.
    pub(crate) fn attack(
        &mut self,
        attack: &str,
        (seconds, long, settles): (f64, bool, bool),
    ) -> Row {
        let before = self.victim.counters();
        let mut row = Row { attack: attack.to_owned(), idle: self.idle, ..Row::default() };
        let mut member = self.start(attack, seconds, long);
        self.watch(&mut member, seconds, &mut row);
        let mut words = String::new();
        let _ = member.stdout.take().unwrap().read_to_string(&mut words);
        let said = words.lines().find_map(|line| line.strip_prefix("member "));
        let said = said.unwrap_or_else(|| panic!("{attack}: the member has failed: {words}"));
        let mut said = said.splitn(4, ' ');
        let mut number = || said.next().unwrap().parse::<u64>().unwrap();
        (row.foreign, row.changes, row.excess) = (number(), number(), number());
        said.next().unwrap_or_default().clone_into(&mut row.did);
        self.finish(&mut row, &before, settles);
        row.print(self.place.carrier.name());
        row
    }

    /// Observes until the member has ended and the last newcomer has its sample.
    fn watch(&mut self, member: &mut Child, seconds: f64, row: &mut Row) {
        let (begun, mut newcomer, mut ended) = (Instant::now(), None, false);
        while !ended || newcomer.is_some() {
            self.observe(row);
            let passed = begun.elapsed().as_secs_f64();
            let opens = !ended && (seconds / 4.0..seconds).contains(&passed);
            self.serve(&mut newcomer, opens, row);
            if !ended {
                ended = member.try_wait().unwrap().is_some();
                row.seconds = passed;
            }
            if passed > seconds + END_MAX.as_secs_f64() {
                let _ = member.kill();
                let _ = member.wait();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Reads what has arrived, and the memory.
    fn observe(&mut self, row: &mut Row) {
        self.promises.iter_mut().for_each(Promise::read);
        row.most = row.most.max(self.victim.resident());
    }

    /// Notes the time until the newcomer has its first sample. Opens the next one if `opens`.
    fn serve(&self, newcomer: &mut Option<Newcomer>, opens: bool, row: &mut Row) {
        match newcomer {
            None if opens => *newcomer = Some(self.newcomer()),
            None => {}
            Some(it) => {
                let took = it.begun.elapsed();
                if it.subscriber.try_recv().is_some() || took > 5 * NEWCOMER_MAX {
                    row.newcomer = row.newcomer.max(took);
                    row.newcomers += 1;
                    *newcomer = None;
                }
            }
        }
    }

    /// Waits for free memory, and adds the counters of the console and of the node under attack.
    fn finish(&mut self, row: &mut Row, before: &Counters, settles: bool) {
        let left = Instant::now();
        // Windows that end after the member has left belong to it too.
        let least = Duration::from_millis(600);
        loop {
            self.observe(row);
            row.after = self.victim.resident();
            let waits = settles && row.after > self.idle * 11 / 10 && left.elapsed() < FREE_WITHIN;
            if !waits && left.elapsed() >= least {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        row.free = settles.then(|| left.elapsed());
        for promise in &mut self.promises {
            let (broken, all) = promise.windows();
            (row.broken, row.windows) = (row.broken + broken, row.windows + all);
            row.changes += std::mem::take(&mut promise.changes);
            row.foreign += std::mem::take(&mut promise.foreign);
        }
        let counters = self.victim.counters();
        assert_eq!(counters.fault, "", "the node has ended");
        row.own = counters.own - before.own;
        row.foreign += counters.foreign - before.foreign;
        row.changes += counters.changes - before.changes;
    }
}

/// Returns a program of this executable that the account of the member can execute.
fn program(place: &Place) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    if place.carrier.is_certified() {
        return own;
    }
    // The build folder may be closed to other accounts. A descriptor of this process that writes the file could pass to
    // another child, so another process copies it.
    let copy = place.dir.join("member");
    assert!(Command::new("cp").arg(own).arg(&copy).status().unwrap().success());
    copy
}

/// Waits until `done` returns true.
fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{what}: not within 10 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}
