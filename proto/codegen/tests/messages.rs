//! Comparison of cortado's messages with `DynamicMessage`, which prost-reflect builds from
//! `proto/caffe.proto` and `proto/onnx.proto` at run time.
//!
//! The macros below get the same declarations as those of the library, but make tests.

use cortado::proto::{
    self, CaffeMessage, Message, Name, UnknownFields, parse_binary, parse_text, to_text,
};
use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, Kind,
    MessageDescriptor, ReflectMessage, Value,
};
use std::{fmt::Debug, path::Path, sync::LazyLock};

/// The fields of a message of the library.
trait Fields: CaffeMessage + Clone + Debug + PartialEq {
    /// Name of the type in Rust.
    const RUST_NAME: &'static str;
    /// Returns the name, the number and the values of each field of the struct.
    fn fields(&self) -> Vec<(&'static str, u32, Vec<Value>)>;
    /// Returns the number and the result of each getter.
    fn getters(&self) -> Vec<(u32, Value)>;
}

macro_rules! messages {
    (package $package:literal; $(
        $(#[$attribute:meta])*
        message $message:ident $(as $proto:literal)? {$(
            $(#[$field_attribute:meta])*
            $label:ident $kind:ident $(($($type:ident)::+))? $field:ident = $number:literal
                $([$($option:tt)*])?;
        )*}
    )*) => {
        $(
            impl Fields for proto::$message {
                const RUST_NAME: &'static str = stringify!($message);
                fn fields(&self) -> Vec<(&'static str, u32, Vec<Value>)> {
                    vec![$((stringify!($field), $number, self.$field.values())),*]
                }
                fn getters(&self) -> Vec<(u32, Value)> {
                    let getters: Vec<Vec<(u32, Value)>> =
                        vec![$(getter!($label $kind $number self.$field())),*];
                    getters.concat()
                }
            }

            impl Scalar for proto::$message {
                fn value(&self) -> Value {
                    let bytes = self.encode_to_vec();
                    let message = DynamicMessage::decode(descriptor::<Self>(&POOL), &bytes[..]);
                    Value::Message(message.unwrap())
                }
            }
        )*

        #[test]
        fn messages_equal_dynamic_messages_in_values_bytes_and_text() {
            let random = &mut Random(1);
            $(check_values::<proto::$message>(random);)*
        }

        #[test]
        fn errors_of_prost_name_the_field() {
            $(check_errors::<proto::$message>();)*
        }

        #[test]
        fn every_message_is_declared() {
            let mut names = vec![$(<proto::$message as Name>::full_name()),*];
            let messages = POOL.all_messages().filter(|m| m.package_name() == $package);
            let mut known: Vec<_> = messages.map(|m| m.full_name().to_owned()).collect();
            names.sort();
            known.sort();
            assert_eq!(names, known);
        }

        #[test]
        fn enums_have_the_names_and_numbers_of_the_definition() {
            $($(enumeration!($message $kind $(($($type)::+))? $number);)*)*
        }
    };
}

/// Ignores the declarations of enums, because this test uses the library's enums.
macro_rules! enumerations {
    ($($declaration:tt)*) => {};
}

macro_rules! getter {
    (optional message $number:literal $get:expr) => {
        vec![]
    };
    (optional enumeration $number:literal $get:expr) => {
        vec![($number, Value::EnumNumber($get.into()))]
    };
    (optional $kind:ident $number:literal $get:expr) => {
        vec![($number, $get.value())]
    };
    (repeated enumeration $number:literal $get:expr) => {
        vec![($number, Value::List($get.map(|value| Value::EnumNumber(value.into())).collect()))]
    };
    ($label:ident $kind:ident $number:literal $get:expr) => {
        vec![]
    };
}

macro_rules! enumeration {
    ($message:ident enumeration($($type:ident)::+) $number:literal) => {{
        use proto::$($type)::+ as Enum;
        let field = descriptor::<proto::$message>(&POOL).get_field($number).unwrap();
        check_enum(field, Enum::as_str_name, Enum::from_str_name, Enum::is_valid);
    }};
    ($message:ident $kind:ident $(($($type:ident)::+))? $number:literal) => {};
}

#[allow(unreachable_pub)] // the modules of enums are public in the library
mod caffe {
    use super::*;
    include!("../../../src/proto/generated/caffe.rs");
}

#[allow(unreachable_pub)] // the modules of enums are public in the library
mod onnx {
    use super::*;
    use cortado::proto::onnx as proto;
    include!("../../../src/proto/generated/onnx.rs");
}

/// One value, as prost-reflect represents it.
trait Scalar {
    fn value(&self) -> Value;
}

macro_rules! scalars {
    ($($type:ty => $variant:ident,)*) => {$(
        impl Scalar for $type {
            fn value(&self) -> Value {
                Value::$variant(self.to_owned().into())
            }
        }
    )*};
}

scalars! {
    bool => Bool,
    i32 => I32,
    i64 => I64,
    u32 => U32,
    f32 => F32,
    f64 => F64,
    str => String,
    String => String,
    [u8] => Bytes,
    Vec<u8> => Bytes,
}

/// The values of a field: none or one, or those of a list.
trait Values {
    fn values(&self) -> Vec<Value>;
}

impl<T: Scalar> Values for Option<T> {
    fn values(&self) -> Vec<Value> {
        self.iter().map(T::value).collect()
    }
}

impl<T: Scalar> Values for Vec<T> {
    fn values(&self) -> Vec<Value> {
        self.iter().map(T::value).collect()
    }
}

impl Values for f32 {
    fn values(&self) -> Vec<Value> {
        vec![self.value()]
    }
}

impl Values for i32 {
    fn values(&self) -> Vec<Value> {
        vec![self.value()]
    }
}

impl Values for u32 {
    fn values(&self) -> Vec<Value> {
        vec![self.value()]
    }
}

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| pool(false));

/// Descriptors of the messages with the opposite packing: packed lists of numbers are declared
/// as unpacked, and unpacked lists of numbers as packed.
static POOL_WITH_OTHER_PACKING: LazyLock<DescriptorPool> = LazyLock::new(|| pool(true));

fn pool(change_packing: bool) -> DescriptorPool {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let definitions = ["caffe.proto", "onnx.proto"].map(|file| proto.join(file));
    let mut files = protox::compile(definitions, [proto]).unwrap();
    if change_packing {
        use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
        let messages = files.file.iter_mut().flat_map(|file| &mut file.message_type);
        for field in messages.flat_map(|message| &mut message.field) {
            let number = !matches!(field.r#type(), Type::String | Type::Bytes | Type::Message);
            if number && field.label() == Label::Repeated {
                let options = field.options.get_or_insert_default();
                options.packed = Some(!options.packed());
            }
        }
    }
    DescriptorPool::from_file_descriptor_set(files).unwrap()
}

fn descriptor<M: CaffeMessage>(pool: &DescriptorPool) -> MessageDescriptor {
    pool.get_message_by_name(&M::full_name()).unwrap()
}

/// splitmix64.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    /// Returns an integer of any length, because the length of a varint depends on its value.
    fn integer(&mut self) -> i64 {
        let shift = self.below(64);
        self.bits() as i64 >> shift
    }

    fn string(&mut self) -> String {
        let count = self.below(4);
        (0..count)
            .map(|_| ['a', '"', '\\', '\n', '\u{1}', 'é', '語', '😀'][self.below(8)])
            .collect()
    }

    fn enum_number(&mut self, kind: &EnumDescriptor) -> i32 {
        let index = self.below(kind.values().len());
        kind.values().nth(index).unwrap().number()
    }

    fn scalar(&mut self, kind: &Kind, percent: usize) -> Value {
        match kind {
            Kind::Bool => Value::Bool(self.below(2) == 0),
            Kind::Int32 => Value::I32(self.integer() as i32),
            Kind::Int64 => Value::I64(self.integer()),
            Kind::Uint32 => Value::U32(self.integer() as u32),
            Kind::Float => loop {
                let value = f32::from_bits(self.bits() as u32);
                if !value.is_nan() {
                    return Value::F32(value);
                }
            },
            Kind::Double => loop {
                let value = f64::from_bits(self.bits());
                if !value.is_nan() {
                    return Value::F64(value);
                }
            },
            Kind::String => Value::String(self.string()),
            Kind::Bytes => {
                let count = self.below(4);
                Value::Bytes((0..count).map(|_| self.bits() as u8).collect())
            }
            Kind::Enum(kind) => Value::EnumNumber(self.enum_number(kind)),
            // Fewer fields are set in nested messages, which would be large otherwise.
            Kind::Message(inner) => Value::Message(self.message(inner, percent / 2)),
            other => panic!("{other:?}"),
        }
    }

    /// Returns a random message that has all required fields and about `percent` % of the other
    /// fields.
    fn message(&mut self, descriptor: &MessageDescriptor, percent: usize) -> DynamicMessage {
        let mut message = DynamicMessage::new(descriptor.clone());
        for field in descriptor.fields() {
            let required = field.cardinality() == Cardinality::Required;
            if !required && self.below(100) >= percent {
                continue;
            }
            let value = if field.is_list() {
                let count = [0, 1, 3][self.below(3)];
                Value::List((0..count).map(|_| self.scalar(&field.kind(), percent)).collect())
            } else {
                self.scalar(&field.kind(), percent)
            };
            // A message with an empty list does not equal a message without the list.
            if value != Value::List(vec![]) {
                message.set_field(&field, value);
            }
        }
        message
    }
}

/// Returns the values of a field; enum values become integers.
fn dynamic_values(message: &DynamicMessage, field: &FieldDescriptor) -> Vec<Value> {
    let value = message.get_field(field).into_owned();
    let values = match value {
        Value::List(values) => values,
        _ if !message.has_field(field) => vec![],
        value => vec![value],
    };
    let as_integer = |value| match value {
        Value::EnumNumber(number) => Value::I32(number),
        other => other,
    };
    values.into_iter().map(as_integer).collect()
}

fn check_values<M: Fields>(random: &mut Random) {
    let descriptor = descriptor::<M>(&POOL);
    for percent in [0, 10, 30, 50, 70, 90, 100, 100] {
        let dynamic = random.message(&descriptor, percent);
        let bytes = dynamic.encode_to_vec();
        let message = M::decode(&bytes[..]).unwrap();
        check_fields(&message, &dynamic);

        assert_eq!(message.encoded_len(), bytes.len());
        assert_eq!(message.encode_to_vec(), bytes, "{message:?}");
        let (parsed, unknown) = UnknownFields::parse::<M>(&bytes, "bytes").unwrap();
        assert!(parsed == message && unknown.is_empty());

        let text = dynamic.to_text_format();
        assert_eq!(parse_text::<M>(&text, "text").unwrap(), message, "{text}");
        let text = to_text(&message).unwrap();
        let read = DynamicMessage::parse_text_format(descriptor.clone(), &text).unwrap();
        assert_eq!(read.encode_to_vec(), bytes, "{text}");

        let other = self::descriptor::<M>(&POOL_WITH_OTHER_PACKING);
        let other = DynamicMessage::decode(other, &bytes[..]).unwrap().encode_to_vec();
        assert_eq!(parse_binary::<M>(&other, "bytes").unwrap(), message);

        // Merges a message into a message that already has values, and skips unknown fields.
        let (mut twice, mut want) = (message.clone(), dynamic.clone());
        let second = random.message(&descriptor, 50);
        let unknown = [&[0xfa, 0xff, 0xff, 0xff, 0x0f, 1, 7], &second.encode_to_vec()[..]].concat();
        twice.merge(&unknown[..]).unwrap();
        want.merge(&second.encode_to_vec()[..]).unwrap();
        assert_eq!(twice.encode_to_vec(), want.encode_to_vec());
        twice.clear();
        assert_eq!(twice, M::default());
    }
}

/// Compares each field and the result of each getter.
fn check_fields<M: Fields>(message: &M, dynamic: &DynamicMessage) {
    let descriptor = dynamic.descriptor();
    let fields = message.fields();
    assert_eq!(fields.len(), descriptor.fields().len());
    for (name, number, values) in fields {
        let field = descriptor.get_field(number).unwrap();
        assert_eq!(name.trim_start_matches("r#"), field.name());
        assert!(values == dynamic_values(dynamic, &field), "{}: {message:?}", field.full_name());
    }
    let mut getters = message.getters().into_iter();
    let mut fields: Vec<_> = descriptor.fields().collect();
    fields.sort_by_key(FieldDescriptor::number);
    for field in fields {
        let has_getter = match field.kind() {
            Kind::Message(_) => false,
            Kind::Enum(_) => true,
            _ => field.cardinality() == Cardinality::Optional,
        };
        if has_getter {
            let want = (field.number(), dynamic.get_field(&field).into_owned());
            assert_eq!(getters.next(), Some(want), "{}", field.full_name());
        }
    }
    assert_eq!(getters.next(), None);
}

fn check_enum<E: Copy + Debug + Default + PartialEq + Into<i32> + TryFrom<i32>>(
    field: FieldDescriptor,
    name: fn(&E) -> &'static str,
    from_name: fn(&str) -> Option<E>,
    is_valid: fn(i32) -> bool,
) {
    let Kind::Enum(kind) = field.kind() else { panic!("{field:?}") };
    assert_eq!(E::default().into(), kind.default_value().number());
    for number in -2..100 {
        let value = E::try_from(number).ok();
        let want = kind.get_value(number);
        assert_eq!(value.is_some(), want.is_some());
        assert_eq!(is_valid(number), want.is_some());
        if let (Some(value), Some(want)) = (value, want) {
            assert_eq!(value.into(), number);
            assert_eq!(name(&value), want.name());
            assert_eq!(from_name(want.name()), Some(value));
        }
    }
    assert_eq!(from_name("unknown"), None);
}

/// Checks the error for each field whose value is the start of a group, a wire type that no field
/// has.
fn check_errors<M: Fields>() {
    for (name, number, _) in M::default().fields() {
        let mut key = (number << 3) | 3;
        let mut bytes = Vec::new();
        while key >= 0x80 {
            bytes.push(key as u8 | 0x80);
            key >>= 7;
        }
        bytes.push(key as u8);
        let error = M::decode(&bytes[..]).unwrap_err().to_string();
        let path = format!("{}.{}: ", M::RUST_NAME, name.trim_start_matches("r#"));
        assert!(error.contains(&path), "{error}");
        assert!(error.contains("invalid wire type: StartGroup"), "{error}");
    }
}
