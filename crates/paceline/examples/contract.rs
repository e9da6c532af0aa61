//! Requests a contract: each picture within 200 ms, at most 1 of 10 late, over a link of 2 Mbit/s.

use paceline::{Late, LinkConfig, Node, SubscriberEvent};
use std::error::Error;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(5);
const PERIOD: Duration = Duration::from_millis(50);
const BYTES: usize = 5_000;

fn main() -> Result<(), Box<dyn Error>> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let endpoint = format!("tcp/{port}");
    let radio = || LinkConfig::new("radio").capacity_bits_per_s(2_000_000);
    let robot = Node::builder().name("robot").isolated().link(radio().listen(&endpoint)).open()?;
    let operator =
        Node::builder().name("operator").isolated().link(radio().connect(&endpoint)).open()?;

    // A contract needs a rate and a size. Late pictures are dropped by default; here they are counted.
    let camera = robot.publisher("robot/camera").period(PERIOD).bytes_max(BYTES as u64);
    let mut camera = camera.late(Late::Send).declare()?;
    let request = operator.subscriber("robot/camera").within(Duration::from_millis(200));
    let mut pictures = request.loss(1, 10).declare()?;

    if !camera.wait_matching(SOON) {
        return Err("no grant in time".into());
    }
    let (mut received, mut late) = (0, 0);
    for _ in 0..40 {
        camera.put(vec![0; BYTES])?;
        std::thread::sleep(PERIOD);
        while let Some(picture) = pictures.try_recv() {
            received += 1;
            late += u32::from(picture.late);
        }
    }
    while let Some(event) = pictures.try_event() {
        if let SubscriberEvent::Granted(grant) = event {
            println!("granted: {grant}");
        }
    }
    println!("{received} of 40 pictures, {late} late");
    Ok(())
}
