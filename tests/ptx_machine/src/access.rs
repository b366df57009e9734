//! Loads, stores and atomics.

use crate::{
    block::Block,
    counters::{Access, Counters},
    device_memory::AccessError,
    kernel::{Execute, Instruction},
    shared::SharedError,
    warp::{ALL, Class, LANES, Lanes, Value, Warp},
};

/// A type of an element in memory, and the type `R` of a register for it. An element that is
/// narrower than the register is extended.
trait Element<R>: Copy + Default {
    const BYTES: usize;
    fn from_bytes(bytes: &[u8]) -> Self;
    fn to_bytes(self, bytes: &mut [u8]);
    fn extend(self) -> R;
    fn truncate(register: R) -> Self;
}

macro_rules! element {
    ($type:ty, $register:ty) => {
        impl Element<$register> for $type {
            const BYTES: usize = size_of::<$type>();

            #[inline(always)]
            fn from_bytes(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("the bytes of one element"))
            }

            #[inline(always)]
            fn to_bytes(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }

            #[inline(always)]
            fn extend(self) -> $register {
                self as $register
            }

            #[inline(always)]
            fn truncate(register: $register) -> Self {
                register as Self
            }
        }
    };
}

element!(u8, u32);
element!(i8, u32);
element!(u16, u32);
element!(u32, u32);
element!(u32, u64);
element!(i32, u64);
element!(u64, u64);

/// Bytes of the widest access of one lane.
const MAX_BYTES: usize = 16;

/// Address space of an access.
trait Space {
    /// Type of the register with the address.
    type Address: Value + Into<i128>;

    fn read(warp: &mut Warp, block: &mut Block<'_>, lane: usize, address: u64, to: &mut [u8]);
    fn write(warp: &mut Warp, block: &mut Block<'_>, lane: usize, address: u64, from: &[u8]);

    /// Counts the accesses of one instruction.
    fn count(_: &mut Counters, _: &Access<'_>) {}

    /// Reads the elements of all lanes at once, if the elements of the lanes are consecutive in
    /// memory. Returns whether this was possible.
    fn read_all(_: &Warp, _: &mut Block<'_>, _: u64, _: usize, _: &mut [u8]) -> bool {
        false
    }

    /// Like [`read_all`](Self::read_all), but writes.
    fn write_all(_: &Warp, _: &mut Block<'_>, _: u64, _: usize, _: &[u8]) -> bool {
        false
    }
}

struct Global;
struct Shared;
struct Parameters;

#[cold]
fn fail_global(warp: &mut Warp, lane: usize, address: u64, bytes: usize, error: &AccessError) {
    let problem = match error {
        AccessError::Outside => "outside every allocation",
        AccessError::Unwritten => "uninitialized",
        AccessError::Conflict => "conflicts with a write of another thread",
    };
    warp.fail(lane, format!("device memory at {address:#x}, {bytes} bytes: {problem}"));
}

fn is_aligned(warp: &mut Warp, lane: usize, address: u64, bytes: usize) -> bool {
    let aligned = address.is_multiple_of(bytes as u64);
    if !aligned {
        warp.fail(lane, format!("address {address:#x}: misaligned for an access of {bytes} bytes"));
    }
    aligned
}

impl Space for Global {
    type Address = u64;

    fn count(counters: &mut Counters, access: &Access<'_>) {
        counters.global(access);
    }

    #[inline(always)]
    fn read(warp: &mut Warp, block: &mut Block<'_>, lane: usize, address: u64, to: &mut [u8]) {
        let thread = block.thread(warp, lane);
        if is_aligned(warp, lane, address, to.len())
            && let Err(error) = block.memory.read(thread, address, to.len(), to)
        {
            fail_global(warp, lane, address, to.len(), &error);
        }
    }

    #[inline(always)]
    fn write(warp: &mut Warp, block: &mut Block<'_>, lane: usize, address: u64, from: &[u8]) {
        let thread = block.thread(warp, lane);
        if is_aligned(warp, lane, address, from.len())
            && let Err(error) = block.memory.write(thread, address, from.len(), from)
        {
            fail_global(warp, lane, address, from.len(), &error);
        }
    }

    #[inline(always)]
    fn read_all(
        warp: &Warp,
        block: &mut Block<'_>,
        address: u64,
        bytes: usize,
        to: &mut [u8],
    ) -> bool {
        block.memory.read(block.thread(warp, 0), address, bytes, to).is_ok()
    }

    #[inline(always)]
    fn write_all(
        warp: &Warp,
        block: &mut Block<'_>,
        address: u64,
        bytes: usize,
        from: &[u8],
    ) -> bool {
        block.memory.write(block.thread(warp, 0), address, bytes, from).is_ok()
    }
}

#[cold]
fn fail_shared(warp: &mut Warp, lane: usize, address: u64, bytes: usize, error: &SharedError) {
    let problem = match error {
        SharedError::Misaligned => "misaligned".to_owned(),
        SharedError::Outside => "outside every variable".to_owned(),
        SharedError::Unwritten => "uninitialized".to_owned(),
        SharedError::Conflict { with_write, thread } => {
            let access = if *with_write { "a write" } else { "a read" };
            match thread {
                Some(thread) => format!("conflicts with {access} of thread {thread}"),
                None => format!("conflicts with {access} of several threads"),
            }
        }
    };
    warp.fail(lane, format!("shared memory at {address:#x}, {bytes} bytes: {problem}"));
}

impl Space for Shared {
    type Address = u32;

    fn count(counters: &mut Counters, access: &Access<'_>) {
        counters.shared(access);
    }

    #[inline(always)]
    fn read(warp: &mut Warp, block: &mut Block<'_>, lane: usize, address: u64, to: &mut [u8]) {
        let thread = (warp.number * LANES + lane) as u32;
        if let Err(error) = block.shared.read(thread, address, to) {
            fail_shared(warp, lane, address, to.len(), &error);
        }
    }

    #[inline(always)]
    fn write(warp: &mut Warp, block: &mut Block<'_>, lane: usize, address: u64, from: &[u8]) {
        let thread = (warp.number * LANES + lane) as u32;
        if let Err(error) = block.shared.write(thread, address, from) {
            fail_shared(warp, lane, address, from.len(), &error);
        }
    }
}

/// Reads shared memory for one lane.
pub(crate) fn read_shared(
    warp: &mut Warp,
    block: &mut Block<'_>,
    lane: usize,
    address: u64,
    to: &mut [u8],
) {
    Shared::read(warp, block, lane, address, to);
}

impl Space for Parameters {
    type Address = u64;

    fn read(warp: &mut Warp, block: &mut Block<'_>, lane: usize, address: u64, to: &mut [u8]) {
        let first = address as usize;
        match block.parameters.get(first..).and_then(|bytes| bytes.get(..to.len())) {
            Some(bytes) if is_aligned(warp, lane, address, to.len()) => to.copy_from_slice(bytes),
            Some(_) => {}
            None => warp.fail(lane, format!("parameter memory at {address:#x}: out of bounds")),
        }
    }

    fn write(warp: &mut Warp, _: &mut Block<'_>, lane: usize, _: u64, _: &[u8]) {
        warp.fail(lane, "a store to a parameter");
    }
}

#[inline(always)]
fn addresses<S: Space>(warp: &mut Warp, instruction: &Instruction) -> Lanes<u64> {
    let base = S::Address::read(warp, instruction.a);
    let mut addresses = [0; LANES];
    for lane in 0..LANES {
        addresses[lane] = (base[lane].into() as u64).wrapping_add(instruction.offset as u64);
    }
    addresses
}

/// Returns whether the accesses of all lanes follow each other without gaps.
#[inline(always)]
fn are_consecutive(warp: &Warp, addresses: &Lanes<u64>, bytes: usize) -> bool {
    let first = addresses[0];
    let mut same = 0;
    for (lane, address) in addresses.iter().enumerate() {
        same |= address ^ first.wrapping_add((lane * bytes) as u64);
    }
    warp.active == ALL && same == 0 && first.is_multiple_of(bytes as u64)
}

#[inline(always)]
fn load_vector<E: Element<R>, R: Value, S: Space, const N: usize>(
    warp: &mut Warp,
    block: &mut Block<'_>,
    instruction: &Instruction,
) {
    let bytes = N * E::BYTES;
    let addresses = addresses::<S>(warp, instruction);
    if warp.faulty != 0 {
        return;
    }
    if let Some(counters) = &mut block.counters {
        let active = warp.active;
        S::count(counters, &Access { active, addresses: &addresses, bytes, is_store: false });
    }
    let mut loaded = [0; MAX_BYTES * LANES];
    let loaded = &mut loaded[..bytes * LANES];
    if !(are_consecutive(warp, &addresses, bytes)
        && S::read_all(warp, block, addresses[0], bytes, loaded))
    {
        for lane in 0..LANES {
            if warp.is_active(lane) {
                let to = &mut loaded[lane * bytes..(lane + 1) * bytes];
                S::read(warp, block, lane, addresses[lane], to);
            }
        }
    }
    if warp.faulty != 0 {
        return;
    }
    for i in 0..N {
        let mut values = [R::default(); LANES];
        for lane in 0..LANES {
            let first = lane * bytes + i * E::BYTES;
            values[lane] = E::from_bytes(&loaded[first..first + E::BYTES]).extend();
        }
        R::write(warp, instruction.list[i], &values);
    }
}

#[inline(always)]
fn store_vector<E: Element<R>, R: Value, S: Space, const N: usize>(
    warp: &mut Warp,
    block: &mut Block<'_>,
    instruction: &Instruction,
) {
    let bytes = N * E::BYTES;
    let addresses = addresses::<S>(warp, instruction);
    let mut stored = [0; MAX_BYTES * LANES];
    let stored = &mut stored[..bytes * LANES];
    for i in 0..N {
        let values = R::read(warp, instruction.list[i]);
        for lane in 0..LANES {
            let first = lane * bytes + i * E::BYTES;
            E::truncate(values[lane]).to_bytes(&mut stored[first..first + E::BYTES]);
        }
    }
    if warp.faulty != 0 {
        return;
    }
    if let Some(counters) = &mut block.counters {
        let active = warp.active;
        S::count(counters, &Access { active, addresses: &addresses, bytes, is_store: true });
    }
    if !(are_consecutive(warp, &addresses, bytes)
        && S::write_all(warp, block, addresses[0], bytes, stored))
    {
        for lane in 0..LANES {
            if warp.is_active(lane) {
                let from = &stored[lane * bytes..(lane + 1) * bytes];
                S::write(warp, block, lane, addresses[lane], from);
            }
        }
    }
}

fn load<E: Element<R>, R: Value, S: Space>(
    warp: &mut Warp,
    block: &mut Block<'_>,
    instruction: &Instruction,
) {
    match instruction.list.len() {
        1 => load_vector::<E, R, S, 1>(warp, block, instruction),
        2 => load_vector::<E, R, S, 2>(warp, block, instruction),
        _ => load_vector::<E, R, S, 4>(warp, block, instruction),
    }
}

fn store<E: Element<R>, R: Value, S: Space>(
    warp: &mut Warp,
    block: &mut Block<'_>,
    instruction: &Instruction,
) {
    match instruction.list.len() {
        1 => store_vector::<E, R, S, 1>(warp, block, instruction),
        2 => store_vector::<E, R, S, 2>(warp, block, instruction),
        _ => store_vector::<E, R, S, 4>(warp, block, instruction),
    }
}

/// Returns the function that loads or stores (`kind`) an element of type `element` in the address
/// space `space`, to or from a register of `class`.
pub(crate) fn access(kind: &str, space: &str, element: &str, class: Class) -> Option<Execute> {
    macro_rules! elements {
        ($function:ident, $space:ty) => {
            match (element, class) {
                ("u8", Class::Word) => $function::<u8, u32, $space>,
                ("s8", Class::Word) => $function::<i8, u32, $space>,
                ("u16", Class::Word) => $function::<u16, u32, $space>,
                ("u32" | "s32" | "f32", Class::Word) => $function::<u32, u32, $space>,
                ("u32", Class::Double) => $function::<u32, u64, $space>,
                ("s32", Class::Double) => $function::<i32, u64, $space>,
                ("u64" | "f64", Class::Double) => $function::<u64, u64, $space>,
                _ => return None,
            }
        };
    }
    Some(match (kind, space) {
        ("ld", "global") => elements!(load, Global),
        ("ld", "shared") => elements!(load, Shared),
        ("ld", "param") => elements!(load, Parameters),
        ("st", "global") => elements!(store, Global),
        ("st", "shared") => elements!(store, Shared),
        _ => return None,
    })
}

/// Loads a parameter from an address that is the same for all lanes.
fn load_parameter<E: Element<R>, R: Value>(
    warp: &mut Warp,
    block: &mut Block<'_>,
    instruction: &Instruction,
) {
    let base = u64::read(warp, instruction.a)[0];
    for (i, slot) in instruction.list.iter().enumerate() {
        let address = base.wrapping_add(instruction.offset as u64) as usize + i * E::BYTES;
        let Some(bytes) = block.parameters.get(address..address + E::BYTES) else {
            return warp.fail(0, format!("parameter memory at {address:#x}: out of bounds"));
        };
        R::write(warp, *slot, &[E::from_bytes(bytes).extend(); LANES]);
    }
}

/// Returns the load of a parameter, or of elements of it, by its name.
pub(crate) fn constant_parameter(element: &str, class: Class) -> Option<Execute> {
    Some(match (element, class) {
        ("u16", Class::Word) => load_parameter::<u16, u32>,
        ("u32" | "s32" | "f32", Class::Word) => load_parameter::<u32, u32>,
        ("u32", Class::Double) => load_parameter::<u32, u64>,
        ("s32", Class::Double) => load_parameter::<i32, u64>,
        ("u64" | "f64", Class::Double) => load_parameter::<u64, u64>,
        _ => return None,
    })
}

/// `atom.global.max.u64`
pub(crate) fn atomic_max(warp: &mut Warp, block: &mut Block<'_>, instruction: &Instruction) {
    let addresses = addresses::<Global>(warp, instruction);
    let values = u64::read(warp, instruction.b);
    if let Some(counters) = &mut block.counters {
        let active = warp.active;
        counters.atomic(&Access { active, addresses: &addresses, bytes: 8, is_store: true });
    }
    let mut old = [0; LANES];
    for lane in 0..LANES {
        if !warp.is_active(lane) || warp.faulty != 0 {
            continue;
        }
        let address = addresses[lane];
        if is_aligned(warp, lane, address, 8) {
            match block.memory.atomic_max(block.thread(warp, lane), address, values[lane]) {
                Ok(value) => old[lane] = value,
                Err(error) => fail_global(warp, lane, address, 8, &error),
            }
        }
    }
    if warp.faulty == 0 {
        u64::write(warp, instruction.to, &old);
    }
}
