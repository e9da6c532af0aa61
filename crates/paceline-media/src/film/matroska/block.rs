//! Blocks: one frame, or several in a lace.

use super::element::{Children, id, number, unsigned};

/// A block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block<'a> {
    pub(super) track: u64,
    /// The time from the cluster's time on.
    pub(super) time: i16,
    pub(super) key: bool,
    pub(super) duration: Option<u64>,
    lacing: u8,
    content: &'a [u8],
}

impl<'a> Block<'a> {
    /// Reads a simple block.
    pub(super) fn simple(bytes: &'a [u8]) -> Option<Self> {
        let mut block = Self::read(bytes)?;
        let flags = bytes.len() - block.content.len() - 1;
        block.key = bytes.get(flags)? & 0x80 != 0;
        Some(block)
    }

    /// Reads the block of a group. It is a key block if it refers to no other.
    pub(super) fn of_group(group: &'a [u8]) -> Option<Self> {
        let child =
            |wanted: u32| Children(group).find(|(id, _)| *id == wanted).map(|(_, content)| content);
        let mut block = Self::read(child(id::BLOCK)?)?;
        block.key = child(id::REFERENCE).is_none();
        block.duration = child(id::BLOCK_DURATION).map(unsigned);
        Some(block)
    }

    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (track, length) = number(bytes)?;
        let [t0, t1, flags] = *bytes.get(length..)?.first_chunk()?;
        Some(Self {
            track: track?,
            time: i16::from_be_bytes([t0, t1]),
            key: false,
            duration: None,
            lacing: flags >> 1 & 3,
            content: bytes.get(length + 3..)?,
        })
    }

    /// Returns the frames; `None` if their sizes do not fit.
    pub(super) fn frames(&self) -> Option<Vec<&'a [u8]>> {
        if self.lacing == 0 {
            return Some(vec![self.content]);
        }
        let (count, rest) = self.content.split_first()?;
        let count = usize::from(*count) + 1;
        let (sizes, mut rest) = match self.lacing {
            1 => xiph(rest, count)?,
            2 if rest.len().is_multiple_of(count) => (vec![rest.len() / count; count - 1], rest),
            2 => return None,
            _ => ebml(rest, count)?,
        };
        let mut frames = Vec::with_capacity(count);
        for size in sizes {
            let (frame, behind) = rest.split_at_checked(size)?;
            frames.push(frame);
            rest = behind;
        }
        frames.push(rest);
        Some(frames)
    }
}

/// Reads the sizes of all frames but the last one, each a sum of bytes.
fn xiph(mut rest: &[u8], count: usize) -> Option<(Vec<usize>, &[u8])> {
    let mut sizes = Vec::with_capacity(count);
    for _ in 1..count {
        let mut size = 0;
        loop {
            let (byte, behind) = rest.split_first()?;
            rest = behind;
            size += usize::from(*byte);
            if *byte < 255 {
                break;
            }
        }
        sizes.push(size);
    }
    Some((sizes, rest))
}

/// Reads the sizes of all frames but the last one, each as the difference to the one before.
fn ebml(mut rest: &[u8], count: usize) -> Option<(Vec<usize>, &[u8])> {
    let mut sizes = Vec::with_capacity(count);
    let mut size = 0_i64;
    for place in 1..count {
        let (value, length) = number(rest)?;
        rest = rest.get(length..)?;
        let value = i64::try_from(value?).ok()?;
        // Differences are centred around 0.
        let centre = (1_i64 << (7 * length - 1)) - 1;
        size = if place == 1 { value } else { size.checked_add(value - centre)? };
        sizes.push(usize::try_from(size).ok()?);
    }
    Some((sizes, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(flags: u8, content: &[u8]) -> Option<Vec<&[u8]>> {
        let block: &'static [u8] = [&[0x81, 0, 5, flags], content].concat().leak();
        Block::simple(block)?.frames()
    }

    #[test]
    fn laces_of_all_kinds_are_cut() {
        assert_eq!(frames(0x80, b"abc").unwrap(), [b"abc"]);
        assert_eq!(frames(0x84, b"\x02aabbcc").unwrap(), [b"aa", b"bb", b"cc"]);
        assert_eq!(frames(0x82, b"\x02\x01\x02abbccc").unwrap(), [&b"a"[..], b"bb", b"ccc"]);
        // The second size is one more than the first.
        assert_eq!(frames(0x86, b"\x02\x81\xc0abbccc").unwrap(), [&b"a"[..], b"bb", b"ccc"]);
        for (flags, bad) in [
            (0x84, &b"\x02aabbc"[..]),
            (0x82, b"\x01\xff"),
            (0x86, b"\x01\x89ab"),
            (0x86, b"\x02\x81\x80a"),
        ] {
            assert_eq!(frames(flags, bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_group_is_a_key_block_if_it_refers_to_none() {
        let key = Block::of_group(b"\x9b\x81\x07\xa1\x85\x81\xff\xff\0x").unwrap();
        assert_eq!((key.track, key.time, key.key, key.duration), (1, -1, true, Some(7)));
        let other = Block::of_group(b"\xa1\x85\x81\0\x03\0x\xfb\x81\xff").unwrap();
        assert_eq!((other.time, other.key, other.duration), (3, false, None));
    }
}
