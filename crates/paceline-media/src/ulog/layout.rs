//! Formats of messages: parsing of their text into fields of known types and sizes.

use std::collections::BTreeMap;

/// The largest nesting depth of formats.
const DEPTH_MAX: usize = 8;

/// The longest name of a format or field, in bytes.
const NAME_MAX: usize = 128;

/// The largest message in bytes: the largest record without the topic's number.
const SIZE_MAX: usize = 65_533;

/// A basic type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basic {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
    Bool,
    Char,
}

impl Basic {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "int8_t" => Self::I8,
            "uint8_t" => Self::U8,
            "int16_t" => Self::I16,
            "uint16_t" => Self::U16,
            "int32_t" => Self::I32,
            "uint32_t" => Self::U32,
            "int64_t" => Self::I64,
            "uint64_t" => Self::U64,
            "float" => Self::F32,
            "double" => Self::F64,
            "bool" => Self::Bool,
            "char" => Self::Char,
            _ => return None,
        })
    }

    pub(super) fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool | Self::Char => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }
}

/// The type of a field or of the elements of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Basic(Basic),
    /// The index of the layout in [`Layouts`].
    Nested(usize),
}

/// One field of a format.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: Type,
    /// The number of elements; `None` for a field that is not an array.
    pub(super) count: Option<usize>,
    /// The size of one element in bytes.
    pub(super) element: usize,
}

impl Field {
    pub(super) fn size(&self) -> usize {
        self.element * self.count.unwrap_or(1)
    }

    /// Returns true for a field that serves alignment only.
    pub(super) fn is_padding(&self) -> bool {
        self.name.starts_with("_padding")
    }
}

/// A format with all types resolved.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) fields: Vec<Field>,
    /// The nesting depth, including this format.
    levels: usize,
    /// The size in bytes, with all padding.
    size: usize,
    /// The size in bytes without the padding at the end, which may be missing in the log.
    size_min: usize,
    /// The offset of the field `uint64_t timestamp`.
    timestamp: Option<usize>,
}

impl Layout {
    fn new(fields: Vec<Field>, levels: usize) -> Result<Self, String> {
        let (mut size, mut size_min, mut timestamp) = (0_usize, 0, None);
        for field in &fields {
            if field.name == "timestamp"
                && field.kind == Type::Basic(Basic::U64)
                && field.count.is_none()
            {
                timestamp = timestamp.or(Some(size));
            }
            size += field.size();
            if size > SIZE_MAX {
                return Err(format!("it has more than {SIZE_MAX} bytes"));
            }
            if !field.is_padding() {
                size_min = size;
            }
        }
        Ok(Self { fields, levels, size, size_min, timestamp })
    }

    /// Returns true if a payload can be one of this layout.
    pub(super) fn fits(&self, payload: &[u8]) -> bool {
        (self.size_min..=self.size).contains(&payload.len())
    }

    /// Returns the smallest and largest length of a payload in bytes.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.size_min, self.size)
    }

    /// Returns the timestamp of a payload; `None` if it has none.
    pub(super) fn time_us(&self, payload: &[u8]) -> Option<u64> {
        payload.get(self.timestamp?..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// Returns true if messages of this layout have a time.
    pub(super) fn has_time(&self) -> bool {
        self.timestamp.is_some()
    }
}

/// All formats of a log. Each is resolved on first use, since a format may use one that is defined later
/// in the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Layouts {
    texts: BTreeMap<String, String>,
    known: BTreeMap<String, Result<usize, String>>,
    layouts: Vec<Layout>,
}

impl Layouts {
    /// Adds a format as defined in the log: `name:type field;type[3] field;`.
    pub(super) fn define(&mut self, format: &[u8]) -> Result<(), String> {
        let text = str::from_utf8(format).map_err(|_| "the format is not text".to_owned())?;
        let (name, fields) = text.split_once(':').ok_or("the format has no colon")?;
        if !is_format_name(name) {
            return Err(format!("{name:?} is not a name of a format"));
        }
        match self.texts.get(name) {
            Some(known) if known != fields => Err(format!("format {name:?} is defined twice")),
            Some(_) => Ok(()),
            None => {
                self.texts.insert(name.to_owned(), fields.to_owned());
                Ok(())
            }
        }
    }

    /// Returns the approximate memory of the formats in bytes.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let texts: usize = self.texts.iter().map(|(name, text)| name.len() + text.len() + 48).sum();
        let known: usize = self.known.keys().map(|name| name.len() + 64).sum();
        let fields = self.layouts.iter().flat_map(|layout| &layout.fields);
        let fields: usize = fields.map(|field| size_of::<Field>() + field.name.len()).sum();
        texts + known + fields + self.layouts.len() * size_of::<Layout>()
    }

    /// Returns true if a format of this name is defined.
    pub(super) fn has(&self, name: &str) -> bool {
        self.texts.contains_key(name)
    }

    pub(super) fn get(&self, layout: usize) -> Option<&Layout> {
        self.layouts.get(layout)
    }

    /// Returns the layout of a format.
    pub(super) fn resolve(&mut self, name: &str) -> Result<usize, String> {
        self.resolve_within(name, DEPTH_MAX)
    }

    fn resolve_within(&mut self, name: &str, depth: usize) -> Result<usize, String> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let result = self.work_out(name, depth);
        // Errors too: thousands of formats may use one that is long and invalid at its end.
        self.known.insert(name.to_owned(), result.clone());
        result
    }

    fn work_out(&mut self, name: &str, depth: usize) -> Result<usize, String> {
        let text = self.texts.get(name).ok_or_else(|| format!("format {name:?} is missing"))?;
        let Some(depth) = depth.checked_sub(1) else {
            return Err(format!("formats are nested more than {DEPTH_MAX} deep, or in a circle"));
        };
        let mut fields = Vec::new();
        for field in text.clone().split(';').filter(|field| !field.is_empty()) {
            fields.push(self.field(field, depth)?);
        }
        if fields.is_empty() {
            return Err(format!("format {name:?} has no fields"));
        }
        let nested = fields.iter().filter_map(|field| match field.kind {
            Type::Nested(at) => self.layouts.get(at).map(|layout| layout.levels),
            Type::Basic(_) => None,
        });
        // This also covers formats that were resolved before the format that contains them.
        let levels = nested.max().unwrap_or(0) + 1;
        if levels > DEPTH_MAX {
            return Err(format!("formats are nested more than {DEPTH_MAX} deep, or in a circle"));
        }
        let layout =
            Layout::new(fields, levels).map_err(|reason| format!("format {name:?}: {reason}"))?;
        self.layouts.push(layout);
        Ok(self.layouts.len() - 1)
    }

    /// Parses one field: `type name` or `type[count] name`.
    fn field(&mut self, text: &str, depth: usize) -> Result<Field, String> {
        let wrong = || format!("{:?} is not a field", crate::error::excerpt(text));
        let (kind, name) = text.split_once(' ').ok_or_else(wrong)?;
        let (kind, count) = array(kind).ok_or_else(wrong)?;
        if !is_name(name, b"_") {
            return Err(wrong());
        }
        let (kind, element) = match Basic::named(kind) {
            Some(basic) => (Type::Basic(basic), basic.size()),
            None => {
                let nested = self.resolve_within(kind, depth)?;
                let size = self.layouts.get(nested).map_or(0, |layout| layout.size);
                (Type::Nested(nested), size)
            }
        };
        Ok(Field { name: name.to_owned(), kind, count, element })
    }
}

/// Returns the size in bytes of a value of a basic type, or of an array of one, such as `char[5]`.
pub(super) fn basic_size(kind: &str) -> Option<usize> {
    let (kind, count) = array(kind)?;
    Some(Basic::named(kind)?.size() * count.unwrap_or(1))
}

/// Splits `type` or `type[count]`. Returns `None` if the count is no number from 1 to [`SIZE_MAX`].
fn array(kind: &str) -> Option<(&str, Option<usize>)> {
    let Some((kind, count)) = kind.split_once('[') else { return Some((kind, None)) };
    let count: usize = count.strip_suffix(']')?.parse().ok()?;
    (1..=SIZE_MAX).contains(&count).then_some((kind, Some(count)))
}

/// Returns true for the text of a format, whatever its types: `name:type field;type[3] field;`.
pub(super) fn is_format(text: &[u8]) -> bool {
    let is_field = |field: &str| {
        let (kind, name) = field.split_once(' ').unwrap_or_default();
        is_name(name, b"_") && array(kind).is_some_and(|(kind, _)| is_format_name(kind))
    };
    let text = str::from_utf8(text).ok().and_then(|text| text.strip_suffix(';'));
    text.and_then(|text| text.split_once(':'))
        .is_some_and(|(name, fields)| is_format_name(name) && fields.split(';').all(is_field))
}

/// Returns true if a name can be that of a format.
pub(super) fn is_format_name(name: &str) -> bool {
    is_name(name, b"_-/")
}

/// Returns true for a name of ASCII letters, digits and the bytes `besides`.
pub(super) fn is_name(name: &str, besides: &[u8]) -> bool {
    (1..=NAME_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || besides.contains(&byte))
}
