//! The JSON form of values that have a unit or a text form, for `#[serde(with = "...")]`.

use core::fmt::Display;
use core::str::FromStr;
use paceline_proto::Kind;
use paceline_proto::capacity::CapacityState;
use paceline_proto::guard::Flood;
use paceline_time::clock::page::ClockStatus;
use paceline_time::clock::service::SourcePart;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::time::Duration;

fn to_micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Times as whole microseconds, rounded down.
pub(super) mod micros {
    use super::{Deserialize, Deserializer, Duration, Serializer, to_micros};

    pub(in super::super) fn serialize<S: Serializer>(
        time: &Duration,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_u64(to_micros(*time))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_micros)
    }
}

/// Times that may be absent.
pub(super) mod maybe_micros {
    use super::{Deserialize, Deserializer, Duration, Serialize, Serializer, to_micros};

    pub(in super::super) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(to_micros).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_micros))
    }
}

/// Converts a rate in millihertz to hertz.
pub(super) fn in_hertz(millihertz: u64) -> f64 {
    f64::from(u32::try_from(millihertz).unwrap_or(u32::MAX)) / 1_000.0
}

/// Converts a rate in hertz to millihertz.
fn to_millihertz(hertz: f64) -> u64 {
    let rounded = (hertz * 1_000.0).round().clamp(0.0, u32::MAX.into());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in range by clamp"
    )]
    let millihertz = rounded as u64;
    millihertz
}

/// Rates in millihertz as numbers in hertz.
pub(super) mod hertz {
    use super::{Deserialize, Deserializer, Serializer, in_hertz, to_millihertz};

    pub(in super::super) fn serialize<S: Serializer>(
        millihertz: &u64,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_f64(in_hertz(*millihertz))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<u64, D::Error> {
        f64::deserialize(from).map(to_millihertz)
    }
}

/// Rates that may be absent.
pub(super) mod maybe_hertz {
    use super::{Deserialize, Deserializer, Serialize, Serializer, in_hertz, to_millihertz};

    pub(in super::super) fn serialize<S: Serializer>(
        millihertz: &Option<u64>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        millihertz.map(in_hertz).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<u64>, D::Error> {
        Ok(Option::<f64>::deserialize(from)?.map(to_millihertz))
    }
}

/// Values with a text form.
pub(super) mod text {
    use super::{Deserialize, Deserializer, Display, FromStr, Serializer, parsed};

    pub(in super::super) fn serialize<T: Display, S: Serializer>(
        value: &T,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(in super::super) fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(
        from: D,
    ) -> Result<T, D::Error> {
        parsed(&String::deserialize(from)?)
    }
}

/// Values with a text form that may be absent.
pub(super) mod maybe_text {
    use super::{Deserialize, Deserializer, Display, FromStr, Serializer, parsed};

    pub(in super::super) fn serialize<T: Display, S: Serializer>(
        value: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => to.collect_str(value),
            None => to.serialize_none(),
        }
    }

    pub(in super::super) fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<T>, D::Error> {
        Option::<String>::deserialize(from)?.map(|text| parsed(&text)).transpose()
    }
}

/// Lists of values with a text form.
pub(super) mod texts {
    use super::{Deserialize, Deserializer, Display, FromStr, Serializer, parsed};

    pub(in super::super) fn serialize<T: Display, S: Serializer>(
        values: &[T],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(values.iter().map(ToString::to_string))
    }

    pub(in super::super) fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<T>, D::Error> {
        Vec::<String>::deserialize(from)?.iter().map(|text| parsed(text)).collect()
    }
}

fn parsed<T: FromStr, E: serde::de::Error>(text: &str) -> Result<T, E> {
    text.parse().map_err(|_| E::custom(format_args!("unknown value '{text}'")))
}

/// A choice of a fixed set, each with a name in JSON.
pub(super) trait Named: Copy + Sized + 'static {
    const CHOICES: &'static [Self];
    fn name(self) -> &'static str;
}

/// Implements [`Named`] for types with `ALL` and `name`.
macro_rules! named {
    ($($choice:ty),*) => {
        $(impl crate::status::units::Named for $choice {
            const CHOICES: &'static [Self] = &<$choice>::ALL;
            fn name(self) -> &'static str {
                <$choice>::name(self)
            }
        })*
    };
}

pub(super) use named;

named!(CapacityState, ClockStatus, Flood, Kind, SourcePart);

/// Choices as their names.
pub(super) mod by_name {
    use super::{Deserialize, Deserializer, Named, Serializer};
    use serde::de::Error as _;

    pub(in super::super) fn serialize<T: Named, S: Serializer>(
        choice: &T,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(choice.name())
    }

    pub(in super::super) fn deserialize<'de, T: Named, D: Deserializer<'de>>(
        from: D,
    ) -> Result<T, D::Error> {
        let name = String::deserialize(from)?;
        let found = T::CHOICES.iter().copied().find(|choice| choice.name() == name);
        found.ok_or_else(|| D::Error::custom(format_args!("unknown value '{name}'")))
    }
}

/// Parts of a whole, 0 to 1.
pub(super) mod part {
    use super::{Deserialize, Deserializer, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(part: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(*part)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<f64, D::Error> {
        Ok(f64::deserialize(from)?.clamp(0.0, 1.0))
    }
}

/// Parts of a whole that may be absent.
pub(super) mod maybe_part {
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        part: &Option<f64>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        part.serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<f64>, D::Error> {
        Ok(Option::<f64>::deserialize(from)?.map(|part| part.clamp(0.0, 1.0)))
    }
}

/// Parts per trillion as parts per million with three decimals.
pub(super) mod parts_per_million {
    use super::{Deserialize, Deserializer, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        per_trillion: &i64,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let limits = (i64::from(i32::MIN), i64::from(i32::MAX));
        let thousandths = (per_trillion / 1_000).clamp(limits.0, limits.1);
        let thousandths = i32::try_from(thousandths).unwrap_or_default();
        to.serialize_f64(f64::from(thousandths) / 1_000.0)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<i64, D::Error> {
        let thousandths =
            (f64::deserialize(from)? * 1_000.0).round().clamp(i32::MIN.into(), i32::MAX.into());
        #[expect(clippy::cast_possible_truncation, reason = "in range by clamp")]
        let thousandths = thousandths as i64;
        Ok(thousandths * 1_000)
    }
}
