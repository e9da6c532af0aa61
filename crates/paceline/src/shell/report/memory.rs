//! The wire format of the memory that neighbours use, after all other parts of a status.

use super::{put_option, put_rows, read_option, read_rows};
use crate::status::{LinkStatus, MemoryUse, NodeStatus};
use paceline_proto::wire::{Reader, WireError, Writer};

/// Encodes the memory of the node, and of each neighbour in the order of the rows before it.
pub(super) fn put(status: &NodeStatus, out: &mut Vec<u8>) {
    let put_use = |it: MemoryUse, out: &mut Vec<u8>| {
        [it.used, it.limit, it.greatest].into_iter().for_each(|n| out.put_varint(n));
    };
    put_option(status.memory, put_use, out);
    let put_link = |link: &LinkStatus, out: &mut Vec<u8>| {
        put_rows(&link.sent, |sent, out| out.put_varint(sent.memory), out);
    };
    put_rows(&status.links, put_link, out);
}

/// Decodes the part into the rows of `status`.
pub(super) fn read(r: &mut Reader, status: &mut NodeStatus) -> Result<(), WireError> {
    status.memory = read_option(r, read_use)?;
    let links = read_rows(r, |r| read_rows(r, |r| r.varint("memory of a neighbour")))?;
    for (link, memory) in status.links.iter_mut().zip(links) {
        for (sent, memory) in link.sent.iter_mut().zip(memory) {
            sent.memory = memory;
        }
    }
    Ok(())
}

fn read_use(r: &mut Reader) -> Result<MemoryUse, WireError> {
    Ok(MemoryUse {
        used: r.varint("memory in use")?,
        limit: r.varint("memory")?,
        greatest: r.varint("greatest memory")?,
    })
}
