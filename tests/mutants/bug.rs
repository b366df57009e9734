//! Bugs of the mutants, each with the check that must find the bug.

/// Defines [`Bug`] and [`BUGS`] from a list of bugs and checks.
macro_rules! bugs {
    ($($(#[$doc:meta])* $bug:ident => $check:ident,)*) => {
        /// Bug of a mutant.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Bug {
            /// The mutant has no bug.
            None,
            $($(#[$doc])* $bug,)*
        }

        /// List of all bugs, each with the check that must find the bug.
        pub(crate) const BUGS: &[(Bug, &str)] = &[$((Bug::$bug, stringify!($check)),)*];
    };
}

bugs! {
    // Bugs in copies.
    /// Bug: an upload writes every byte one byte after the destination.
    UploadLate => raw_copies,
    /// Bug: an upload copies whole words only.
    UploadDropsTail => raw_copies,
    /// Bug: an upload to part of a buffer is lost.
    UploadLost => raw_copies,
    /// Bug: an upload always writes the start of the buffer.
    UploadIgnoresOffset => raw_copies,
    /// Bug: a download copies at most one page.
    DownloadTruncated => raw_copies,
    /// Bug: a download rounds its start down to a word boundary.
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
    /// Bug: an allocation of too many bytes succeeds with fewer bytes than requested.
    AllocTooShort => out_of_memory,
    /// Bug: an allocation that is too large panics.
    AllocPanics => out_of_memory,
    /// Bug: after one allocation has failed, all later allocations fail.
    AllocNeverRecovers => out_of_memory,
    /// Bug: freed memory is zeroed and reused while queued work still uses it.
    FreedInFlight => queues,
    // Bugs in queues.
    /// Bug: `order_after` does nothing.
    OrderAfterIgnored => queues,
    /// Bug: `synchronize` does nothing.
    SynchronizeIgnored => coherence,
    /// Bug: an upload on a fork runs at once instead of in queue order.
    ForkUploadsAtOnce => queues,
    /// Bug: after one call has returned an error, all later calls return an error.
    ErrorsPersist => alive_after_errors,
    /// Bug: a queued kernel fails, and only `synchronize` reports the failure.
    QueuedFailure => scal,
    // Bugs in native kernels.
    /// Bug: a kernel ignores the operand's offset and writes to the start of the buffer.
    OffsetIgnored => axpy,
    /// Bug: a kernel adds one element to its operand's offset.
    OffsetOffByOne => axpy,
    /// Bug: a kernel writes one element past the end of its operand.
    WritesPastEnd => scal,
    /// Bug: a kernel writes the device side through a shared view, so the host side stays valid.
    HostNotInvalidated => sharing,
    /// Bug: operands of different lengths are truncated to the shorter length.
    AcceptsAnyLength => alive_after_errors,
    // Bugs in vector and matrix kernels.
    /// Bug: `copy` converts its elements to `f32` and back.
    CopyNarrows => copy,
    /// Bug: `scal` skips the elements after the last vector of four.
    ScalDropsTail => scal,
    /// Bug: `axpby` multiplies `y` by β = 0 instead of not reading it.
    AxpbyReadsAtZero => axpby,
    /// Bug: `dot` of several blocks skips the elements after the last whole block.
    DotDropsTail => dot,
    /// Bug: `dot` of `f16` accumulates in `f16`.
    DotNarrow => dot,
    /// Bug: every second call of `dot` rounds the sum up, like a sum in order of arrival.
    DotNotReproducible => dot,
    /// Bug: `dot` of an operand with itself is the sum instead of the sum of squares.
    DotOfItself => dot,
    /// Bug: `dot_strided` reads `y` as if it were contiguous.
    DotIgnoresIncy => dot_strided,
    /// Bug: `asum` sums the elements, not their absolute values.
    AsumWithoutAbs => asum,
    /// Bug: `amax` ignores NaN.
    AmaxLosesNan => amax,
    /// Bug: `gemv` ignores α.
    GemvDropsAlpha => gemv,
    /// Bug: `gemm` computes with β = 0.
    GemmBetaIgnored => gemm,
    /// Bug: `gemm` multiplies `C` by β = 0 instead of not reading it.
    GemmReadsAtZero => gemm,
    /// Bug: `gemm` ignores α.
    GemmDropsAlpha => gemm,
    /// Bug: `gemm` uses the column count of `A` as its leading dimension.
    GemmIgnoresLda => gemm,
    /// Bug: `gemm` uses the column count of `C` as its leading dimension.
    GemmIgnoresLdc => gemm,
    /// Bug: `gemm` inverts the transpose flag of a square `B`.
    GemmSwapsSquareB => gemm,
    /// Bug: `gemm` omits the terms after the last block of eight along `k`.
    GemmDropsTail => gemm,
    /// Bug: every second call of `gemm` changes the last bit of an element of `C`.
    GemmNotReproducible => gemm,
    /// Bug: `gemm` of an `A` with itself transposes the second operand.
    GemmOfItself => gemm,
    /// Bug: `gemm` skips terms in which an element of `A` is 0, also if the other factor is NaN.
    GemmSkipsZeros => gemm,
    /// Bug: `gemm` replaces an infinity by the largest finite number.
    GemmClampsInfinity => gemm,
    /// Bug: `gemm_batched` uses the first `B` for every matrix product of the batch.
    BatchReusesB => gemm_batched,
    // Bugs in elementwise functions.
    /// Bug: `fill` loses the sign of zero.
    FillLosesSign => fill,
    /// Bug: ReLU returns zero for NaN.
    ReluLosesNan => unary_relu,
    /// Bug: `tanh` is computed as `(e²ˣ − 1) / (e²ˣ + 1)`, which cancels or overflows.
    TanhNaive => unary_tanh,
    /// Bug: Softplus is computed as `ln(1 + eˣ)`, which overflows.
    SoftplusNaive => unary_softplus,
    /// Bug: ELU ignores its parameter α.
    EluIgnoresAlpha => unary_elu,
    /// Bug: Swish ignores its factor β.
    SwishIgnoresBeta => unary_swish,
    /// Bug: the threshold function returns 1 for a value equal to the threshold.
    ThresholdAtLeast => unary_threshold,
    /// Bug: `exp_affine` ignores its shift.
    ExpAffineDropsShift => unary_exp_affine,
    /// Bug: `ln_affine` ignores its factor.
    LnAffineDropsFactor => unary_ln_affine,
    /// Bug: `pow_affine` adds its shift after the power instead of before it.
    PowAffineShiftsLate => unary_pow_affine,
    /// Bug: a unary kernel in place leaves its operand unchanged.
    InPlaceIgnored => unary_exp,
    /// Bug: a binary kernel in place reads `b` instead of `a`.
    InPlaceReadsB => binary_sub,
    /// Bug: the maximum of NaN and a number is the number instead of NaN.
    MaxLosesNan => binary_max,
    /// Bug: the gradient of ReLU passes through where the input is zero.
    ReluGradAtZero => binary_relu_grad,
    /// Bug: `mul_scaled` ignores its scalar.
    MulScaledDropsScalar => binary_mul_scaled,
    /// Bug: `mul_negative` returns the product instead of 0 if a factor is not negative.
    MulNegativeIsMul => binary_mul_negative,
    /// Bug: `div_or_zero` divides by zero instead of returning 0.
    DivOrZeroDivides => binary_div_or_zero,
    /// Bug: `greater` returns 1 for equal values.
    GreaterAtEqual => binary_greater,
    /// Bug: `greater_equal` returns 0 for equal values.
    GreaterEqualIsGreater => binary_greater_equal,
    /// Bug: PReLU multiplies positive elements by the slope as well.
    PreluIsMul => binary_prelu,
    /// Bug: the slope of PReLU is 1 where the input is zero.
    PreluSlopeAtZero => binary_prelu_slope,
    /// Bug: the gradient of `|x|` at zero is not zero.
    AbsGradAtZero => binary_abs_grad,
    /// Bug: the gradient of ELU uses the output of ELU in place of its input.
    EluGradOfInput => binary_elu_grad,
    /// Bug: the gradient of softplus uses the output of softplus in place of its input.
    SoftplusGradOfInput => binary_softplus_grad,
    /// Bug: the gradient of Swish omits the derivative of the inner function.
    SwishGradDropsBeta => binary_swish_grad,
    /// Bug: the gradient of clip is zero for inputs equal to a bound.
    ClipGradInside => binary_clip_grad,
    /// Bug: the gradient of `ln_affine` omits the derivative of the inner function.
    LnAffineGradDropsScale => binary_ln_affine_grad,
    /// Bug: the gradient of `x⁰` is NaN instead of 0 where `x` is 0.
    PowAffineGradOfConstant => binary_pow_affine_grad,
    /// Bug: `broadcast` treats the last axis as the operand's axis.
    BroadcastAxis => broadcast,
    /// Bug: `affine` adds before it multiplies.
    AffineAddsFirst => affine,
    /// Bug: `convert` to `bf16` truncates instead of rounding.
    ConvertTruncates => convert,
    /// Bug: `convert_integers` converts through `f32`.
    IntegersNarrow => convert_integers,
    /// Bug: `lstm` does not reset the cell state where a sequence begins.
    LstmIgnoresCont => lstm,
    /// Bug: the gradient of the cell state ignores the forget gate.
    LstmSkipsForgetGate => lstm_backward,
    // Bugs in kernels along an axis.
    /// Bug: the mean is not divided by the number of elements.
    MeanIsSum => reduce_mean,
    /// Bug: the maximum starts at zero, which exceeds negative elements.
    MaxFromZero => reduce_max,
    /// Bug: `sum_to_axis` computes with β = 1.
    SumToAxisAdds => sum_to_axis,
    /// Bug: `dot_to_axis` computes with β = 0.
    DotToAxisOverwrites => dot_to_axis,
    /// Bug: `arg_max` returns the index of the last of several equal maxima.
    ArgMaxLast => arg_max,
    /// Bug: `top_k` returns the index of the first of several equal values for all equal values.
    TopKFirst => top_k,
    /// Bug: softmax does not subtract the maximum before it computes exponentials.
    SoftmaxOverflows => softmax,
    /// Bug: the variance is divided by `n − 1` instead of `n`.
    VarianceUnbiased => moments,
    /// Bug: `standardize` always adds ε to the variance.
    EpsilonInVariance => standardize,
    /// Bug: `standardize_backward` treats mean and variance as constants.
    StatisticsConstant => standardize_backward,
    /// Bug: LRN across channels does not divide α by `n`.
    LrnAlphaUndivided => lrn_across,
    /// Bug: LRN within a channel uses `k` instead of 1.
    LrnWithinUsesK => lrn_within,
    // Bugs in image kernels.
    /// Bug: `im2col` ignores dilation.
    DilationIgnored => im2col,
    /// Bug: `im2col` repeats the edge of the image instead of padding with zeros.
    PadIsEdge => im2col,
    /// Bug: `col2im` overwrites elements where windows overlap instead of summing the taps.
    Col2imOverwrites => col2im,
    /// Bug: `convolve` ignores the bias.
    BiasIgnored => convolve,
    /// Bug: `convolve_with_activation` does not apply the activation.
    ActivationIgnored => convolve_with_activation,
    /// Bug: `convolve_with_activation` applies the activation to sums before rounding the sums.
    ActivatesUnrounded => convolve_with_activation,
    /// Bug: the gradient of the filters is overwritten instead of accumulated.
    FiltersOverwritten => convolve_backward_filters,
    /// Bug: the mask of `max_pool` holds the index of the last of several equal maxima.
    MaskHasLast => max_pool,
    /// Bug: `max_pool` includes padding in the maximum as zeros.
    PadInMaximum => max_pool,
    /// Bug: `average_pool` divides by the number of elements inside the image, without padding.
    AverageClipped => average_pool,
    /// Bug: `stochastic_pool` draws all elements of a window with equal probability.
    DrawsUniformly => stochastic_pool,
    // Bugs in losses and solver updates.
    /// Bug: `softmax_loss` adds the losses of ignored labels.
    LossCountsIgnored => softmax_loss,
    /// Bug: `softmax_loss` divides by the number of all labels instead of valid labels.
    LossDividesByAll => softmax_loss,
    /// Bug: `softmax_loss_backward` ignores the scale factor of the gradient.
    LossIgnoresScale => softmax_loss_backward,
    /// Bug: the accuracy counts ignored labels.
    AccuracyCountsIgnored => accuracy,
    /// Bug: the accuracy by class counts ignored labels.
    ByClassCountsIgnored => accuracy_by_class,
    /// Bug: `class_loss` ignores the infogain matrix.
    MatrixIgnored => class_loss,
    /// Bug: `class_loss_backward` returns the gradient of scores instead of probabilities.
    GradientOfScores => class_loss_backward,
    /// Bug: `elementwise_loss` adds the losses of ignored targets.
    TargetsCountIgnored => elementwise_loss,
    /// Bug: `elementwise_loss_backward` divides by the number of all targets, not of valid targets.
    TargetsDivideByAll => elementwise_loss_backward,
    /// Bug: SGD multiplies the momentum term by the learning rate as well.
    SgdRateAfterMomentum => solver_update_sgd,
    /// Bug: L1 decay subtracts the weight instead of its sign.
    L1IsL2 => solver_update_sgd,
    /// Bug: master weights are not updated.
    MastersIgnored => solver_update_sgd,
    /// Bug: the update starts from the master weights although the caller has changed the weights.
    MastersOverrideWeights => solver_update_sgd,
    /// Bug: Nesterov's update has no look-ahead.
    NesterovIsSgd => solver_update_nesterov,
    /// Bug: AdaGrad's divisor lacks `delta`.
    AdaGradDropsDelta => solver_update_adagrad,
    /// Bug: RMSProp's history is a sum, like AdaGrad's, instead of a moving average.
    RmsPropSums => solver_update_rmsprop,
    /// Bug: AdaDelta's two histories are swapped.
    AdaDeltaSwaps => solver_update_adadelta,
    /// Bug: Adam's two decay rates are swapped.
    AdamSwapsBetas => solver_update_adam,
    // Bugs in indexing and random numbers.
    /// Bug: `copy_2d` ignores the destination's leading dimension.
    CopyPacks => copy_2d,
    /// Bug: `gather` returns the last row for an index beyond the end of the table.
    GatherClamps => gather,
    /// Bug: `scatter_add` overwrites rows of the table instead of adding to the rows.
    ScatterOverwrites => scatter_add,
    /// Bug: `permute` applies the inverse permutation.
    PermuteInverse => permute,
    /// Bug: `to_indices` truncates fractions instead of returning an error.
    IndicesTruncated => to_indices,
    /// Bug: `tile` repeats each element instead of each run of elements.
    TileInner => tile,
    /// Bug: a random fill stores element `i + 1` of the random sequence at index `i`.
    RandomOffByOne => uniform,
    /// Bug: gaussian numbers with a small standard deviation are computed in `f32`.
    GaussianNarrow => gaussian,
    /// Bug: dropout does not scale up the elements that it keeps.
    DropoutUnscaled => dropout,
    /// Bug: a random integer is the remainder of a division, so its distribution is not uniform.
    RandomIntegersModulo => random_integers,
    /// Bug: a Bernoulli number is 1 if the random word is above the threshold instead of below it.
    BernoulliFlipped => bernoulli,
}
