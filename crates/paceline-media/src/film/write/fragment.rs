//! Fragmented MP4: an index without samples, then fragments.

use super::payload::Payload;
use super::{Lane, Written};
use crate::annexb::Nals;
use crate::audio::{AacFormat, Coding, OpusFormat};
use crate::codec::Codec;
use crate::error::MediaError;
use crate::film::{FilmKind, refuse};
use crate::size::Size;
use mp4_atom::{
    Audio, Avc1, Avcc, Codec as Entry, Dinf, Dops, Dref, DrefEntry, Edts, Elst, ElstEntry,
    Encode as _, Esds, FixedPoint, FourCC, Ftyp, Hdlr, Hev1, HvcCArray, Hvcc, Jpeg, Mdhd, Mdia,
    Mfhd, Minf, Moof, Moov, Mp4a, Mvex, Mvhd, Opus, Smhd, Sowt, Stbl, Stco, Stsd, Tfdt, Tfhd, Tkhd,
    Traf, Trak, Trex, Trun, TrunEntry, Url, Visual, Vmhd, esds,
};

const SECOND: i64 = 1_000_000_000;
/// The flags of samples: one that needs others, and one that does not.
const NEEDS: u32 = 0x0101_0000;
const KEY: u32 = 0x0200_0000;
/// Ticks per second of the film.
const FILM_SCALE: u32 = 1_000;

/// The state of the file.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    number: u32,
    /// The time by which presentation is behind decoding, so that no picture is presented before it is decoded.
    lead_ns: i64,
    /// The decoding time of the next sample of each track at the earliest, in ticks.
    ends: Vec<i64>,
}

fn ticks(time_ns: i64, scale: u32) -> i64 {
    let ticks = (i128::from(time_ns) * i128::from(scale)).div_euclid(i128::from(SECOND / 2)) + 1;
    i64::try_from(ticks.div_euclid(2)).unwrap_or(i64::MAX)
}

fn failed(error: &mp4_atom::Error) -> MediaError {
    refuse("mp4", 0, error.to_string(), "write .mkv")
}

impl Fragments {
    /// Writes the index. `units` are those of the first part.
    pub(super) fn begin(
        &mut self,
        lanes: &[Lane],
        units: &[Written],
        out: &mut Vec<u8>,
    ) -> Result<(), MediaError> {
        self.lead_ns =
            units.iter().map(|unit| unit.decode_ns - unit.shown_ns).max().unwrap_or(0).max(0);
        self.ends = vec![0; lanes.len()];
        let brand = |name: &[u8; 4]| FourCC::new(name);
        let ftyp = Ftyp {
            major_brand: brand(b"iso5"),
            minor_version: 512,
            compatible_brands: vec![brand(b"iso5"), brand(b"iso6"), brand(b"mp41")],
        };
        let tracks = lanes.iter().enumerate().filter_map(|(lane, it)| Some((lane, it.payload()?)));
        let moov = Moov {
            mvhd: Mvhd {
                timescale: FILM_SCALE,
                rate: FixedPoint::from(1),
                volume: FixedPoint::from(1),
                next_track_id: 3,
                ..Mvhd::default()
            },
            mvex: Some(Mvex {
                mehd: None,
                trex: tracks
                    .clone()
                    .map(|(lane, _)| Trex {
                        track_id: id(lane),
                        default_sample_description_index: 1,
                        ..Trex::default()
                    })
                    .collect(),
            }),
            trak: tracks
                .map(|(lane, payload)| self.track(lane, payload))
                .collect::<Result<_, _>>()?,
            ..Moov::default()
        };
        ftyp.encode(out).and_then(|()| moov.encode(out)).map_err(|error| failed(&error))
    }

    fn track(&self, lane: usize, payload: &Payload) -> Result<Trak, MediaError> {
        let pictures = payload.kind() == FilmKind::Pictures;
        let side = |side: u32| FixedPoint::from(u16::try_from(side).unwrap_or(u16::MAX));
        let (width, height) = payload.size().map_or((0, 0), |size| (size.width, size.height));
        let scale = payload.scale();
        let lead = u64::try_from(ticks(self.lead_ns, scale)).unwrap_or(0);
        let edits = pictures && lead > 0;
        let entry = ElstEntry {
            segment_duration: 0,
            media_time: Some(lead),
            media_rate: FixedPoint::from(1),
        };
        Ok(Trak {
            tkhd: Tkhd {
                track_id: id(lane),
                enabled: true,
                in_movie: true,
                volume: FixedPoint::from(u8::from(!pictures)),
                width: side(width),
                height: side(height),
                ..Tkhd::default()
            },
            edts: edits.then(|| Edts { elst: Some(Elst { entries: vec![entry] }) }),
            mdia: Mdia {
                mdhd: Mdhd { timescale: scale, language: "und".to_owned(), ..Mdhd::default() },
                hdlr: Hdlr {
                    handler: FourCC::new(if pictures { b"vide" } else { b"soun" }),
                    name: String::new(),
                },
                minf: Minf {
                    vmhd: pictures.then(Vmhd::default),
                    smhd: (!pictures).then(Smhd::default),
                    dinf: Dinf { dref: Dref { entries: vec![DrefEntry::Url(Url::default())] } },
                    stbl: Stbl {
                        stsd: Stsd { codecs: vec![entry_of(payload)?] },
                        stco: Some(Stco::default()),
                        ..Stbl::default()
                    },
                    ..Minf::default()
                },
            },
            ..Trak::default()
        })
    }

    /// Writes a fragment with these units.
    pub(super) fn part(
        &mut self,
        lanes: &[Lane],
        units: &[Written],
        out: &mut Vec<u8>,
    ) -> Result<(), MediaError> {
        self.number += 1;
        let mut moof = Moof { mfhd: Mfhd { sequence_number: self.number }, traf: Vec::new() };
        let mut data = Vec::new();
        let mut places = Vec::new();
        for (lane, payload) in
            lanes.iter().enumerate().filter_map(|(lane, it)| Some((lane, it.payload()?)))
        {
            let own: Vec<&Written> = units.iter().filter(|unit| unit.lane == lane).collect();
            if own.is_empty() {
                continue;
            }
            places.push(data.len());
            own.iter().for_each(|unit| data.extend_from_slice(&unit.bytes));
            moof.traf.push(self.run(lane, payload, &own));
        }
        // The length of the box does not depend on the places in it.
        let mut sized = Vec::new();
        moof.encode(&mut sized).map_err(|error| failed(&error))?;
        let header = sized.len() + 8;
        for (traf, place) in moof.traf.iter_mut().zip(places) {
            for run in &mut traf.trun {
                run.data_offset = i32::try_from(header + place).ok();
            }
        }
        moof.encode(out).map_err(|error| failed(&error))?;
        let length = u32::try_from(data.len() + 8);
        let length =
            length.map_err(|_| refuse("mp4", 0, "a fragment has more than 4 GiB", "write .mkv"))?;
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(b"mdat");
        out.append(&mut data);
        Ok(())
    }

    fn run(&mut self, lane: usize, payload: &Payload, units: &[&Written]) -> Traf {
        let scale = payload.scale();
        let pictures = payload.kind() == FilmKind::Pictures;
        let lead = if pictures { ticks(self.lead_ns, scale) } else { 0 };
        let end = self.ends.get(lane).copied().unwrap_or(0);
        let times =
            if pictures { decoding(units, scale, lead, end) } else { heard(units, scale, end) };
        let mut entries = Vec::new();
        let mut at = times.first().copied().unwrap_or(end);
        let begin = at;
        for (number, unit) in units.iter().enumerate() {
            let usual = at.saturating_add(ticks(unit.duration_ns, scale));
            let next = times.get(number + 1).copied().unwrap_or(usual).max(at);
            let offset = ticks(unit.shown_ns, scale) + lead - at;
            entries.extend(samples(payload, unit, next - at, offset.max(0)));
            at = next;
        }
        // The picture that follows the last one may be presented before those that are known.
        let last = times.last().map_or(at, |last| last.saturating_add(1));
        if let Some(end) = self.ends.get_mut(lane) {
            *end = if pictures { last } else { at };
        }
        Traf {
            tfhd: Tfhd { track_id: id(lane), default_base_is_moof: true, ..Tfhd::default() },
            tfdt: Some(Tfdt { base_media_decode_time: u64::try_from(begin).unwrap_or(0) }),
            trun: vec![Trun { data_offset: Some(0), samples: entries.into() }],
            ..Traf::default()
        }
    }
}

/// Returns the decoding times of pictures: none is above the presentation time of a later one.
fn decoding(units: &[&Written], scale: u32, lead: i64, end: i64) -> Vec<i64> {
    let mut latest = i64::MAX;
    let bounds = units.iter().rev().map(|unit| {
        latest = latest.min(ticks(unit.shown_ns, scale).saturating_add(lead));
        latest
    });
    let mut bounds: Vec<i64> = bounds.collect();
    bounds.reverse();
    let mut last = end;
    let bounded = units.iter().zip(bounds).map(|(unit, bound)| {
        last = ticks(unit.decode_ns, scale).min(bound).max(last);
        last
    });
    bounded.collect()
}

/// Returns the times of blocks of sound. Times in nanoseconds round to neighbouring ticks.
fn heard(units: &[&Written], scale: u32, end: i64) -> Vec<i64> {
    let mut expected = end;
    let times = units.iter().map(|unit| {
        let stated = ticks(unit.decode_ns, scale);
        let at = if (stated - expected).abs() <= 1 { expected } else { stated.max(expected) };
        expected = at.saturating_add(ticks(unit.duration_ns, scale));
        at
    });
    times.collect()
}

/// Returns the entries of a unit: uncompressed sound has one per frame.
fn samples(payload: &Payload, unit: &Written, duration: i64, offset: i64) -> Vec<TrunEntry> {
    let pictures = payload.kind() == FilmKind::Pictures;
    let entry = |size: usize, duration: i64| TrunEntry {
        duration: u32::try_from(duration).ok(),
        size: u32::try_from(size).ok(),
        flags: Some(if unit.key { KEY } else { NEEDS }),
        cts: pictures.then_some(offset),
    };
    match payload.frame_bytes() {
        Some(frame) => {
            let parts = unit.bytes.chunks(frame.max(1));
            let others = i64::try_from(parts.len()).unwrap_or(1) - 1;
            // The last frame lasts until the next block.
            let length =
                |number: i64| if number == others { (duration - others).max(1) } else { 1 };
            (0..).zip(parts).map(|(number, part)| entry(part.len(), length(number))).collect()
        }
        None => vec![entry(unit.bytes.len(), duration)],
    }
}

/// Returns the number of a track, from 1.
fn id(lane: usize) -> u32 {
    u32::try_from(lane).unwrap_or(0) + 1
}

fn entry_of(payload: &Payload) -> Result<Entry, MediaError> {
    let visual = |size: &Size| Visual {
        data_reference_index: 1,
        width: u16::try_from(size.width).unwrap_or(u16::MAX),
        height: u16::try_from(size.height).unwrap_or(u16::MAX),
        ..Visual::default()
    };
    Ok(match payload {
        Payload::Video { codec: Codec::H264, size, first, .. } => {
            Entry::Avc1(Avc1 { visual: visual(size), avcc: avcc(first)?, ..Avc1::default() })
        }
        Payload::Video { size, first, .. } => {
            Entry::Hev1(Hev1 { visual: visual(size), hvcc: hvcc(first)?, ..Hev1::default() })
        }
        Payload::Jpeg { size } => Entry::Jpeg(Jpeg { visual: visual(size), ..Jpeg::default() }),
        Payload::Aac(format) => Entry::Mp4a(mp4a(format)),
        Payload::Opus(format) => Entry::Opus(opus(format)),
        Payload::Sound(format) if format.coding == Coding::S16le => Entry::Sowt(Sowt {
            audio: audio(format.rate, format.channels),
            pcmc: None,
            chnl: None,
            btrt: None,
        }),
        Payload::Sound(format) => {
            return Err(refuse(
                "mp4",
                0,
                format!("it cannot contain {format}"),
                "write .mkv, which can",
            ));
        }
    })
}

fn audio(rate: u32, channels: u8) -> Audio {
    Audio {
        data_reference_index: 1,
        channel_count: channels.into(),
        sample_size: 16,
        sample_rate: FixedPoint::from(u16::try_from(rate).unwrap_or(0)),
    }
}

fn mp4a(format: &AacFormat) -> Mp4a {
    let raw = format.config();
    let [first, second] = raw;
    let config = esds::DecoderConfig {
        object_type_indication: 0x40,
        stream_type: 5,
        up_stream: 0,
        buffer_size_db: mp4_atom::u24::default(),
        max_bitrate: 0,
        avg_bitrate: 0,
        dec_specific: Some(esds::DecoderSpecific {
            profile: 2,
            freq_index: (first & 7) << 1 | second >> 7,
            chan_conf: second >> 3 & 0xf,
            raw: raw.to_vec(),
        }),
    };
    let es_desc = esds::EsDescriptor { dec_config: config, ..esds::EsDescriptor::default() };
    Mp4a {
        audio: audio(format.rate(), format.channels()),
        esds: Esds { es_desc },
        btrt: None,
        taic: None,
    }
}

fn opus(format: &OpusFormat) -> Opus {
    Opus {
        audio: audio(48_000, format.channels),
        dops: Dops {
            output_channel_count: format.channels,
            pre_skip: 0,
            input_sample_rate: format.rate,
            output_gain: 0,
            channel_mapping: None,
        },
        btrt: None,
    }
}

/// Returns the configuration of H.264, from an access unit with its parameter sets.
pub(super) fn avcc(unit: &[u8]) -> Result<Avcc, MediaError> {
    let sets = |kind: u8| -> Vec<Vec<u8>> {
        let own =
            Nals::new(unit).filter(|nal| nal.bytes.first().is_some_and(|byte| byte & 0x1f == kind));
        own.map(|nal| nal.bytes.to_vec()).collect()
    };
    let (sps, pps) = (sets(7), sets(8));
    let Some(&[_, profile, compatibility, level, ..]) = sps.first().map(Vec::as_slice) else {
        return Err(refuse("h264", 0, "its first picture has no SPS", "begin with a key picture"));
    };
    Ok(Avcc {
        configuration_version: 1,
        avc_profile_indication: profile,
        profile_compatibility: compatibility,
        avc_level_indication: level,
        length_size: 4,
        sequence_parameter_sets: sps,
        picture_parameter_sets: pps,
        ext: None,
    })
}

/// Returns the configuration of H.265, from an access unit with its parameter sets.
pub(super) fn hvcc(unit: &[u8]) -> Result<Hvcc, MediaError> {
    let of = |kind: u8| move |nal: &[u8]| nal.first().is_some_and(|byte| byte >> 1 & 0x3f == kind);
    let arrays = [32, 33, 34].map(|kind| HvcCArray {
        completeness: false,
        nal_unit_type: kind,
        nalus: Nals::new(unit)
            .filter(|nal| of(kind)(nal.bytes))
            .map(|nal| nal.bytes.to_vec())
            .collect(),
    });
    let sps = arrays
        .iter()
        .filter(|array| array.nal_unit_type == 33)
        .find_map(|array| array.nalus.first());
    let plain = sps.map(|sps| unescaped(sps)).unwrap_or_default();
    let Some(&[_, _, layers, profile, c0, c1, c2, c3, i0, i1, i2, i3, i4, i5, level]) =
        plain.first_chunk::<15>()
    else {
        return Err(refuse("h265", 0, "its first picture has no SPS", "begin with a key picture"));
    };
    Ok(Hvcc {
        configuration_version: 1,
        general_profile_space: profile >> 6,
        general_tier_flag: profile & 0x20 != 0,
        general_profile_idc: profile & 0x1f,
        general_profile_compatibility_flags: [c0, c1, c2, c3],
        general_constraint_indicator_flags: [i0, i1, i2, i3, i4, i5],
        general_level_idc: level,
        chroma_format_idc: 1,
        bit_depth_luma_minus8: 0,
        bit_depth_chroma_minus8: 0,
        num_temporal_layers: (layers >> 1 & 7) + 1,
        temporal_id_nested: layers & 1 != 0,
        length_size_minus_one: 3,
        arrays: arrays.to_vec(),
        ..Hvcc::default()
    })
}

/// Returns the beginning of a NAL unit without its emulation prevention bytes.
fn unescaped(nal: &[u8]) -> Vec<u8> {
    let mut plain: Vec<u8> = Vec::new();
    for byte in nal.iter().take(32) {
        if *byte == 3 && plain.ends_with(&[0, 0]) {
            continue;
        }
        plain.push(*byte);
    }
    plain
}
