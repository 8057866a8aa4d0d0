//! Random inputs: the same number at the same index of a tensor, on the host and on every card.

use vramscope_benchmark::Precision;

/// A number from −1 to 1 with 24 bits, for an index in the tensor `seed`: a 32-bit integer hash (C. Wellons, "Hash
/// function prospector", the lowbias32 constants) that every shading language can compute.
pub fn draw(place: u64, seed: u32) -> f32 {
    let high = ((place >> 32) as u32).wrapping_mul(0x85eb_ca6b);
    let mut x = (place as u32) ^ high ^ seed.wrapping_mul(0x9e37_79b9);
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^= x >> 16;
    (x >> 8) as f32 * (1.0 / 8_388_608.0) - 1.0
}

/// Element of a tensor, rounded to its type.
pub fn value(place: u64, seed: u32, scale: f32, offset: f32, precision: Precision) -> f32 {
    round(draw(place, seed) * scale + offset, precision)
}

/// A class below `classes`.
pub fn label(place: u64, seed: u32, classes: u64) -> u64 {
    let x = ((draw(place, seed) + 1.0) * 8_388_608.0) as u32;
    u64::from(x % classes as u32)
}

/// The nearest number of a type. TF32 is stored as fp32; the tensor cores shorten it.
pub fn round(x: f32, precision: Precision) -> f32 {
    match precision {
        Precision::Fp32 | Precision::Tf32 => x,
        Precision::Bf16 => from_bf16(to_bf16(x)),
        Precision::Fp16 => from_fp16(to_fp16(x)),
    }
}

/// Bits of the nearest bfloat16, ties to even.
pub fn to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    if x.is_nan() {
        return 0x7fff;
    }
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// Converts a bfloat16 to fp32.
pub fn from_bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Bits of the nearest IEEE half, ties to even.
pub fn to_fp16(x: f32) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00;
    }
    // 65520 and above round to infinity.
    if magnitude >= 0x477f_f000 {
        return sign | 0x7c00;
    }
    if magnitude < 0x3880_0000 {
        // Below the smallest normal half, adding 0.5 rounds to steps of 2⁻²⁴.
        let steps = f32::from_bits(magnitude) + 0.5;
        return sign | (steps.to_bits() - 0x3f00_0000) as u16;
    }
    let rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    sign | ((rounded - 0x3800_0000) >> 13) as u16
}

/// Converts an IEEE half to fp32.
pub fn from_fp16(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (bits >> 10 & 0x1f, f32::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction / 16_777_216.0,
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => f32::from_bits((u32::from(exponent) + 112) << 23 | u32::from(bits & 0x3ff) << 13),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_way_there_and_back() {
        for bits in 0..=u16::MAX {
            let x = from_fp16(bits);
            assert!(x.is_nan() || to_fp16(x) == bits, "{bits:04x}");
            let y = from_bf16(bits);
            assert!(y.is_nan() || to_bf16(y) == bits, "{bits:04x}");
        }
    }

    #[test]
    fn halves_round_to_the_nearest_and_to_even() {
        assert_eq!(to_fp16(65519.0), 0x7bff);
        assert_eq!(to_fp16(65520.0), 0x7c00);
        assert_eq!(
            (to_fp16(1.0 + 1.0 / 2048.0), to_fp16(1.0 + 3.0 / 2048.0)),
            (0x3c00, 0x3c02)
        );
        assert_eq!(to_fp16(1.5 / 16_777_216.0), 2);
        assert_eq!(
            (to_bf16(1.0 + 1.0 / 256.0), to_bf16(1.0 + 3.0 / 256.0)),
            (0x3f80, 0x3f82)
        );
    }

    #[test]
    fn draws_fill_their_range_evenly() {
        let draws: Vec<f64> = (0..100_000).map(|i| f64::from(draw(i, 7))).collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let square = draws.iter().map(|x| x * x).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.01 && (square - 1.0 / 3.0).abs() < 0.01);
        assert!(draws.iter().all(|x| (-1.0..1.0).contains(x)));
        assert_ne!(draw(5, 1).to_bits(), draw(5, 2).to_bits());
        assert_ne!(draw(5, 1).to_bits(), draw(5 + (1 << 32), 1).to_bits());
    }
}
