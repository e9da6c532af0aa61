//! PES packets of MPEG-1 and MPEG-2.

/// A PES packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pes<'a> {
    /// The presentation and decoding time of the first frame that begins in it, in ticks of 90 kHz.
    pub(super) shown: Option<u64>,
    pub(super) decode: Option<u64>,
    pub(super) payload: &'a [u8],
}

/// The bytes before the fields of a packet: start code, id and length.
pub(super) const PREFIX: usize = 6;

impl<'a> Pes<'a> {
    /// Reads a whole packet; `None` if it is none.
    pub(super) fn read(packet: &'a [u8]) -> Option<Self> {
        let fields = packet.strip_prefix(&[0, 0, 1])?.get(PREFIX - 3..)?;
        match *fields {
            [flags, times, length, ..] if flags & 0xc0 == 0x80 => {
                let length = usize::from(length);
                let stated = fields.get(3..3 + length)?;
                let shown = (times & 0x80 != 0).then(|| time(stated)).flatten();
                let decode = (times & 0x40 != 0).then(|| time(stated.get(5..)?)).flatten();
                Some(Self { shown, decode, payload: fields.get(3 + length..)? })
            }
            _ => Self::first(fields),
        }
    }

    /// Reads the fields of MPEG-1.
    fn first(mut fields: &'a [u8]) -> Option<Self> {
        while let [0xff, rest @ ..] = fields {
            fields = rest;
        }
        if fields.first()? & 0xc0 == 0x40 {
            fields = fields.get(2..)?;
        }
        let (shown, decode, length) = match fields.first()? >> 4 {
            2 => (Some(time(fields)?), None, 5),
            3 => (Some(time(fields)?), Some(time(fields.get(5..)?)?), 10),
            0 => (None, None, 1),
            _ => return None,
        };
        Some(Self { shown, decode, payload: fields.get(length..)? })
    }
}

/// Reads a time of 33 bits, with marker bits between its parts.
fn time(bytes: &[u8]) -> Option<u64> {
    let [a, b, c, d, e] = bytes.first_chunk::<5>()?.map(u64::from);
    Some((a >> 1 & 7) << 30 | b << 22 | (c >> 1) << 15 | d << 7 | e >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_have_times() {
        let second = b"\0\0\x01\xe0\0\0\x80\xc0\x0b\x31\0\x01\0\x03\x11\0\x01\0\x01\xffx";
        let read = Pes::read(second).unwrap();
        assert_eq!((read.shown, read.decode, read.payload), (Some(1), Some(0), &b"x"[..]));
        let first = b"\0\0\x01\xc0\0\0\xff\xff\x40\x20\x2f\xff\xff\xff\xffx";
        let read = Pes::read(first).unwrap();
        assert_eq!((read.shown, read.decode, read.payload), (Some((1 << 33) - 1), None, &b"x"[..]));
        assert_eq!(Pes::read(b"\0\0\x01\xc0\0\0\x0fx").unwrap().payload, b"x");
        for bad in [
            &b"\0\0\x01\xe0\0\0"[..],
            b"\0\0\x01\xe0\0\0\x80\x80\x05\x21",
            b"\0\0\x02\xe0\0\0\x0fx",
        ] {
            assert_eq!(Pes::read(bad), None, "{bad:?}");
        }
    }
}
