//! Lowers the capacity of a link until a contract no longer fits, and restores it.

use paceline::{Capacity, LinkConfig, Node, Subscriber, SubscriberEvent};
use std::error::Error;
use std::time::{Duration, Instant};

const FULL: u64 = 2_000_000;
const LOW: u64 = 500_000;

/// Waits until the contract is granted or refused, and prints the answer.
fn wait(pictures: &Subscriber, granted: bool) -> Result<(), Box<dyn Error>> {
    let until = Instant::now() + Duration::from_secs(10);
    while Instant::now() < until {
        let answer = match pictures.try_event() {
            Some(SubscriberEvent::Granted(grant)) if granted => format!("granted: {grant}"),
            Some(SubscriberEvent::Refused(_, no)) if !granted => format!("refused: {no}"),
            Some(_) => continue,
            None => {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
        };
        println!("{answer}");
        return Ok(());
    }
    Err("no answer in time".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let endpoint = format!("tcp/{port}");
    let radio = || LinkConfig::new("radio").capacity_bits_per_s(FULL);
    let robot = Node::builder().name("robot").isolated().link(radio().listen(&endpoint)).open()?;
    let operator =
        Node::builder().name("operator").isolated().link(radio().connect(&endpoint)).open()?;
    let _camera = robot.publisher("robot/camera").hz(20.0).bytes_max(5_000).declare()?;
    let request = operator.subscriber("robot/camera").within(Duration::from_millis(200));
    let pictures = request.declare()?;
    wait(&pictures, true)?;

    // The capacity belongs to the sender: here the robot.
    for (capacity, granted) in [(LOW, false), (FULL, true)] {
        println!("capacity of the radio: {} kbit/s", capacity / 1_000);
        robot.set_capacity("radio", Capacity::from_bits_per_s(capacity)?)?;
        wait(&pictures, granted)?;
    }
    Ok(())
}
