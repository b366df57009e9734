//! Tests with hostile LevelDB databases.

use crate::{command::Folder, formats::varint};

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

/// Returns the bytes of an entry whose key is the first `shared` bytes of the previous key,
/// followed by `key`.
fn entry(shared: usize, key: &[u8], value: &[u8]) -> Vec<u8> {
    let lens = [shared, key.len(), value.len()].map(|len| varint(len as u64)).concat();
    [&lens[..], key, value].concat()
}

/// Writes a database `db` with one table that contains only the data block `block`. The last byte
/// of `block` is its compression type.
fn write_database(folder: &Folder, block: &[u8]) {
    std::fs::create_dir(folder.path("db")).unwrap();
    let with_checksum = |block: &[u8]| [block, &checksum(block)].concat();
    // A block ends with the number of its restart points, here 0, and its compression type, here 0
    // for no compression.
    let end = [0; 5];
    let block_handle = [varint(0), varint(block.len() as u64 - 1)].concat();
    let index = [&entry(0, b"z", &block_handle)[..], &end].concat();
    let data = with_checksum(block);
    let index_handle = [varint(data.len() as u64), varint(index.len() as u64 - 1)].concat();
    let mut footer = [&[0, 0][..], &index_handle].concat();
    footer.resize(40, 0);
    footer.extend(0xDB47_7524_8B80_FB57_u64.to_le_bytes());
    let table = [data, with_checksum(&index), footer].concat();
    // Tag 2 precedes the number of the write-ahead log. Tag 7 precedes the level, number, length,
    // first key and last key of a table.
    let key = |byte| [&[9, byte][..], &[0; 8]].concat();
    let len = varint(table.len() as u64);
    let edit = [&[2, 0, 7, 0, 5][..], &len, &key(0), &key(255)].concat();
    let record = [&[1][..], &edit].concat();
    let header = [&checksum(&record)[..], &(edit.len() as u16).to_le_bytes()].concat();
    folder.write("db/CURRENT", "MANIFEST-000001\n").write("db/000005.ldb", table);
    folder.write("db/MANIFEST-000001", [header, record].concat());
}

#[test]
fn a_leveldb_block_that_claims_to_expand_to_2_gib_is_refused() {
    let folder = Folder::new("leveldb-snappy");
    let mut block = varint(1 << 31);
    block.extend([0; 1000]);
    block.push(1);
    write_database(&folder, &block);
    let parts = ["db/000005.ldb: damaged at byte 0", "cannot expand to 2147483648"];
    folder.fails("inspect db", &parts);
}

/// 100,000 keys share the first 32 KiB: 3.3 GB of keys in a file of 1.7 MB.
#[test]
fn leveldb_keys_that_share_a_long_prefix_are_refused() {
    let folder = Folder::new("leveldb-keys");
    let prefix = vec![b'k'; 1 << 15];
    // A key ends with eight bytes: the type 1, which marks a value, and the sequence number 0.
    let tail = |index: u32| [&index.to_be_bytes()[..], &[1, 0, 0, 0, 0, 0, 0, 0]].concat();
    let mut block = entry(0, &[prefix.clone(), tail(0)].concat(), &[]);
    for index in 1..100_000 {
        block.extend(entry(prefix.len(), &tail(index), &[]));
    }
    block.extend([0; 5]);
    write_database(&folder, &block);
    folder
        .fails("inspect db", &["db: keys and values have more than the limit of ", " bytes for "]);
}
