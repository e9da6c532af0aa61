//! Encoding of forms and media types in segments and control messages.

use crate::form::{Audio, Form, Rate, Size};
use crate::ids::NodeId;
use crate::sample::Encoding;
use crate::wire::codec::{Reader, WireError, Writer};
use core::num::{NonZeroU8, NonZeroU32};

/// Flags behind the rate of a form, for its optional fields.
const FORM_SIZE: u8 = 1;
const FORM_AUDIO: u8 = 2;
const FORM_BITRATE: u8 = 4;
const FORM_QUALITY: u8 = 8;
const FORM_VIA: u8 = 16;

/// Flags of a rate, for its limits.
const RATE_EVERY: u8 = 1;
const RATE_MAX: u8 = 2;
const RATE_BITS: u8 = 4;

/// Appends a rate.
pub(crate) fn write_rate(rate: Rate, out: &mut Vec<u8>) {
    let Rate { every, max_millihertz, bits_per_s } = rate;
    let every = Some(every).filter(|n| n.get() > 1);
    let limits = [(every, RATE_EVERY), (max_millihertz, RATE_MAX), (bits_per_s, RATE_BITS)];
    let given = limits.iter().filter_map(|(limit, flag)| Some((limit.as_ref()?, flag)));
    out.put_u8(given.clone().fold(0, |all, (_, flag)| all | flag));
    given.for_each(|(limit, _)| out.put_varint(u64::from(limit.get())));
}

/// Reads a rate. No limit may be zero, nor may one sample in one be stated.
pub(crate) fn read_rate(reader: &mut Reader) -> Result<Rate, WireError> {
    let has = reader.u8("rate")?;
    if has & !(RATE_EVERY | RATE_MAX | RATE_BITS) != 0 {
        return Err(WireError::Invalid("rate"));
    }
    let mut limit = |flag: u8| match has & flag {
        0 => Ok(None),
        _ => NonZeroU32::new(reader.varint32("rate")?).ok_or(WireError::Invalid("rate")).map(Some),
    };
    let every = limit(RATE_EVERY)?;
    if every == Some(NonZeroU32::MIN) {
        return Err(WireError::Invalid("rate"));
    }
    Ok(Rate {
        every: every.unwrap_or(NonZeroU32::MIN),
        max_millihertz: limit(RATE_MAX)?,
        bits_per_s: limit(RATE_BITS)?,
    })
}

/// Appends a form.
pub fn write_form(form: &Form, out: &mut Vec<u8>) {
    write_rate(form.rate, out);
    let with = |there: bool, mask: u8| if there { mask } else { 0 };
    out.put_u8(
        with(form.size.is_some(), FORM_SIZE)
            | with(form.audio.is_some(), FORM_AUDIO)
            | with(form.bitrate.is_some(), FORM_BITRATE)
            | with(form.quality.is_some(), FORM_QUALITY)
            | with(form.via.is_some(), FORM_VIA),
    );
    if let Some(size) = form.size {
        out.put_varint(u64::from(size.width));
        out.put_varint(u64::from(size.height));
    }
    if let Some(audio) = form.audio {
        write_audio(audio, out);
    }
    if let Some(bitrate) = form.bitrate {
        out.put_varint(u64::from(bitrate.get()));
    }
    if let Some(quality) = form.quality {
        out.put_u8(quality.get());
    }
    if let Some(via) = form.via {
        out.put_u64(via.0);
    }
}

/// Reads a form.
///
/// # Errors
/// Returns a [`WireError`] for a malformed form; no number in it may be zero.
pub fn read_form(reader: &mut Reader) -> Result<Form, WireError> {
    let rate = read_rate(reader)?;
    let has = reader.u8("form")?;
    if has & !(FORM_SIZE | FORM_AUDIO | FORM_BITRATE | FORM_QUALITY | FORM_VIA) != 0 {
        return Err(WireError::Invalid("form"));
    }
    let size = if has & FORM_SIZE != 0 {
        let size = Size { width: reader.varint32("width")?, height: reader.varint32("height")? };
        if size.pixels() == 0 {
            return Err(WireError::Invalid("size"));
        }
        Some(size)
    } else {
        None
    };
    let audio = if has & FORM_AUDIO != 0 { Some(read_audio(reader)?) } else { None };
    let bitrate = if has & FORM_BITRATE != 0 { Some(read_bitrate(reader)?) } else { None };
    let quality = if has & FORM_QUALITY != 0 { Some(read_quality(reader)?) } else { None };
    let via = if has & FORM_VIA != 0 { Some(NodeId(reader.u64("proxy")?)) } else { None };
    Ok(Form { rate, size, audio, bitrate, quality, via })
}

/// Reads a bit rate, which must not be zero.
pub(crate) fn read_bitrate(reader: &mut Reader) -> Result<NonZeroU32, WireError> {
    NonZeroU32::new(reader.varint32("bit rate")?).ok_or(WireError::Invalid("bit rate"))
}

/// Reads a quality, from 1 to 100.
pub(crate) fn read_quality(reader: &mut Reader) -> Result<NonZeroU8, WireError> {
    let quality = NonZeroU8::new(reader.u8("quality")?).filter(|it| it.get() <= 100);
    quality.ok_or(WireError::Invalid("quality"))
}

/// Appends an audio format.
pub(crate) fn write_audio(audio: Audio, out: &mut Vec<u8>) {
    out.put_varint(u64::from(audio.rate));
    out.put_u8(audio.channels);
}

/// Reads an audio format; neither number may be zero.
pub(crate) fn read_audio(reader: &mut Reader) -> Result<Audio, WireError> {
    let audio = Audio { rate: reader.varint32("audio rate")?, channels: reader.u8("channels")? };
    if audio.rate == 0 || audio.channels == 0 {
        return Err(WireError::Invalid("audio"));
    }
    Ok(audio)
}

/// The default encoding of Zenoh applications, which has a one-byte code like other common encodings.
const ZENOH_BYTES: &str = "zenoh/bytes";

/// Appends an encoding: a code, or 255 and the name.
pub fn write_encoding(encoding: &Encoding, out: &mut Vec<u8>) {
    match encoding {
        Encoding::Bytes => out.put_u8(0),
        Encoding::Text => out.put_u8(1),
        Encoding::Json => out.put_u8(2),
        Encoding::Jpeg => out.put_u8(3),
        Encoding::Other(name) => match Encoding::cut(name) {
            ZENOH_BYTES => out.put_u8(4),
            name => match Encoding::known(name) {
                // An application may have named a common media type itself.
                Some(known) => write_encoding(&known, out),
                None => {
                    out.put_u8(255);
                    out.put_text(name);
                }
            },
        },
    }
}

/// Reads an encoding.
///
/// # Errors
/// Returns a [`WireError`] for an unknown code, for a name that is not text of at most 255 bytes, and for one that has a
/// code: every encoding has one form.
pub fn read_encoding(reader: &mut Reader) -> Result<Encoding, WireError> {
    Ok(match reader.u8("encoding")? {
        0 => Encoding::Bytes,
        1 => Encoding::Text,
        2 => Encoding::Json,
        3 => Encoding::Jpeg,
        4 => Encoding::new(ZENOH_BYTES),
        255 => {
            let name = reader.text(255, "encoding")?;
            if name == ZENOH_BYTES || Encoding::known(&name).is_some() {
                return Err(WireError::Invalid("encoding"));
            }
            Encoding::Other(name.into())
        }
        _ => return Err(WireError::Invalid("encoding")),
    })
}
