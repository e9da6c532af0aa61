//! Subscribes at its own rate, size and deadline: `sub [TAG [SAMPLES]]`, by default 10 samples of
//! robot/camera.

use paceline::{Encoding, Node, Publisher};
use std::error::Error;
use std::thread;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let tag = args.next().unwrap_or_else(|| "robot/camera".to_owned());
    let samples: usize = args.next().map_or(Ok(10), |number| number.parse())?;

    let node = Node::open()?;
    // A camera of its own, so that the example runs without another program.
    let raw = Encoding::new("video/raw;format=rgb;width=320;height=240");
    let camera = node.publisher(&tag).encoding(raw).hz(30.0).declare()?;
    let publishing = thread::spawn(move || publish(camera));

    let mut pictures = node
        .subscriber(&tag)
        .max_hz(10.0)
        .size(160, 120)
        .within(Duration::from_millis(200))
        .loss(1, 10)
        .declare()?;
    for _ in 0..samples {
        let sample = pictures.recv_timeout(Duration::from_secs(5))?;
        let bytes = sample.payload.len();
        println!("{} {} {bytes} bytes, age {:?}", sample.tag, sample.seq, sample.age);
    }
    println!("dropped: {:?}", pictures.drops());
    while let Some(event) = pictures.try_event() {
        println!("{event:?}");
    }
    node.close();
    publishing.join().map_err(|_| "the camera panicked")?;
    Ok(())
}

/// Publishes pictures until the node is closed.
fn publish(mut camera: Publisher) {
    while camera.put(vec![128; 320 * 240 * 3]).is_ok() {
        thread::sleep(Duration::from_millis(33));
    }
}
