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
    /// An upload writes its bytes one byte after their destination.
    UploadLate => raw_copies,
    /// An upload copies whole words only.
    UploadDropsTail => raw_copies,
    /// An upload to part of a buffer is lost.
    UploadLost => raw_copies,
    /// An upload always writes the start of the buffer.
    UploadIgnoresOffset => raw_copies,
    /// A download copies at most one page.
    DownloadTruncated => raw_copies,
    /// A download rounds its start down to a word boundary.
    DownloadAligned => raw_copies,
    /// A download does not wait for queued work.
    DownloadUnfinished => raw_copies,
    /// The first download of a buffer is cached, and later downloads return the cached bytes.
    DownloadStale => coherence,
    // Bugs in allocations.
    /// New device memory is not zeroed.
    AllocNotZeroed => raw_copies,
    /// New host memory is not zeroed.
    HostAllocNotZeroed => raw_copies,
    /// Allocating a buffer of zero bytes is an error.
    AllocRefusesZeroBytes => raw_copies,
    /// An allocation of too many bytes succeeds with fewer bytes than requested.
    AllocTooShort => out_of_memory,
    /// An allocation that is too large panics.
    AllocPanics => out_of_memory,
    /// After one allocation has failed, all later allocations fail.
    AllocNeverRecovers => out_of_memory,
    /// Freed memory is zeroed and reused while queued work still uses it.
    FreedInFlight => queues,
    // Bugs in queues.
    /// `order_after` does nothing.
    OrderAfterIgnored => queues,
    /// `synchronize` does nothing.
    SynchronizeIgnored => coherence,
    /// An upload on a fork runs at once instead of in queue order.
    ForkUploadsAtOnce => queues,
    /// After one call has returned an error, all later calls return an error.
    ErrorsPersist => alive_after_errors,
    // Bugs in native kernels.
    /// A kernel ignores the operand's offset and writes to the start of the buffer.
    OffsetIgnored => axpy,
    /// A kernel adds one element to its operand's offset.
    OffsetOffByOne => axpy,
    /// A kernel writes one element past the end of its operand.
    WritesPastEnd => scal,
    /// A kernel writes the device side through a shared view, so the host side stays valid.
    HostNotInvalidated => sharing,
    /// Operands of different lengths are truncated to the shorter length.
    AcceptsAnyLength => alive_after_errors,
    // Bugs in vector and matrix kernels.
    /// `copy` converts its elements to `f32` and back.
    CopyNarrows => copy,
    /// `scal` skips the elements after the last vector of four.
    ScalDropsTail => scal,
    /// `axpby` multiplies `y` by β = 0 instead of not reading it.
    AxpbyReadsAtZero => axpby,
    /// `dot` of several blocks skips the elements after the last whole block.
    DotDropsTail => dot,
    /// `dot` of `f16` accumulates in `f16`.
    DotNarrow => dot,
    /// `dot_strided` reads `y` as if it were contiguous.
    DotIgnoresIncy => dot_strided,
    /// `asum` sums the elements, not their absolute values.
    AsumWithoutAbs => asum,
    /// `amax` ignores NaN.
    AmaxLosesNan => amax,
    /// `gemv` ignores α.
    GemvDropsAlpha => gemv,
    /// `gemm` computes with β = 0.
    GemmBetaIgnored => gemm,
    /// `gemm` multiplies `C` by β = 0 instead of not reading it.
    GemmReadsAtZero => gemm,
    /// `gemm` ignores α.
    GemmDropsAlpha => gemm,
    /// `gemm` uses the column count of `A` as its leading dimension.
    GemmIgnoresLda => gemm,
    /// `gemm` uses the column count of `C` as its leading dimension.
    GemmIgnoresLdc => gemm,
    /// `gemm` inverts the transpose flag of a square `B`.
    GemmSwapsSquareB => gemm,
    /// `gemm` omits the terms after the last block of eight along `k`.
    GemmDropsTail => gemm,
    /// `gemm_batched` uses the first `B` for every matrix product of the batch.
    BatchReusesB => gemm_batched,
    // Bugs in elementwise functions.
    /// `fill` loses the sign of zero.
    FillLosesSign => fill,
    /// ReLU returns zero for NaN.
    ReluLosesNan => unary_relu,
    /// `tanh` is computed as `(e²ˣ − 1) / (e²ˣ + 1)`, which cancels or overflows.
    TanhNaive => unary_tanh,
    /// Softplus is computed as `ln(1 + eˣ)`, which overflows.
    SoftplusNaive => unary_softplus,
    /// ELU ignores its parameter α.
    EluIgnoresAlpha => unary_elu,
    /// Swish ignores its factor β.
    SwishIgnoresBeta => unary_swish,
    /// The threshold function returns 1 for a value equal to the threshold.
    ThresholdAtLeast => unary_threshold,
    /// `exp_affine` ignores its shift.
    ExpAffineDropsShift => unary_exp_affine,
    /// `ln_affine` ignores its factor.
    LnAffineDropsFactor => unary_ln_affine,
    /// `pow_affine` adds its shift after the power instead of before it.
    PowAffineShiftsLate => unary_pow_affine,
    /// A unary kernel in place leaves its operand unchanged.
    InPlaceIgnored => unary_exp,
    /// A binary kernel in place reads `b` instead of `a`.
    InPlaceReadsB => binary_sub,
    /// The maximum of NaN and a number is the number instead of NaN.
    MaxLosesNan => binary_max,
    /// The gradient of ReLU passes through where the input is zero.
    ReluGradAtZero => binary_relu_grad,
    /// `mul_scaled` ignores its scalar.
    MulScaledDropsScalar => binary_mul_scaled,
    /// `mul_negative` returns the product instead of 0 if a factor is not negative.
    MulNegativeIsMul => binary_mul_negative,
    /// `div_or_zero` divides by zero instead of returning 0.
    DivOrZeroDivides => binary_div_or_zero,
    /// `greater` returns 1 for equal values.
    GreaterAtEqual => binary_greater,
    /// `greater_equal` returns 0 for equal values.
    GreaterEqualIsGreater => binary_greater_equal,
    /// PReLU multiplies positive elements by the slope as well.
    PreluIsMul => binary_prelu,
    /// The slope of PReLU is 1 where the input is zero.
    PreluSlopeAtZero => binary_prelu_slope,
    /// The gradient of `|x|` at zero is not zero.
    AbsGradAtZero => binary_abs_grad,
    /// The gradient of ELU uses the output of ELU in place of its input.
    EluGradOfInput => binary_elu_grad,
    /// The gradient of softplus uses the output of softplus in place of its input.
    SoftplusGradOfInput => binary_softplus_grad,
    /// The gradient of Swish omits the derivative of the inner function.
    SwishGradDropsBeta => binary_swish_grad,
    /// The gradient of clip is zero for inputs equal to a bound.
    ClipGradInside => binary_clip_grad,
    /// The gradient of `ln_affine` omits the derivative of the inner function.
    LnAffineGradDropsScale => binary_ln_affine_grad,
    /// The gradient of `x⁰` is NaN instead of 0 where `x` is 0.
    PowAffineGradOfConstant => binary_pow_affine_grad,
    /// `broadcast` treats the last axis as the operand's axis.
    BroadcastAxis => broadcast,
    /// `affine` adds before it multiplies.
    AffineAddsFirst => affine,
    /// `convert` to `bf16` truncates instead of rounding.
    ConvertTruncates => convert,
    /// `convert_integers` converts through `f32`.
    IntegersNarrow => convert_integers,
    /// `lstm` does not reset the cell state where a sequence begins.
    LstmIgnoresCont => lstm,
    /// The gradient of the cell state ignores the forget gate.
    LstmSkipsForgetGate => lstm_backward,
    // Bugs in kernels along an axis.
    /// The mean is not divided by the number of elements.
    MeanIsSum => reduce_mean,
    /// The maximum starts at zero, which exceeds negative elements.
    MaxFromZero => reduce_max,
    /// `sum_to_axis` computes with β = 1.
    SumToAxisAdds => sum_to_axis,
    /// `dot_to_axis` computes with β = 0.
    DotToAxisOverwrites => dot_to_axis,
    /// `arg_max` returns the index of the last of several equal maxima.
    ArgMaxLast => arg_max,
    /// `top_k` returns the index of the first of several equal values for all of them.
    TopKFirst => top_k,
    /// Softmax does not subtract the maximum before it computes exponentials.
    SoftmaxOverflows => softmax,
    /// The variance is divided by `n − 1` instead of `n`.
    VarianceUnbiased => moments,
    /// `standardize` always adds ε to the variance.
    EpsilonInVariance => standardize,
    /// `standardize_backward` treats mean and variance as constants.
    StatisticsConstant => standardize_backward,
    /// LRN across channels does not divide α by `n`.
    LrnAlphaUndivided => lrn_across,
    /// LRN within a channel uses `k` instead of 1.
    LrnWithinUsesK => lrn_within,
    // Bugs in image kernels.
    /// `im2col` ignores dilation.
    DilationIgnored => im2col,
    /// `im2col` repeats the edge of the image instead of padding with zeros.
    PadIsEdge => im2col,
    /// `col2im` overwrites elements where windows overlap instead of summing them.
    Col2imOverwrites => col2im,
    /// `convolve` ignores the bias.
    BiasIgnored => convolve,
    /// `convolve_with_activation` does not apply the activation.
    ActivationIgnored => convolve_with_activation,
    /// `convolve_with_activation` applies the activation to sums before they are rounded.
    ActivatesUnrounded => convolve_with_activation,
    /// The gradient of the filters is overwritten instead of accumulated.
    FiltersOverwritten => convolve_backward_filters,
    /// The mask of `max_pool` holds the index of the last of several equal maxima.
    MaskHasLast => max_pool,
    /// `max_pool` includes padding in the maximum as zeros.
    PadInMaximum => max_pool,
    /// `average_pool` divides by the number of elements inside the image, without padding.
    AverageClipped => average_pool,
    /// `stochastic_pool` draws all elements of a window with equal probability.
    DrawsUniformly => stochastic_pool,
    // Bugs in losses and solver updates.
    /// `softmax_loss` adds the losses of ignored labels.
    LossCountsIgnored => softmax_loss,
    /// `softmax_loss` divides by the number of all labels instead of valid labels.
    LossDividesByAll => softmax_loss,
    /// `softmax_loss_backward` ignores the scale factor of the gradient.
    LossIgnoresScale => softmax_loss_backward,
    /// The accuracy counts ignored labels.
    AccuracyCountsIgnored => accuracy,
    /// The accuracy by class counts ignored labels.
    ByClassCountsIgnored => accuracy_by_class,
    /// `class_loss` ignores the infogain matrix.
    MatrixIgnored => class_loss,
    /// `class_loss_backward` returns the gradient of scores instead of probabilities.
    GradientOfScores => class_loss_backward,
    /// `elementwise_loss` adds the losses of ignored targets.
    TargetsCountIgnored => elementwise_loss,
    /// `elementwise_loss_backward` divides by the number of all targets, not of valid targets.
    TargetsDivideByAll => elementwise_loss_backward,
    /// SGD multiplies the momentum term by the learning rate as well.
    SgdRateAfterMomentum => solver_update_sgd,
    /// L1 decay subtracts the weight instead of its sign.
    L1IsL2 => solver_update_sgd,
    /// Master weights are not updated.
    MastersIgnored => solver_update_sgd,
    /// The update starts from the master weights although the caller has changed the weights.
    MastersOverrideWeights => solver_update_sgd,
    /// Nesterov's update has no look-ahead.
    NesterovIsSgd => solver_update_nesterov,
    /// AdaGrad's divisor lacks `delta`.
    AdaGradDropsDelta => solver_update_adagrad,
    /// RMSProp's history is a sum, like AdaGrad's, instead of a moving average.
    RmsPropSums => solver_update_rmsprop,
    /// AdaDelta's two histories are swapped.
    AdaDeltaSwaps => solver_update_adadelta,
    /// Adam's two decay rates are swapped.
    AdamSwapsBetas => solver_update_adam,
    // Bugs in indexing and random numbers.
    /// `copy_2d` ignores the destination's leading dimension.
    CopyPacks => copy_2d,
    /// `gather` returns the last row for an index beyond the end of the table.
    GatherClamps => gather,
    /// `scatter_add` overwrites elements instead of adding to them.
    ScatterOverwrites => scatter_add,
    /// `permute` applies the inverse permutation.
    PermuteInverse => permute,
    /// `to_indices` truncates fractions instead of returning an error.
    IndicesTruncated => to_indices,
    /// `tile` repeats each element instead of each run of elements.
    TileInner => tile,
    /// A random fill stores element `i + 1` of the random sequence at index `i`.
    RandomOffByOne => uniform,
    /// Gaussian numbers with a small standard deviation are computed in `f32`.
    GaussianNarrow => gaussian,
    /// Dropout does not scale up the elements that it keeps.
    DropoutUnscaled => dropout,
    /// A random integer is the remainder of a division, so its distribution is not uniform.
    RandomIntegersModulo => random_integers,
    /// A Bernoulli number is 1 if the random word is above the threshold instead of below it.
    BernoulliFlipped => bernoulli,
}
