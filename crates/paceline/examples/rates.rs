//! Publishes video at 30 Hz to three subscribers, each with its own rate.

use paceline::{Encoding, Node};
use std::error::Error;
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_nanos(1_000_000_000 / 30);
const FRAMES: u8 = 60;

fn main() -> Result<(), Box<dyn Error>> {
    let node = Node::builder().isolated().open()?;
    let raw = Encoding::new("video/raw;format=rgb;width=64;height=48");
    let mut camera = node.publisher("robot/camera").encoding(raw).period(PERIOD).declare()?;
    // The publisher does not know these rates. The first frame is delivered at once, and the others by capture time.
    let mut subscribers = [
        ("all", node.subscriber("robot/camera").declare()?),
        ("1 of 3", node.subscriber("robot/camera").every(3).declare()?),
        ("at most 5 Hz", node.subscriber("robot/camera").max_hz(5.0).declare()?),
    ];

    let began = Instant::now();
    for number in 0..FRAMES {
        camera.put(vec![number; 64 * 48 * 3])?;
        // Sleep until an absolute time, so that delays do not add up.
        let next = began + PERIOD * (u32::from(number) + 1);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    println!("published {FRAMES} frames in {:.1} s", began.elapsed().as_secs_f64());
    for (rate, subscriber) in &mut subscribers {
        let mut frames = Vec::new();
        while let Some(frame) = subscriber.try_recv() {
            frames.push(frame.seq);
        }
        println!("{rate}: {} frames, {:?} …", frames.len(), frames.get(..4).unwrap_or(&frames));
    }
    Ok(())
}
