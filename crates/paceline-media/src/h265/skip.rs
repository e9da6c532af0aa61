//! The fields of an SPS between its size and its VUI, and before its id. Their values are not used.

use crate::bits::Bits;

/// Skips `profile_tier_level` (7.3.3) of a parameter set with the highest `TemporalId` given.
pub(super) fn skip_profile_tier_level(bits: &mut Bits<'_>, temporal_max: u32) -> Option<()> {
    const PROFILE_BITS: u32 = 88;
    const LEVEL_BITS: u32 = 8;
    bits.skip(PROFILE_BITS + LEVEL_BITS)?;
    if temporal_max == 0 {
        return Some(());
    }
    let mut rest = 0;
    for _ in 0..temporal_max {
        let (profile, level) = (bits.flag()?, bits.flag()?);
        rest += if profile { PROFILE_BITS } else { 0 } + if level { LEVEL_BITS } else { 0 };
    }
    // Two bits for each further sub-layer up to eight.
    bits.skip(8_u32.saturating_sub(temporal_max) * 2 + rest)
}

/// Skips two bit depths behind the conformance window; returns the number of bits of `slice_pic_order_cnt_lsb`.
pub(super) fn skip_to_order_bits(bits: &mut Bits<'_>) -> Option<u8> {
    skip_ue(bits, 2)?;
    u8::try_from(bits.ue().filter(|&bits| bits <= 12)? + 4).ok()
}

/// Skips the fields behind the number of bits of the order; returns `vui_parameters_present_flag`.
pub(super) fn skip_to_vui(bits: &mut Bits<'_>, temporal_max: u32, order_bits: u8) -> Option<bool> {
    let each_layer = bits.flag()?;
    let layers = if each_layer { temporal_max + 1 } else { 1 };
    skip_ue(bits, 3 * layers)?;
    // Block sizes and hierarchy depths.
    skip_ue(bits, 6)?;
    if bits.flag()? && bits.flag()? {
        skip_scaling_lists(bits)?;
    }
    // amp_enabled_flag and sample_adaptive_offset_enabled_flag.
    bits.skip(2)?;
    if bits.flag()? {
        bits.skip(8)?;
        skip_ue(bits, 2)?;
        bits.skip(1)?;
    }
    skip_reference_sets(bits)?;
    if bits.flag()? {
        let pictures = bits.ue().filter(|&pictures| pictures <= 32)?;
        bits.skip(pictures * (u32::from(order_bits) + 1))?;
    }
    // sps_temporal_mvp_enabled_flag and strong_intra_smoothing_enabled_flag.
    bits.skip(2)?;
    bits.flag()
}

fn skip_ue(bits: &mut Bits<'_>, count: u32) -> Option<()> {
    (0..count).try_for_each(|_| bits.ue().map(drop))
}

/// Skips `scaling_list_data` (7.3.4).
fn skip_scaling_lists(bits: &mut Bits<'_>) -> Option<()> {
    for size in 0..4_u32 {
        let lists = if size == 3 { 2 } else { 6 };
        for _ in 0..lists {
            if !bits.flag()? {
                // scaling_list_pred_matrix_id_delta.
                bits.ue()?;
                continue;
            }
            // scaling_list_dc_coef_minus8 of larger blocks, then the differences.
            let coefficients = if size == 0 { 16 } else { 64 };
            skip_ue(bits, coefficients + u32::from(size > 1))?;
        }
    }
    Some(())
}

/// Skips the short-term reference picture sets (7.3.7).
fn skip_reference_sets(bits: &mut Bits<'_>) -> Option<()> {
    let sets = bits.ue().filter(|&sets| sets <= 64)?;
    // The number of pictures in the set before.
    let mut pictures = 0;
    for set in 0..sets {
        if set > 0 && bits.flag()? {
            // The set differs from the one before: delta_rps_sign and abs_delta_rps_minus1.
            bits.flag()?;
            bits.ue()?;
            let mut kept = 0;
            for _ in 0..=pictures {
                let used = bits.flag()?;
                kept += u32::from(used || bits.flag()?);
            }
            pictures = kept;
        } else {
            let (before, after) = (bits.ue()?, bits.ue()?);
            pictures = before.checked_add(after)?;
            if pictures > 16 {
                return None;
            }
            for _ in 0..pictures {
                bits.ue()?;
                bits.flag()?;
            }
        }
        if pictures > 16 {
            return None;
        }
    }
    Some(())
}
