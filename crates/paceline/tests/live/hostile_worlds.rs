//! A hostile node in a world, next to honest participants in this process and in another one.

use crate::support::{free_endpoint, isolated, wait_until};
use paceline::world::{
    Claim, FieldValue, Interest, Ownership, ParticipantSettings, PeerId, Schema, SharedObject,
    SharedWorld,
};
use paceline::{LinkConfig, Node, Publisher};
use paceline_objects::contract::{DelayParts, UpdateSizes};
use paceline_objects::packet::{
    Fate, Fragment, Introduction, ObserverView, Packet, PeerDescription, UpdateRecord,
};
use paceline_objects::{FieldKind, ObjectIndex};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

const ENDPOINT: &str = "PACELINE_TEST_HOSTILE_WORLD";
/// The memory that the other process grants to the objects of others.
const STATE_BYTES: usize = 8 << 20;
/// The objects of the honest participant of this process.
const CARS: usize = 100;

fn car() -> Schema {
    Schema::parse("car/1 motion{position:vector velocity:vector} look{paint:text}").unwrap()
}

/// Returns a schema of 7 KiB.
fn wide(number: u32) -> Schema {
    let fields = (0..255).map(|field| format!("field_of_a_name_{number}_{field}"));
    let add = |schema: paceline_objects::schema::SchemaBuilder, field: String| {
        schema.field(&field, FieldKind::Text)
    };
    fields.fold(Schema::new("wide", number), add).finish().unwrap()
}

fn keeps() -> ParticipantSettings {
    let state_bytes_max = STATE_BYTES;
    ParticipantSettings { yields: false, state_bytes_max, ..ParticipantSettings::default() }
}

/// A participant in a process of its own.
struct Process {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

/// What it sees.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// The objects of this process, and those of them with the last paint.
    cars: usize,
    last: usize,
    /// Objects of these paths that belong to others.
    stolen: usize,
    participants: usize,
    forged: u64,
    over_share: u64,
}

impl Process {
    fn open(endpoint: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([
            "--exact",
            "hostile_worlds::a_participant_for_this_test",
            "--ignored",
            "--nocapture",
        ]);
        command.env(ENDPOINT, endpoint).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.by_ref().any(|line| line.unwrap().contains("ready")));
        Self { child, lines }
    }

    /// Returns the resident memory in bytes.
    fn resident(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
    }

    /// Returns what it sees at the next report.
    fn seen(&mut self) -> Seen {
        let line = self.lines.by_ref().map(Result::unwrap).find(|line| line.starts_with("seen"));
        let line = line.unwrap();
        let numbers: Vec<u64> =
            line.split(' ').skip(1).map(|number| number.parse().unwrap()).collect();
        let [cars, last, stolen, participants, forged, over_share] = numbers[..] else {
            panic!("{line}")
        };
        let [cars, last, stolen, participants] =
            [cars, last, stolen, participants].map(|number| usize::try_from(number).unwrap());
        Seen { cars, last, stolen, participants, forged, over_share }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The participant of [`Process`]: prints what it sees.
#[test]
#[ignore = "a process of the other test"]
fn a_participant_for_this_test() {
    let Ok(endpoint) = std::env::var(ENDPOINT) else { return };
    let node = isolated("hub", [LinkConfig::new("wire").listen(&endpoint)]);
    let world = node.world("town").name("hub").settings(keeps()).join().unwrap();
    world.create("hub/1", &car(), &[("paint", "green".into())]).unwrap();
    world.observe(Some(Interest::every(Duration::from_millis(50)))).unwrap();
    println!("ready");
    loop {
        let cars: Vec<_> =
            world.objects().into_iter().filter(|it| it.path.starts_with("car/")).collect();
        let last = Some(&FieldValue::from("last"));
        let report = world.report();
        println!(
            "seen {} {} {} {} {} {}",
            cars.len(),
            cars.iter().filter(|car| car.value("paint") == last).count(),
            cars.iter().filter(|car| car.owner != "owner").count(),
            report.participants.len(),
            report.packets_forged,
            report.applied.over_share
        );
        while world.try_event().is_some() {}
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A node that publishes any bytes on any tag of the world.
struct Intruder {
    node: Node,
    publishers: BTreeMap<String, Publisher>,
    number: u32,
}

impl Intruder {
    fn id(&self, number: u64) -> PeerId {
        PeerId::of_node(self.node.id().0, number)
    }

    fn put(&mut self, tag: String, packet: &Packet) {
        let node = &self.node;
        let publisher = self
            .publishers
            .entry(tag)
            .or_insert_with_key(|tag| node.publisher(tag).declare().unwrap());
        // A full stream drops it.
        let _dropped = publisher.put(packet.encode());
    }

    fn view(&mut self, peer: PeerId, claims: Vec<Claim>, leaving: bool) {
        self.number += 1;
        let view = ObserverView {
            peer,
            number: self.number,
            motion: None,
            direction: None,
            parts: DelayParts::default(),
            acks: Vec::new(),
            claims,
            leaving,
        };
        self.put(format!("town/@view/{peer}"), &Packet::ObserverView(view));
    }

    fn describe(&mut self, peer: PeerId, revision: u32, schemas: Vec<Schema>) {
        let sizes = UpdateSizes { groups: 2, largest_group: 64, fragment_bytes: 1_200 };
        let (name, interest, workers) = ("intruder".to_owned(), None, None);
        let about = PeerDescription { peer, name, revision, schemas, sizes, interest, workers };
        self.put(format!("town/@about/{peer}"), &Packet::PeerDescription(about));
    }

    fn fragment(&mut self, owner: PeerId, to: PeerId, updates: Vec<UpdateRecord>) {
        self.number += 1;
        let (run, number, position, count, sent) = (1, self.number, 0, 1, u64::MAX);
        let fragment = Fragment { owner, run, number, position, count, sent, error: 0, updates };
        self.put(format!("town/@updates/{to}/{owner}"), &Packet::Fragment(fragment));
    }

    /// Speaks for another participant, claims and deletes its objects, and fills the memory of both.
    fn attack(&mut self, round: u32, victims: [PeerId; 2]) {
        for victim in victims {
            self.view(victim, Vec::new(), true);
            self.describe(victim, u32::MAX, Vec::new());
        }
        let number = u64::from(round % 20);
        let peer = self.id(number);
        let mut schemas = vec![car()];
        if round < 60 {
            schemas.extend((0..63).map(|number| wide(round * 63 + number)));
        }
        self.describe(peer, round + 1, schemas);
        let epoch = [0, 1, (1 << 31) - 1, u32::MAX][round as usize % 4];
        let ownership = Ownership { epoch, yields: round.is_multiple_of(2) };
        let claim = |path: String| Claim { path, owner: peer, ownership };
        let paths = |from: usize| (from..from + 20).map(|car| format!("car/{}", car % CARS));
        let first = round as usize * 20;
        self.view(peer, paths(first).map(claim).collect(), false);
        for victim in victims {
            let mut object = round * 100;
            for path in paths(first) {
                object += 1;
                self.fragment(peer, victim, vec![introduction(object, path, ownership)]);
                if object.is_multiple_of(3) {
                    self.fragment(peer, victim, vec![deletion(object)]);
                }
            }
            for _ in 0..20 {
                object += 1;
                let path = format!("many/{number}/{object}");
                self.fragment(peer, victim, vec![introduction(object, path, ownership)]);
            }
        }
    }
}

fn introduction(object: u32, path: String, ownership: Ownership) -> UpdateRecord {
    let schema = car();
    let values = [None, None, Some("x".repeat(800).as_str().into())];
    UpdateRecord {
        object: ObjectIndex(object),
        introduction: Some(Introduction { path, schema: schema.fingerprint(), ownership }),
        fate: None,
        age: 0,
        groups: vec![(1, schema.encode_group(1, &values))],
    }
}

fn deletion(object: u32) -> UpdateRecord {
    UpdateRecord {
        object: ObjectIndex(object),
        introduction: None,
        fate: Some(Fate::Deleted),
        age: 0,
        groups: Vec::new(),
    }
}

fn paint_all(cars: &[SharedObject], paint: &str) {
    for car in cars {
        car.set(&[("paint", paint.into())]).unwrap();
    }
}

fn id_of(world: &SharedWorld, name: &str) -> Option<PeerId> {
    world.report().participants.iter().find(|it| it.name == name).map(|it| it.id)
}

#[test]
fn honest_participants_agree_next_to_a_hostile_node() {
    let endpoint = free_endpoint();
    let mut hub = Process::open(&endpoint);
    let connect = |name: &str| isolated(name, [LinkConfig::new("wire").connect(&endpoint)]);
    let node = connect("owner");
    let owner = node.world("town").name("owner").settings(keeps()).join().unwrap();
    let create = |number| owner.create(&format!("car/{number}"), &car(), &[("paint", "0".into())]);
    let cars: Vec<_> = (0..CARS).map(|number| create(number).unwrap()).collect();
    owner.observe(Some(Interest::every(Duration::from_millis(50)))).unwrap();
    wait_until("the objects arrive", || hub.seen().cars == CARS);
    wait_until("its object arrives", || owner.object("hub/1").is_some());
    let victims = [owner.id(), id_of(&owner, "hub").unwrap()];
    let before = hub.resident();
    let node = connect("intruder");
    let mut intruder = Intruder { node, publishers: BTreeMap::new(), number: 1_000_000 };
    let mut most = before;
    for round in 0..120 {
        intruder.attack(round, victims);
        paint_all(&cars, &round.to_string());
        let seen = hub.seen();
        assert_eq!(seen.stolen, 0, "round {round}: {seen:?}");
        assert_eq!(seen.cars, CARS, "round {round}: {seen:?}");
        most = most.max(hub.resident());
    }
    let seen = hub.seen();
    println!("{seen:?}, resident {before} to {most} bytes");
    assert!(seen.forged > 0 && owner.report().packets_forged > 0);
    assert!(seen.over_share > 0, "the intruder has used its share");
    assert!(most - before < 96 << 20, "resident {before} to {most} bytes");
    paint_all(&cars, "last");
    wait_until("the last change arrives", || hub.seen().last == CARS);
    assert_eq!(owner.report().owned, CARS);
    let green = owner.object("hub/1").unwrap();
    assert_eq!((green.owner.as_str(), green.value("paint")), ("hub", Some(&"green".into())));
    drop(intruder);
    wait_until("the intruder's participants are gone", || hub.seen().participants == 1);
    assert_eq!(hub.seen().cars, CARS);
}
