//! Prints how long one participant takes to introduce all its objects to an observer over a link, in virtual time, and
//! the processor time of both.
//!
//! `cargo run --release --manifest-path benches/Cargo.toml --example introductions -- [OBJECTS [MBIT [SECONDS]]]`

use paceline_objects::packet::UpdateClass;
use paceline_objects::participant::{Destination, Outgoing, ReceivedPacket, WorldTime};
use paceline_objects::{FieldValue, Interest, Participant, ParticipantSettings, PeerId, Schema};
use paceline_sched::{Duration, Instant};
use std::collections::VecDeque;

/// The step of the virtual time.
const STEP: Duration = Duration::from_millis(1);
/// The propagation of the link.
const DELAY: Duration = Duration::from_millis(10);
/// The bytes that wait at the link at most; packets beyond them are lost.
const QUEUE: u64 = 1_000_000;
/// The bytes that lower layers add to a packet.
const HEADER: u64 = 60;

/// One direction of a link.
struct Wire {
    bytes_per_s: u64,
    free: Instant,
    packets: VecDeque<(Instant, UpdateClass, Vec<u8>)>,
    lost: u64,
}

impl Wire {
    fn new(bytes_per_s: u64) -> Self {
        Self { bytes_per_s, free: Instant::ZERO, packets: VecDeque::new(), lost: 0 }
    }

    fn send(&mut self, Outgoing { to, payload }: Outgoing, now: Instant) {
        let class = match to {
            Destination::Peer(_, class) => class,
            Destination::PeerDescription | Destination::ObserverView => UpdateClass::BestEffort,
        };
        let begin = self.free.max(now);
        let time = |bytes: u64| Duration::from_secs(1).mul_div(bytes, self.bytes_per_s);
        if begin.since(now) > time(QUEUE) {
            self.lost += 1;
            return;
        }
        self.free = begin + time(payload.len() as u64 + HEADER);
        self.packets.push_back((self.free + DELAY, class, payload));
    }
}

/// A participant and its processor time.
struct Timed {
    participant: Participant,
    busy: Duration,
    /// The longest iteration.
    longest: Duration,
    /// Until when it is busy: it has a processor of its own.
    until: Instant,
    /// The other participant.
    from: PeerId,
}

impl Timed {
    /// Returns the participant of `node`, to which that of `other` sends.
    fn new(node: u64, other: u64, settings: ParticipantSettings) -> Self {
        let [id, from] = [node, other].map(|node| PeerId::of_node(node, 1));
        let participant = Participant::new(id, "bench", settings, Instant::from_millis(1));
        let (busy, longest, until) = (Duration::ZERO, Duration::ZERO, Instant::ZERO);
        Self { participant: participant.expect("valid"), from, busy, longest, until }
    }

    fn step(&mut self, arriving: &mut Wire, leaving: &mut Wire, time: WorldTime) {
        if time.now < self.until {
            return;
        }
        let begin = processor_time();
        while let Some((at, class, payload)) =
            arriving.packets.pop_front_if(|(at, ..)| *at <= time.now)
        {
            let age = time.now.since(at).saturating_add(DELAY);
            let (node, channel) = (self.from.node(), Some(self.from));
            let packet = ReceivedPacket { bytes: &payload, class, age, node, channel };
            self.participant.receive(&packet, time).expect("a packet");
        }
        self.participant.poll(time);
        while let Some(packet) = self.participant.outgoing() {
            leaving.send(packet, time.now);
        }
        while self.participant.event().is_some() {}
        let took = Duration::from(processor_time().saturating_sub(begin));
        self.busy = self.busy.saturating_add(took);
        self.longest = self.longest.max(took);
        self.until = time.now + took;
    }
}

/// Returns the processor time of this process, which does not depend on the load of the machine.
fn processor_time() -> std::time::Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().next().and_then(|text| text.parse().ok());
    std::time::Duration::from_nanos(nanos.unwrap_or(0))
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut argument =
        |default: usize| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (objects, mbit, limit) = (argument(20_000), argument(100), argument(60) as u64);
    let settings = ParticipantSettings {
        objects_max: objects,
        replicas_max: objects,
        ..ParticipantSettings::default()
    };
    let (mut owner, mut observer) = (Timed::new(1, 2, settings), Timed::new(2, 1, settings));
    let bytes_per_s = mbit as u64 * 125_000;
    let (mut updates, mut views) = (Wire::new(bytes_per_s), Wire::new(bytes_per_s));
    let schema = Schema::parse("car/1 motion{position:vector}").expect("a schema");
    let mut time = WorldTime { now: Instant::from_millis(1), stamp: 1, error: u8::MAX };
    let begin = processor_time();
    for number in 0..objects {
        let position = FieldValue::from([number as f64, 0.0, 0.0]);
        let fields = [("position", position)];
        let path = format!("many/{number}");
        owner.participant.create(&path, &schema, &fields, time.now).expect("there is room");
    }
    let created = processor_time().saturating_sub(begin);
    let interest = Interest::every(std::time::Duration::from_millis(100));
    observer.participant.observe(Some(interest)).expect("valid");
    let (mut first, start) = (None, time.now);
    while observer.participant.replicas().len() < objects {
        owner.step(&mut views, &mut updates, time);
        observer.step(&mut updates, &mut views, time);
        time.now += STEP;
        time.stamp += STEP.as_nanos();
        if observer.participant.replicas().len() >= 20_000 {
            first.get_or_insert(time.now.since(start));
        }
        if time.now.since(start) > Duration::from_secs(limit) {
            break;
        }
    }
    let known = observer.participant.replicas().len();
    let ms = |span: Duration| span.as_micros() / 1_000;
    let counters = owner.participant.exchanges().counters();
    println!(
        "{known} of {objects} objects known after {} ms (20,000 after {} ms); created in {} ms; owner busy {} ms, at \
         most {} ms at once; observer busy {} ms, at most {} ms at once; {} packets lost, {} pairs evaluated, {} messages",
        ms(time.now.since(start)),
        first.map_or(0, ms),
        created.as_millis(),
        ms(owner.busy),
        ms(owner.longest),
        ms(observer.busy),
        ms(observer.longest),
        updates.lost,
        counters.evaluated,
        counters.messages,
    );
}
