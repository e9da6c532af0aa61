//! The wire format of the parts of a link that contracts reserve, after all other parts of a status.

use super::{TEXT_MAX, put_option, put_rows, put_text, read_option, read_rows};
use crate::status::{BufferUse, ClassUse, HostBuffer, LinkReserved};
use paceline_proto::wire::{Reader, WireError, Writer};

fn put_buffer(BufferUse { held, most }: BufferUse, out: &mut Vec<u8>) {
    [held, most].into_iter().for_each(|n| out.put_varint(n));
}

fn read_buffer(r: &mut Reader) -> Result<BufferUse, WireError> {
    Ok(BufferUse { held: r.varint("buffer held")?, most: r.varint("buffer")? })
}

pub(super) fn put_host(row: &HostBuffer, out: &mut Vec<u8>) {
    put_buffer(row.space, out);
    out.put_varint(row.greatest);
}

pub(super) fn read_host(r: &mut Reader) -> Result<HostBuffer, WireError> {
    Ok(HostBuffer { space: read_buffer(r)?, greatest: r.varint("waiting bytes")? })
}

pub(super) fn put(row: &LinkReserved, out: &mut Vec<u8>) {
    put_option(row.buffer, put_buffer, out);
    out.put_varint(row.greatest_depth);
    put_rows(&row.classes, put_class, out);
}

pub(super) fn read(r: &mut Reader) -> Result<LinkReserved, WireError> {
    Ok(LinkReserved {
        buffer: read_option(r, read_buffer)?,
        greatest_depth: r.varint("queue depth")?,
        classes: read_rows(r, read_class)?,
    })
}

fn put_class(row: &ClassUse, out: &mut Vec<u8>) {
    put_text(&row.name, out);
    [row.held, row.most].into_iter().for_each(|n| out.put_varint(n));
}

fn read_class(r: &mut Reader) -> Result<ClassUse, WireError> {
    Ok(ClassUse {
        name: r.text(TEXT_MAX, "class")?,
        held: r.varint("rate held")?,
        most: r.varint("rate guaranteed")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn a_row_round_trips_and_every_truncation_is_an_error() {
        let class = |name: &str, held, most| ClassUse { name: name.to_owned(), held, most };
        let row = LinkReserved {
            buffer: Some(BufferUse { held: 13_140, most: 256_000_000 }),
            greatest_depth: 9_000,
            classes: vec![class("contracts", 600_000, 1_000_000), class("default", 0, 0)],
        };
        let mut out = Vec::new();
        put(&row, &mut out);
        for cut in 0..out.len() {
            let mut reader = Reader::new(Bytes::copy_from_slice(&out[..cut]));
            assert!(read(&mut reader).is_err(), "{cut} of {} bytes", out.len());
        }
        let mut reader = Reader::new(out.into());
        assert_eq!(read(&mut reader), Ok(row));
        assert!(reader.finish().is_ok());
    }
}
