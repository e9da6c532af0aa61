//! The example of the README.

use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = paceline::Node::open()?; // joins this host's node, or becomes it
    let mut camera = node.publisher("robot/camera").hz(30.0).declare()?;
    let mut pictures =
        node.subscriber("robot/**").max_hz(10.0).within(Duration::from_millis(200)).declare()?;
    camera.put("a picture")?;
    let sample = pictures.recv()?;
    println!("{} {} {:?}", sample.tag, sample.seq, sample.age);
    Ok(())
}
