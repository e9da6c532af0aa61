use super::*;
use proptest::prelude::*;

fn point(bytes: u64, load_permille: u32, nanos: u64) -> CpuPoint {
    CpuPoint { bytes, load_permille, nanos }
}

fn fit(points: &[(u64, u64)]) -> CpuCost {
    let points = points.iter().map(|&(bytes, nanos)| point(bytes, 0, nanos)).collect();
    CpuTable::new(points).unwrap().fit()
}

#[test]
fn a_line_is_recovered_and_noise_lies_below_it() {
    let exact = [(64, 10_032), (1_000, 10_500), (16_000, 18_000), (64_000, 42_000)];
    assert_eq!(fit(&exact), CpuCost { sample_nanos: 10_000, byte_picos: 500 });
    let noisy = fit(&[(64, 9_900), (1_000, 10_500), (16_000, 17_000), (64_000, 42_000)]);
    assert_eq!(noisy.of_sample(1_000), 10_500);
    assert_eq!(noisy.of_sample(64_000), 42_000);
    assert!(noisy.of_sample(64) >= 9_900 && noisy.of_sample(16_000) >= 17_000);
    // A longer sample that costs less in a measurement is charged the same.
    assert_eq!(fit(&[(64, 700), (128, 600)]), CpuCost { sample_nanos: 700, byte_picos: 0 });
    assert_eq!(fit(&[(64, 700)]), CpuCost { sample_nanos: 700, byte_picos: 0 });
}

#[test]
fn the_most_expensive_load_of_each_length_counts() {
    let points = vec![point(64, 0, 700), point(64, 1_000, 1_100), point(1_064, 0, 1_000)];
    let cost = CpuTable::new(points).unwrap().fit();
    assert_eq!(cost, CpuCost { sample_nanos: 1_100, byte_picos: 0 });
}

#[test]
fn a_stream_costs_its_samples_and_their_bytes() {
    let cost = CpuCost { sample_nanos: 10_000, byte_picos: 500 };
    // 1,000 samples/s of 64 bytes, and 8 samples/s with the same total length.
    assert_eq!(cost.of_stream(64, 512_000), 10_032_000);
    assert_eq!(cost.of_stream(8_000, 512_000), 112_000);
    assert_eq!(cost.of_stream(1, u64::MAX), u64::MAX);
}

#[test]
fn invalid_tables_are_refused_by_name() {
    let text = |points| CpuTable::new(points).unwrap_err().to_string();
    assert!(text(Vec::new()).contains("at least one"));
    assert!(text(vec![point(0, 0, 1)]).contains("0 bytes in 1 ns"));
    assert!(text(vec![point(9, 0, 1_000_000_001)]).contains("1 to 1000000000 ns"));
    assert!(text(vec![point(9, 1_001, 1)]).contains("at a load of 1001/1000"));
    assert!(text(vec![point(64, 5, 1), point(64, 5, 2)]).contains("is listed twice"));
    assert!(text(vec![point(1, 1, 1); 65]).contains("65 measurements: at most 64"));
}

/// The same line, found by trying every pair in floating point.
fn naive_excess(points: &[(u64, u64)]) -> f64 {
    let mut best = f64::MAX;
    let mut slopes = vec![0.0];
    for &(x, y) in points {
        for &(u, v) in points {
            if u > x && v > y {
                slopes.push((v - y) as f64 / (u - x) as f64);
            }
        }
    }
    for slope in slopes {
        let base = points.iter().map(|&(x, y)| y as f64 - slope * x as f64).fold(0.0, f64::max);
        let excess = points.iter().map(|&(x, y)| (base + slope * x as f64) / y as f64).sum();
        best = best.min(excess);
    }
    best
}

proptest! {
    #[test]
    fn the_line_is_the_lowest_above_all_measurements(
        points in prop::collection::btree_map(1..100_000_u64, 1_000..1_000_000_u64, 1..8),
    ) {
        let points: Vec<(u64, u64)> = points.into_iter().collect();
        let line = fit(&points);
        for &(bytes, nanos) in &points {
            prop_assert!(line.of_sample(bytes) >= nanos);
        }
        let excess: f64 =
            points.iter().map(|&(x, y)| line.of_sample(x) as f64 / y as f64).sum();
        // The rounding error: one nanosecond, and one picosecond per byte.
        let rounding: f64 = points.iter().map(|&(_, y)| 102.0 / y as f64).sum();
        prop_assert!(excess <= naive_excess(&points) + rounding);
    }
}
