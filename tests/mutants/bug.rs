//! The bugs, each with the check that has to find it.

/// Generates [`Bug`] and [`BUGS`] from the list of bugs and checks.
macro_rules! bugs {
    ($($(#[$doc:meta])* $bug:ident => $check:ident,)*) => {
        /// The one bug of a device.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Bug {
            /// No bug.
            None,
            $($(#[$doc])* $bug,)*
        }

        /// Every bug with the check that has to find it.
        pub(crate) const BUGS: &[(Bug, &str)] = &[$((Bug::$bug, stringify!($check)),)*];
    };
}

bugs! {
    // Copies.
    /// An upload starts one byte late.
    UploadLate => raw_copies,
    /// An upload copies whole words only.
    UploadDropsTail => raw_copies,
    /// An upload to a part of a buffer is lost.
    UploadLost => raw_copies,
    /// An upload always writes the start of the buffer.
    UploadIgnoresOffset => raw_copies,
    /// A download ends after a page.
    DownloadTruncated => raw_copies,
    /// A download starts at a multiple of a word.
    DownloadAligned => raw_copies,
    /// A download does not wait for queued work.
    DownloadUnfinished => raw_copies,
    /// The first download of a buffer is cached, and serves all later ones.
    DownloadStale => coherence,
    // Allocations.
    /// New device memory is not zeroed.
    AllocNotZeroed => raw_copies,
    /// New host memory is not zeroed.
    HostAllocNotZeroed => raw_copies,
    /// A buffer of zero bytes is an error.
    AllocRefusesZeroBytes => raw_copies,
    /// A buffer larger than any memory is allocated, but with fewer bytes.
    AllocTooShort => out_of_memory,
    /// An allocation that is too large panics.
    AllocPanics => out_of_memory,
    /// After one allocation has failed, all fail.
    AllocNeverRecovers => out_of_memory,
    /// Freed memory is allocated again and zeroed while queued work still uses it.
    FreedInFlight => queues,
    // Queues.
    /// `order_after` does nothing.
    OrderAfterIgnored => queues,
    /// `synchronize` does nothing.
    SynchronizeIgnored => coherence,
    /// An upload on a fork runs at once, not in the order of the queue.
    ForkUploadsAtOnce => queues,
    /// After one call has returned an error, all calls do.
    ErrorsPersist => alive_after_errors,
    // Native kernels.
    /// A kernel writes the start of the buffer, not the operand's part of it.
    OffsetIgnored => axpy,
    /// A kernel takes its operand to begin one element later.
    OffsetOffByOne => axpy,
    /// A kernel writes one element past its operand.
    WritesPastEnd => scal,
    /// A kernel writes the device side through a shared view, so the host side stays valid.
    HostNotInvalidated => sharing,
    /// Operands of different lengths are cut to the shorter one.
    AcceptsAnyLength => alive_after_errors,
    // Vectors and matrices.
    /// `copy` goes through `f32`.
    CopyNarrows => copy,
    /// `scal` skips the elements after the last vector of four.
    ScalDropsTail => scal,
    /// `axpby` multiplies `y` by β = 0 instead of not reading it.
    AxpbyReadsAtZero => axpby,
    /// `dot` of more than one block skips the elements after the last whole block.
    DotDropsTail => dot,
    /// `dot` of `f16` accumulates in `f16`.
    DotNarrow => dot,
    /// `dot_strided` takes `y` as contiguous.
    DotIgnoresIncy => dot_strided,
    /// `asum` sums the elements, not their absolute values.
    AsumWithoutAbs => asum,
    /// `amax` ignores NaN.
    AmaxLosesNan => amax,
    /// `gemv` ignores α.
    GemvDropsAlpha => gemv,
    /// `gemm` takes β as 0.
    GemmBetaIgnored => gemm,
    /// `gemm` multiplies `C` by β = 0 instead of not reading it.
    GemmReadsAtZero => gemm,
    /// `gemm` ignores α.
    GemmDropsAlpha => gemm,
    /// `gemm` uses the number of columns of `A` as its leading dimension.
    GemmIgnoresLda => gemm,
    /// `gemm` uses the number of columns of `C` as its leading dimension.
    GemmIgnoresLdc => gemm,
    /// `gemm` inverts the transpose flag of `B` where `B` is square.
    GemmSwapsSquareB => gemm,
    /// `gemm` leaves out the terms after the last block of eight along `k`.
    GemmDropsTail => gemm,
    /// `gemm_batched` uses the first `B` for all products.
    BatchReusesB => gemm_batched,
    // Maps.
    /// `fill` loses the sign of zero.
    FillLosesSign => fill,
    /// ReLU of NaN is zero.
    ReluLosesNan => unary_relu,
    /// `tanh` is `(e²ˣ − 1) / (e²ˣ + 1)`, which cancels and overflows.
    TanhNaive => unary_tanh,
    /// Softplus is computed as `ln(1 + eˣ)`, which overflows.
    SoftplusNaive => unary_softplus,
    /// ELU ignores the factor of its exponential.
    EluIgnoresAlpha => unary_elu,
    /// Swish takes its factor as 1.
    SwishIgnoresBeta => unary_swish,
    /// A value equal to the threshold counts as above it.
    ThresholdAtLeast => unary_threshold,
    /// The exponential ignores its shift.
    ExpAffineDropsShift => unary_exp_affine,
    /// The logarithm ignores its factor.
    LnAffineDropsFactor => unary_ln_affine,
    /// The power is taken before the shift is added.
    PowAffineShiftsLate => unary_pow_affine,
    /// A unary map in place leaves its operand unchanged.
    InPlaceIgnored => unary_exp,
    /// A binary map in place reads `b` as `a`.
    InPlaceReadsB => binary_sub,
    /// The maximum of NaN and a number is the number.
    MaxLosesNan => binary_max,
    /// ReLU's gradient passes at zero.
    ReluGradAtZero => binary_relu_grad,
    /// A scaled product ignores its scalar.
    MulScaledDropsScalar => binary_mul_scaled,
    /// A product with a non-negative factor is not 0.
    MulNegativeIsMul => binary_mul_negative,
    /// A quotient by zero is not 0.
    DivOrZeroDivides => binary_div_or_zero,
    /// `>` holds for equal values.
    GreaterAtEqual => binary_greater,
    /// `≥` does not hold for equal values.
    GreaterEqualIsGreater => binary_greater_equal,
    /// The slope applies to positive elements, too.
    PreluIsMul => binary_prelu,
    /// The slope is 1 at zero.
    PreluSlopeAtZero => binary_prelu_slope,
    /// The gradient of `|x|` passes at zero.
    AbsGradAtZero => binary_abs_grad,
    /// ELU's gradient uses its output as its input.
    EluGradOfInput => binary_elu_grad,
    /// Softplus' gradient uses its output as its input.
    SoftplusGradOfInput => binary_softplus_grad,
    /// Swish's gradient leaves out the inner derivative.
    SwishGradDropsBeta => binary_swish_grad,
    /// The gradient does not pass at the bounds.
    ClipGradInside => binary_clip_grad,
    /// The logarithm's gradient leaves out the inner derivative.
    LnAffineGradDropsScale => binary_ln_affine_grad,
    /// The gradient of a constant power is NaN where its base is 0.
    PowAffineGradOfConstant => binary_pow_affine_grad,
    /// `broadcast` runs along the last axis.
    BroadcastAxis => broadcast,
    /// `affine` adds before it multiplies.
    AffineAddsFirst => affine,
    /// `convert` to `bf16` truncates instead of rounding.
    ConvertTruncates => convert,
    /// `convert_integers` goes through `f32`.
    IntegersNarrow => convert_integers,
    /// The cell state is not reset where a sequence begins.
    LstmIgnoresCont => lstm,
    /// The gradient of the cell state ignores the forget gate.
    LstmSkipsForgetGate => lstm_backward,
    // Along an axis.
    /// The mean is not divided.
    MeanIsSum => reduce_mean,
    /// The maximum starts from zero.
    MaxFromZero => reduce_max,
    /// `sum_to_axis` takes β as 1.
    SumToAxisAdds => sum_to_axis,
    /// `dot_to_axis` takes β as 0.
    DotToAxisOverwrites => dot_to_axis,
    /// `arg_max` returns the last of equal maxima.
    ArgMaxLast => arg_max,
    /// `top_k` returns the index of the first of equal values for each of them.
    TopKFirst => top_k,
    /// Softmax does not subtract the maximum first.
    SoftmaxOverflows => softmax,
    /// The variance divides by `n − 1`.
    VarianceUnbiased => moments,
    /// ε is always added to the variance.
    EpsilonInVariance => standardize,
    /// The gradient takes mean and variance as constants.
    StatisticsConstant => standardize_backward,
    /// LRN across channels does not divide α by `n`.
    LrnAlphaUndivided => lrn_across,
    /// LRN within a channel uses `k` instead of 1.
    LrnWithinUsesK => lrn_within,
    // Images.
    /// `im2col` ignores dilation.
    DilationIgnored => im2col,
    /// `im2col` repeats the edge instead of padding.
    PadIsEdge => im2col,
    /// `col2im` overwrites where windows overlap.
    Col2imOverwrites => col2im,
    /// `convolve` ignores the bias.
    BiasIgnored => convolve,
    /// `convolve_with_activation` does not apply the function.
    ActivationIgnored => convolve_with_activation,
    /// The function is applied to sums that are not yet rounded.
    ActivatesUnrounded => convolve_with_activation,
    /// The gradient of the filters is overwritten instead of accumulated.
    FiltersOverwritten => convolve_backward_filters,
    /// The mask holds the last of equal maxima.
    MaskHasLast => max_pool,
    /// Padding takes part in the maximum as zero.
    PadInMaximum => max_pool,
    /// The average divides by the number of elements inside the image.
    AverageClipped => average_pool,
    /// Elements are drawn with equal probabilities.
    DrawsUniformly => stochastic_pool,
    // Losses and solver updates.
    /// The loss counts ignored labels.
    LossCountsIgnored => softmax_loss,
    /// The loss divides by the number of all labels, not of valid ones.
    LossDividesByAll => softmax_loss,
    /// The gradient of the loss ignores its factor.
    LossIgnoresScale => softmax_loss_backward,
    /// The accuracy counts ignored labels.
    AccuracyCountsIgnored => accuracy,
    /// The accuracy by class counts ignored labels.
    ByClassCountsIgnored => accuracy_by_class,
    /// The class loss ignores its matrix.
    MatrixIgnored => class_loss,
    /// The gradient of probabilities is that of scores.
    GradientOfScores => class_loss_backward,
    /// The elementwise loss counts ignored targets.
    TargetsCountIgnored => elementwise_loss,
    /// The elementwise gradient divides by the number of all targets, not of valid ones.
    TargetsDivideByAll => elementwise_loss_backward,
    /// The learning rate scales the momentum term as well.
    SgdRateAfterMomentum => solver_update_sgd,
    /// L1 decay subtracts the weight instead of its sign.
    L1IsL2 => solver_update_sgd,
    /// Master weights are not updated.
    MastersIgnored => solver_update_sgd,
    /// The step starts from the master weights even where weights have changed.
    MastersOverrideWeights => solver_update_sgd,
    /// Nesterov's step does not look ahead.
    NesterovIsSgd => solver_update_nesterov,
    /// AdaGrad's divisor lacks `delta`.
    AdaGradDropsDelta => solver_update_adagrad,
    /// RMSProp's history is a sum, like AdaGrad's.
    RmsPropSums => solver_update_rmsprop,
    /// AdaDelta's two histories are exchanged.
    AdaDeltaSwaps => solver_update_adadelta,
    /// Adam's two decay rates are exchanged.
    AdamSwapsBetas => solver_update_adam,
    // Indexing and random numbers.
    /// `copy_2d` ignores the destination's leading dimension.
    CopyPacks => copy_2d,
    /// `gather` takes an index past the table as the last row.
    GatherClamps => gather,
    /// `scatter_add` overwrites.
    ScatterOverwrites => scatter_add,
    /// `permute` applies the inverse order.
    PermuteInverse => permute,
    /// `to_indices` truncates fractions instead of returning an error.
    IndicesTruncated => to_indices,
    /// `tile` repeats elements instead of runs.
    TileInner => tile,
    /// Element `i` of random numbers is element `i + 1`.
    RandomOffByOne => uniform,
    /// Numbers with a narrow deviation are computed in `f32`.
    GaussianNarrow => gaussian,
    /// Kept elements are not scaled up.
    DropoutUnscaled => dropout,
    /// A random integer is a remainder.
    RandomIntegersModulo => random_integers,
    /// A Bernoulli number is 1 where the random word is large instead of small.
    BernoulliFlipped => bernoulli,
}
