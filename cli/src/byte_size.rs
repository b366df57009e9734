//! Numbers of bytes on the command line, such as `2GiB`, and in printed tables.

/// Units of byte sizes, and the number of bytes of each unit.
const UNITS: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

/// Parses a number of bytes: a whole number with an optional unit. Without a unit, the number
/// counts bytes.
pub(super) fn byte_size(text: &str) -> Result<usize, String> {
    let text = text.trim();
    let unit = |&(unit, bytes): &(&str, u64)| Some((text.strip_suffix(unit)?.trim_end(), bytes));
    let (number, unit) = UNITS.iter().find_map(unit).unwrap_or((text, 1));
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok()).filter(|&bytes| bytes > 0);
    bytes.ok_or_else(|| "expected a number of bytes above 0, such as 512MiB or 2GiB".into())
}

/// Formats a number of bytes in MiB, without the unit.
pub(super) fn mebibytes(bytes: usize) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::byte_size;

    #[test]
    fn byte_sizes_are_whole_numbers_with_or_without_a_unit() {
        for (text, want) in [
            ("1", 1),
            ("100B", 100),
            ("64KiB", 64 << 10),
            ("512 MiB", 512 << 20),
            ("2GiB", 2 << 30),
            ("3TiB", 3 << 40),
            ("5kB", 5_000),
            ("5MB", 5_000_000),
            ("5GB", 5_000_000_000),
            ("1TB", 1_000_000_000_000),
        ] {
            assert_eq!(byte_size(text), Ok(want), "{text}");
        }
        for text in ["", "0", "-1", "GiB", "1.5GiB", "2gib", "2G", "99999999999TiB", "1 2"] {
            assert!(byte_size(text).unwrap_err().contains("such as 512MiB"), "{text}");
        }
    }
}
