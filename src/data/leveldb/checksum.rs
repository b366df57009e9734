//! CRC-32C, the checksum of LevelDB's blocks and log records.

/// The reversed Castagnoli polynomial.
const POLYNOMIAL: u32 = 0x82F6_3B78;
/// The constant that LevelDB adds to the rotated checksum.
const MASK: u32 = 0xA282_EAD8;

/// `TABLES[i][b]` is the checksum of the byte `b` followed by `i` zero bytes, without the inversion
/// of the initial and the final remainder.
const TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            remainder = (remainder >> 1) ^ (POLYNOMIAL * (remainder & 1));
            bit += 1;
        }
        tables[0][byte] = remainder;
        byte += 1;
    }
    let mut i = 1;
    while i < 8 {
        let mut byte = 0;
        while byte < 256 {
            let previous = tables[i - 1][byte];
            tables[i][byte] = (previous >> 8) ^ tables[0][(previous & 255) as usize];
            byte += 1;
        }
        i += 1;
    }
    tables
}

/// Computes the CRC-32C of `bytes`, eight bytes at a time.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut remainder = !0;
    let (chunks, rest) = bytes.as_chunks::<8>();
    for chunk in chunks {
        let word = u64::from_le_bytes(*chunk) ^ u64::from(remainder);
        remainder = 0;
        for (i, byte) in word.to_le_bytes().into_iter().enumerate() {
            remainder ^= TABLES[7 - i][usize::from(byte)];
        }
    }
    for byte in rest {
        remainder = (remainder >> 8) ^ TABLES[0][(remainder as u8 ^ byte) as usize];
    }
    !remainder
}

/// Returns the checksum of `bytes` as LevelDB stores it: CRC-32C, rotated, plus a constant. Without
/// this change, all data that ends with its own CRC-32C would have the same CRC-32C.
pub(super) fn masked_crc32c(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(MASK)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test values of RFC 3720, appendix B.4, and of the CRC catalogue.
    #[test]
    fn checksums_are_those_of_rfc_3720() {
        let ascending: Vec<u8> = (0..32).collect();
        let descending: Vec<u8> = (0..32).rev().collect();
        for (bytes, want) in [
            (&b""[..], 0),
            (b"123456789", 0xE306_9283),
            (&[0; 32], 0x8A91_36AA),
            (&[0xFF; 32], 0x62A8_AB43),
            (&ascending, 0x46DD_794E),
            (&descending, 0x113F_DB5C),
        ] {
            assert_eq!(crc32c(bytes), want, "{bytes:?}");
        }
    }
}
