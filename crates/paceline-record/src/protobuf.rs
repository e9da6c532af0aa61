//! The part of the protobuf wire format that the schemas here use: varints, length-delimited fields
//! and 32-bit numbers.

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;
const FIXED32: u32 = 5;

/// Appends a varint field. The default value 0 is omitted.
pub(crate) fn put_varint(out: &mut Vec<u8>, field: u32, value: u64) {
    if value != 0 {
        key(out, field, VARINT);
        varint(out, value);
    }
}

/// Appends a 32-bit field. The default value 0 is omitted.
pub(crate) fn put_fixed32(out: &mut Vec<u8>, field: u32, value: u32) {
    if value != 0 {
        key(out, field, FIXED32);
        out.extend(value.to_le_bytes());
    }
}

/// Appends text, bytes or a message. An empty value is omitted.
pub(crate) fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    if !bytes.is_empty() {
        key(out, field, LENGTH);
        varint(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    }
}

/// Appends a time as google.protobuf.Timestamp.
pub(crate) fn put_time(out: &mut Vec<u8>, field: u32, nanos: u64) {
    let mut time = Vec::with_capacity(12);
    put_varint(&mut time, 1, nanos / 1_000_000_000);
    put_varint(&mut time, 2, nanos % 1_000_000_000);
    put_bytes(out, field, &time);
}

fn key(out: &mut Vec<u8>, field: u32, kind: u32) {
    varint(out, u64::from(field << 3 | kind));
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// The value of a field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Value<'a> {
    /// A whole number.
    Varint(u64),
    /// A 32-bit number.
    Fixed32(u32),
    /// Text, bytes or a message.
    Bytes(&'a [u8]),
    /// A 64-bit number, which no schema here uses.
    Fixed64,
}

/// Iterates over the fields of a message in order. An invalid message ends with a `None` item.
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) const fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for place in 0..10 {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f).checked_shl(7 * place)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    fn field(&mut self) -> Option<(u32, Value<'a>)> {
        let key = u32::try_from(self.varint()?).ok()?;
        let value = match key & 7 {
            VARINT => Value::Varint(self.varint()?),
            FIXED64 => self.take(8).map(|_| Value::Fixed64)?,
            LENGTH => {
                let length = usize::try_from(self.varint()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            FIXED32 => {
                let bytes = self.take(4)?.first_chunk::<4>()?;
                Value::Fixed32(u32::from_le_bytes(*bytes))
            }
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    /// The number and value of a field; `None` for invalid bytes.
    type Item = Option<(u32, Value<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.rest = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_fields_are_found() {
        let mut out = Vec::new();
        put_time(&mut out, 1, 1_700_000_000_000_000_007);
        put_bytes(&mut out, 2, b"abc");
        put_fixed32(&mut out, 4, 48_000);
        put_varint(&mut out, 100, 300);
        put_varint(&mut out, 5, 0);
        let fields: Vec<_> = Fields::new(&out).collect::<Option<_>>().unwrap();
        let Value::Bytes(time) = fields[0].1 else { panic!("a message") };
        let time: Vec<_> = Fields::new(time).collect::<Option<_>>().unwrap();
        assert_eq!(time, [(1, Value::Varint(1_700_000_000)), (2, Value::Varint(7))]);
        let rest =
            [(2, Value::Bytes(b"abc")), (4, Value::Fixed32(48_000)), (100, Value::Varint(300))];
        assert_eq!(fields[1..], rest);
    }

    #[test]
    fn truncated_messages_are_refused() {
        let mut out = Vec::new();
        put_bytes(&mut out, 2, &[7; 200]);
        for end in 1..out.len() {
            assert!(Fields::new(&out[..end]).any(|field| field.is_none()), "{end}");
        }
        assert!(Fields::new(&[0xff; 20]).any(|field| field.is_none()));
    }
}
