//! Element types of memory and blobs.

pub use half::{bf16, f16};

use num_traits::Float;
use std::{
    any::Any,
    fmt::{Debug, Display},
};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// An [`Element`] type as a run-time value.
///
/// ```
/// use cortado::{DType, Element, bf16};
///
/// assert_eq!(bf16::DTYPE, DType::Bf16);
/// assert_eq!((DType::Bf16.name(), DType::Bf16.size()), ("bf16", 2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// IEEE 754 binary16.
    F16,
    /// bfloat16: the upper 16 bits of an IEEE 754 binary32.
    Bf16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl DType {
    /// Returns the lower-case name that kernel symbols use: `f16`, `bf16`, `f32` or `f64`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// Returns the size of one element in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

mod sealed {
    use super::Element;

    pub trait Sealed: Sized {
        /// Returns the entry of `values` for this element type.
        fn entry<F: PerElement>(values: &EachElement<F>) -> &F::Of<Self>
        where
            Self: Element;
    }

    /// Family of types with one member for each element type, such as the types of pointers to the
    /// host function of a kernel.
    pub trait PerElement {
        /// Member of the family for the element type `T`.
        type Of<T: Element>;
    }

    /// One value for each element type.
    pub struct EachElement<F: PerElement> {
        pub f16: F::Of<super::f16>,
        pub bf16: F::Of<super::bf16>,
        pub f32: F::Of<f32>,
        pub f64: F::Of<f64>,
    }
}
pub(crate) use sealed::{EachElement, PerElement};

/// Plain old data that memory can store, such as labels or pooling masks. Types that implement
/// `FromBytes`, `IntoBytes` and `Immutable` of the crate `zerocopy` implement `Storable`.
///
/// ```
/// use cortado::{element::Storable, prelude::*};
///
/// let points = Blob::from_slice(&CpuDevice::new(), &[2], &[[1i16, 2], [3, 4]])?;
/// assert_eq!(points.to_vec()?, [[1, 2], [3, 4]]);
/// assert_eq!(u16::bytes_of(&[0x0101, 0]), [1, 1, 0, 0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub trait Storable: IntoBytes + Immutable + Copy + Send + Sync + 'static {
    /// Returns a value whose bytes are zero.
    fn zeroed() -> Self;
    /// Returns the bytes of the values.
    fn bytes_of(values: &[Self]) -> &[u8];
    /// Returns the bytes of the values as a mutable slice.
    fn bytes_of_mut(values: &mut [Self]) -> &mut [u8];
    /// Reinterprets `bytes` as a slice of values. Returns `None` if the bytes are not aligned for
    /// the type, or if the number of bytes is not a multiple of the type's size.
    fn from_bytes(bytes: &[u8]) -> Option<&[Self]>;
    /// Reinterprets `bytes` as a mutable slice of values. Returns `None` in the same cases as
    /// [`from_bytes`](Self::from_bytes).
    fn from_bytes_mut(bytes: &mut [u8]) -> Option<&mut [Self]>;
    /// Reads a value from `bytes`, which need not be aligned. Returns `None` unless `bytes` has the
    /// size of one value.
    fn read_bytes(bytes: &[u8]) -> Option<Self>;
}

// `FromBytes` is not a supertrait of `Storable`, because the methods `zero` of `FromBytes` and of
// `num_traits::Zero` would be ambiguous in generic code.
impl<T: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static> Storable for T {
    #[inline(always)]
    fn zeroed() -> Self {
        T::new_zeroed()
    }
    #[inline(always)]
    fn bytes_of(values: &[Self]) -> &[u8] {
        values.as_bytes()
    }
    #[inline(always)]
    fn bytes_of_mut(values: &mut [Self]) -> &mut [u8] {
        values.as_mut_bytes()
    }
    #[inline(always)]
    fn from_bytes(bytes: &[u8]) -> Option<&[Self]> {
        <[T]>::ref_from_bytes(bytes).ok()
    }
    #[inline(always)]
    fn from_bytes_mut(bytes: &mut [u8]) -> Option<&mut [Self]> {
        <[T]>::mut_from_bytes(bytes).ok()
    }
    #[inline(always)]
    fn read_bytes(bytes: &[u8]) -> Option<Self> {
        T::read_from_bytes(bytes).ok()
    }
}

/// A numeric type that kernels support: [`f32`], [`f64`], [`struct@f16`] or [`struct@bf16`].
///
/// Kernels compute in [`Acc`](Self::Acc), which is `f32` for the 16-bit types, and round once when
/// storing a result.
///
/// ```
/// use cortado::{Element, f16};
///
/// fn mean<T: Element>(x: &[T]) -> T {
///     let sum = x.iter().fold(T::acc(0.0), |sum, x| sum + x.to_acc());
///     T::from_acc(sum / T::acc(x.len() as f64))
/// }
///
/// let large = f16::from_f64(60000.0);
/// assert_eq!(mean(&[large, large]), large); // the sum fits in `f32`, but not in `f16`
/// ```
pub trait Element: sealed::Sealed + Storable + PartialOrd + Debug + Display + Default {
    /// The accumulator type, in which kernels compute and receive scalar arguments.
    type Acc: Element<Acc = Self::Acc> + Float;
    /// This element type as a run-time value.
    const DTYPE: DType;
    /// Widens the element to the accumulator type, exactly.
    fn to_acc(self) -> Self::Acc;
    /// Narrows an accumulator to this type, rounding to nearest, ties to even.
    fn from_acc(acc: Self::Acc) -> Self;
    /// Converts an `f64` to this type, rounding to nearest.
    fn from_f64(v: f64) -> Self;
    /// Converts the element to `f64`, exactly.
    fn to_f64(self) -> f64;
    /// Converts an `f64` to the type of a kernel's scalar arguments.
    fn acc(v: f64) -> Self::Acc {
        <Self::Acc as Element>::from_f64(v)
    }
}

/// Returns whether `T` and `S` are the same type. If the condition of an `if` is
/// `const { is_same::<T, S>() }`, rustc generates code for only one of the two branches.
pub(crate) const fn is_same<T: Element, S: Element>() -> bool {
    T::DTYPE as u8 == S::DTYPE as u8
}

/// Returns the entry of `values` for the element type `T`. `values` has one `V` for each element
/// type, in the order of [`DType`]. If the types of the values are known at compile time,
/// use [`EachElement`], which selects a value without a comparison of types.
///
/// # Panics
/// Panics if the entry of `values` for `T` does not have the type `V`.
pub(crate) fn for_element_type<T: Element, V: Any>(values: [&dyn Any; 4]) -> &V {
    values[T::DTYPE as usize].downcast_ref().expect("every element type has a value of type `V`")
}

/// Returns the instance of the generic function `$function` that this crate compiled for the
/// caller's type `$T`. A dependent crate compiles only the `match` on the element type, not
/// `$function`.
///
/// ```text
/// compiled_for!(T, fn(&mut Net<T>) -> Result<()> = Net::run_backward)(self)
/// ```
#[cfg(feature = "net")]
macro_rules! compiled_for {
    ($T:ident, fn($($arg:ty),*) -> $result:ty = $function:expr) => {{
        fn select(dtype: $crate::element::DType) -> Box<dyn std::any::Any> {
            macro_rules! boxed {
                ($E:ty) => {{
                    type $T = $E;
                    Box::new($function as fn($($arg),*) -> $result)
                }};
            }
            match dtype {
                $crate::element::DType::F16 => boxed!($crate::element::f16),
                $crate::element::DType::Bf16 => boxed!($crate::element::bf16),
                $crate::element::DType::F32 => boxed!(f32),
                $crate::element::DType::F64 => boxed!(f64),
            }
        }
        let function = select($T::DTYPE).downcast::<fn($($arg),*) -> $result>();
        *function.expect("every element type has a function of the given signature")
    }};
}
#[cfg(feature = "net")]
pub(crate) use compiled_for;

macro_rules! element {
    ($t:ident, $acc:ty, $dtype:ident, $to_acc:expr, $from_acc:expr, $from_f64:expr, $to_f64:expr) => {
        impl sealed::Sealed for $t {
            #[inline(always)]
            fn entry<F: PerElement>(values: &EachElement<F>) -> &F::Of<Self> {
                &values.$t
            }
        }
        impl Element for $t {
            type Acc = $acc;
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn to_acc(self) -> $acc {
                $to_acc(self)
            }
            #[inline(always)]
            fn from_acc(acc: $acc) -> Self {
                $from_acc(acc)
            }
            #[inline(always)]
            fn from_f64(v: f64) -> Self {
                $from_f64(v)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                $to_f64(self)
            }
        }
    };
}
element!(
    f16,
    f32,
    F16,
    f16::to_f32,
    f16::from_f32,
    |v| f16::from_f32(round_to_odd(v)),
    f16::to_f64
);
element!(
    bf16,
    f32,
    Bf16,
    bf16::to_f32,
    bf16::from_f32,
    |v| bf16::from_f32(round_to_odd(v)),
    bf16::to_f64
);
element!(f32, f32, F32, |x| x, |x| x, |v| v as f32, f64::from);
element!(f64, f64, F64, |x| x, |x| x, |v| v, |x| x);

/// Rounds `x` to odd: an inexact result is the adjacent `f32` whose last bit is 1.
///
/// Rounding the `f32` result to a type whose significand is at least two bits shorter gives the
/// value of that type that is nearest to `x`. Rounding `x` to nearest twice can give a different
/// value: the first rounding can produce a tie, which the second rounding rounds to even (Boldo and
/// Melquiond 2008, "Emulation of FMA and correctly rounded sums").
#[inline(always)]
pub(crate) fn round_to_odd(x: f64) -> f32 {
    let nearest_f32 = x as f32;
    let (bits, widened) = (nearest_f32.to_bits(), f64::from(nearest_f32));
    let is_even = u32::from(bits & 1 == 0);
    // Adding 1 to the bits of a float gives the float of the next larger magnitude. Zero and
    // infinity have even bit patterns, so a result that underflowed or overflowed is rounded to
    // odd, too. Comparisons with NaN are false, so the bits of a NaN are unchanged.
    let increase = u32::from(widened.abs() < x.abs()) & is_even;
    let decrease = u32::from(widened.abs() > x.abs()) & is_even;
    f32::from_bits(bits + increase - decrease)
}
