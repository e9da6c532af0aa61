//! Pulls past samples: `pull [TAG [NEWEST]]`, by default the newest 10 samples of robot/camera.
//!
//! A buffer must store them: here the publisher has a history. `paceline node --buffer
//! 'robot/**=100'` stores them on a node.

use paceline::Node;
use paceline::pull::History;
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let tag = args.next().unwrap_or_else(|| "robot/camera".to_owned());
    let newest: u32 = args.next().map_or(Ok(10), |number| number.parse())?;

    let node = Node::open()?;
    let mut camera = node.publisher(&tag).history(History::new().samples(100)).declare()?;
    for number in 0..20 {
        camera.put(format!("picture {number}"))?;
    }

    let mut pulled = node.pull(&tag).newest(newest).timeout(Duration::from_secs(10)).run()?;
    for sample in &mut pulled {
        let (bytes, captured) = (sample.payload.len(), sample.captured.nanos);
        println!("{} {} {bytes} bytes, captured {captured}", sample.publisher, sample.seq);
    }
    println!("{:?}", pulled.summary());
    Ok(())
}
