//! Measures the rate of reservations through three in-memory nodes on one thread: `cargo run
//! --release -p paceline-admit --example reservations`.

use paceline_admit::reserve::message::ReserveMessage;
use paceline_admit::reserve::{
    Decision, LinkId, NodeIndex, PathAnswer, Request, Reservations, ReserveOutput, Timing, Wanted,
};
use paceline_admit::{Admission, AdmissionTest, LinkParameters, Traffic, Trunk};
use paceline_sched::{Capacity, Duration, Instant, LossTolerance};
use std::collections::VecDeque;

/// The default number of reservations.
const RESERVATIONS: u64 = 10_000;
const LINK: LinkId = LinkId(0);

/// Nodes 0, 1 and 2 in a row. Every message arrives at once.
struct Row {
    nodes: Vec<Reservations>,
    flight: VecDeque<(NodeIndex, NodeIndex, ReserveMessage)>,
    granted: u64,
    messages: u64,
}

impl Row {
    fn collect(&mut self, at: usize) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        while let Some(output) = node.poll_output() {
            match output {
                ReserveOutput::Send { to, message } => {
                    self.messages += 1;
                    self.flight.push_back((NodeIndex(at as u64), to, message));
                }
                ReserveOutput::Answer { answer: PathAnswer::Granted(_), .. } => self.granted += 1,
                ReserveOutput::Asked { name, .. } => {
                    node.answer(Instant::ZERO, name, Decision::Accept { slack: Duration::ZERO });
                }
                ReserveOutput::Answer { .. }
                | ReserveOutput::Install { .. }
                | ReserveOutput::Release { .. }
                | ReserveOutput::Ended { .. }
                | ReserveOutput::Idle { .. } => {}
            }
        }
    }

    fn deliver(&mut self) {
        while let Some((from, to, message)) = self.flight.pop_front() {
            let at = usize::try_from(to.0).unwrap_or(usize::MAX);
            if let Some(node) = self.nodes.get_mut(at) {
                node.handle_message(Instant::ZERO, from, message);
            }
            self.collect(at);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "an example that measures")]
fn clock() -> std::time::Instant {
    std::time::Instant::now()
}

fn measure(rule: AdmissionTest, count: u64) -> Option<()> {
    let capacity = Capacity::from_bits_per_s(10_000_000_000).ok()?;
    let mut row = Row { nodes: Vec::new(), flight: VecDeque::new(), granted: 0, messages: 0 };
    for at in 0..3u64 {
        let mut node = Reservations::new(NodeIndex(at), 1, Timing::default(), at);
        node.add_link(LINK, Admission::new(LinkParameters::new(capacity, rule, 1_200)));
        for other in [at.wrapping_sub(1), at + 1].into_iter().filter(|other| *other < 3) {
            node.set_neighbour(Instant::ZERO, NodeIndex(other), LINK, 1);
        }
        row.nodes.push(node);
    }
    let traffic = Traffic::leaky(1_200, 100_000, 1_200).ok()?;
    let begun = clock();
    for number in 0..count {
        let within = Duration::from_micros(200_000 + number * 50);
        let trunk = Trunk(number.into());
        let (bunched, loss) = (Duration::ZERO, LossTolerance::NONE);
        let wanted = Wanted { trunk, traffic, bunched, within, loss, level: None };
        let path = vec![NodeIndex(0), NodeIndex(1), NodeIndex(2)];
        let request = Request {
            path,
            weights: Vec::new(),
            label: Vec::new(),
            forward: Some(wanted),
            backward: None,
            scaled: None,
            link: None,
            work: 0,
            idle: None,
        };
        if row.nodes.first_mut()?.request(Instant::ZERO, &request).is_ok() {
            row.collect(0);
            row.deliver();
        }
    }
    let micros = begun.elapsed().as_micros().max(1);
    let rate = u128::from(row.granted) * 1_000_000 / micros;
    println!("| {rule:?} | {} of {count} | {} | {rate} |", row.granted, row.messages);
    Some(())
}

fn main() {
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let count = count.unwrap_or(RESERVATIONS);
    println!("| test | granted | messages | granted a second |\n| --- | --- | --- | --- |");
    for rule in [AdmissionTest::Fifo, AdmissionTest::Edf, AdmissionTest::Vds { coincide: false }] {
        if measure(rule, count).is_none() {
            println!("{rule:?}: an invalid request in this example");
        }
    }
}
