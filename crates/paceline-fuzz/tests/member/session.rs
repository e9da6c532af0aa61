//! A raw connection of the hostile member: a node that speaks the protocol of a link as it likes.

use crate::carrier::{Dialler, MEMBER, Raw};
use bytes::Bytes;
use paceline_fuzz::speaker::Speaker;
use paceline_proto::NodeId;
use paceline_proto::control::{Control, ControlOutput, HopInfo};
use paceline_proto::receive::Received;
use paceline_proto::wire::VERSION;
use paceline_sched::Instant;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;

/// The frames that wait to be read.
const WAITING_MAX: usize = 256;
/// The interval of greetings.
const GREET_EVERY: Duration = Duration::from_millis(50);

/// The samples on tags that the member may not subscribe to, and the answers that it may not have.
pub(crate) static FOREIGN: AtomicU64 = AtomicU64::new(0);
pub(crate) static CHANGES: AtomicU64 = AtomicU64::new(0);
/// The bits in a second that the other end has sent beyond its share for connections that only introduce themselves.
pub(crate) static EXCESS: AtomicU64 = AtomicU64::new(0);

/// Returns the id of the node with this introduction.
pub(crate) fn id_of(introduction: &[u8]) -> NodeId {
    let hash = ring::digest::digest(&ring::digest::SHA256, introduction);
    NodeId(u64::from_be_bytes(hash.as_ref()[..8].try_into().unwrap()))
}

/// Counts a sample of the other end; its payload begins with its tag.
pub(crate) fn note_sample(payload: &[u8]) {
    FOREIGN.fetch_add(u64::from(!payload.starts_with(b"pub/")), Ordering::Relaxed);
}

/// A node of the member, and its connection.
pub(crate) struct Session {
    pub(crate) id: NodeId,
    /// The node under attack.
    pub(crate) victim: NodeId,
    /// Writes the genuine messages of the node.
    pub(crate) control: Control,
    pub(crate) speaker: Speaker,
    raw: Raw,
    frames: Receiver<Bytes>,
    hop_is_up: bool,
    /// The answers to questions of `control`.
    pub(crate) answers: Vec<(u64, Bytes)>,
}

fn now() -> Instant {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Instant::from_nanos(u64::try_from(nanos.unwrap().as_nanos()).unwrap())
}

/// Connects, and exchanges introductions.
pub(crate) async fn introduce(dialler: &Dialler, number: u64) -> io::Result<(Raw, NodeId, NodeId)> {
    let mut raw = dialler.connect().await?;
    let own = dialler.introduction(number);
    let words = [&b"PACE"[..], &[VERSION], &own].concat();
    raw.writer.write_all(&words).await?;
    raw.writer.flush().await?;
    let mut heard = [0; 53];
    timeout(Duration::from_secs(5), raw.reader.read_exact(&mut heard)).await??;
    Ok((raw, id_of(&own), id_of(&heard[5..])))
}

impl Session {
    /// Connects as the node with this number, and waits until the other end has accepted it as a neighbour.
    pub(crate) async fn join(dialler: &Dialler, number: u64) -> io::Result<Self> {
        let (mut raw, id, victim) = introduce(dialler, number).await?;
        let (sender, frames) = channel(WAITING_MAX);
        let reader = std::mem::replace(&mut raw.reader, Box::new(tokio::io::empty()));
        tokio::spawn(read_records(reader, sender.clone()));
        if let Some((connection, _)) = &raw.quic {
            tokio::spawn(read_datagrams(connection.clone(), sender));
        }
        let (control, speaker) = (Control::new(id, MEMBER), Speaker::new());
        let answers = Vec::new();
        let mut it = Self { id, victim, control, speaker, raw, frames, hop_is_up: false, answers };
        for _ in 0..200 {
            it.turn(GREET_EVERY).await?;
            if it.speaker.is_up() {
                return Ok(it);
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Greets, reads for `time`, and sends the messages of its control.
    pub(crate) async fn turn(&mut self, time: Duration) -> io::Result<()> {
        let greeting = self.speaker.greeting();
        self.send(&greeting).await?;
        let until = std::time::Instant::now() + time;
        while let Some(left) = until.checked_duration_since(std::time::Instant::now()) {
            let Ok(frame) = timeout(left, self.frames.recv()).await else { break };
            let Some(frame) = frame else { return Err(io::ErrorKind::UnexpectedEof.into()) };
            self.take(frame);
        }
        self.settle().await
    }

    /// Reads the frames that have arrived, without waiting.
    pub(crate) async fn glance(&mut self) -> io::Result<()> {
        while let Ok(frame) = self.frames.try_recv() {
            self.take(frame);
        }
        self.settle().await
    }

    fn take(&mut self, frame: Bytes) {
        for received in self.speaker.hear(now(), frame) {
            match received {
                Received::Sample { sample, .. } => note_sample(&sample.payload),
                Received::Control(message) => {
                    let _ = self.control.handle_message(now(), self.victim, message);
                }
                Received::Lost { .. } => {}
            }
        }
        if self.speaker.is_up() && !self.hop_is_up {
            self.hop_is_up = true;
            let hop = HopInfo::new("radio".to_owned(), None);
            self.control.handle_hop_up(now(), self.victim, hop);
        }
    }

    /// Sends the messages of its control.
    async fn settle(&mut self) -> io::Result<()> {
        self.control.handle_timeout(now());
        for message in self.messages() {
            self.say(&message).await?;
        }
        Ok(())
    }

    fn messages(&mut self) -> Vec<Bytes> {
        let mut messages = Vec::new();
        while let Some(output) = self.control.poll_output() {
            if let ControlOutput::Send { message, .. } = output {
                messages.push(message);
            } else if let ControlOutput::Answered { request, body, .. } = output {
                self.answers.push((request, body));
            }
        }
        messages
    }

    /// Sends a control message.
    pub(crate) async fn say(&mut self, message: &[u8]) -> io::Result<()> {
        for frame in self.speaker.message(message) {
            self.send(&frame).await?;
        }
        Ok(())
    }

    /// Sends a frame.
    pub(crate) async fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let length = u16::try_from(frame.len()).unwrap().to_be_bytes();
        self.raw.writer.write_all(&[&length[..], frame].concat()).await?;
        self.raw.writer.flush().await
    }
}

/// Passes the frames of a byte stream on.
async fn read_records(
    mut reader: Box<dyn tokio::io::AsyncRead + Send + Unpin>,
    to: Sender<Bytes>,
) -> io::Result<()> {
    loop {
        match reader.read_u16().await? {
            0 => {}
            // A message about groups.
            0xfffe => {
                let mut message = vec![0; usize::from(reader.read_u16().await?)];
                reader.read_exact(&mut message).await?;
            }
            0xffff => return Ok(()),
            bytes => {
                let mut frame = vec![0; usize::from(bytes)];
                reader.read_exact(&mut frame).await?;
                if to.send(frame.into()).await.is_err() {
                    return Ok(());
                }
            }
        }
    }
}

/// Passes the frames in datagrams on: whole ones, and ones in two halves.
async fn read_datagrams(connection: quinn::Connection, to: Sender<Bytes>) {
    let mut first = Bytes::new();
    while let Ok(mut datagram) = connection.read_datagram().await {
        let frame = match datagram.first() {
            Some(0) => datagram.split_off(1),
            Some(1) if datagram.len() > 5 => {
                first = datagram.split_off(5);
                continue;
            }
            Some(2) if datagram.len() > 5 => [&first[..], &datagram[5..]].concat().into(),
            _ => continue,
        };
        if to.send(frame).await.is_err() {
            return;
        }
    }
}
