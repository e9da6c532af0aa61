//! Records samples in an MCAP file, and reads the file.
//!
//! `paceline record` does the same for any tags, and adds grants, refusals and link counters.

use paceline::{Encoding, Node, Sample};
use paceline_record::{About, Compression, McapReader, RecordedSample, Recording};
use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::time::{Duration, SystemTime};

fn record(recording: &mut Recording, sample: &Sample) -> Result<(), Box<dyn Error>> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let recorded = RecordedSample {
        tag: sample.tag.as_str(),
        publisher: &sample.publisher.to_string(),
        seq: sample.seq,
        encoding: sample.encoding.as_str(),
        captured_ns: sample.captured.nanos,
        came_ns: u64::try_from(now.as_nanos())?,
        payload: &sample.payload,
        attachment: sample.attachment.as_deref(),
    };
    Ok(recording.sample(&recorded, About::default)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let node = Node::builder().isolated().open()?;
    let json = Encoding::new("application/json");
    let mut pose = node.publisher("robot/pose").encoding(json).declare()?;
    let mut poses = node.subscriber("robot/**").declare()?;

    let mut recording = Recording::new(Compression::Lz4, "recording example");
    for number in 0..5 {
        pose.put(format!("{{\"x\":{number}}}"))?;
        record(&mut recording, &poses.recv_timeout(Duration::from_secs(5))?)?;
    }
    let path = std::env::temp_dir().join(format!("paceline-{}.mcap", std::process::id()));
    std::fs::write(&path, recording.finish())?;

    let mut reader = McapReader::new(BufReader::new(File::open(&path)?))?;
    while let Some(message) = reader.next_message()? {
        let (topic, text) = (&message.channel.topic, String::from_utf8_lossy(&message.data));
        println!("{topic} {}: {text}", message.sequence);
    }
    println!("{} bytes", std::fs::metadata(&path)?.len());
    std::fs::remove_file(path)?;
    Ok(())
}
