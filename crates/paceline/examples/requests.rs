//! Measures the cost of many reservation requests at once.
//!
//! One node subscribes COUNT times with a delay bound to 100 publishers of another node, over one
//! link. The program sends one request after the other, and waits until all are answered.
//!
//! `cargo run --release -p paceline --example requests [-- COUNT…]`

use paceline::{Capacity, LinkConfig, Node, Pattern, Publisher, Subscriber, SubscriberEvent};
use std::error::Error;
use std::time::{Duration, Instant};

const PUBLISHERS: usize = 100;
const WITHIN: Duration = Duration::from_secs(2);
/// The timeout of all answers.
const PATIENCE: Duration = Duration::from_secs(600);

fn node(name: &str, link: LinkConfig) -> Result<Node, Box<dyn Error>> {
    // 64-byte samples at 20 Hz take about 30 kbit/s with headers.
    let link = link.capacity(Capacity::from_bits_per_s(10_000_000)?);
    Ok(Node::builder().name(name).isolated().link(link).open()?)
}

fn publishers(robot: &Node) -> Result<Vec<Publisher>, Box<dyn Error>> {
    let declare = |number| {
        let publisher = robot.publisher(&format!("tag/{number}")).hz(20.0).bytes_max(64);
        Ok(publisher.declare()?)
    };
    (0..PUBLISHERS).map(declare).collect()
}

/// Counts the answered requests and the granted ones among them.
fn answered(subscribers: &[Subscriber], answers: &mut [Option<bool>]) -> (usize, usize) {
    for (subscriber, answer) in subscribers.iter().zip(answers.iter_mut()) {
        while let Some(event) = subscriber.try_event() {
            *answer = match event {
                SubscriberEvent::Granted(_) => Some(true),
                SubscriberEvent::Refused(..) => Some(false),
                SubscriberEvent::Withdrawn(_) => None,
                SubscriberEvent::Publishers(_)
                | SubscriberEvent::NoSpare(_)
                | SubscriberEvent::BestEffort(..)
                | SubscriberEvent::Excess { .. }
                | SubscriberEvent::Silent(_)
                | SubscriberEvent::Resumed(_)
                | SubscriberEvent::ChangeRefused { .. }
                | SubscriberEvent::Changed { .. }
                | SubscriberEvent::Adapted { .. }
                | SubscriberEvent::Warned(..) => *answer,
                // An event of a later version.
                _ => *answer,
            };
        }
    }
    let granted = answers.iter().filter(|answer| **answer == Some(true)).count();
    (answers.iter().flatten().count(), granted)
}

fn measure(count: usize) -> Result<(), Box<dyn Error>> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let endpoint = format!("tcp/{port}");
    let robot = node("robot", LinkConfig::new("radio").listen(&endpoint))?;
    let operator = node("operator", LinkConfig::new("radio").connect(&endpoint))?;
    let publishers = publishers(&robot)?;
    while operator.sources(&Pattern::new("tag/*")?).len() < publishers.len() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let began = Instant::now();
    let declare = |number: usize| {
        let wish = operator.subscriber(&format!("tag/{}", number % PUBLISHERS));
        Ok(wish.within(WITHIN).queue(1).declare()?)
    };
    let subscribers: Vec<Subscriber> =
        (0..count).map(declare).collect::<Result<_, Box<dyn Error>>>()?;
    let asked = began.elapsed();
    let mut answers = vec![None; count];
    let (all, granted) = loop {
        let (all, granted) = answered(&subscribers, &mut answers);
        if all == count || began.elapsed() > PATIENCE {
            break (all, granted);
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let took = began.elapsed();
    println!(
        "| {count} | {all} | {granted} | {} | {} | {:.0} |",
        asked.as_millis(),
        took.as_millis(),
        took.as_secs_f64() * 1e6 / count as f64,
    );
    operator.close();
    robot.close();
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let counts: Vec<usize> = std::env::args().skip(1).filter_map(|it| it.parse().ok()).collect();
    println!(
        "| requests | answered | granted | ms until all had asked | ms until all were answered | µs each |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    let counts = if counts.is_empty() { vec![1_000, 4_000, 10_000] } else { counts };
    counts.into_iter().try_for_each(measure)
}
