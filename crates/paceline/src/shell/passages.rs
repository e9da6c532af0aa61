//! The wire format of trace requests and answers.

use crate::status::{NodePassages, StreamPassages};
use bytes::Bytes;
use paceline_proto::link::{PASSAGES_MAX, Passage};
use paceline_proto::text::escape;
use paceline_proto::wire::segment::{read_form, write_form};
use paceline_proto::wire::{Reader, WireError, Writer};
use paceline_proto::{NodeId, PublisherId};

/// The longest escaped name of a link in bytes.
const LINK_BYTES_MAX: usize = 1_024;
/// The limit of streams in an answer. Others are left out.
const STREAMS_MAX: usize = 32;

/// Encodes the publisher and the first sequence number of a request, which follow the topic.
pub(crate) fn put_question(publisher: PublisherId, from: u64, out: &mut Vec<u8>) {
    out.put_u64(publisher.node.0);
    out.put_varint(publisher.index.into());
    out.put_varint(from);
}

pub(crate) fn read_question(body: Bytes) -> Result<(PublisherId, u64), WireError> {
    let mut reader = Reader::new(body);
    let (node, index) = (NodeId(reader.u64("node")?), reader.varint32("publisher")?);
    let question = (PublisherId { node, index }, reader.varint("from")?);
    reader.finish()?;
    Ok(question)
}

/// Encodes an answer. It does not contain the node, which the receiver knows.
pub(crate) fn encode(streams: &[StreamPassages]) -> Vec<u8> {
    let mut out = Vec::new();
    let streams = streams.get(..STREAMS_MAX).unwrap_or(streams);
    out.put_varint(streams.len() as u64);
    for stream in streams {
        out.put_text(&escape(&stream.link));
        out.put_u64(stream.hop.0);
        write_form(&stream.form, &mut out);
        let passages = stream.passages.get(..PASSAGES_MAX).unwrap_or(&stream.passages);
        out.put_varint(passages.len() as u64);
        for Passage { seq, came_ns, left_ns } in passages {
            out.put_varint(*seq);
            out.put_varint(*came_ns);
            out.put_flag(left_ns.is_some());
            left_ns.iter().for_each(|left| out.put_varint(*left));
        }
    }
    out
}

pub(crate) fn decode(node: NodeId, body: Bytes) -> Result<NodePassages, WireError> {
    let mut reader = Reader::new(body);
    let count = reader.len(STREAMS_MAX, "streams")?;
    let streams = (0..count).map(|_| read_stream(&mut reader)).collect::<Result<_, _>>()?;
    reader.finish()?;
    Ok(NodePassages { node, streams })
}

fn read_stream(r: &mut Reader) -> Result<StreamPassages, WireError> {
    let link = r.text(LINK_BYTES_MAX, "link")?;
    let (hop, form) = (NodeId(r.u64("hop")?), read_form(r)?);
    let count = r.len(PASSAGES_MAX, "passages")?;
    let passages = (0..count).map(|_| read_passage(r)).collect::<Result<_, _>>()?;
    Ok(StreamPassages { link, hop, form, passages })
}

fn read_passage(r: &mut Reader) -> Result<Passage, WireError> {
    Ok(Passage {
        seq: r.varint("number")?,
        came_ns: r.varint("age on arrival")?,
        left_ns: match r.flag("age on leaving")? {
            true => Some(r.varint("age on leaving")?),
            false => None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_proto::Form;

    #[test]
    fn passages_round_trip_and_no_prefix_decodes() {
        let passages = vec![
            Passage { seq: 70_000, came_ns: 5, left_ns: Some(u64::MAX) },
            Passage { seq: 70_003, came_ns: 1_000_000, left_ns: None },
        ];
        let stream =
            StreamPassages { link: "thin".to_owned(), hop: NodeId(7), form: Form::FULL, passages };
        let empty = StreamPassages { passages: Vec::new(), ..stream.clone() };
        let told = NodePassages { node: NodeId(3), streams: vec![stream, empty] };
        let bytes = Bytes::from(encode(&told.streams));
        assert_eq!(decode(NodeId(3), bytes.clone()), Ok(told));
        for end in 0..bytes.len() {
            assert!(decode(NodeId(3), bytes.slice(..end)).is_err(), "{end} bytes");
        }
        assert!(decode(NodeId(3), [&bytes[..], &[0]].concat().into()).is_err());
    }

    #[test]
    fn a_reply_contains_no_more_than_a_reader_accepts() {
        let passage = Passage { seq: 1, came_ns: 2, left_ns: None };
        let stream = StreamPassages {
            link: String::new(),
            hop: NodeId(7),
            form: Form::FULL,
            passages: vec![passage; PASSAGES_MAX + 1],
        };
        let told = decode(NodeId(3), encode(&vec![stream; STREAMS_MAX + 1]).into()).unwrap();
        assert_eq!(told.streams.len(), STREAMS_MAX);
        assert!(told.streams.iter().all(|stream| stream.passages.len() == PASSAGES_MAX));
    }

    #[test]
    fn a_query_names_a_publisher_and_a_sequence_number() {
        let asked = (PublisherId { node: NodeId(9), index: 300 }, 70_000);
        let mut body = Vec::new();
        put_question(asked.0, asked.1, &mut body);
        assert_eq!(read_question(body.clone().into()), Ok(asked));
        assert!(read_question(body[..body.len() - 1].to_vec().into()).is_err());
        body.push(0);
        assert!(read_question(body.into()).is_err());
    }
}
