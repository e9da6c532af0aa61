//! Plays a camera and a microphone together, although the pictures need 40 ms longer.
//!
//! A sync group delivers all samples 150 ms after their capture.

use paceline::{Node, PutOptions, Sample, Timestamp};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::mpsc::channel;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

const DELAY: Duration = Duration::from_millis(150);
const CODING: Duration = Duration::from_millis(40);

/// Returns the time of this host, whose error is unknown.
fn now() -> Result<Timestamp, Box<dyn Error>> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(Timestamp { nanos: u64::try_from(since.as_nanos())?, error: Timestamp::UNKNOWN_ERROR })
}

fn main() -> Result<(), Box<dyn Error>> {
    let node = Node::builder().isolated().open()?;
    let mut sound = node.publisher("stage/mic").hz(10.0).declare()?;
    let mut picture = node.publisher("stage/camera").hz(10.0).declare()?;
    let (to, delivered) = channel();
    let mut subscriptions = Vec::new();
    for tag in ["stage/mic", "stage/camera"] {
        let to = to.clone();
        // A callback has the most exact times.
        let play = move |sample: Sample| _ = to.send((sample.captured.nanos, Instant::now()));
        subscriptions.push(node.subscriber(tag).sync_group("stage", DELAY).callback(play)?);
    }

    for _ in 0..10 {
        let captured = PutOptions { captured: Some(now()?), ..PutOptions::default() };
        sound.put_with("a block of sound", captured.clone())?;
        sleep(CODING);
        picture.put_with("a picture", captured)?;
        sleep(Duration::from_millis(60));
    }
    sleep(DELAY);
    let mut first = BTreeMap::new();
    for (captured, at) in delivered.try_iter() {
        if let Some(before) = first.insert(captured, at) {
            println!("sound and picture of one instant: {:?} apart", at.duration_since(before));
        }
    }
    Ok(())
}
