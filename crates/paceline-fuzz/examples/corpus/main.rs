//! Writes the seeds of `fuzz/corpus`: `cargo run -p paceline-fuzz --example corpus`.
//!
//! Every seed is made by our own encoders or stands here byte by byte, and the same seeds come out
//! every time. Files that it does not write, such as `regression-*`, stay.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "it makes test data and is run by hand: a panic says what is wrong"
)]

mod files;
mod histories;
mod messages;
mod pictures;
mod wire;

use std::fs;
use std::path::Path;

/// A body, a name, and the bytes.
pub(crate) type Seed = (&'static str, String, Vec<u8>);

/// `bytes`, and the same cut off at a few places: seeds that end inside a field.
pub(crate) fn with_cuts(body: &'static str, name: &str, bytes: &[u8]) -> Vec<Seed> {
    let cuts = [bytes.len() / 2, bytes.len() - 1];
    let mut seeds = vec![(body, name.to_owned(), bytes.to_vec())];
    for cut in cuts {
        seeds.push((body, format!("{name}-cut-{cut}"), bytes[..cut].to_vec()));
    }
    seeds
}

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let pictures = [pictures::seeds(), files::seeds()].concat();
    let made = [wire::seeds(), messages::seeds(), histories::seeds(), pictures];
    let mut seeds: Vec<Seed> = made.into_iter().flatten().collect();
    for body in paceline_fuzz::BODIES {
        seeds.push((body.name, "empty".to_owned(), Vec::new()));
        seeds.push((body.name, "zeros".to_owned(), vec![0; 64]));
        seeds.push((body.name, "ones".to_owned(), vec![0xff; 64]));
    }
    let bytes: usize = seeds.iter().map(|(_, _, bytes)| bytes.len()).sum();
    for (body, name, bytes) in &seeds {
        let folder = corpus.join(body);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), bytes)?;
    }
    println!("{} seeds, {bytes} bytes", seeds.len());
    Ok(())
}
