//! The encoding of a group, and a schema from its textual form.

use super::{FieldKind, FieldValue, Schema, SchemaBuilder, SchemaError};
use crate::codec::{PacketError, Reader, Writer};
use crate::motion::Motion;
use bytes::Bytes;
use paceline_sched::Instant;

/// The values of an object's fields, in the order of its schema; `None` is a field whose group has not arrived.
pub type FieldValues = [Option<FieldValue>];

impl Schema {
    /// Returns the encoding of a group; a field without a value is encoded as the default of its type.
    #[must_use]
    pub fn encode_group(&self, group: usize, values: &FieldValues) -> Bytes {
        let mut writer = Writer::default();
        for (index, field) in
            self.fields.iter().enumerate().filter(|(_, field)| field.group == group)
        {
            write(&mut writer, field.kind, values.get(index).and_then(Option::as_ref));
        }
        writer.finish().into()
    }

    /// Reads a group into `values`, and returns how many of them it changed. After an error `values` is unchanged.
    ///
    /// # Errors
    /// Bytes that are no encoding of the group.
    pub fn decode_group(
        &self,
        group: usize,
        bytes: &[u8],
        values: &mut FieldValues,
    ) -> Result<usize, PacketError> {
        let mut reader = Reader::new(bytes);
        let fields = self.fields.iter().enumerate().filter(|(_, field)| field.group == group);
        let read: Vec<_> = fields
            .map(|(index, field)| Ok((index, read(&mut reader, field.kind)?)))
            .collect::<Result<_, _>>()?;
        reader.end()?;
        let mut changed = 0;
        for (index, value) in read {
            if let Some(slot) = values.get_mut(index)
                && slot.as_ref() != Some(&value)
            {
                *slot = Some(value);
                changed += 1;
            }
        }
        Ok(changed)
    }

    /// Returns the position and velocity in `values`; `None` without a position. A velocity that is missing is zero.
    #[must_use]
    pub fn motion(&self, values: &FieldValues, at: Instant) -> Option<Motion> {
        let vector = |name| match values.get(self.field(name)?)? {
            Some(FieldValue::Vector(vector)) => Some(*vector),
            Some(_) | None => None,
        };
        let velocity = vector(Self::VELOCITY).unwrap_or_default();
        vector(Self::POSITION).map(|position| Motion { position, velocity, at })
    }

    /// Checks a value for a field, and returns the field's index.
    ///
    /// # Errors
    /// An unknown field, a value of another type, or one that is not finite.
    pub fn check_value(&self, field: &str, value: &FieldValue) -> Result<usize, SchemaError> {
        let found = self
            .field(field)
            .and_then(|index| self.fields.get(index).map(|found| (index, found.kind)));
        let Some((index, kind)) = found else {
            return Err(SchemaError::NoField { field: field.to_owned(), schema: self.to_string() });
        };
        if value.kind() != kind {
            return Err(SchemaError::Kind { field: field.to_owned(), value: value.kind(), kind });
        }
        if !value.is_finite() {
            return Err(SchemaError::NotFinite(field.to_owned()));
        }
        Ok(index)
    }

    /// Returns the schema of a textual form, as written by `Display`.
    ///
    /// ```
    /// use paceline_objects::Schema;
    ///
    /// let car = Schema::parse("car/1 motion{position:vector velocity:vector} look{paint:text}")?;
    /// assert_eq!(car.to_string(), "car/1 motion{position:vector velocity:vector} look{paint:text}");
    /// # Ok::<(), paceline_objects::SchemaError>(())
    /// ```
    ///
    /// # Errors
    /// [`SchemaError::Form`] if the text has another form, otherwise as [`SchemaBuilder::finish`].
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        let form = || SchemaError::Form(text.chars().take(200).collect());
        let (head, groups) = text.split_once(' ').ok_or_else(form)?;
        let (name, version) = head.split_once('/').ok_or_else(form)?;
        let mut builder = Self::new(name, version.parse().map_err(|_| form())?);
        for group in groups.split_terminator('}') {
            let (name, fields) = group.trim_start_matches(' ').split_once('{').ok_or_else(form)?;
            builder = fields.split(' ').try_fold(
                builder.group(name),
                |builder: SchemaBuilder, field| {
                    let (name, kind) = field.split_once(':').ok_or_else(form)?;
                    Ok::<_, SchemaError>(
                        builder.field(name, FieldKind::named(kind).ok_or_else(form)?),
                    )
                },
            )?;
        }
        builder.finish()
    }
}

fn write(writer: &mut Writer, kind: FieldKind, value: Option<&FieldValue>) {
    match value {
        Some(FieldValue::Bool(value)) => writer.u8(u8::from(*value)),
        Some(FieldValue::Int(value)) => writer.u64(value.cast_unsigned()),
        Some(FieldValue::Float(value)) => writer.f64(*value),
        Some(FieldValue::Vector([x, y, z])) => writer.f32(*x).f32(*y).f32(*z),
        Some(FieldValue::Text(value)) => writer.text(value),
        Some(FieldValue::Bytes(value)) => writer.block(value),
        None => match kind {
            FieldKind::Bool | FieldKind::Text | FieldKind::Bytes => writer.u8(0),
            FieldKind::Int => writer.u64(0),
            FieldKind::Float => writer.f64(0.0),
            FieldKind::Vector => writer.f32(0.0).f32(0.0).f32(0.0),
        },
    };
}

fn read(reader: &mut Reader<'_>, kind: FieldKind) -> Result<FieldValue, PacketError> {
    let limit = usize::MAX;
    Ok(match kind {
        FieldKind::Bool => match reader.u8()? {
            0 => FieldValue::Bool(false),
            1 => FieldValue::Bool(true),
            other => return Err(PacketError::Unknown(other)),
        },
        FieldKind::Int => FieldValue::Int(reader.u64()?.cast_signed()),
        FieldKind::Float => FieldValue::Float(reader.f64()?),
        FieldKind::Vector => FieldValue::Vector([reader.f32()?, reader.f32()?, reader.f32()?]),
        FieldKind::Text => FieldValue::Text(reader.text(limit)?.to_owned()),
        FieldKind::Bytes => FieldValue::Bytes(Bytes::copy_from_slice(reader.block(limit)?)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(kind: FieldKind) -> BoxedStrategy<FieldValue> {
        let small = -1e6..1e6_f64;
        match kind {
            FieldKind::Bool => any::<bool>().prop_map(FieldValue::Bool).boxed(),
            FieldKind::Int => any::<i64>().prop_map(FieldValue::Int).boxed(),
            FieldKind::Float => small.prop_map(FieldValue::Float).boxed(),
            FieldKind::Vector => [-1000..1000_i16, -1000..1000_i16, -1000..1000_i16]
                .prop_map(|parts| FieldValue::Vector(parts.map(f64::from)))
                .boxed(),
            FieldKind::Text => ".{0,20}".prop_map(FieldValue::Text).boxed(),
            FieldKind::Bytes => {
                any::<Vec<u8>>().prop_map(|bytes| FieldValue::Bytes(bytes.into())).boxed()
            }
        }
    }

    fn kinds() -> impl Strategy<Value = FieldKind> {
        prop::sample::select(vec![
            FieldKind::Bool,
            FieldKind::Int,
            FieldKind::Float,
            FieldKind::Vector,
            FieldKind::Text,
            FieldKind::Bytes,
        ])
    }

    fn schema(kinds: &[(bool, FieldKind)]) -> Schema {
        let mut builder = Schema::new("thing", 3);
        for (index, (group, kind)) in kinds.iter().enumerate() {
            if *group {
                builder = builder.group(&format!("g{index}"));
            }
            builder = builder.field(&format!("f{index}"), *kind);
        }
        builder.finish().expect("a valid schema")
    }

    proptest! {
        #[test]
        fn groups_and_schemas_return(
            content in prop::collection::vec(
                (any::<bool>(), kinds()).prop_flat_map(|(group, kind)| (Just((group, kind)), value(kind))), 1..12),
            noise: Vec<u8>,
        ) {
            let kinds: Vec<_> = content.iter().map(|(kind, _)| *kind).collect();
            let schema = schema(&kinds);
            prop_assert_eq!(Schema::parse(&schema.to_string()), Ok(schema.clone()));
            let values: Vec<_> = content.into_iter().map(|(_, value)| Some(value)).collect();
            let mut copy = vec![None; values.len()];
            for group in 0..schema.groups().len() {
                let bytes = schema.encode_group(group, &values);
                schema.decode_group(group, &bytes, &mut copy).expect("its own encoding");
                prop_assert_eq!(schema.decode_group(group, &bytes, &mut copy), Ok(0));
                let mut other = copy.clone();
                if schema.decode_group(group, &noise, &mut other).is_err() {
                    prop_assert_eq!(&other, &copy);
                }
            }
            prop_assert_eq!(copy, values);
        }

        #[test]
        fn any_text_gives_a_schema_or_an_error(text in "[a-c]?/?[0-9]? ?[a-c]{0,3}\\{?[a-c:{} ]{0,12}\\}?") {
            if let Ok(schema) = Schema::parse(&text) {
                prop_assert_eq!(Schema::parse(&schema.to_string()), Ok(schema));
            }
        }
    }

    #[test]
    fn wrong_values_are_named() {
        let car = Schema::parse("car/1 motion{position:vector} look{paint:text}").expect("valid");
        let error = |field, value: FieldValue| {
            car.check_value(field, &value).expect_err("wrong").to_string()
        };
        assert_eq!(
            error("speed", 1.0.into()),
            "field \"speed\" is not in the schema car/1 motion{position:vector} look{paint:text}"
        );
        assert_eq!(
            error("paint", 1.0.into()),
            "field \"paint\": a value of type float, but the schema has text"
        );
        assert_eq!(
            error("position", [0.0, f64::NAN, 0.0].into()),
            "field \"position\": must be finite, not NaN or infinite"
        );
    }

    #[test]
    fn wrong_schemas_are_named() {
        for (text, error) in [
            (
                "car",
                "schema \"car\": must have the form NAME/VERSION GROUP{FIELD:TYPE ...} ..., such as car/1 motion{position:vector}",
            ),
            (
                "car/1 a{b:number}",
                "schema \"car/1 a{b:number}\": must have the form NAME/VERSION GROUP{FIELD:TYPE ...} ..., such as car/1 motion{position:vector}",
            ),
            (
                "car/1 a{b:int} a{c:int}",
                "name \"a\" is used twice; give each group and each field its own name",
            ),
            (
                "car/1 a{position:text}",
                "field \"position\" is of type text: must be a vector, or have another name",
            ),
            (
                "c-r/1 a{b:int}",
                "name \"c-r\": must have 1 to 64 ASCII letters, digits or underscores, such as position",
            ),
        ] {
            assert_eq!(Schema::parse(text).expect_err(text).to_string(), error);
        }
    }
}
