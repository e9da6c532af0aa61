//! The descriptions of tracks in MP4.

use super::payload::Payload;
use crate::annexb::Nals;
use crate::audio::{AacFormat, Coding, OpusFormat};
use crate::codec::Codec;
use crate::error::MediaError;
use crate::film::refuse;
use crate::size::Size;
use mp4_atom::{
    Audio, Avc1, Avcc, Codec as Entry, Dops, Esds, FixedPoint, Hev1, HvcCArray, Hvcc, Jpeg, Mp4a,
    Opus, Sowt, Visual, esds,
};
use std::ops::Range;

/// Returns the description of a track.
pub(super) fn entry_of(payload: &Payload) -> Result<Entry, MediaError> {
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
        // The name of G.711 replaces this one, see `name_codings`.
        Payload::Sound(format) => Entry::Sowt(Sowt {
            audio: audio(format.rate, format.channels),
            pcmc: None,
            chnl: None,
            btrt: None,
        }),
    })
}

/// Writes the names of the codings of uncompressed sound into an encoded index: the crate knows none for G.711.
pub(super) fn name_codings(index: &mut [u8], payloads: &[&Payload]) {
    const PATH: [&[u8; 4]; 4] = [b"mdia", b"minf", b"stbl", b"stsd"];
    let traks = children(index, 8..index.len()).filter(|(name, _)| name == b"trak");
    let traks: Vec<Range<usize>> = traks.map(|(_, body)| body).collect();
    for (trak, payload) in traks.into_iter().zip(payloads) {
        let Payload::Sound(format) = payload else { continue };
        let name: &[u8; 4] = match format.coding {
            Coding::S16le => continue,
            Coding::Ulaw => b"ulaw",
            Coding::Alaw => b"alaw",
        };
        let stsd = PATH.iter().try_fold(trak, |body, wanted| {
            children(index, body).find(|(name, _)| name == *wanted).map(|(_, body)| body)
        });
        // The version, the number of entries, and the length of the first one.
        let place = stsd.map(|stsd| stsd.start + 12);
        if let Some(entry) = place.and_then(|at| index.get_mut(at..at + 4)) {
            entry.copy_from_slice(name);
        }
    }
}

/// Returns the boxes in a part of an index: their names and bodies.
fn children(index: &[u8], part: Range<usize>) -> impl Iterator<Item = ([u8; 4], Range<usize>)> {
    let mut at = part.start;
    std::iter::from_fn(move || {
        let head: &[u8; 8] = index.get(at..part.end)?.first_chunk()?;
        let [a, b, c, d, name @ ..] = *head;
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?.max(8);
        let body = at + 8..(at + length).min(part.end);
        at += length;
        Some((name, body))
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
