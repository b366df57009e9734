//! Writers of hostile files, which contain wrong sizes, cycles and compressed zeros.

use flate2::{
    Compression, Crc,
    write::{DeflateEncoder, GzEncoder, ZlibEncoder},
};
use std::io::{self, Write};

/// Writes `content` and then `zeros` zero bytes.
fn write_zeros(mut out: impl Write, content: &[u8], zeros: usize) {
    out.write_all(content).unwrap();
    let chunk = [0; 1 << 16];
    for start in (0..zeros).step_by(chunk.len()) {
        out.write_all(&chunk[..chunk.len().min(zeros - start)]).unwrap();
    }
}

pub(crate) fn gzip(content: &[u8], zeros: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    write_zeros(&mut encoder, content, zeros);
    encoder.finish().unwrap()
}

pub(crate) fn zlib(content: &[u8], zeros: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    write_zeros(&mut encoder, content, zeros);
    encoder.finish().unwrap()
}

/// Returns an IDX file's header.
pub(crate) fn idx(magic: u32, extents: &[u32]) -> Vec<u8> {
    [&[magic], extents].concat().into_iter().flat_map(u32::to_be_bytes).collect()
}

/// Returns the header of a `.npy` file of `f32` values.
pub(crate) fn npy(shape: &str) -> Vec<u8> {
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    let text = format!("{text:<117}\n");
    [&b"\x93NUMPY\x01\0"[..], &(text.len() as u16).to_le_bytes(), text.as_bytes()].concat()
}

/// Returns a zip archive with one deflated file. The central directory has an entry for each of
/// `names`, and all entries refer to the one deflated file.
pub(crate) fn zip(names: &[String], content: &[u8], zeros: usize) -> Vec<u8> {
    let mut crc = Crc::new();
    crc.update(content);
    write_zeros(CrcWriter(&mut crc), &[], zeros);
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    write_zeros(&mut encoder, content, zeros);
    let packed_content = encoder.finish().unwrap();
    let words =
        |words: &[u16]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let [packed_len, len] = [packed_content.len(), content.len() + zeros].map(|len| len as u32);
    let sizes = [crc.sum(), packed_len, len].map(u32::to_le_bytes).concat();
    let first = names[0].as_bytes();
    let mut file = [b"PK\x03\x04", &words(&[20, 0, 8, 0, 0])[..], &sizes].concat();
    file.extend(words(&[first.len() as u16, 0]));
    file.extend([first, &packed_content].concat());
    let directory = file.len() as u32;
    for name in names {
        file.extend([b"PK\x01\x02", &words(&[20, 20, 0, 8, 0, 0])[..], &sizes].concat());
        file.extend(words(&[name.len() as u16, 0, 0, 0, 0, 0, 0]));
        file.extend(0_u32.to_le_bytes()); // offset of the file
        file.extend(name.as_bytes());
    }
    let directory_len = file.len() as u32 - directory;
    let count = names.len() as u16;
    file.extend([b"PK\x05\x06", &words(&[0, 0, count, count])[..]].concat());
    file.extend([directory_len, directory].map(u32::to_le_bytes).concat());
    file.extend([0; 2]);
    file
}

struct CrcWriter<'a>(&'a mut Crc);

impl Write for CrcWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn safetensors(header: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header].concat()
}

/// Returns a PNG file of black pixels with a palette, one bit per pixel. The header states `height`
/// rows, and the file stores `rows` rows.
pub(crate) fn png(height: u32, width: u32, rows: usize) -> Vec<u8> {
    png_with(&[], height, width, rows)
}

/// Returns a chunk of a PNG file.
pub(crate) fn chunk(kind: &[u8], data: &[u8]) -> Vec<u8> {
    let mut crc = Crc::new();
    crc.update(&[kind, data].concat());
    let len = (data.len() as u32).to_be_bytes();
    [&len[..], kind, data, &crc.sum().to_be_bytes()].concat()
}

/// Like [`png`], with additional chunks.
pub(crate) fn png_with(more: &[u8], height: u32, width: u32, rows: usize) -> Vec<u8> {
    let size = [width, height].map(u32::to_be_bytes).concat();
    let header = chunk(b"IHDR", &[&size[..], &[1, 3, 0, 0, 0]].concat());
    let pixels = zlib(&[], rows * (1 + width.div_ceil(8) as usize));
    let end = [chunk(b"IDAT", &pixels), chunk(b"IEND", &[])].concat();
    [b"\x89PNG\r\n\x1a\n", &header[..], more, &chunk(b"PLTE", &[0; 6]), &end].concat()
}

/// Returns a grey JPEG file of `height` by `width` pixels without pixel data.
pub(crate) fn jpeg(height: u16, width: u16) -> Vec<u8> {
    let scan = segment(0xda, &[1, 1, 0, 0, 63, 0]);
    let huffman = [huffman(0, 0), huffman(0x10, 0)].concat();
    [jpeg_header(0xc0, height, width), huffman, scan, vec![0xff, 0xd9]].concat()
}

/// Returns a grey progressive JPEG file of `side` by `side` black pixels, whose scans decode each
/// bit of each coefficient, and then the first bit of the last coefficient again.
pub(crate) fn jpeg_with_many_scans(side: u16) -> Vec<u8> {
    let blocks = usize::from(side).div_ceil(8).pow(2);
    // The symbol 0xE0 and 14 zeros say that 2^14 blocks have no nonzero coefficient.
    let runs = vec![0; (15 * blocks.div_ceil(1 << 14)).div_ceil(8)];
    let scan = |index: u8, previous_shift: u8, shift: u8| {
        let header = segment(0xda, &[1, 1, 0, index, index, previous_shift << 4 | shift]);
        let data = if index == 0 { vec![0; blocks.div_ceil(8)] } else { runs.clone() };
        [header, data].concat()
    };
    let mut file = jpeg_header(0xc2, side, side);
    file.extend([huffman(0, 0), huffman(0x10, 0xe0)].concat());
    for index in 0..64 {
        file.extend(scan(index, 0, 13));
        (0..13).rev().for_each(|shift| file.extend(scan(index, shift + 1, shift)));
    }
    file.extend(scan(63, 0, 13));
    [file, vec![0xff, 0xd9]].concat()
}

/// Returns the start of a grey JPEG file, with a frame header of the kind `frame`.
fn jpeg_header(frame: u8, height: u16, width: u16) -> Vec<u8> {
    let size = [height, width].map(u16::to_be_bytes).concat();
    let quantization = segment(0xdb, &[&[0][..], &[1; 64]].concat());
    let frame = segment(frame, &[&[8], &size[..], &[1, 1, 0x11, 0]].concat());
    [vec![0xff, 0xd8], quantization, frame].concat()
}

/// Returns a Huffman table of a JPEG file, with one code of one bit for `symbol`.
fn huffman(class: u8, symbol: u8) -> Vec<u8> {
    let counts = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    segment(0xc4, &[&[class][..], &counts, &[symbol]].concat())
}

/// Returns a segment of a JPEG file.
fn segment(marker: u8, data: &[u8]) -> Vec<u8> {
    [&[0xff, marker], &(data.len() as u16 + 2).to_be_bytes()[..], data].concat()
}

/// Returns a field of a message in protobuf's binary format.
pub(crate) fn field(number: u64, content: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

const PAGE: usize = 4096;

/// A node of an LMDB page: value length or child page, flags, key and value.
pub(crate) type Node<'a> = (u32, u16, &'a [u8], &'a [u8]);

/// Returns a page of an LMDB database. Each of `pointers` is an index in `nodes`, so several
/// pointers of the page can refer to the same node.
pub(crate) fn lmdb_page(
    number: u64,
    flags: u16,
    nodes: &[Node<'_>],
    pointers: &[usize],
) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    let lower = (16 + 2 * pointers.len()) as u16;
    page[..8].copy_from_slice(&number.to_le_bytes());
    page[10..12].copy_from_slice(&flags.to_le_bytes());
    page[12..14].copy_from_slice(&lower.to_le_bytes());
    let (mut end, mut starts) = (PAGE, Vec::new());
    for (low, flags, key, value) in nodes {
        let node = [
            &low.to_le_bytes()[..],
            &flags.to_le_bytes(),
            &(key.len() as u16).to_le_bytes(),
            key,
            value,
        ];
        let node = node.concat();
        end -= node.len().next_multiple_of(2);
        page[end..end + node.len()].copy_from_slice(&node);
        starts.push(end as u16);
    }
    for (index, &pointer) in pointers.iter().enumerate() {
        page[16 + 2 * index..][..2].copy_from_slice(&starts[pointer].to_le_bytes());
    }
    page
}

/// Returns the file of an LMDB database with the given tree, whose root is page 2.
pub(crate) fn lmdb(depth: u16, entries: u64, pages: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for number in 0..2_u64 {
        let mut page = lmdb_page(number, 8, &[], &[]);
        let mut set = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
        set(16, &0xBEEF_C0DE_u32.to_le_bytes());
        set(20, &1_u32.to_le_bytes());
        set(40, &(PAGE as u32).to_le_bytes());
        set(88 + 6, &depth.to_le_bytes());
        set(88 + 32, &entries.to_le_bytes());
        set(88 + 40, &2_u64.to_le_bytes());
        set(136, &(1 + pages.len() as u64).to_le_bytes());
        set(144, &number.to_le_bytes());
        file.extend(page);
    }
    file.extend(pages.concat());
    file
}
