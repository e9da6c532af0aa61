//! Feeds the frames of one hop to a `Receiver`.

use crate::input::Input;
use bytes::Bytes;
use paceline_proto::receive::{Received, Receiver};
use paceline_proto::wire::SAMPLE_BYTES_MAX;
use paceline_proto::wire::codec::Reader;
use paceline_proto::wire::frame::FrameHeader;
use paceline_proto::wire::segment::CONTROL_BYTES_MAX;
use paceline_sched::Instant;

/// The local epoch. Frames are accepted if their sender knows it.
const US: u32 = 7;

/// Runs `data` as frames. Each has a byte that selects a variant, and two bytes of length.
///
/// A frame is delivered as it is, or behind a header that makes the receiver accept its segments.
pub fn receiver(data: &[u8]) {
    let mut input = Input::new(data);
    let mut receiver = Receiver::new();
    let (mut epoch, mut seq) = (1, 0u64);
    let mut heard = 0;
    while !input.is_empty() {
        let how = input.byte();
        let len = usize::from(input.u16());
        let bytes = input.take(len);
        let frame: Bytes = if how & 1 == 1 {
            bytes.to_vec().into()
        } else {
            epoch += u32::from(how >> 4 == 15);
            seq += u64::from(how >> 1 & 3);
            let (known, seq) = (US, Some(seq));
            let datagrams = how >> 3 & 1 == 1;
            let header = FrameHeader { epoch, known, seq, datagrams, ..FrameHeader::default() };
            let mut out = Vec::new();
            header.write(&mut out);
            out.extend_from_slice(bytes);
            out.into()
        };
        heard += frame.len();
        hear(&mut receiver, &frame, heard);
    }
}

/// Delivers one frame twice. The second delivery must report nothing.
fn hear(receiver: &mut Receiver, frame: &Bytes, heard: usize) {
    let now = Instant::from_millis(1_000);
    let result = receiver.handle_frame(now, US, frame.clone(), |received| match received {
        Received::Sample { sample, .. } => {
            // A sample consists only of bytes received over the link.
            assert!(sample.payload.len() <= heard && sample.payload.len() <= SAMPLE_BYTES_MAX);
            assert!(sample.published_at <= now && sample.encoding.as_str().len() <= 255);
        }
        Received::Control(message) => {
            assert!(message.len() <= heard && message.len() <= CONTROL_BYTES_MAX);
        }
        Received::Lost { lost, .. } => assert!(lost.samples > 0),
    });
    let header = match result {
        Ok(heard) | Err((Some(heard), _)) => Some(heard),
        Err((None, _)) => None,
    };
    if let Some(owed) = header.and_then(|heard| heard.owed) {
        assert!(owed.end() >= owed.next());
    }
    // A frame refused for its sequence number may be acceptable now.
    let mut reader = Reader::new(frame.clone());
    let seq = FrameHeader::read(&mut reader).ok().and_then(|header| header.seq);
    let owed = header.and_then(|heard| heard.owed);
    if seq.zip(owed).is_some_and(|(seq, owed)| !owed.covers(seq)) {
        return;
    }
    let again = receiver.handle_frame(now, US, frame.clone(), |received| {
        panic!("the same frame brought {received:?} again");
    });
    match (header, again) {
        (Some(first), Ok(second)) => assert_eq!(first, second),
        (None, Err((None, _))) => {}
        (first, second) => panic!("{first:?}, then {second:?}"),
    }
}
