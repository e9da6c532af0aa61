//! Reads two subscriptions in one event loop, without a thread for either: `sub_async [TAG TAG
//! [SAMPLES]]`, by default 10 samples each of robot/camera and robot/steer.
//!
//! The runtime is tokio; the `_async` methods work on any other one too.

use paceline::{Node, Publisher, Subscriber};
use std::error::Error;
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let camera = args.next().unwrap_or_else(|| "robot/camera".to_owned());
    let steer = args.next().unwrap_or_else(|| "robot/steer".to_owned());
    let samples: usize = args.next().map_or(Ok(10), |number| number.parse())?;

    let node = Node::open()?;
    let subscribe = |tag: &str| node.subscriber(tag).within(Duration::from_millis(200)).declare();
    let (pictures, commands) = (subscribe(&camera)?, subscribe(&steer)?);
    let publishers = [node.publisher(&camera).declare()?, node.publisher(&steer).declare()?];
    tokio::select! {
        read = async { tokio::try_join!(read(pictures, samples), read(commands, samples)) } => {
            read?;
        }
        published = publish(publishers) => published?,
    }
    Ok(())
}

async fn read(mut subscriber: Subscriber, samples: usize) -> Result<(), Box<dyn Error>> {
    for _ in 0..samples {
        let sample = subscriber.recv_async().await?;
        let bytes = sample.payload.len();
        println!("{} {} {bytes} bytes, age {:?}", sample.tag, sample.seq, sample.age);
    }
    Ok(())
}

/// Publishes on both tags, so that the example runs without another program.
async fn publish(mut publishers: [Publisher; 2]) -> Result<(), Box<dyn Error>> {
    loop {
        for publisher in &mut publishers {
            publisher.put_async(vec![0; 1_000]).await?;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
