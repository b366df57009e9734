//! Bugs of the mutants, each with the check of the conformance kit that must find the bug.

/// Defines the enum [`Bug`] and the list [`BUGS`] from pairs of a bug and a check.
macro_rules! bugs {
    ($($(#[$doc:meta])* $bug:ident => $check:ident,)*) => {
        /// Bug that a mutant device adds to the simulated device.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Bug {
            /// The mutant has no bug.
            None,
            $($(#[$doc])* $bug,)*
        }

        /// List of all bugs, each with the name of the check that must find the bug.
        pub(crate) const BUGS: &[(Bug, &str)] = &[$((Bug::$bug, stringify!($check)),)*];
    };
}

bugs! {
    // Bugs in uploads and downloads.
    /// Bug: an upload writes every byte one byte after the destination.
    UploadLate => raw_copies,
    /// Bug: an upload copies only whole words and omits the remaining bytes.
    UploadDropsTail => raw_copies,
    /// Bug: an upload that does not begin at the start of the buffer has no effect.
    UploadLost => raw_copies,
    /// Bug: an upload ignores its offset and writes to the start of the buffer.
    UploadIgnoresOffset => raw_copies,
    /// Bug: a download copies at most one page.
    DownloadTruncated => raw_copies,
    /// Bug: a download rounds its start offset down to a word boundary.
    DownloadAligned => raw_copies,
    /// Bug: a download does not wait for queued work.
    DownloadUnfinished => raw_copies,
    /// Bug: the first download of a buffer is cached, and later downloads return the cached bytes.
    DownloadStale => coherence,
    // Bugs in allocations.
    /// Bug: new device memory is not zeroed.
    AllocNotZeroed => raw_copies,
    /// Bug: new host memory is not zeroed.
    HostAllocNotZeroed => raw_copies,
    /// Bug: allocating a buffer of zero bytes is an error.
    AllocRefusesZeroBytes => raw_copies,
    /// Bug: an allocation of far too many bytes succeeds with fewer bytes than requested.
    AllocTooShort => out_of_memory,
    /// Bug: an allocation of far too many bytes panics instead of returning an error.
    AllocPanics => out_of_memory,
    /// Bug: after one allocation has failed, all later allocations fail.
    AllocNeverRecovers => out_of_memory,
    /// Bug: an allocation of far too many bytes returns an error of the device instead of
    /// `OutOfMemory`.
    OutOfMemoryIsDevice => out_of_memory,
    /// Bug: the error `OutOfMemory` has the number of available bytes instead of requested bytes.
    OutOfMemoryOtherBytes => out_of_memory,
    /// Bug: an allocation that fails reports a number of bytes that is rounded up to a page.
    OutOfMemoryRounded => out_of_memory,
    /// Bug: freed memory is zeroed and reused while queued work still uses it.
    FreedInFlight => queues,
    /// Bug: freed memory is reused when the queue that frees it is done, although another queue
    /// still uses it.
    FreedWhileForkUses => freed_in_flight,
    /// Bug: freed memory is reused while a queued upload to it is pending.
    UploadFreedInFlight => freed_in_flight,
    /// Bug: a freed block of at least 1 MiB is not zeroed when it is allocated again.
    DirtyLargeBlock => reused_memory,
    /// Bug: a freed block is not zeroed when a forked queue allocates it.
    DirtyForkBlock => reused_memory,
    /// Bug: a freed block that a kernel has written is not zeroed when it is allocated again.
    DirtyKernelOutput => reused_memory,
    /// Bug: memory that is a part of a larger freed block is not zeroed.
    DirtySplitBlock => reused_memory,
    /// Bug: host memory of at least 1 MiB is not zeroed when it is allocated again.
    HostBlockDirty => reused_memory,
    // Bugs in queues.
    /// Bug: the method `order_after` does nothing.
    OrderAfterIgnored => queues,
    /// Bug: the method `order_after` has an effect only in its first call on a handle.
    OrderAfterOnce => queue_order,
    /// Bug: a fork has another name than the device.
    ForkRenamed => queues,
    /// Bug: the method `order_after` does nothing between two forked queues.
    OrderBetweenForksIgnored => queue_order,
    /// Bug: the method `order_after` ignores a queue without own work, although that queue is
    /// ordered after a third queue.
    OrderAfterIdleIgnored => queue_order,
    /// Bug: a forked queue cannot be forked again.
    ForkOfForkRefused => queue_order,
    /// Bug: the pending work of a forked queue is lost when its handle is dropped.
    DroppedForkForgotten => queue_order,
    /// Bug: the method `synchronize` does nothing.
    SynchronizeIgnored => coherence,
    /// Bug: an upload on a forked queue runs at once instead of in queue order.
    ForkUploadsAtOnce => queues,
    /// Bug: after a device call has returned an error, all later calls return an error.
    ErrorsPersist => alive_after_errors,
    /// Bug: a queued kernel fails, and only `synchronize` reports the failure.
    QueuedFailure => scal,
    // Bugs in the report of failures, and after failures.
    /// Bug: no call reports the failure of queued work.
    FailureSwallowed => injected_failures,
    /// Bug: a download does not report the failure of queued work, and later calls do not either.
    DownloadLosesFailure => injected_failures,
    /// Bug: a kernel that returns a number discards the failure of earlier queued work.
    NumberLosesFailure => injected_failures,
    /// Bug: no call reports the failure of work on a forked queue.
    ForkFailureLost => injected_failures,
    /// Bug: a wait for one queue discards the failure of work on another queue.
    OtherQueueLosesFailure => injected_failures,
    /// Bug: every wait reports an earlier failure of queued work again.
    FailureRepeats => injected_failures,
    /// Bug: the error of queued work names another kernel than the one that failed.
    FailureOfAnotherKernel => injected_failures,
    /// Bug: the error of a failed launch does not name the kernel.
    LaunchFailureUnnamed => injected_failures,
    /// Bug: after queued work has failed, all allocations fail.
    FailureKillsDevice => injected_failures,
    /// Bug: after queued work has failed, all allocations on forked queues fail.
    FailureKillsForks => injected_failures,
    /// Bug: a failed launch returns no error.
    LaunchFailureSwallowed => injected_failures,
    /// Bug: a kernel runs although its launch returns an error.
    FailedLaunchRuns => injected_failures,
    /// Bug: an upload that returns an error has copied half of its bytes.
    FailedUploadWrites => injected_failures,
    /// Bug: a failed upload returns no error.
    UploadFailureSwallowed => injected_failures,
    /// Bug: a failed download returns no error.
    DownloadFailureSwallowed => injected_failures,
    /// Bug: a failed allocation returns an error of the device instead of `OutOfMemory`.
    FailedAllocIsDevice => injected_failures,
    // Bugs in native kernels.
    /// Bug: the native kernel `scal` does not enter its ledger scope.
    ScopeForgotten => scal,
    /// Bug: the native kernel `scal` enters its ledger scope after it has used its operand.
    ScopeLate => scal,
    /// Bug: the native kernel `scal` leaves its ledger scope at once.
    ScopeDropped => scal,
    /// Bug: the native kernel `axpy` enters the ledger scope of another kernel.
    ScopeOfAnotherKernel => axpy,
    /// Bug: a native kernel ignores the offset of its output and writes to the start of the buffer.
    OffsetIgnored => axpy,
    /// Bug: a native kernel writes its output one element after the operand's offset.
    OffsetOffByOne => axpy,
    /// Bug: a native kernel truncates the offset of its output to 16 bits.
    OffsetNarrow => scal,
    /// Bug: a native kernel writes one element past the end of its output.
    WritesPastEnd => scal,
    /// Bug: a native kernel writes the device side through a shared view, so the host side stays
    /// marked as valid.
    HostNotInvalidated => sharing,
    /// Bug: a kernel truncates operands of different lengths to the shorter length instead of
    /// returning an error.
    AcceptsAnyLength => alive_after_errors,
    // Bugs in vector and matrix kernels.
    /// Bug: the kernel `copy` converts its elements to `f32` and back.
    CopyNarrows => copy,
    /// Bug: the kernel `copy` skips the elements after the first 2²⁰.
    CopyStops => copy,
    /// Bug: the kernel `copy` replaces every NaN by the usual quiet NaN.
    CopyQuietsNan => copy,
    /// Bug: the kernel `scal` skips the elements after the last whole vector of four.
    ScalDropsTail => scal,
    /// Bug: the kernel `scal` skips the elements after the first 2²⁰.
    ScalStops => scal,
    /// Bug: the kernel `scal` writes 0 if α is 0, also where `x` is NaN or infinite.
    ScalZeroes => scal,
    /// Bug: the kernel `axpy` truncates the index of `x` to 20 bits.
    AxpyWraps => axpy,
    /// Bug: the kernel `axpy` returns at once if α is 0, also if `x` holds NaN.
    AxpyReturnsAtZero => axpy,
    /// Bug: the kernel `axpy` adds before it checks the lengths of its operands.
    AddsBeforeCheck => axpy,
    /// Bug: the kernel `axpby` does not read `x` if α is 0.
    AxpbyIgnoresX => axpby,
    /// Bug: the kernel `axpby` multiplies `y` by β = 0 instead of overwriting `y` without reading
    /// it.
    AxpbyReadsAtZero => axpby,
    /// Bug: the kernel `dot` on more than 1024 elements skips the elements after the last whole
    /// block of 1024.
    DotDropsTail => dot,
    /// Bug: the kernel `dot` for `f16` accumulates in `f16` instead of `f32`.
    DotNarrow => dot,
    /// Bug: every second call of the kernel `dot` rounds the sum up, as if the order of the
    /// summands depended on thread timing.
    DotNotReproducible => dot,
    /// Bug: the kernel `dot` of an operand with itself returns the sum of the elements instead of
    /// the sum of their squares.
    DotOfItself => dot,
    /// Bug: the kernel `dot` skips the elements after the first 2²⁰.
    DotStops => dot,
    /// Bug: the kernel `dot_strided` of a view with itself uses the stride of `x` for both operands.
    DotStridedOfItself => dot_strided,
    /// Bug: the kernel `dot_strided` ignores the stride of `y`.
    DotIgnoresIncy => dot_strided,
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
    /// Bug: the kernel `gemv` adds at most 256 terms.
    GemvStops => gemv,
    /// Bug: the kernel `gemv` does not transpose `A` if `x` is a part of `A`.
    GemvOfPart => gemv,
    /// Bug: the kernel `gemm` ignores β and computes with β = 0.
    GemmBetaIgnored => gemm,
    /// Bug: the kernel `gemm` multiplies `C` by β = 0 instead of overwriting `C` without reading
    /// it.
    GemmReadsAtZero => gemm,
    /// Bug: the kernel `gemm` ignores the factor α.
    GemmDropsAlpha => gemm,
    /// Bug: the kernel `gemm` uses the column count of `A` instead of the given leading dimension.
    GemmIgnoresLda => gemm,
    /// Bug: the kernel `gemm` uses the column count of `C` instead of the given leading dimension.
    GemmIgnoresLdc => gemm,
    /// Bug: the kernel `gemm` inverts the transpose flag of a square `B`.
    GemmSwapsSquareB => gemm,
    /// Bug: the kernel `gemm` omits the terms of each sum after the last whole block of eight along
    /// `k`.
    GemmDropsTail => gemm,
    /// Bug: the kernel `gemm` adds at most 256 terms.
    GemmStops => gemm,
    /// Bug: the kernel `gemm` omits the terms after the last whole block of 256.
    GemmDropsLastBlock => gemm,
    /// Bug: the kernel `gemm` skips the columns of `C` after the first 1,024.
    GemmStopsAtColumn => gemm,
    /// Bug: if α and β are 0, the kernel `gemm` also zeroes the gaps between the rows of `C`.
    GemmZeroesGaps => gemm,
    /// Bug: if β is 0, the kernel `gemm` also zeroes the elements of the view after `C`.
    GemmZeroesTail => gemm,
    /// Bug: every second call of the kernel `gemm` changes the last bit of an element of `C`.
    GemmNotReproducible => gemm,
    /// Bug: the kernel `gemm` transposes `B` if `A` and `B` are the same matrix.
    GemmOfItself => gemm,
    /// Bug: the kernel `gemm` skips terms in which an element of `A` is 0 and the other factor is
    /// NaN.
    GemmSkipsZeros => gemm,
    /// Bug: the kernel `gemm` replaces an infinity in `C` by the largest finite `f16`.
    GemmClampsInfinity => gemm,
    /// Bug: the kernel `gemm_batched` uses the first `B` for every matrix product of the batch.
    BatchReusesB => gemm_batched,
    /// Bug: the kernel `gemm_batched` transposes the second operand if both are the same view.
    BatchOfItself => gemm_batched,
    /// Bug: if β is 0, the kernel `gemm_batched` zeroes the whole view `c`, also the gaps.
    BatchZeroesGaps => gemm_batched,
    /// Bug: the kernel `gemm_batched` accepts matrices `C` that overlap.
    BatchOverlaps => gemm_batched,
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
    /// Bug: the function `tanh` is computed as `(e²ˣ − 1) / (e²ˣ + 1)`, which loses precision by
    /// cancellation or overflows.
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
    /// Bug: the function `pow_affine` adds its parameter `shift` after the power instead of before.
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
    /// Bug: the mean along an axis is not divided by the number of elements.
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
    /// Bug: the kernel `dot_to_axis` of a view with itself sums the elements, not their squares.
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
    /// Bug: the kernel `top_k` returns the same index, that of the first element, for all elements
    /// with equal values.
    TopKFirst => top_k,
    /// Bug: the kernel `top_k` truncates the number of a row to 16 bits.
    TopKWraps => top_k,
    /// Bug: the kernel `softmax` does not subtract the maximum before it computes exponentials.
    SoftmaxOverflows => softmax,
    /// Bug: the kernel `softmax` writes 0 after the first 4,096 elements of an axis.
    SoftmaxStops => softmax,
    /// Bug: the kernel `softmax` skips the rows after the first 2¹⁶.
    SoftmaxStopsAtRow => softmax,
    /// Bug: the softmax of equal elements −∞ is the same as that of equal finite elements.
    SoftmaxOfLowest => softmax,
    /// Bug: the kernel `softmax_backward` returns 0 if `y` and `dy` are the same view.
    SoftmaxGradientOfItself => softmax_backward,
    /// Bug: the kernel `softmax_backward` writes 0 after the first 4,096 elements of an axis.
    SoftmaxGradientStops => softmax_backward,
    /// Bug: the kernel `softmax_backward` truncates the number of a row to 16 bits.
    SoftmaxGradientWraps => softmax_backward,
    /// Bug: the variance is divided by `n − 1` instead of `n`.
    VarianceUnbiased => moments,
    /// Bug: the variance of elements of which one is NaN is 0.
    VarianceLosesNan => moments,
    /// Bug: the kernel `standardize` adds ε to the variance even if the caller wants ε added to the
    /// standard deviation.
    EpsilonInVariance => standardize,
    /// Bug: the kernel `standardize` truncates the number of a row to 16 bits.
    StandardizeWraps => standardize,
    /// Bug: the kernel `standardize_backward` treats mean and variance as constants.
    StatisticsConstant => standardize_backward,
    /// Bug: the kernel `lrn` across channels does not divide α by the number of channels in the
    /// window.
    LrnAlphaUndivided => lrn_across,
    /// Bug: the kernel `lrn` within a channel uses the constant `k` instead of 1.
    LrnWithinUsesK => lrn_within,
    /// Bug: the kernel `lrn` truncates the number of an image to 16 bits.
    LrnWraps => lrn_across,
    /// Bug: the kernel `lrn_backward` truncates the number of an image to 16 bits.
    LrnGradientWraps => lrn_within_backward,
    // Bugs in image kernels.
    /// Bug: the kernel `im2col` ignores the dilation.
    DilationIgnored => im2col,
    /// Bug: the kernel `im2col` repeats the edge of the image instead of padding with zeros.
    PadIsEdge => im2col,
    /// Bug: the kernel `col2im` overwrites elements where windows overlap instead of summing the
    /// taps.
    Col2imOverwrites => col2im,
    /// Bug: the kernel `convolve` ignores the bias.
    BiasIgnored => convolve,
    /// Bug: the kernel `convolve` treats NaN in an image as 0.
    ConvolveLosesNan => convolve,
    /// Bug: the kernel `convolve_with_activation` does not apply the activation.
    ActivationIgnored => convolve_with_activation,
    /// Bug: the kernel `convolve_with_activation` applies the activation to sums that are not yet
    /// rounded to the element type.
    ActivatesUnrounded => convolve_with_activation,
    /// Bug: the gradient of a convolution's filters is overwritten instead of accumulated.
    FiltersOverwritten => convolve_backward_filters,
    /// Bug: the mask of the kernel `max_pool` holds the index of the last of several equal maxima
    /// in a window.
    MaskHasLast => max_pool,
    /// Bug: the kernel `max_pool` includes padding in the maximum as zeros.
    PadInMaximum => max_pool,
    /// Bug: the kernel `max_pool` skips the planes after the first 2¹⁵.
    MaxPoolStops => max_pool,
    /// Bug: the kernel `max_pool` writes the mask before it checks the lengths of the operands.
    MaskBeforeCheck => max_pool,
    /// Bug: the kernel `max_pool_backward` replaces NaN by 0.
    PoolGradientLosesNan => max_pool_backward,
    /// Bug: the kernel `max_pool_backward` skips the planes after the first 2¹⁶.
    PoolGradientStops => max_pool_backward,
    /// Bug: the kernel `average_pool` divides by the number of elements inside the image, without
    /// padding.
    AverageClipped => average_pool,
    /// Bug: the kernel `average_pool` skips the planes after the first 2¹⁶.
    AverageStops => average_pool,
    /// Bug: the kernel `average_pool` computes running sums, in which a NaN reaches all later
    /// windows of a row.
    AverageSpreadsNan => average_pool,
    /// Bug: the kernel `average_pool_backward` skips the planes after the first 2¹⁶.
    AverageGradientStops => average_pool_backward,
    /// Bug: the kernel `stochastic_pool` draws all elements of a window with equal probability.
    DrawsUniformly => stochastic_pool,
    /// Bug: the kernel `stochastic_pool` skips the planes after the first 2¹⁶.
    DrawsStop => stochastic_pool,
    // Bugs in losses and solver updates.
    /// Bug: the kernel `softmax_loss` adds the losses of ignored labels.
    LossCountsIgnored => softmax_loss,
    /// Bug: the kernel `softmax_loss` divides by the number of all labels instead of the number of
    /// valid labels.
    LossDividesByAll => softmax_loss,
    /// Bug: the kernel `softmax_loss` skips the rows after the first 2¹⁶.
    LossStops => softmax_loss,
    /// Bug: the kernel `softmax_loss` returns a finite loss for NaN probabilities.
    LossHidesNan => softmax_loss,
    /// Bug: the kernel `class_loss` returns a finite loss for NaN scores.
    ClassLossHidesNan => class_loss,
    /// Bug: the kernel `elementwise_loss` returns a finite loss for NaN operands.
    ElementwiseLossHidesNan => elementwise_loss,
    /// Bug: the kernel `softmax_loss_backward` ignores the scale factor of the gradient.
    LossIgnoresScale => softmax_loss_backward,
    /// Bug: the kernel `softmax_loss_backward` skips the rows after the first 2¹⁶.
    LossGradientStops => softmax_loss_backward,
    /// Bug: the kernel `accuracy` counts ignored labels.
    AccuracyCountsIgnored => accuracy,
    /// Bug: the kernel `accuracy` skips the rows after the first 2¹⁶.
    AccuracyStops => accuracy,
    /// Bug: the kernel `accuracy_by_class` counts ignored labels.
    ByClassCountsIgnored => accuracy_by_class,
    /// Bug: the kernel `class_loss` ignores the infogain matrix.
    MatrixIgnored => class_loss,
    /// Bug: the kernel `class_loss` skips the rows after the first 2¹⁶.
    ClassLossStops => class_loss,
    /// Bug: the kernel `class_loss_backward` returns the gradient of the scores instead of the
    /// gradient of the probabilities.
    GradientOfScores => class_loss_backward,
    /// Bug: the kernel `class_loss_backward` truncates the number of a row to 16 bits.
    ClassGradientWraps => class_loss_backward,
    /// Bug: the kernel `elementwise_loss` adds the losses of ignored targets.
    TargetsCountIgnored => elementwise_loss,
    /// Bug: the kernel `elementwise_loss` returns 1 if `x` and `t` are the same view.
    LossOfItself => elementwise_loss,
    /// Bug: the kernel `elementwise_loss` skips the elements after the first 2²⁰.
    TargetsStop => elementwise_loss,
    /// Bug: the kernel `elementwise_loss_backward` divides by the number of all targets instead of
    /// the number of valid targets.
    TargetsDivideByAll => elementwise_loss_backward,
    /// Bug: the kernel `elementwise_loss_backward` truncates indices to 20 bits.
    TargetsWrap => elementwise_loss_backward,
    /// Bug: the SGD update multiplies the momentum term by the learning rate as well.
    SgdRateAfterMomentum => solver_update_sgd,
    /// Bug: the solver update skips the weights after the first 2²⁰.
    UpdateStops => solver_update_sgd,
    /// Bug: the solver update leaves a weight unchanged instead of making it NaN.
    UpdateSkipsNan => solver_update_sgd,
    /// Bug: weight decay by the L1 norm subtracts a multiple of the weight instead of its sign.
    L1IsL2 => solver_update_sgd,
    /// Bug: the solver update does not update the master weights.
    MastersIgnored => solver_update_sgd,
    /// Bug: the solver update ignores master weights of a wrong length instead of returning an
    /// error.
    MastersAnyLength => solver_update_sgd,
    /// Bug: the solver update starts from the master weights although the caller has changed the
    /// 16-bit weights.
    MastersOverrideWeights => solver_update_sgd,
    /// Bug: the Nesterov update omits the look-ahead and equals the SGD update.
    NesterovIsSgd => solver_update_nesterov,
    /// Bug: the AdaGrad update does not add `delta` to the divisor.
    AdaGradDropsDelta => solver_update_adagrad,
    /// Bug: the history of RMSProp is a sum, as in AdaGrad, instead of a moving average.
    RmsPropSums => solver_update_rmsprop,
    /// Bug: the AdaDelta update swaps the two history blobs.
    AdaDeltaSwaps => solver_update_adadelta,
    /// Bug: the Adam update swaps the two decay rates.
    AdamSwapsBetas => solver_update_adam,
    // Bugs in indexing and random numbers.
    /// Bug: the kernel `copy_2d` ignores the destination's leading dimension.
    CopyPacks => copy_2d,
    /// Bug: the kernel `copy_2d` copies a block as one run if the leading dimensions are equal.
    CopiesWholeRows => copy_2d,
    /// Bug: the kernel `copy_2d` skips the rows after the first 2¹⁶.
    CopyStopsAtRow => copy_2d,
    /// Bug: the kernel `copy_2d` replaces subnormal numbers by 0.
    BlocksFlushSubnormals => copy_2d,
    /// Bug: the kernel `gather` returns the last row of the table for an index beyond the table's
    /// end.
    GatherClamps => gather,
    /// Bug: the kernel `gather` truncates indices to 16 bits.
    GatherNarrow => gather,
    /// Bug: the kernel `gather` writes 0 to the rows after the first 2¹⁶.
    GatherStops => gather,
    /// Bug: the kernel `gather` replaces subnormal numbers by 0.
    GatherFlushesSubnormals => gather,
    /// Bug: the kernel `scatter_add` overwrites rows of the table instead of adding to the rows.
    ScatterOverwrites => scatter_add,
    /// Bug: the kernel `scatter_add` skips the rows after the first 2¹⁶.
    ScatterStops => scatter_add,
    /// Bug: the kernel `permute` applies the inverse permutation of the axes.
    PermuteInverse => permute,
    /// Bug: the kernel `permute` truncates indices to 20 bits.
    PermuteWraps => permute,
    /// Bug: the kernel `permute` replaces subnormal numbers by 0.
    PermuteFlushesSubnormals => permute,
    /// Bug: the kernel `to_indices` truncates fractions instead of returning an error.
    IndicesTruncated => to_indices,
    /// Bug: the kernel `tile` repeats each element instead of each block of `inner` elements.
    TileInner => tile,
    /// Bug: the kernel `tile` truncates indices to 20 bits.
    TileWraps => tile,
    /// Bug: the kernel `tile` replaces subnormal numbers by 0.
    TileFlushesSubnormals => tile,
    /// Bug: a random fill stores element `i + 1` of the random sequence at index `i`.
    RandomOffByOne => uniform,
    /// Bug: a random fill truncates the index of an element to 20 bits.
    UniformWraps => uniform,
    /// Bug: the kernel `gaussian` rounds random numbers with a small standard deviation to `f32`.
    GaussianNarrow => gaussian,
    /// Bug: the kernel `gaussian` truncates the index of an element to 20 bits.
    GaussianWraps => gaussian,
    /// Bug: the kernel `dropout` does not scale up the elements that are kept.
    DropoutUnscaled => dropout,
    /// Bug: the kernel `dropout` multiplies the elements that are not kept by 0.
    DropoutMultiplies => dropout,
    /// Bug: the kernel `dropout` truncates the index of an element to 16 bits.
    DropoutWraps => dropout,
    /// Bug: a random integer is the remainder of dividing a random word, so the distribution is not
    /// uniform.
    RandomIntegersModulo => random_integers,
    /// Bug: the kernel `random_integers` truncates the index of an element to 20 bits.
    RandomIntegersWrap => random_integers,
    /// Bug: a Bernoulli number is 1 if the random word is above the threshold instead of below it.
    BernoulliFlipped => bernoulli,
    /// Bug: a Bernoulli fill truncates the index of an element to 16 bits.
    BernoulliWraps => bernoulli,
}
