//! The layout of a page of an LMDB database.

/// The size of a page header: page number (8 bytes), unused (2), flags (2), end offset of the node
/// pointers (2), end offset of the free space (2). An overflow page stores the number of overflow
/// pages (4 bytes) instead of the two end offsets.
pub(super) const HEADER: usize = 16;
/// The size of a node header in bytes: value length or child page (4), flags (2), key length (2).
pub(super) const NODE: usize = 8;

/// The flag in the header of a branch page.
pub(super) const BRANCH: u16 = 0x01;
pub(super) const LEAF: u16 = 0x02;
pub(super) const OVERFLOW: u16 = 0x04;
pub(super) const META: u16 = 0x08;

/// Flags of a leaf node. `BIG`: the value is on overflow pages. `DATABASE`: the value is a nested
/// database. `DUPLICATE`: the key has several values.
pub(super) const BIG: u16 = 0x01;
pub(super) const DATABASE: u16 = 0x02;
pub(super) const DUPLICATE: u16 = 0x04;

/// The value that an empty tree stores as its root page number.
pub(super) const NO_PAGE: u64 = u64::MAX;

pub(super) const MAGIC: u32 = 0xBEEF_C0DE;
pub(super) const VERSION: u32 = 1;

/// Byte offsets of fields in a meta page.
pub(super) const META_VERSION: usize = HEADER + 4;
pub(super) const META_MAP_SIZE: usize = HEADER + 16;
/// The byte offset, in a meta page, of the record that describes the tree of free pages. The record
/// of the tree of free pages starts with the page size of the database.
pub(super) const META_FREE: usize = HEADER + 24;
pub(super) const META_MAIN: usize = META_FREE + TREE;
pub(super) const META_LAST_PAGE: usize = META_MAIN + TREE;
pub(super) const META_TRANSACTION: usize = META_LAST_PAGE + 8;
pub(super) const META_END: usize = META_TRANSACTION + 8;

const TREE: usize = 48;
pub(super) const TREE_FLAGS: usize = 4;
pub(super) const TREE_DEPTH: usize = 6;
pub(super) const TREE_BRANCHES: usize = 8;
pub(super) const TREE_LEAVES: usize = 16;
pub(super) const TREE_OVERFLOWS: usize = 24;
pub(super) const TREE_ENTRIES: usize = 32;
pub(super) const TREE_ROOT: usize = 40;

/// The bytes of a whole page or of the start of a page. Reads beyond the end of a `Page` return
/// `None`.
#[derive(Clone, Copy)]
pub(super) struct Page<'a>(pub(super) &'a [u8]);

pub(super) struct Node<'a> {
    low: u32,
    pub(super) flags: u16,
    pub(super) key: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Page<'a> {
    pub(super) fn u16(self, offset: usize) -> Option<u16> {
        self.0.get(offset..)?.first_chunk().copied().map(u16::from_le_bytes)
    }

    pub(super) fn u32(self, offset: usize) -> Option<u32> {
        self.0.get(offset..)?.first_chunk().copied().map(u32::from_le_bytes)
    }

    pub(super) fn u64(self, offset: usize) -> Option<u64> {
        self.0.get(offset..)?.first_chunk().copied().map(u64::from_le_bytes)
    }

    pub(super) fn number(self) -> Option<u64> {
        self.u64(0)
    }

    pub(super) fn flags(self) -> Option<u16> {
        self.u16(10)
    }

    /// Returns the number of nodes of a branch or leaf page.
    pub(super) fn count(self) -> usize {
        let end = self.u16(12).map_or(0, usize::from);
        end.saturating_sub(HEADER) / 2
    }

    /// Returns the node with index `index`, or `None` if the node extends beyond the page.
    pub(super) fn node(self, index: usize) -> Option<Node<'a>> {
        let start = usize::from(self.u16(HEADER + 2 * index)?);
        let key = start + NODE;
        let rest = key + usize::from(self.u16(start + 6)?);
        Some(Node {
            low: self.u32(start)?,
            flags: self.u16(start + 4)?,
            key: self.0.get(key..rest)?,
            rest: self.0.get(rest..)?,
        })
    }
}

impl<'a> Node<'a> {
    /// Returns the 48-bit page number of the child to which a branch node points.
    pub(super) fn child(&self) -> u64 {
        u64::from(self.low) | u64::from(self.flags) << 32
    }

    pub(super) fn len(&self) -> usize {
        self.low as usize
    }

    /// Returns the value of a leaf node, or `None` if the value is not within the page.
    pub(super) fn value(&self) -> Option<&'a [u8]> {
        self.rest.get(..self.len())
    }

    /// Returns the page number of the first overflow page of the node's value.
    pub(super) fn overflow(&self) -> Option<u64> {
        Page(self.rest).u64(0)
    }
}
