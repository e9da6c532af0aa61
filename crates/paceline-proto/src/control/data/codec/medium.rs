//! The encoding of links on shared media.

use crate::control::data::ids::NAME_BYTES_MAX;
use crate::ids::NodeId;
use crate::medium::{Allotment, Allotments, Holding, MEDIUM_LINKS_MAX, Medium, MediumLink};
use crate::wire::{Reader, WireError, Writer};
use paceline_sched::{Capacity, Duration};
use std::collections::BTreeMap;

pub(in crate::control) fn put_medium(out: &mut Vec<u8>, of: &MediumLink) {
    let MediumLink { medium, link, holding, allotments } = of;
    out.put_text(&medium.name);
    out.put_varint(medium.capacity.bits_per_s());
    out.put_varint(medium.access.as_nanos());
    out.put_text(link);
    out.put_u64(holding.manager.0);
    let Holding { term, seen, holds, need, wants, most, .. } = *holding;
    [term, seen, holds, need, wants, most].into_iter().for_each(|number| out.put_varint(number));
    out.put_flag(allotments.is_some());
    let Some(Allotments { term, links }) = allotments else { return };
    out.put_varint(*term);
    out.put_varint(links.len() as u64);
    for ((node, index), Allotment { number, bits, forced }) in links {
        out.put_u64(node.0);
        out.put_varint((*index).into());
        out.put_varint(*number);
        out.put_varint(*bits);
        out.put_flag(*forced);
    }
}

pub(in crate::control) fn read_medium(reader: &mut Reader) -> Result<MediumLink, WireError> {
    let name = reader.text(NAME_BYTES_MAX, "medium")?;
    let bits = reader.varint("capacity of a medium")?;
    let capacity = Capacity::from_bits_per_s(bits).ok().filter(|_| bits >= Medium::CAPACITY_MIN);
    let capacity = capacity.ok_or(WireError::Invalid("capacity of a medium"))?;
    let access = reader.varint_max(Medium::ACCESS_MAX.as_nanos(), "access to a medium")?;
    let medium = Medium { name, capacity, access: Duration::from_nanos(access) };
    let link = reader.text(NAME_BYTES_MAX, "link name")?;
    let manager = NodeId(reader.u64("manager")?);
    let mut number = || reader.varint("rate on a medium");
    let (term, seen, holds) = (number()?, number()?, number()?);
    let (need, wants, most) = (number()?, number()?, number()?);
    let holding = Holding { manager, term, seen, holds, need, wants, most };
    let manages = reader.flag("allotments")?;
    let allotments = if manages { Some(read_allotments(reader)?) } else { None };
    Ok(MediumLink { medium, link, holding, allotments })
}

fn read_allotments(reader: &mut Reader) -> Result<Allotments, WireError> {
    let term = reader.varint("term")?;
    let count = reader.len(2 * MEDIUM_LINKS_MAX, "allotments")?;
    let (mut links, mut last) = (BTreeMap::new(), None);
    for _ in 0..count {
        let key = (NodeId(reader.u64("allotment")?), reader.varint32("allotment")?);
        if last.replace(key).is_some_and(|last| last >= key) {
            return Err(WireError::Invalid("allotments"));
        }
        let (number, bits) = (reader.varint("allotment")?, reader.varint("allotment")?);
        links.insert(key, Allotment { number, bits, forced: reader.flag("allotment")? });
    }
    Ok(Allotments { term, links })
}
