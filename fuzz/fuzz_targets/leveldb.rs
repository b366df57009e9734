//! Fuzz target for LevelDB databases. The input contains the contents of the manifest, the
//! write-ahead log and a table; the fuzz target adds the checksums, which random changes would
//! break. Reading a database twice must give the same records, in ascending order of keys.
#![no_main]

use cortado::{Result, data::LevelDbReader};
use libfuzzer_sys::fuzz_target;
use std::{
    fs,
    path::{Path, PathBuf},
    process,
    sync::LazyLock,
};

/// Folder of the database, which differs between processes.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("cortado-fuzz-leveldb-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("CURRENT"), "MANIFEST-000001\n").unwrap();
    folder
});

/// Removes a part of the input: its length as two bytes, and the bytes.
fn part<'a>(input: &mut &'a [u8]) -> &'a [u8] {
    let Some((len, rest)) = input.split_first_chunk() else { return &[] };
    let (part, rest) = rest.split_at(rest.len().min(u16::from_le_bytes(*len).into()));
    *input = rest;
    part
}

/// Returns the masked CRC-32C of `bytes`.
fn checksum(bytes: &[u8]) -> [u8; 4] {
    let mut remainder = !0_u32;
    for byte in bytes {
        remainder ^= u32::from(*byte);
        for _ in 0..8 {
            remainder = (remainder >> 1) ^ (0x82F6_3B78 * (remainder & 1));
        }
    }
    (!remainder).rotate_right(15).wrapping_add(0xA282_EAD8).to_le_bytes()
}

/// Returns a fragment of a log file.
fn fragment(kind: u8, data: &[u8]) -> Vec<u8> {
    let content = [&[kind], data].concat();
    [&checksum(&content)[..], &(data.len() as u16).to_le_bytes(), &content].concat()
}

fn varint(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fuzz_target!(|input: &[u8]| {
    let mut input = input;
    let [edit, first_batch, second_batch, data, index] = [(); 5].map(|()| part(&mut input));
    // A block ends with its compression, before the checksum.
    let block = |bytes: &[u8]| [bytes, &checksum(bytes)].concat();
    let (data, index) = (block(data), block(index));
    let index_handle = [varint(data.len()), varint(index.len().saturating_sub(5))].concat();
    let mut footer = [&[0, 0][..], &index_handle].concat();
    footer.resize(40, 0);
    footer.extend(0xDB47_7524_8B80_FB57_u64.to_le_bytes());
    let table = [data, index, footer].concat();
    // Field 7 is a new table: its level, number and length, and its first and last key. Field 2 is
    // the number of the write-ahead log.
    let key = |byte| [&[9, byte][..], &[0; 8]].concat();
    let new_table = [&[7, 0, 5][..], &varint(table.len()), &key(0), &key(255), &[2, 3]].concat();
    let manifest = [fragment(1, edit), fragment(1, &new_table)].concat();
    let log = [fragment(1, first_batch), fragment(2, second_batch), fragment(4, input)].concat();
    fs::write(FOLDER.join("MANIFEST-000001"), manifest).unwrap();
    fs::write(FOLDER.join("000003.log"), log).unwrap();
    fs::write(FOLDER.join("000005.ldb"), table).unwrap();
    if let Ok(records) = read(&FOLDER) {
        assert!(records.is_sorted_by(|(a, _), (b, _)| a < b));
        assert_eq!(read(&FOLDER).unwrap(), records);
    }
});

type Records = Vec<(Vec<u8>, Vec<u8>)>;

fn read(path: &Path) -> Result<Records> {
    let (mut reader, mut records) = (LevelDbReader::open(path)?, Records::new());
    while reader.advance()? {
        let (key, value) = reader.entry();
        records.push((key.to_vec(), value.to_vec()));
    }
    Ok(records)
}
