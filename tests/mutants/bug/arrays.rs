//! Bugs in linear algebra, elementwise kernels, reductions and normalization.

/// Adds the bugs to the list in brackets, and passes the list to the next macro.
macro_rules! arrays_bugs {
    ([$($listed:tt)*] $next:ident $($rest:ident)*) => { $next! { [$($listed)*
        // Bugs in vector and matrix kernels.
        /// Bug: the kernel `copy` converts its elements to `f32` and back.
        CopyNarrows => copy,
        /// Bug: the kernel `copy` skips the elements after the first 2²⁰.
        CopyStops => copy,
        /// Bug: the kernel `copy` replaces every NaN by the default quiet NaN.
        CopyQuietsNan => copy,
        /// Bug: the kernel `scal` skips the elements after the last whole vector of four.
        ScalDropsTail => scal,
        /// Bug: the kernel `scal` skips the elements after the first 2²⁰.
        ScalStops => scal,
        /// Bug: the kernel `scal` writes 0 if α is 0, even where `x` is NaN or infinite.
        ScalZeroes => scal,
        /// Bug: the kernel `axpy` truncates the index of `x` to 20 bits.
        AxpyWraps => axpy,
        /// Bug: the kernel `axpy` returns at once if α is 0, even if `x` holds NaN.
        AxpyReturnsAtZero => axpy,
        /// Bug: the kernel `axpy` adds before it checks the lengths of its operands.
        AddsBeforeCheck => axpy,
        /// Bug: the kernel `axpby` does not read `x` if α is 0.
        AxpbyIgnoresX => axpby,
        /// Bug: the kernel `axpby` multiplies `y` by β = 0 instead of overwriting `y` without
        /// reading it.
        AxpbyReadsAtZero => axpby,
        /// Bug: the kernel `dot` on more than 1024 elements skips the elements after the last whole
        /// block of 1024.
        DotDropsTail => dot,
        /// Bug: the kernel `dot` for `f16` accumulates in `f16` instead of `f32`.
        DotNarrow => dot,
        /// Bug: every second call to the kernel `dot` rounds the sum up, as if the order of the
        /// summands depended on thread timing.
        DotNotReproducible => dot,
        /// Bug: the kernel `dot` of an operand with itself returns the sum of the elements instead
        /// of the sum of their squares.
        DotOfItself => dot,
        /// Bug: the kernel `dot` skips the elements after the first 2²⁰.
        DotStops => dot,
        /// Bug: the kernel `dot` waits forever if both operands are the same view.
        DotLocksTwice => dot,
        /// Bug: the kernel `dot_strided` of a view with itself uses the stride of `x` for both
        /// operands.
        DotStridedOfItself => dot_strided,
        /// Bug: the kernel `dot_strided` ignores the stride of `y`.
        DotIgnoresIncy => dot_strided,
        /// Bug: the kernel `dot_strided` skips the terms after the first 2²⁰.
        DotStridedStops => dot_strided,
        /// Bug: the kernel `asum` sums the elements instead of their absolute values.
        AsumWithoutAbs => asum,
        /// Bug: the kernel `asum` skips NaN elements.
        AsumLosesNan => asum,
        /// Bug: the kernel `sumsq` returns at most the largest finite `f16`.
        SumsqClamps => sumsq,
        /// Bug: the kernel `amax` ignores NaN elements.
        AmaxLosesNan => amax,
        /// Bug: the kernel `amax` skips the elements after the first 2²⁰.
        AmaxStops => amax,
        /// Bug: the kernel `gemv` ignores the factor α.
        GemvDropsAlpha => gemv,
        /// Bug: the kernel `gemv` adds `α·x` to `y` if α is 0, although it must not read `x`.
        GemvReadsAtZero => gemv,
        /// Bug: the kernel `gemv` adds only the first 256 terms of each sum.
        GemvStops => gemv,
        /// Bug: the kernel `gemv` does not transpose `A` if `x` is a part of `A`.
        GemvOfPart => gemv,
        /// Bug: the kernel `gemm` ignores β and computes with β = 0.
        GemmBetaIgnored => gemm,
        /// Bug: the kernel `gemm` multiplies `C` by β = 0 instead of overwriting `C` without
        /// reading it.
        GemmReadsAtZero => gemm,
        /// Bug: the kernel `gemm` ignores the factor α.
        GemmDropsAlpha => gemm,
        /// Bug: the kernel `gemm` uses the column count of `A` instead of the given leading
        /// dimension.
        GemmIgnoresLda => gemm,
        /// Bug: the kernel `gemm` uses the column count of `C` instead of the given leading
        /// dimension.
        GemmIgnoresLdc => gemm,
        /// Bug: the kernel `gemm` inverts the transpose flag of a square `B`.
        GemmSwapsSquareB => gemm,
        /// Bug: the kernel `gemm` omits the terms of each sum after the last whole block of eight
        /// along `k`.
        GemmDropsTail => gemm,
        /// Bug: the kernel `gemm` adds only the first 256 terms of each sum.
        GemmStops => gemm,
        /// Bug: the kernel `gemm` omits the terms after the last whole block of 256.
        GemmDropsLastBlock => gemm,
        /// Bug: with more than 1,000 terms per sum, the kernel `gemm` omits the terms after the last
        /// whole block of four.
        GemmDropsLongTail => gemm,
        /// Bug: the kernel `gemm` skips the columns of `C` after the first 1,024.
        GemmStopsAtColumn => gemm,
        /// Bug: if α and β are 0, the kernel `gemm` also zeroes the gaps between the rows of `C`.
        GemmZeroesGaps => gemm,
        /// Bug: if β is 0, the kernel `gemm` also zeroes the elements of the view after `C`.
        GemmZeroesTail => gemm,
        /// Bug: every second call to the kernel `gemm` changes the last bit of an element of `C`.
        GemmNotReproducible => gemm,
        /// Bug: the kernel `gemm` transposes `B` if `A` and `B` are the same matrix.
        GemmOfItself => gemm,
        /// Bug: the kernel `gemm` skips terms in which an element of `A` is 0 and the other factor
        /// is NaN.
        GemmSkipsZeros => gemm,
        /// Bug: the kernel `gemm` replaces an infinity in `C` by the largest finite `f16`.
        GemmClampsInfinity => gemm,
        /// Bug: the kernel `gemm_batched` uses the first `B` for every matrix product of the batch.
        BatchReusesB => gemm_batched,
        /// Bug: the kernel `gemm_batched` transposes the second operand if both are the same view.
        BatchOfItself => gemm_batched,
        /// Bug: if β is 0, the kernel `gemm_batched` zeroes the whole view `c`, including the gaps
        /// between rows and matrices.
        BatchZeroesGaps => gemm_batched,
        /// Bug: the kernel `gemm_batched` accepts matrices `C` that overlap.
        BatchOverlaps => gemm_batched,
        /// Bug: the kernel `gemm_with_bias` ignores the bias.
        GemmIgnoresBias => gemm_with_bias,
        /// Bug: the kernel `gemm_with_bias` adds the bias of the first column to all columns.
        GemmRepeatsBias => gemm_with_bias,
        /// Bug: the kernel `gemm_with_bias` applies the activation before it adds the bias.
        GemmAddsBiasLast => gemm_with_bias,
        /// Bug: the activation of the kernel `gemm_with_bias` replaces NaN by 0.
        GemmActivationLosesNan => gemm_with_bias,
        // Bugs in elementwise functions.
        /// Bug: the kernel `fill` writes +0 instead of −0.
        FillLosesSign => fill,
        /// Bug: the kernel `fill` skips the elements after the first 2²⁰.
        FillStops => fill,
        /// Bug: a unary kernel truncates indices to 20 bits.
        UnaryWraps => unary_relu,
        /// Bug: a unary kernel marks the host side of its output as stale before it checks lengths.
        WriteOnlyBeforeCheck => unary_exp,
        /// Bug: the absolute value of −0 is −0.
        AbsKeepsSign => unary_abs,
        /// Bug: the negation of +0 is +0.
        NegLosesSign => unary_neg,
        /// Bug: the clip function returns the lower bound for NaN.
        ClipLosesNan => unary_clip,
        /// Bug: the function ReLU returns zero for NaN.
        ReluLosesNan => unary_relu,
        /// Bug: the function `tanh` is computed as `(e²ˣ − 1) / (e²ˣ + 1)`, which loses precision
        /// by cancellation or overflows.
        TanhNaive => unary_tanh,
        /// Bug: the function softplus is computed as `ln(1 + eˣ)`, which overflows.
        SoftplusNaive => unary_softplus,
        /// Bug: the function ELU ignores its parameter α.
        EluIgnoresAlpha => unary_elu,
        /// Bug: the function Swish ignores its factor β.
        SwishIgnoresBeta => unary_swish,
        /// Bug: the threshold function returns 1 for a value equal to the threshold.
        ThresholdAtLeast => unary_threshold,
        /// Bug: the function `exp_affine` ignores its parameter `shift`.
        ExpAffineDropsShift => unary_exp_affine,
        /// Bug: the function `ln_affine` ignores its parameter `factor`.
        LnAffineDropsFactor => unary_ln_affine,
        /// Bug: the function `pow_affine` adds its parameter `shift` after the power instead of
        /// before.
        PowAffineShiftsLate => unary_pow_affine,
        /// Bug: a unary kernel that runs in place leaves its operand unchanged.
        InPlaceIgnored => unary_exp,
        /// Bug: a binary kernel that runs in place reads `b` instead of `a`.
        InPlaceReadsB => binary_sub,
        /// Bug: a binary kernel truncates indices to 20 bits.
        BinaryWraps => binary_add,
        /// Bug: a binary kernel returns `a` if `a` and `b` are the same view.
        BinaryOfItself => binary_add,
        /// Bug: the elementwise maximum of a number and NaN is the number instead of NaN.
        MaxLosesNan => binary_max,
        /// Bug: the gradient of ReLU is the top diff instead of zero where the input is zero.
        ReluGradAtZero => binary_relu_grad,
        /// Bug: the function `mul_scaled` ignores its scalar factor.
        MulScaledDropsScalar => binary_mul_scaled,
        /// Bug: the function `mul_negative` returns `a · b` instead of 0 where `b` is not negative.
        MulNegativeIsMul => binary_mul_negative,
        /// Bug: the function `div_or_zero` divides by zero instead of returning 0.
        DivOrZeroDivides => binary_div_or_zero,
        /// Bug: the function `greater` returns 1 for equal values.
        GreaterAtEqual => binary_greater,
        /// Bug: the function `greater_equal` returns 0 for equal values.
        GreaterEqualIsGreater => binary_greater_equal,
        /// Bug: the function PReLU multiplies positive elements by the slope as well.
        PreluIsMul => binary_prelu,
        /// Bug: the derivative of PReLU is 1 instead of the slope where the input is zero.
        PreluSlopeAtZero => binary_prelu_slope,
        /// Bug: the gradient of `|x|` at zero is not zero.
        AbsGradAtZero => binary_abs_grad,
        /// Bug: the gradient of ELU treats the output of ELU as the input.
        EluGradOfInput => binary_elu_grad,
        /// Bug: the gradient of softplus treats the output of softplus as the input.
        SoftplusGradOfInput => binary_softplus_grad,
        /// Bug: the gradient of Swish omits the inner derivative β of the chain rule.
        SwishGradDropsBeta => binary_swish_grad,
        /// Bug: the gradient of the clip function is zero for inputs equal to a bound.
        ClipGradInside => binary_clip_grad,
        /// Bug: the gradient of `ln_affine` omits the inner derivative `scale` of the chain rule.
        LnAffineGradDropsScale => binary_ln_affine_grad,
        /// Bug: the gradient of `x⁰` is NaN instead of 0 where `x` is 0.
        PowAffineGradOfConstant => binary_pow_affine_grad,
        /// Bug: the kernel `broadcast` aligns the smaller operand with the last axis instead of the
        /// given axis.
        BroadcastAxis => broadcast,
        /// Bug: the kernel `broadcast` skips the rows after the first 2¹⁶.
        BroadcastStops => broadcast,
        /// Bug: the kernel `broadcast` returns 0 for the product of NaN and 0.
        BroadcastSkipsZeros => broadcast,
        /// Bug: the kernel `affine` adds `shift` before it multiplies by `scale`.
        AffineAddsFirst => affine,
        /// Bug: the kernel `affine` does not read `x` where `scale` is 0.
        AffineSkipsZeros => affine,
        /// Bug: the kernel `affine` truncates indices to 20 bits.
        AffineWraps => affine,
        /// Bug: the kernel `convert` truncates to `bf16` instead of rounding to the nearest `bf16`.
        ConvertTruncates => convert,
        /// Bug: the kernel `convert` skips the elements after the first 2²⁰.
        ConvertStops => convert,
        /// Bug: the kernel `convert_integers` converts integers through `f32`, which rounds large
        /// integers.
        IntegersNarrow => convert_integers,
        /// Bug: the kernel `convert_integers` truncates indices to 20 bits.
        IntegersWrap => convert_integers,
        /// Bug: the kernel `lstm` does not reset the cell state where a sequence begins.
        LstmIgnoresCont => lstm,
        /// Bug: the kernel `lstm` writes 0 to the states `h` after the first 2¹⁶.
        LstmStops => lstm,
        /// Bug: the gradient of the LSTM's previous cell state ignores the forget gate.
        LstmSkipsForgetGate => lstm_backward,
        // Bugs in reductions and normalization along an axis.
        /// Bug: the mean along an axis is the sum, without the division by the number of elements.
        MeanIsSum => reduce_mean,
        /// Bug: the maximum along an axis is zero if all elements are negative.
        MaxFromZero => reduce_max,
        /// Bug: a reduction skips the elements after the first 2²⁰.
        ReduceStops => reduce_sum,
        /// Bug: the sum along an axis skips NaN elements.
        SumSkipsNan => reduce_sum,
        /// Bug: the kernel `sum_to_axis` skips the rows after the first 2¹⁶.
        SumToAxisStops => sum_to_axis,
        /// Bug: the kernel `sum_to_axis` ignores β and computes with β = 1.
        SumToAxisAdds => sum_to_axis,
        /// Bug: the kernel `dot_to_axis` ignores β and computes with β = 0.
        DotToAxisOverwrites => dot_to_axis,
        /// Bug: the kernel `dot_to_axis` of a view with itself sums the elements, not their
        /// squares.
        DotToAxisOfItself => dot_to_axis,
        /// Bug: the kernel `dot_to_axis` skips products with a factor of 0.
        DotToAxisSkipsZeros => dot_to_axis,
        /// Bug: the kernel `dot_to_axis` skips the rows after the first 2¹⁶.
        DotToAxisStops => dot_to_axis,
        /// Bug: the kernel `arg_max` returns the index of the last of several equal maxima.
        ArgMaxLast => arg_max,
        /// Bug: the kernel `arg_max` truncates the index of the maximum to 16 bits.
        ArgMaxNarrow => arg_max,
        /// Bug: the kernel `arg_max` skips the rows after the first 2¹⁶.
        ArgMaxStops => arg_max,
        /// Bug: the kernel `top_k` returns the index of the first of several equal elements for
        /// each of them.
        TopKFirst => top_k,
        /// Bug: the kernel `top_k` truncates the index of a row to 16 bits.
        TopKWraps => top_k,
        /// Bug: the kernel `softmax` does not subtract the maximum before it computes exponentials.
        SoftmaxOverflows => softmax,
        /// Bug: the kernel `softmax` writes 0 after the first 4,096 elements of an axis.
        SoftmaxStops => softmax,
        /// Bug: the kernel `softmax` skips the rows after the first 2¹⁶.
        SoftmaxStopsAtRow => softmax,
        /// Bug: the softmax of elements that are all −∞ is uniform instead of NaN.
        SoftmaxOfLowest => softmax,
        /// Bug: the kernel `softmax_backward` returns 0 if `y` and `dy` are the same view.
        SoftmaxGradientOfItself => softmax_backward,
        /// Bug: the kernel `softmax_backward` writes 0 after the first 4,096 elements of an axis.
        SoftmaxGradientStops => softmax_backward,
        /// Bug: the kernel `softmax_backward` truncates the index of a row to 16 bits.
        SoftmaxGradientWraps => softmax_backward,
        /// Bug: the variance has the divisor `n − 1` instead of `n`.
        VarianceUnbiased => moments,
        /// Bug: the variance is 0 instead of NaN if an element is NaN.
        VarianceLosesNan => moments,
        /// Bug: the kernel `moments` skips the rows after the first 2¹⁶.
        MomentsStop => moments,
        /// Bug: the kernel `moments` returns the variance 0 at the positions of the axis after the
        /// first 2¹⁵.
        MomentsStopAtElement => moments,
        /// Bug: the kernel `standardize` adds ε to the variance even if the caller wants ε added to
        /// the standard deviation.
        EpsilonInVariance => standardize,
        /// Bug: the kernel `standardize` truncates the index of a row to 16 bits.
        StandardizeWraps => standardize,
        /// Bug: the kernel `standardize_backward` treats mean and variance as constants.
        StatisticsConstant => standardize_backward,
        /// Bug: the kernel `standardize_backward` truncates the index of a row to 16 bits.
        StandardizeGradientWraps => standardize_backward,
        /// Bug: the kernel `standardize_backward` omits the rows after the first 2¹⁶ from its sums.
        StandardizeGradientStops => standardize_backward,
        /// Bug: the kernel `lrn` across channels does not divide α by the number of channels in the
        /// window.
        LrnAlphaUndivided => lrn_across,
        /// Bug: the kernel `lrn` within a channel uses the constant `k` instead of 1.
        LrnWithinUsesK => lrn_within,
        /// Bug: the kernel `lrn` truncates the index of an image to 16 bits.
        LrnWraps => lrn_across,
        /// Bug: the kernel `lrn_backward` truncates the index of an image to 16 bits.
        LrnGradientWraps => lrn_within_backward,
    ] $($rest)* } };
}
pub(super) use arrays_bugs;
