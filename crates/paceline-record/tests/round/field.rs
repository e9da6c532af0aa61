//! Files as they come from the field: times that jump, and damaged bytes. All undamaged messages are released, each topic
//! in its order, without a long pause.

use crate::damaged::{Form, records, without_chunks};
use crate::support::{Owned, file};
use paceline_media::ulog::ULog;
use paceline_record::{
    Compression, McapReader, MessageTimes, Order, Ordered, ReplayTimeline, Survey,
};
use std::collections::BTreeSet;

/// The longest pause that is not questioned, in nanoseconds.
const PAUSE_MAX: u64 = 10_000_000_000;
const SECOND: u64 = 1_000_000_000;
const EPOCH: u64 = 1_700_000_000 * SECOND;
/// The number of messages of each topic.
const MESSAGES: u64 = 100;

/// Repeatable random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn place(&mut self, from: usize, end: usize) -> usize {
        from + usize::try_from(self.below((end - from) as u64)).unwrap()
    }
}

/// Returns samples of three topics, in order of arrival.
fn samples(random: &mut Random) -> Vec<Owned> {
    let mut all = Vec::new();
    for topic in 0..3 {
        let period = (20 + random.below(180)) * 1_000_000;
        for seq in 0..MESSAGES {
            let at = EPOCH + seq * period + topic * 300_000;
            let length = 20 + random.below(200);
            let payload = (0..length).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
            all.push(Owned {
                tag: format!("robot/{topic}"),
                publisher: format!("{topic:016x}.0"),
                seq,
                encoding: "application/octet-stream".to_owned(),
                captured_ns: at,
                came_ns: at + random.below(10_000_000),
                payload,
                attachment: None,
            });
        }
    }
    all.sort_by_key(|sample| (sample.came_ns, sample.seq));
    all
}

/// Sets clocks, for all later samples or for one: that of a publisher, and if there are three `clocks`, that of the
/// recorder or all of them.
fn jump(random: &mut Random, samples: &mut [Owned], clocks: u64) {
    for _ in 0..random.below(4) {
        let by = i64::try_from(60 * SECOND + random.below(365 * 86_400 * SECOND)).unwrap();
        let by = if random.below(2) == 0 { by } else { -by };
        let from = random.place(samples.len() / 2, samples.len() - 20);
        let until = if random.below(2) == 0 { samples.len() } else { from + 1 };
        let (whose, topic) = (random.below(clocks), format!("robot/{}", random.below(3)));
        for sample in &mut samples[from..until] {
            if whose != 1 && (whose == 2 || sample.tag == topic) {
                sample.captured_ns = sample.captured_ns.saturating_add_signed(by);
            }
            if whose != 0 {
                sample.came_ns = sample.came_ns.saturating_add_signed(by);
            }
        }
    }
}

/// Overwrites up to three places behind `from` and before `end`.
fn damage(random: &mut Random, bytes: &mut [u8], from: usize, end: usize) {
    for _ in 0..random.below(4) {
        let at = random.place(from, end);
        let until = (at + 1 + random.place(0, 200)).min(end);
        let zeros = random.below(2) == 0;
        for byte in &mut bytes[at..until] {
            *byte = if zeros { 0 } else { u8::try_from(random.below(256)).unwrap() };
        }
    }
}

/// The result of one file.
#[derive(Default)]
struct Figures {
    messages: usize,
    undamaged: usize,
    missing: usize,
    disordered: usize,
    pause: u64,
    damaged_files: usize,
}

impl Figures {
    /// Adds a file: its released messages (topic, number, time) in order of release, and the expected ones.
    fn add(&mut self, released: &[(u16, u64, u64)], expected: &[(u16, u64)], all: usize) {
        self.messages += all;
        self.undamaged += expected.len();
        self.damaged_files += usize::from(expected.len() < all);
        let there: BTreeSet<(u16, u64)> =
            released.iter().map(|(topic, number, _)| (*topic, *number)).collect();
        self.missing += expected.iter().filter(|one| !there.contains(one)).count();
        let whole: BTreeSet<&(u16, u64)> = expected.iter().collect();
        let mut last = [None; 8];
        for (topic, number, _) in released.iter().filter(|(a, b, _)| whole.contains(&(*a, *b))) {
            let before = last[usize::from(*topic)].replace(*number);
            self.disordered += usize::from(before.is_some_and(|before| before >= *number));
        }
        let mut times: Vec<u64> = released.iter().map(|(_, _, time)| *time).collect();
        times.sort_unstable();
        let pauses = times.windows(2).map(|two| two[1] - two[0]);
        self.pause = self.pause.max(pauses.max().unwrap_or_default());
    }
}

fn recording(random: &mut Random, form: Form, figures: &mut Figures) {
    let mut samples = samples(random);
    // The arrival times of a recording of Paceline are those of a clock that nobody sets.
    jump(random, &mut samples, if form == Form::Plain { 3 } else { 1 });
    let compression = if form == Form::Packed { Compression::Lz4 } else { Compression::None };
    let mut bytes = file(&samples, 20, compression);
    if form == Form::Plain {
        bytes = without_chunks(&bytes);
        // A file of another program has no mark of such a clock.
        for at in 0..bytes.len() - 6 {
            if bytes[at..].starts_with(b"steady") {
                bytes[at] = b'S';
            }
        }
    }
    let whole = bytes.clone();
    let all = records(&whole, 8, whole.len() - 8);
    let end = all.iter().find(|record| record.kind == 15).unwrap().at;
    damage(random, &mut bytes, all[0].at + all[0].length, end);
    let survey = Survey::of(&bytes[..], Order::Auto, |_| {}).unwrap();
    let known = survey.declared;
    let survey = Survey::read(McapReader::knowing(&bytes[..], known).unwrap(), Order::Auto, |_| {});
    let reader = McapReader::knowing(&bytes[..], survey.declared.clone()).unwrap();
    let mut ordered = Ordered::new(reader, survey.timeline());
    let topic =
        |name: &str| name.strip_prefix("robot/").and_then(|topic| topic.parse::<u16>().ok());
    let originals: BTreeSet<(u16, u64, u64, u64, &[u8])> = samples
        .iter()
        .map(|sample| {
            let Owned { tag, seq, captured_ns, came_ns, payload, .. } = sample;
            (topic(tag).unwrap(), *seq, *captured_ns, *came_ns, &payload[..])
        })
        .collect();
    let mut released = Vec::new();
    while let Ok(Some((time, message))) = ordered.next_message() {
        if let Some(topic) = topic(&message.channel.topic) {
            let number = u64::from(message.sequence);
            let of = (topic, number, message.publish_time, message.log_time, &message.data[..]);
            // A damaged message has no number.
            released.push((topic, if originals.contains(&of) { number } else { u64::MAX }, time));
        }
    }
    figures.add(&released, &intact(&whole, &bytes, &samples, form), samples.len());
}

/// Returns the topics and numbers of the samples whose records, or compressed chunks, are not damaged.
fn intact(whole: &[u8], bytes: &[u8], samples: &[Owned], form: Form) -> Vec<(u16, u64)> {
    let mut places = Vec::new();
    for record in records(whole, 8, whole.len() - 8) {
        let span = record.at..record.at + record.length;
        match (record.kind, form) {
            (6, Form::Packed) => {
                let left = samples.len() - places.len();
                places.extend(std::iter::repeat_n(span, left.min(20)));
            }
            (6, _) => {
                let inner = records(whole, span.start + 49, span.end);
                let inner = inner.iter().filter(|record| record.kind == 5);
                places.extend(inner.map(|record| record.at..record.at + record.length));
            }
            (5, _) => places.push(span),
            _ => {}
        }
    }
    assert_eq!(places.len(), samples.len());
    let same = |span: &std::ops::Range<usize>| whole[span.clone()] == bytes[span.clone()];
    let kept = samples.iter().zip(&places).filter(|(_, span)| same(span));
    kept.map(|(sample, _)| (sample.tag[6..].parse().unwrap(), sample.seq)).collect()
}

/// A flight log has no arrival times: `jump` sets the clock of the flight controller.
fn flight(random: &mut Random, figures: &mut Figures) {
    let mut samples = samples(random);
    jump(random, &mut samples, 1);
    let mut bytes = b"ULog\x01\x12\x35\x01".to_vec();
    bytes.extend([0; 8]);
    let mut record = |kind: u8, body: &[u8]| {
        let at = bytes.len();
        bytes.extend(u16::try_from(body.len()).unwrap().to_le_bytes());
        bytes.push(kind);
        bytes.extend(body);
        at..bytes.len()
    };
    for topic in 0..3_u8 {
        record(
            b'F',
            format!("t{topic}:uint64_t timestamp;uint64_t number;uint8_t[{}] x;", 8 + topic)
                .as_bytes(),
        );
        record(b'A', &[&[0, topic, 0, b't'][..], topic.to_string().as_bytes()].concat());
    }
    let mut places = Vec::new();
    for sample in &samples {
        let topic: u8 = sample.tag[6..].parse().unwrap();
        let (time, number) = ((sample.captured_ns / 1_000).to_le_bytes(), sample.seq.to_le_bytes());
        let rest = &sample.payload[..8 + usize::from(topic)];
        places.push(record(b'D', &[&[topic, 0][..], &time, &number, rest].concat()));
    }
    let (whole, first) = (bytes.clone(), places[0].start);
    let end = bytes.len();
    damage(random, &mut bytes, first, end);
    let log = ULog::parse(&bytes).unwrap();
    let mut timeline = ReplayTimeline::new(Order::Auto);
    let mut times = Vec::new();
    for (number, message) in log.messages().enumerate() {
        timeline.push(MessageTimes {
            channel: u16::try_from(message.topic).unwrap(),
            sequence: u32::try_from(number).unwrap(),
            published: Some(message.time_us.saturating_mul(1_000)),
            ..MessageTimes::default()
        });
        times.extend(std::iter::from_fn(|| timeline.release(false)));
    }
    times.extend(std::iter::from_fn(|| timeline.release(true)));
    // A message with a damaged number has none.
    let originals: BTreeSet<&[u8]> =
        places.iter().map(|span| &whole[span.start + 5..span.end]).collect();
    let number = |payload: &[u8]| match originals.contains(payload) {
        true => u64::from_le_bytes(payload[8..16].try_into().unwrap()),
        false => u64::MAX,
    };
    let released: Vec<_> = log
        .messages()
        .zip(&times)
        .map(|(message, time)| {
            let topic: u16 = log.topics()[message.topic].name[1..].parse().unwrap();
            (topic, number(message.payload), *time)
        })
        .collect();
    let same = |span: &std::ops::Range<usize>| whole[span.clone()] == bytes[span.clone()];
    let kept = samples.iter().zip(&places).filter(|(_, span)| same(span));
    let expected: Vec<_> =
        kept.map(|(sample, _)| (sample.tag[6..].parse().unwrap(), sample.seq)).collect();
    figures.add(&released, &expected, samples.len());
}

fn check(files: u64) {
    let mut figures = Figures::default();
    for seed in 0..files {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let before = (figures.missing, figures.disordered, figures.pause);
        match seed % 4 {
            0 => recording(&mut random, Form::Packed, &mut figures),
            1 => recording(&mut random, Form::Chunks, &mut figures),
            2 => recording(&mut random, Form::Plain, &mut figures),
            _ => flight(&mut random, &mut figures),
        }
        let now = (figures.missing, figures.disordered, figures.pause.max(PAUSE_MAX));
        if now != (before.0, before.1, before.2.max(PAUSE_MAX)) {
            println!(
                "file {seed}: missing {}, disordered {}, pause {} ns",
                figures.missing, figures.disordered, figures.pause
            );
        }
    }
    let Figures { messages, undamaged, missing, disordered, pause, damaged_files } = figures;
    println!(
        "{files} files, {damaged_files} of them damaged: {undamaged} of {messages} messages undamaged, {missing} of those \
         missing, {disordered} out of order; longest pause {:.1} s",
        std::time::Duration::from_nanos(pause).as_secs_f64()
    );
    assert_eq!((missing, disordered), (0, 0));
    assert!(pause <= PAUSE_MAX, "{pause}");
}

#[test]
fn files_of_the_field_lose_no_undamaged_message() {
    check(60);
}

/// Long form: `cargo test -p paceline-record --test round a_thousand_files -- --ignored --nocapture`.
#[test]
#[ignore = "takes seconds; a part of `cargo xtask long`"]
fn a_thousand_files_of_the_field_lose_no_undamaged_message() {
    check(1_000);
}
