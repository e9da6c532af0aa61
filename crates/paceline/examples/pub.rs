//! Publishes raw pictures of 320x240 at 30 Hz: `pub [TAG [SAMPLES]]`, by default 60 samples of
//! robot/camera.

use paceline::{Encoding, Node};
use std::error::Error;
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_nanos(1_000_000_000 / 30);

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let tag = args.next().unwrap_or_else(|| "robot/camera".to_owned());
    let samples: u8 = args.next().map_or(Ok(60), |number| number.parse())?;

    let node = Node::open()?;
    let raw = Encoding::new("video/raw;format=rgb;width=320;height=240");
    let mut camera = node.publisher(&tag).encoding(raw).period(PERIOD).declare()?;
    let began = Instant::now();
    for number in 0..samples {
        camera.put(vec![number; 320 * 240 * 3])?;
        // Sleep until an absolute time, so that delays do not add up.
        let next = began + PERIOD * (u32::from(number) + 1);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    println!("published {samples} pictures, subscribed: {}", camera.matching());
    Ok(())
}
