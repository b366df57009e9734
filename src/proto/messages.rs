//! Caffe's message types: the declarations that `proto/codegen` generates from `proto/caffe.proto`,
//! and the macros that expand the declarations to Rust code. The module `onnx` holds ONNX's message
//! types, which the macros for Caffe's messages also expand.
//!
//! The declarations resemble protobuf's syntax. The field option `default` holds a Rust value, and
//! the field option `setter` names the setter method of an enum field. For example, the macro
//! `messages!` expands this declaration:
//!
//! ```text
//! message ReductionParameter {
//!     optional enumeration(reduction_parameter::ReductionOp) operation = 1
//!         [default = Sum, setter = set_operation];
//!     optional int32 axis = 2 [default = 0];
//! }
//! ```
//!
//! The macro expands the declaration to this Rust code:
//!
//! ```text
//! #[derive(Clone, Default, PartialEq)]
//! pub struct ReductionParameter {
//!     pub operation: Option<i32>,
//!     pub axis: Option<i32>,
//! }
//! impl ReductionParameter {
//!     const SCHEMA: &'static Schema = &Schema::new("caffe.ReductionParameter", …, &[…]);
//!     pub fn operation(&self) -> ReductionOp { … }
//!     pub fn set_operation(&mut self, value: ReductionOp) { … }
//!     pub fn axis(&self) -> i32 { self.axis.unwrap_or(0) }
//! }
//! impl Message for ReductionParameter {
//!     fn encode_raw(&self, buf: &mut impl BufMut) {
//!         if let Some(value) = &self.operation { enumeration::encode(1, value, buf) };
//!         if let Some(value) = &self.axis { int32::encode(2, value, buf) };
//!     }
//!     fn merge_field(…) -> Result<(), DecodeError> {
//!         let (merged, field) = match tag {
//!             1 => (enumeration::merge(…, self.operation.get_or_insert_default(), …), "operation"),
//!             2 => (int32::merge(…, self.axis.get_or_insert_default(), …), "axis"),
//!             _ => return skip_field(wire_type, tag, buf, ctx),
//!         };
//!         merged.map_err(|error| with_path(error, "ReductionParameter", field))
//!     }
//!     fn encoded_len(&self) -> usize { … }
//!     fn clear(&mut self) { *self = Self::default() }
//! }
//! impl Name for ReductionParameter { … }
//! impl Debug for ReductionParameter { … }
//! impl Codec for ReductionParameter { … }
//! ```
//!
//! prost provides the functions `encode`, `merge` and `encoded_len` in one module per field type,
//! such as `int32`.
#![allow(missing_docs)]

use std::fmt;

use super::{
    schema::{Codec, Field, FieldType, Label, Schema, field_name},
    splice::SplicedReader,
};
use prost::{
    DecodeError, Message, Name,
    bytes::{Buf, BufMut},
    encoding::{DecodeContext, WireType, skip_field},
};

/// prost's encode, merge and length functions for each protobuf field type. An enum value is
/// encoded as an `int32`.
mod kind {
    pub(super) use prost::encoding::{
        bool, bytes, double, float, int32, int32 as enumeration, int64, message, string, uint32,
    };
}

/// Declares messages. The fields of a message must be in ascending order of field number, because
/// fields are encoded in the order of their declaration. `package` is the messages' protobuf
/// package. `as` gives the name of a message in the protobuf file if the Rust name differs.
macro_rules! messages {
    (package $package:literal; $(
        $(#[$attribute:meta])*
        message $message:ident $(as $proto:literal)? {$(
            $(#[$field_attribute:meta])*
            $label:ident $kind:ident $(($($type:ident)::+))? $field:ident = $number:literal
                $([$($option:tt)*])?;
        )*}
    )*) => {$(
        $(#[$attribute])*
        $(#[doc(alias = $proto)])?
        #[derive(Clone, Default, PartialEq)]
        pub struct $message {$(
            $(#[$field_attribute])*
            pub $field: rust_type!($label $kind $(($($type)::+))?),
        )*}

        impl $message {
            pub(super) const SCHEMA: &'static Schema = &Schema::new(
                concat!($package, ".", proto_name!($message $($proto)?)),
                size_of::<$message>(),
                &[$(Field {
                    name: field_name(stringify!($field)),
                    number: $number,
                    label: label!($label),
                    kind: field_type!($kind $(($($type)::+))?),
                }),*],
            );
            $(accessors! { $label $kind $(($($type)::+))? $field [$($($option)*)?] })*
        }

        impl Message for $message {
            fn encode_raw(&self, buf: &mut impl BufMut) {
                $(encode!($label $kind($number, self.$field, buf));)*
            }
            fn merge_field(
                &mut self,
                tag: u32,
                wire_type: WireType,
                buf: &mut impl Buf,
                ctx: DecodeContext,
            ) -> Result<(), DecodeError> {
                let (merged, field) = match tag {
                    $($number => {
                        (merge!($label $kind(wire_type, self.$field, buf, ctx)), stringify!($field))
                    })*
                    _ => return skip_field(wire_type, tag, buf, ctx),
                };
                merged.map_err(|error| with_path(error, stringify!($message), field))
            }
            fn encoded_len(&self) -> usize {
                0 $(+ encoded_len!($label $kind($number, self.$field)))*
            }
            fn clear(&mut self) {
                *self = Self::default();
            }
        }

        impl Name for $message {
            const NAME: &'static str = proto_name!($message $($proto)?);
            const PACKAGE: &'static str = $package;
        }

        impl fmt::Debug for $message {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let fields: &[(&'static str, &dyn fmt::Debug)] = &[$((
                    stringify!($field),
                    debug!($label $kind $(($($type)::+))?, self.$field),
                )),*];
                debug_struct(f, stringify!($message), fields)
            }
        }

        impl Codec for $message {
            fn schema(&self) -> &'static Schema {
                Self::SCHEMA
            }
            fn merge_from(&mut self, bytes: &mut SplicedReader<'_>) -> Result<(), DecodeError> {
                self.merge(bytes)
            }
            fn binary_len(&self) -> usize {
                self.encoded_len()
            }
            fn to_binary(&self) -> Vec<u8> {
                self.encode_to_vec()
            }
        }
    )*};
}

/// Declares enums. Each enum value has a Rust name, a name in `caffe.proto` and a number. The first
/// value of an enum is its default.
macro_rules! enumerations {
    ($(
        $(#[$attribute:meta])*
        enum $enum:ident $(as $proto:literal)? {$(
            $(#[$value_attribute:meta])*
            $value:ident $name:literal = $number:literal,
        )*}
    )*) => {$(
        $(#[$attribute])*
        $(#[doc(alias = $proto)])?
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(i32)]
        pub enum $enum {$(
            $(#[$value_attribute])*
            $value = $number,
        )*}

        impl $enum {
            #[allow(dead_code)] // no field has the type `DataType` of ONNX
            pub(in crate::proto) const SCHEMA: &'static $crate::proto::schema::EnumSchema =
                &$crate::proto::schema::EnumSchema {
                    name: proto_name!($enum $($proto)?),
                    values: &[$(($name, $number)),*],
                };

            /// Returns whether the enum declares a value with the number `number`.
            pub const fn is_valid(number: i32) -> bool {
                false $(|| number == $number)*
            }

            /// Returns the name of the enum value in `caffe.proto`.
            pub fn as_str_name(&self) -> &'static str {
                match self {
                    $(Self::$value => $name,)*
                }
            }

            /// Returns the enum value with the name `name` in `caffe.proto`.
            pub fn from_str_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$value),)*
                    _ => None,
                }
            }
        }

        impl Default for $enum {
            fn default() -> Self {
                [$(Self::$value),*][0]
            }
        }

        impl From<$enum> for i32 {
            fn from(value: $enum) -> Self {
                value as i32
            }
        }

        impl TryFrom<i32> for $enum {
            type Error = prost::UnknownEnumValue;

            fn try_from(number: i32) -> Result<Self, Self::Error> {
                match number {
                    $($number => Ok(Self::$value),)*
                    _ => Err(prost::UnknownEnumValue(number)),
                }
            }
        }
    )*};
}

/// The name of a type in `caffe.proto`: the name after `as`, or the Rust name if `as` is missing.
macro_rules! proto_name {
    ($rust:ident) => {
        stringify!($rust)
    };
    ($rust:ident $proto:literal) => {
        $proto
    };
}

/// The Rust type of a message field.
macro_rules! rust_type {
    (optional $($kind:tt)+) => { Option<value_type!($($kind)+)> };
    (required $($kind:tt)+) => { value_type!($($kind)+) };
    (repeated $($kind:tt)+) => { Vec<value_type!($($kind)+)> };
    (packed $($kind:tt)+) => { Vec<value_type!($($kind)+)> };
}

/// The Rust type of one value of an optional or repeated field.
macro_rules! value_type {
    (bool) => { bool };
    (int32) => { i32 };
    (int64) => { i64 };
    (uint32) => { u32 };
    (float) => { f32 };
    (double) => { f64 };
    (string) => { String };
    (bytes) => { Vec<u8> };
    (enumeration($($type:ident)::+)) => { i32 };
    (message($($type:ident)::+)) => { $($type)::+ };
}

/// The [`FieldType`] of a message field.
macro_rules! field_type {
    (bool) => { FieldType::Bool };
    (int32) => { FieldType::Int32 };
    (int64) => { FieldType::Int64 };
    (uint32) => { FieldType::Uint32 };
    (float) => { FieldType::Float };
    (double) => { FieldType::Double };
    (string) => { FieldType::String };
    (bytes) => { FieldType::Bytes };
    (enumeration($($type:ident)::+)) => { FieldType::Enum($($type)::+::SCHEMA) };
    (message($($type:ident)::+)) => { FieldType::Message($($type)::+::SCHEMA) };
}

/// The [`Label`] of a message field.
macro_rules! label {
    (optional) => {
        Label::Optional
    };
    (required) => {
        Label::Required
    };
    (repeated) => {
        Label::Repeated
    };
    (packed) => {
        Label::Repeated
    };
}

macro_rules! encode {
    (optional $kind:ident($number:literal, $field:expr, $buf:ident)) => {
        if let Some(value) = &$field {
            kind::$kind::encode($number, value, $buf)
        }
    };
    (required $kind:ident($number:literal, $field:expr, $buf:ident)) => {
        kind::$kind::encode($number, &$field, $buf)
    };
    (repeated $kind:ident($number:literal, $field:expr, $buf:ident)) => {
        kind::$kind::encode_repeated($number, &$field, $buf)
    };
    (packed $kind:ident($number:literal, $field:expr, $buf:ident)) => {
        kind::$kind::encode_packed($number, &$field, $buf)
    };
}

macro_rules! encoded_len {
    (optional $kind:ident($number:literal, $field:expr)) => {
        match &$field {
            Some(value) => kind::$kind::encoded_len($number, value),
            None => 0,
        }
    };
    (required $kind:ident($number:literal, $field:expr)) => {
        kind::$kind::encoded_len($number, &$field)
    };
    (repeated $kind:ident($number:literal, $field:expr)) => {
        kind::$kind::encoded_len_repeated($number, &$field)
    };
    (packed $kind:ident($number:literal, $field:expr)) => {
        kind::$kind::encoded_len_packed($number, &$field)
    };
}

/// Decodes one value, or a packed list of values, into a field. A repeated field may be encoded
/// packed or unpacked.
macro_rules! merge {
    (optional $kind:ident($wire_type:ident, $field:expr, $($context:ident),+)) => {
        kind::$kind::merge($wire_type, $field.get_or_insert_default(), $($context),+)
    };
    (required $kind:ident($wire_type:ident, $field:expr, $($context:ident),+)) => {
        kind::$kind::merge($wire_type, &mut $field, $($context),+)
    };
    ($list:ident $kind:ident($wire_type:ident, $field:expr, $($context:ident),+)) => {
        kind::$kind::merge_repeated($wire_type, &mut $field, $($context),+)
    };
}

/// The accessor methods of a message field: a getter, and for an enum field also a setter. Message
/// fields, required fields, and repeated fields of numbers, strings or messages have no accessors.
macro_rules! accessors {
    (optional message($($type:ident)::+) $field:ident []) => {};
    (optional enumeration($($type:ident)::+) $field:ident
        [default = $default:ident, setter = $setter:ident]
    ) => {
        #[doc = concat!(
            "Returns the field's value, or `", stringify!($default),
            "` if the field is unset or has an unknown number."
        )]
        pub fn $field(&self) -> $($type)::+ {
            let value = self.$field.and_then(|number| number.try_into().ok());
            value.unwrap_or($($type)::+::$default)
        }
        #[doc = concat!("Sets the field `", stringify!($field), "`.")]
        pub fn $setter(&mut self, value: $($type)::+) {
            self.$field = Some(value.into());
        }
    };
    (repeated enumeration($($type:ident)::+) $field:ident [setter = $setter:ident]) => {
        /// Returns the values of the field, without numbers that the enum does not declare.
        pub fn $field(&self) -> impl Iterator<Item = $($type)::+> {
            self.$field.iter().filter_map(|&number| number.try_into().ok())
        }
        /// Appends a value to the repeated field.
        pub fn $setter(&mut self, value: $($type)::+) {
            self.$field.push(value.into());
        }
    };
    (optional string $field:ident [$(default = $default:literal)?]) => {
        #[doc = getter_doc!($($default)?)]
        pub fn $field(&self) -> &str {
            self.$field.as_deref().unwrap_or(default_value!($($default)?))
        }
    };
    (optional bytes $field:ident []) => {
        #[doc = getter_doc!()]
        pub fn $field(&self) -> &[u8] {
            self.$field.as_deref().unwrap_or_default()
        }
    };
    (optional $kind:ident $field:ident [$(default = $default:literal)?]) => {
        #[doc = getter_doc!($($default)?)]
        pub fn $field(&self) -> value_type!($kind) {
            self.$field.unwrap_or(default_value!($($default)?))
        }
    };
    ($label:ident $kind:ident $(($($type:ident)::+))? $field:ident []) => {};
}

/// The default value that a field declares, or else the default value of the field's type.
macro_rules! default_value {
    () => {
        Default::default()
    };
    ($default:expr) => {
        $default
    };
}

macro_rules! getter_doc {
    () => {
        "Returns the field's value, or the default of its type if the field is unset."
    };
    ($default:literal) => {
        concat!("Returns the field's value, or `", stringify!($default), "` if the field is unset.")
    };
}

/// The value with which `Debug` prints a field; enum values are printed by name.
macro_rules! debug {
    (optional enumeration($($type:ident)::+), $field:expr) => {
        &$field.map(EnumValue::<$($type)::+>::new)
    };
    (repeated enumeration($($type:ident)::+), $field:expr) => {
        &$field.iter().copied().map(EnumValue::<$($type)::+>::new).collect::<Vec<_>>()
    };
    ($label:ident $kind:ident $(($($type:ident)::+))?, $field:expr) => {
        &$field
    };
}

/// A value of an enum, or a number that the enum does not declare.
struct EnumValue<E>(Result<E, i32>);

impl<E: TryFrom<i32>> EnumValue<E> {
    fn new(number: i32) -> Self {
        Self(number.try_into().map_err(|_| number))
    }
}

impl<E: fmt::Debug> fmt::Debug for EnumValue<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(value) => value.fmt(f),
            Err(number) => number.fmt(f),
        }
    }
}

fn debug_struct(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    fields: &[(&'static str, &dyn fmt::Debug)],
) -> fmt::Result {
    let mut debug_struct = f.debug_struct(name);
    for (name, value) in fields {
        debug_struct.field(field_name(name), value);
    }
    debug_struct.finish()
}

/// Adds the field and the name of its message to the path in a decoding error.
#[cold]
fn with_path(mut error: DecodeError, message: &'static str, field: &'static str) -> DecodeError {
    error.push(message, field_name(field));
    error
}

include!("generated/caffe.rs");

#[cfg(feature = "onnx")]
pub mod onnx;
