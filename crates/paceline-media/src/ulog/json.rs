//! Messages as JSON.

use std::fmt::Write as _;

use super::layout::{Basic, Field, Layouts, Type};

/// The longest JSON text of a message in bytes. Names are repeated for each element of an array, so a
/// short message can have a long text.
const JSON_MAX: usize = 1024 * 1024;

const CUT: &str = "it is cut off";

/// Returns the fields of a payload as an object.
pub(super) fn object(
    layouts: &Layouts,
    layout: usize,
    payload: &[u8],
) -> Result<String, &'static str> {
    if !layouts.get(layout).is_some_and(|layout| layout.fits(payload)) {
        return Err("its length is not that of its format");
    }
    let mut out = String::with_capacity(payload.len() * 8);
    write_object(layouts, layout, payload, &mut out)?;
    Ok(out)
}

/// Writes an object; the padding at its end may be missing.
fn write_object(
    layouts: &Layouts,
    layout: usize,
    payload: &[u8],
    out: &mut String,
) -> Result<(), &'static str> {
    let layout = layouts.get(layout).ok_or(CUT)?;
    let (mut rest, mut begin) = (payload, '{');
    for field in &layout.fields {
        if field.is_padding() {
            rest = rest.get(field.size()..).unwrap_or_default();
            continue;
        }
        let (bytes, behind) = rest.split_at_checked(field.size()).ok_or(CUT)?;
        rest = behind;
        out.push(begin);
        begin = ',';
        write_string(&field.name, out);
        out.push(':');
        write_field(layouts, field, bytes, out)?;
        if out.len() > JSON_MAX {
            return Err("it is longer than 1 MiB as JSON");
        }
    }
    if begin == '{' {
        out.push('{');
    }
    out.push('}');
    Ok(())
}

fn write_field(
    layouts: &Layouts,
    field: &Field,
    bytes: &[u8],
    out: &mut String,
) -> Result<(), &'static str> {
    if field.kind == Type::Basic(Basic::Char) {
        let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        write_string(&String::from_utf8_lossy(text), out);
        return Ok(());
    }
    if field.count.is_none() {
        return write_value(layouts, field.kind, bytes, out);
    }
    let mut begin = '[';
    for element in bytes.chunks_exact(field.element.max(1)) {
        out.push(begin);
        begin = ',';
        write_value(layouts, field.kind, element, out)?;
    }
    out.push(']');
    Ok(())
}

fn write_value(
    layouts: &Layouts,
    kind: Type,
    bytes: &[u8],
    out: &mut String,
) -> Result<(), &'static str> {
    let basic = match kind {
        Type::Nested(layout) => return write_object(layouts, layout, bytes, out),
        Type::Basic(basic) => basic,
    };
    let written = match (basic, bytes) {
        (Basic::I8, &[a]) => write!(out, "{}", i8::from_le_bytes([a])),
        (Basic::U8 | Basic::Char, &[a]) => write!(out, "{a}"),
        (Basic::Bool, &[a]) => write!(out, "{}", a != 0),
        (Basic::I16, &[a, b]) => write!(out, "{}", i16::from_le_bytes([a, b])),
        (Basic::U16, &[a, b]) => write!(out, "{}", u16::from_le_bytes([a, b])),
        (Basic::I32, &[a, b, c, d]) => write!(out, "{}", i32::from_le_bytes([a, b, c, d])),
        (Basic::U32, &[a, b, c, d]) => write!(out, "{}", u32::from_le_bytes([a, b, c, d])),
        (Basic::F32, &[a, b, c, d]) => {
            // The shortest text that parses to the same number. Debug uses exponents where Display would
            // write hundreds of zeros.
            match f32::from_le_bytes([a, b, c, d]) {
                number if number.is_finite() => write!(out, "{number:?}"),
                _ => write!(out, "null"),
            }
        }
        (Basic::I64 | Basic::U64 | Basic::F64, bytes) => {
            let bytes = *bytes.first_chunk().ok_or(CUT)?;
            match (basic, f64::from_le_bytes(bytes)) {
                (Basic::I64, _) => write!(out, "{}", i64::from_le_bytes(bytes)),
                (Basic::U64, _) => write!(out, "{}", u64::from_le_bytes(bytes)),
                (_, number) if number.is_finite() => write!(out, "{number:?}"),
                _ => write!(out, "null"),
            }
        }
        _ => return Err(CUT),
    };
    written.map_err(|_| CUT)
}

/// Writes a string with quotes; control characters, quotes and backslashes are escaped.
fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => {
                let code = u32::from(control);
                out.push_str("\\u00");
                out.extend([code >> 4, code & 15].map(|d| char::from_digit(d, 16).unwrap_or('0')));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
