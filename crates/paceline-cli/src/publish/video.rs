//! Files of coded video: one access unit per sample.

use super::args::PubArgs;
use super::pictures::HZ;
use super::source::Opened;
use super::stored::{About, gather, opened, read};
use crate::show;
use anyhow::Context as _;
use paceline_media::Format;
use paceline_media::codec::{Codec, Units};
use paceline_media::video::{AccessUnit, Class};
use std::borrow::Cow;
use std::path::Path;

/// Opens a stream of coded video.
pub(super) fn open(args: &PubArgs, file: &Path, codec: Codec) -> anyhow::Result<Opened> {
    let bytes = read(file)?;
    let mut early = 0_u32;
    let mut begun = false;
    let mut sets = Units::new(codec);
    let units = codec.split(&bytes).filter(|unit| {
        let Ok(unit) = unit else { return true };
        // A decoder cannot start before the first key picture, but may need parameter sets before it.
        begun |= unit.class == Class::I;
        if !begun {
            sets.complete(unit.bytes);
            early += 1;
        }
        begun
    });
    let share = |unit: AccessUnit<'_>| bytes.slice_ref(unit.bytes);
    let mut units = gather(file, "pictures that can be decoded", units, share)?;
    if let Some(first) = units.samples.first_mut()
        && let Cow::Owned(complete) = sets.complete(&first.clone())
    {
        *first = complete.into();
    }
    if early > 0 {
        show::note(&format!(
            "{}: its first {early} pictures need earlier ones and are left out",
            file.display()
        ));
    }
    let first = units.samples.first().map(|unit| codec.info(unit)).transpose();
    let info = first.with_context(|| file.display().to_string())?.flatten();
    let own = info.as_ref().and_then(|info| info.hz);
    let hz = args.hertz().or(own).unwrap_or_else(|| {
        show::note(&format!(
            "{} contains no rate; publishing {HZ} pictures per second; --hz sets another rate",
            file.display()
        ));
        HZ
    });
    let size = info.map(|info| info.size);
    let (name, encoding) = ("pictures", Format::from(codec).to_string());
    opened(args, file, units, About { name, encoding, size, hz: Some(hz), keeps_time: true })
}
