//! Requests more than a link of 1 Mbit/s can carry, receives a refusal, and requests the offer.

use paceline::{Late, LinkConfig, Node};
use std::error::Error;
use std::thread;
use std::time::Duration;

const CAPACITY_BITS_PER_S: u64 = 1_000_000;
const SOON: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let endpoint = format!("tcp/{port}");
    let radio = || LinkConfig::new("radio").capacity_bits_per_s(CAPACITY_BITS_PER_S);
    let robot = Node::builder().name("robot").isolated().link(radio().listen(&endpoint)).open()?;
    let operator =
        Node::builder().name("operator").isolated().link(radio().connect(&endpoint)).open()?;
    // Late samples are delivered too: this host may be busy.
    let lidar = robot.publisher("robot/lidar").hz(20.0).bytes_max(20_000);
    let mut lidar = lidar.late(Late::Send).declare()?;

    let request = || operator.subscriber("robot/lidar").within(Duration::from_millis(300));
    let answers = loop {
        let answers = request().quotes()?;
        if !answers.is_empty() {
            break answers;
        }
        thread::sleep(Duration::from_millis(50)); // until the two nodes are connected
    };
    let refusal = answers.into_iter().find_map(|answer| answer.refusal);
    let request = match &refusal {
        Some(refusal) => {
            println!("no: {refusal}");
            request().offered(&refusal.offer)
        }
        None => request(),
    };
    let mut scans = request.declare()?;
    if !lidar.wait_matching(SOON) {
        return Err("no grant in time".into());
    }
    lidar.put(vec![0; 20_000])?;
    let scan = scans.recv_timeout(SOON)?;
    println!("yes: {} bytes, age {:?}", scan.payload.len(), scan.age);
    while let Some(event) = scans.try_event() {
        println!("{event:?}");
    }
    Ok(())
}
