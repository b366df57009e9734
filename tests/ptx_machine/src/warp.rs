//! The registers of a warp, and the typed access of instructions to them.

/// Number of lanes of a warp.
pub(crate) const LANES: usize = 32;
/// Mask of all lanes of a warp.
pub(crate) const ALL: u32 = u32::MAX;

/// One value per lane of a warp.
pub(crate) type Lanes<T> = [T; LANES];

/// Register class: registers of one class share an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// Registers of 16 and 32 bits.
    Word,
    /// Registers of 64 bits.
    Double,
    Predicate,
}

/// Lanes that run the same instruction, and where they meet other lanes again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Number of the basic block that the lanes run next.
    pub(crate) block: usize,
    /// Number of the basic block at which the lanes meet the lanes of the frame below.
    pub(crate) reconvergence: usize,
    pub(crate) lanes: u32,
}

/// Registers and control flow of one warp.
pub(crate) struct Warp {
    /// Number of the warp in its block.
    pub(crate) number: usize,
    /// Lanes that run the current instruction.
    pub(crate) active: u32,
    /// Lanes whose current instruction is faulty.
    pub(crate) faulty: u32,
    /// Description of the first fault; without a description, the fault is an uninitialized
    /// register.
    pub(crate) fault: Option<Fault>,
    /// Frames of the diverged lanes of the warp. The last frame contains the lanes that run now.
    pub(crate) frames: Vec<Frame>,
    /// Lanes that run a thread. The last warp of a block may have fewer threads than lanes.
    pub(crate) threads: u32,
    /// Lanes whose threads have ended.
    pub(crate) ended: u32,
    pub(crate) words: Vec<Lanes<u32>>,
    pub(crate) doubles: Vec<Lanes<u64>>,
    /// A mask of lanes for each predicate.
    pub(crate) predicates: Vec<u32>,
    /// For each register, the lanes that have written it.
    pub(crate) written_words: Vec<u32>,
    pub(crate) written_doubles: Vec<u32>,
    pub(crate) written_predicates: Vec<u32>,
}

/// A fault of one lane.
pub(crate) struct Fault {
    pub(crate) lane: usize,
    pub(crate) problem: String,
}

impl Warp {
    /// Records a fault of `lane`, unless the warp already has one.
    #[cold]
    #[inline(never)]
    pub(crate) fn fail(&mut self, lane: usize, problem: impl Into<String>) {
        self.faulty |= 1 << lane;
        self.fault.get_or_insert_with(|| Fault { lane, problem: problem.into() });
    }

    /// Returns whether a lane runs the current instruction.
    pub(crate) fn is_active(&self, lane: usize) -> bool {
        self.active >> lane & 1 != 0
    }

    /// Returns the predicate `register` as a mask of lanes.
    #[inline(always)]
    pub(crate) fn predicate(&mut self, register: u32) -> u32 {
        let register = register as usize;
        self.faulty |= self.active & !self.written_predicates[register];
        self.predicates[register]
    }

    #[inline(always)]
    pub(crate) fn set_predicate(&mut self, register: u32, value: u32) {
        let register = register as usize;
        let old = self.predicates[register];
        self.predicates[register] = old & !self.active | value & self.active;
        self.written_predicates[register] |= self.active;
    }

    #[inline(always)]
    fn read_word<T: Copy>(&mut self, register: u32, convert: impl Fn(u32) -> T) -> Lanes<T> {
        let register = register as usize;
        self.faulty |= self.active & !self.written_words[register];
        self.words[register].map(convert)
    }

    #[inline(always)]
    fn write_word<T: Copy>(
        &mut self,
        register: u32,
        values: &Lanes<T>,
        convert: impl Fn(T) -> u32,
    ) {
        let register = register as usize;
        write_lanes(&mut self.words[register], self.active, values, convert);
        self.written_words[register] |= self.active;
    }

    #[inline(always)]
    fn read_double<T: Copy>(&mut self, register: u32, convert: impl Fn(u64) -> T) -> Lanes<T> {
        let register = register as usize;
        self.faulty |= self.active & !self.written_doubles[register];
        self.doubles[register].map(convert)
    }

    #[inline(always)]
    fn write_double<T: Copy>(
        &mut self,
        register: u32,
        values: &Lanes<T>,
        convert: impl Fn(T) -> u64,
    ) {
        let register = register as usize;
        write_lanes(&mut self.doubles[register], self.active, values, convert);
        self.written_doubles[register] |= self.active;
    }
}

/// Stores the converted values of the lanes in `active`. If all lanes are active, the loop contains
/// no condition.
#[inline(always)]
fn write_lanes<R: Copy, T: Copy>(
    register: &mut Lanes<R>,
    active: u32,
    values: &Lanes<T>,
    convert: impl Fn(T) -> R,
) {
    if active == ALL {
        for lane in 0..LANES {
            register[lane] = convert(values[lane]);
        }
    } else {
        for lane in 0..LANES {
            let value = convert(values[lane]);
            register[lane] = if active >> lane & 1 != 0 { value } else { register[lane] };
        }
    }
}

/// A type of values that a register can hold.
pub(crate) trait Value: Copy + Default {
    const CLASS: Class;

    /// Reads a register, and records a fault if an active lane has not written it.
    fn read(warp: &mut Warp, register: u32) -> Lanes<Self>;

    /// Writes the active lanes of a register.
    fn write(warp: &mut Warp, register: u32, values: &Lanes<Self>);
}

macro_rules! value {
    ($type:ty, $class:ident, $read:ident, $write:ident, $from:expr, $to:expr) => {
        impl Value for $type {
            const CLASS: Class = Class::$class;

            #[inline(always)]
            fn read(warp: &mut Warp, register: u32) -> Lanes<Self> {
                warp.$read(register, $from)
            }

            #[inline(always)]
            fn write(warp: &mut Warp, register: u32, values: &Lanes<Self>) {
                warp.$write(register, values, $to)
            }
        }
    };
}

value!(u16, Word, read_word, write_word, |bits| bits as u16, u32::from);
value!(i16, Word, read_word, write_word, |bits| bits as i16, |value| u32::from(value as u16));
value!(u32, Word, read_word, write_word, |bits| bits, |value| value);
value!(i32, Word, read_word, write_word, |bits| bits as i32, |value| value as u32);
value!(f32, Word, read_word, write_word, f32::from_bits, f32::to_bits);
value!(u64, Double, read_double, write_double, |bits| bits, |value| value);
value!(i64, Double, read_double, write_double, |bits| bits as i64, |value| value as u64);
value!(f64, Double, read_double, write_double, f64::from_bits, f64::to_bits);
