//! Publishes camera frames of 320x240 pixels, and receives them in full and at 160x120.

use paceline::{Encoding, Node};
use std::error::Error;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(5);
const PERIOD: Duration = Duration::from_millis(33);
const FRAME_BYTES: usize = 320 * 240 * 3;

fn main() -> Result<(), Box<dyn Error>> {
    let node = Node::builder().isolated().open()?;
    // The encoding contains the size, so that nodes can scale the frames.
    let raw = Encoding::new("video/raw;format=rgb;width=320;height=240");
    let mut camera = node.publisher("robot/camera").encoding(raw).period(PERIOD).declare()?;
    let mut full = node.subscriber("robot/camera").declare()?;
    let mut small = node.subscriber("robot/camera").size(160, 120).declare()?;

    for number in 0..5 {
        camera.put(vec![number; FRAME_BYTES])?;
        for frames in [&mut full, &mut small] {
            let frame = frames.recv_timeout(SOON)?;
            println!("frame {}: {} bytes, {}", frame.seq, frame.payload.len(), frame.encoding);
        }
        std::thread::sleep(PERIOD);
    }
    Ok(())
}
