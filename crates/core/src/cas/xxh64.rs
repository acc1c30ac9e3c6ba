//! XXH64 with the seed 0, as its specification has it.

const PRIME_1: u64 = 0x9E37_79B1_85EB_CA87;
const PRIME_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const PRIME_3: u64 = 0x1656_67B1_9E37_79F9;
const PRIME_4: u64 = 0x85EB_CA77_C2B2_AE63;
const PRIME_5: u64 = 0x27D4_EB2F_1656_67C5;

/// The hash of these bytes.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let (stripes, mut rest) = bytes.as_chunks::<32>();
    let mut hash = if stripes.is_empty() { PRIME_5 } else { striped(stripes) };
    hash = hash.wrapping_add(bytes.len() as u64);
    while let Some((lane, tail)) = rest.split_first_chunk::<8>() {
        hash ^= round(0, u64::from_le_bytes(*lane));
        hash = hash.rotate_left(27).wrapping_mul(PRIME_1).wrapping_add(PRIME_4);
        rest = tail;
    }
    if let Some((lane, tail)) = rest.split_first_chunk::<4>() {
        hash ^= u64::from(u32::from_le_bytes(*lane)).wrapping_mul(PRIME_1);
        hash = hash.rotate_left(23).wrapping_mul(PRIME_2).wrapping_add(PRIME_3);
        rest = tail;
    }
    for byte in rest {
        hash ^= u64::from(*byte).wrapping_mul(PRIME_5);
        hash = hash.rotate_left(11).wrapping_mul(PRIME_1);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(PRIME_2);
    hash = (hash ^ (hash >> 29)).wrapping_mul(PRIME_3);
    hash ^ (hash >> 32)
}

const fn round(lane: u64, input: u64) -> u64 {
    lane.wrapping_add(input.wrapping_mul(PRIME_2)).rotate_left(31).wrapping_mul(PRIME_1)
}

/// Four lanes, each of which takes eight bytes of every stripe.
fn striped(stripes: &[[u8; 32]]) -> u64 {
    let mut lanes = [PRIME_1.wrapping_add(PRIME_2), PRIME_2, 0, 0_u64.wrapping_sub(PRIME_1)];
    for stripe in stripes {
        let (inputs, _) = stripe.as_chunks::<8>();
        for (lane, input) in lanes.iter_mut().zip(inputs) {
            *lane = round(*lane, u64::from_le_bytes(*input));
        }
    }
    let sums = lanes.iter().zip([1, 7, 12, 18]).map(|(lane, by)| lane.rotate_left(by));
    let hash = sums.fold(0_u64, u64::wrapping_add);
    lanes.iter().fold(hash, |hash, lane| {
        (hash ^ round(0, *lane)).wrapping_mul(PRIME_1).wrapping_add(PRIME_4)
    })
}

#[cfg(test)]
mod tests {
    use super::hash;

    /// Values of the reference implementation, for each way through the function.
    #[test]
    fn hashes_are_those_of_the_reference() {
        for (text, expected) in [
            ("", 0xEF46_DB37_51D8_E999),
            ("a", 0xD24E_C4F1_A98C_6E5B),
            ("abc", 0x44BC_2CF5_AD77_0999),
            ("Nobody inspects the spammish repetition", 0xFBCE_A83C_8A37_8BF1),
        ] {
            assert_eq!(hash(text.as_bytes()), expected, "{text}");
        }
    }
}
