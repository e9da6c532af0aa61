//! The encoding of elastic contracts and of importance.

use super::{put_size, read_size};
use crate::control::data::elastic::{Elastic, IMPORTANCE_DEFAULT, IMPORTANCE_MAX};
use crate::form::Form;
use crate::wire::{Reader, WireError, Writer};
use core::num::NonZeroU32;

/// Appends the reductions, and the part of the most that a reduction may replace.
pub(super) fn put_elastic(out: &mut Vec<u8>, elastic: &Elastic) {
    let Elastic { most, min_millihertz, sizes, min_bitrate } = elastic;
    let numbers = [most.rate.max_millihertz, *min_millihertz, most.bitrate, *min_bitrate];
    for number in numbers {
        out.put_varint(number.map_or(0, |number| number.get().into()));
    }
    out.put_varint(sizes.len() as u64);
    // Without smaller sizes, each step has the size of the first one.
    let first = most.size.filter(|_| !sizes.is_empty());
    first.iter().chain(sizes).for_each(|size| put_size(out, *size));
}

/// Reads the reductions of a contract whose current step is `form`.
pub(super) fn read_elastic(reader: &mut Reader, form: Form) -> Result<Elastic, WireError> {
    let mut number = || reader.varint32("elastic contract").map(NonZeroU32::new);
    let (millihertz, min_millihertz) = (number()?, number()?);
    let (bitrate, min_bitrate) = (number()?, number()?);
    let count = reader.len(Elastic::SIZES_MAX, "smaller sizes")?;
    let size = if count > 0 { Some(read_size(reader)?) } else { form.size };
    let sizes = (0..count).map(|_| read_size(reader)).collect::<Result<_, _>>()?;
    let mut most = Form { size, bitrate, ..form };
    most.rate.max_millihertz = millihertz;
    let elastic = Elastic { most, min_millihertz, sizes, min_bitrate };
    let valid = elastic.is_valid() && elastic.step_of(form).is_some();
    if valid { Ok(elastic) } else { Err(WireError::Invalid("elastic contract")) }
}

/// Reads an importance other than the default, which is not encoded.
pub(super) fn read_importance(reader: &mut Reader) -> Result<u8, WireError> {
    let importance = reader.u8("importance")?;
    let valid = importance <= IMPORTANCE_MAX && importance != IMPORTANCE_DEFAULT;
    if valid { Ok(importance) } else { Err(WireError::Invalid("importance")) }
}
