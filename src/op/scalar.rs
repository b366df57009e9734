//! The macro that defines enums of scalar functions.

/// Defines an enum of scalar functions whose parameters have the type `A`.
///
/// Each entry has the form `Variant(parameters) => name, formula;`. A formula is an expression in
/// the operands and parameters. A formula calls exp, ln, tanh and pow of the type `F`, which
/// implements [`ElementaryFunctions`](super::ElementaryFunctions).
///
/// Each function also has a separate type, which implements the trait `$typed`. The method `visit`
/// passes a value of this type to generic code, so the compiler generates a loop for one formula
/// only. If `visit` passed the enum, the compiler would generate all formulas in each loop and then
/// remove all but one. Loops with all formulas took a seventh of the compile time of the crate.
macro_rules! scalar_functions {
    (
        $(#[$meta:meta])*
        $kernel:literal $function:ident($operands:tt: $operands_type:ty): $typed:ident, $visitor:ident {
            $(
                $(#[$doc:meta])*
                $variant:ident
                $(($value:ident: $value_type:ident))?
                $({ $($(#[$field_doc:meta])* $field:ident: $field_type:ident),+ $(,)? })?
                => $name:literal, $formula:expr;
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum $function<A> {
            $(
                $(#[$doc])*
                $variant $(($value_type))? $({ $($(#[$field_doc])* $field: $field_type),+ })?,
            )+
        }

        impl<A: Element> $function<A> {
            /// Returns the same function with parameters of type `B`.
            pub fn cast<B: Element>(self) -> $function<B> {
                match self {
                    $(
                        Self::$variant $(($value))? $({ $($field),+ })? => $function::$variant
                            $((B::from_f64($value.to_f64())))?
                            $({ $($field: B::from_f64($field.to_f64())),+ })?,
                    )+
                }
            }
        }

        impl<A> $function<A> {
            /// Returns the name of the function, as it appears in the names of device kernels.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)+
                }
            }

            /// Returns the name under which a [`Ledger`](crate::ledger::Ledger) and the coverage
            /// table list the kernel with this function, such as `unary_exp` or `binary_add`.
            pub fn kernel_name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => concat!($kernel, "_", $name),)+
                }
            }
        }

        impl<A: Float> $function<A> {
            /// Evaluates the function with the standard library's exp, ln, tanh and pow.
            #[inline(always)]
            fn eval_operands(&self, $operands: $operands_type) -> A {
                type F = StdFunctions;
                match *self {
                    $(Self::$variant $(($value))? $({ $($field),+ })? => $formula,)+
                }
            }

            /// Converts the enum value to the type that represents only this function, and calls
            /// `visitor` with the result.
            pub(crate) fn visit(self, visitor: impl $visitor<A>) {
                match self {
                    $(
                        Self::$variant $(($value))? $({ $($field),+ })? => {
                            #[derive(Clone, Copy)]
                            struct Typed<A> {
                                $($value: $value_type,)?
                                $($($field: $field_type,)+)?
                                element: PhantomData<A>,
                            }

                            impl<A> From<Typed<A>> for $function<A> {
                                #[inline(always)]
                                fn from(function: Typed<A>) -> Self {
                                    let Typed { $($value,)? $($($field,)+)? .. } = function;
                                    Self::$variant $(($value))? $({ $($field),+ })?
                                }
                            }

                            impl<A: Float> $typed<A> for Typed<A> {
                                #[inline(always)]
                                fn eval<F: ElementaryFunctions<A>>(
                                    self,
                                    $operands: $operands_type,
                                ) -> A {
                                    let Self { $($value,)? $($($field,)+)? .. } = self;
                                    $formula
                                }
                            }

                            visitor.visit(Typed {
                                $($value,)?
                                $($($field,)+)?
                                element: PhantomData,
                            });
                        }
                    )+
                }
            }
        }
    };
}
pub(super) use scalar_functions;
