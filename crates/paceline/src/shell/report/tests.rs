//! Encoding and decoding of a node's status.

use super::*;
use crate::status::{BufferUse, HostBuffer, MemoryUse};

fn status(processor: Option<ProcessorUse>) -> NodeStatus {
    NodeStatus {
        id: NodeId(0xb0b),
        name: "robot".to_owned(),
        at: Duration::from_secs(86_400),
        publishers: vec![PublisherStatus {
            id: PublisherId { node: NodeId(0xb0b), index: 300 },
            tag: Tag::new("robot/camera").unwrap(),
            kind: Kind::Picture,
            encoding: "image/jpeg".to_owned(),
            period: Some(Duration::from_millis(33)),
            published: 70_000,
            rate_millihertz: 30_000,
            matching: true,
        }],
        subscriptions: Vec::new(),
        buffers: Vec::new(),
        links: Vec::new(),
        reservations: Vec::new(),
        drops: Drops::default(),
        processor,
        stalled: vec![StalledThread {
            thread: "paceline-radio".to_owned(),
            still: Duration::from_millis(2_600),
        }],
        clock: Some(clock::example()),
        buffer: Some(HostBuffer {
            space: BufferUse { held: 9_000, most: 1_000_000_000 },
            greatest: 700,
        }),
        memory: Some(MemoryUse { used: 300, limit: 1 << 27, greatest: 70_000 }),
        unread: vec![UnreadStatus {
            node: NodeId(0xa),
            entry: "publisher 3 'robot/x'".to_owned(),
            reason: "invalid burst".to_owned(),
        }],
    }
}

#[test]
fn a_status_round_trips_and_no_prefix_of_it_decodes() {
    let sent = status(Some(ProcessorUse { held: 70_000, most: 500_000_000 }));
    let bytes = Bytes::from(encode(&sent));
    assert_eq!(decode(bytes.clone()), Ok(sent.clone()));
    // A status that ends before a later part is from an older node.
    let mut times = Vec::new();
    times::put(&sent, &mut times);
    let mut clocked = Vec::new();
    put_option(sent.clock.as_ref(), clock::put, &mut clocked);
    let mut unread = Vec::new();
    put_rows(&sent.unread, put_unread, &mut unread);
    let mut memory = Vec::new();
    memory::put(&sent, &mut memory);
    // The part behind the memory is the number of subscriptions, none.
    let overdue = bytes.len() - 1;
    let memory = overdue - memory.len();
    let unread = memory - unread.len();
    let mut buffered = Vec::new();
    put_option(sent.buffer.as_ref(), reserved::put_host, &mut buffered);
    let buffered = unread - buffered.len();
    // The part before the buffer is the number of subscriptions, none.
    let last = buffered - 1;
    let clocked = last - clocked.len();
    // The part before it is the number of links, none.
    let reserved = clocked - 1;
    let timed = reserved - times.len();
    let stalled = timed - encode_stalled(&sent).len();
    let (repaired, processor) = (stalled - 1, stalled - 1 - PROCESSOR_BYTES);
    let whole = [
        processor, repaired, stalled, timed, reserved, clocked, last, buffered, unread, memory,
        overdue,
    ];
    for end in (0..bytes.len()).filter(|end| !whole.contains(end)) {
        assert!(decode(bytes.slice(..end)).is_err(), "{end} bytes");
    }
    assert_eq!(decode(bytes.slice(..overdue)), Ok(sent.clone()));
    let sent = NodeStatus { memory: None, ..sent };
    assert_eq!(decode(bytes.slice(..memory)), Ok(sent.clone()));
    let sent = NodeStatus { unread: Vec::new(), ..sent };
    assert_eq!(decode(bytes.slice(..unread)), Ok(sent.clone()));
    let sent = NodeStatus { buffer: None, ..sent };
    assert_eq!(decode(bytes.slice(..buffered)), Ok(sent.clone()));
    assert_eq!(decode(bytes.slice(..last)), Ok(sent.clone()));
    let clockless = NodeStatus { clock: None, ..sent };
    assert_eq!(decode(bytes.slice(..clocked)), Ok(clockless.clone()));
    let untimed = NodeStatus { at: Duration::ZERO, ..clockless };
    assert_eq!(decode(bytes.slice(..timed)), Ok(untimed.clone()));
    let older = NodeStatus { stalled: Vec::new(), ..untimed };
    assert_eq!(decode(bytes.slice(..stalled)), Ok(older.clone()));
    assert_eq!(decode(bytes.slice(..repaired)), Ok(older.clone()));
    assert_eq!(decode(bytes.slice(..processor)), Ok(NodeStatus { processor: None, ..older }));
}

/// A flag and the two numbers of [`ProcessorUse`] in the test.
const PROCESSOR_BYTES: usize = 1 + 3 + 5;

fn encode_stalled(status: &NodeStatus) -> Vec<u8> {
    let mut out = Vec::new();
    put_rows(&status.stalled, put_stalled, &mut out);
    out
}

#[test]
fn a_status_with_a_changed_byte_decodes_or_fails() {
    let bytes = encode(&status(Some(ProcessorUse { held: 70_000, most: 500_000_000 })));
    let mut decoded = [0; 2];
    for at in 0..bytes.len() {
        for value in 0..=u8::MAX {
            let mut changed = bytes.clone();
            changed[at] = value;
            decoded[usize::from(decode(changed.into()).is_ok())] += 1;
        }
    }
    assert!(decoded.iter().all(|count| *count > bytes.len()), "{decoded:?}");
}

#[test]
fn unknown_fields_of_a_newer_node_are_skipped() {
    let sent = status(None);
    let longer = [encode(&sent), vec![3, 0xff, 0, 7]].concat();
    assert_eq!(decode(longer.into()), Ok(sent));
}
