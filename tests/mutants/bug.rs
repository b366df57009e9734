//! The bugs.

/// Stamps the list of bugs: what each is, and the check that finds it.
macro_rules! bugs {
    ($($(#[$what:meta])* $bug:ident => $check:ident,)*) => {
        /// One thing that is wrong with a device.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Bug {
            /// Nothing is.
            None,
            $($(#[$what])* $bug,)*
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
    /// An upload goes to the start of the buffer, wherever it should.
    UploadIgnoresAt => raw_copies,
    /// A download ends after a page.
    DownloadTruncated => raw_copies,
    /// A download starts at a multiple of a word.
    DownloadAligned => raw_copies,
    /// A download does not wait for work in the queue.
    DownloadUnfinished => raw_copies,
    /// A buffer is downloaded once, and later downloads served from that copy.
    DownloadStale => coherence,
    // Allocations.
    /// New memory holds what it held before.
    AllocNotZeroed => raw_copies,
    /// New host memory holds what it held before.
    HostAllocNotZeroed => raw_copies,
    /// A buffer of no bytes is refused.
    AllocRefusesNothing => raw_copies,
    /// A buffer larger than any memory is promised, and kept short.
    AllocPromises => out_of_memory,
    /// An allocation that is too large panics.
    AllocPanics => out_of_memory,
    /// After an allocation failed, none succeeds.
    AllocNeverRecovers => out_of_memory,
    /// Freed memory is handed out and cleared while queued work still uses it.
    FreedInFlight => queues,
    // Queues.
    /// `after` does nothing.
    AfterIgnored => queues,
    /// `synchronize` does nothing.
    SynchronizeIgnored => coherence,
    /// A fork's upload waits for nothing.
    ForkUploadsAtOnce => queues,
    /// A call that is refused leaves the device unusable.
    ErrorSticks => alive_after_errors,
    // Native kernels.
    /// A kernel uses the start of the buffer, wherever its operand is.
    OffsetIgnored => axpy,
    /// A kernel's operand begins one element late.
    OffsetOffByOne => axpy,
    /// A kernel writes one element past its operand.
    WritesPast => scal,
    /// A kernel writes the device's side without saying so: the host's counts as current.
    Unmarked => sharing,
    /// An input of another length is taken as far as it goes.
    TakesAnyLength => alive_after_errors,
    // Vectors and matrices.
    /// `copy` goes through `f32`.
    CopyNarrows => copy,
    /// `scal` leaves out what does not fill a vector of four.
    ScalDropsTail => scal,
    /// `axpby` multiplies `y` by β = 0 rather than not read it.
    AxpbyReadsAtZero => axpby,
    /// `dot` leaves out what does not fill a block, once there is a block.
    DotDropsTail => dot,
    /// `dot` of `f16` is summed in `f16`.
    DotNarrow => dot,
    /// `dot_strided` takes `y` as packed.
    DotIgnoresStep => dot_strided,
    /// `asum` forgets the absolute value.
    AsumForgetsAbs => asum,
    /// `amax` loses NaN.
    AmaxLosesNan => amax,
    /// `gemv` drops α.
    GemvDropsAlpha => gemv,
    /// `gemm` takes β as 0.
    GemmBetaIgnored => gemm,
    /// `gemm` multiplies `C` by β = 0 rather than not read it.
    GemmReadsAtZero => gemm,
    /// `gemm` drops α.
    GemmDropsAlpha => gemm,
    /// `gemm` takes the columns of `A` for its leading dimension.
    GemmIgnoresLda => gemm,
    /// `gemm` takes the columns of `C` for its leading dimension.
    GemmIgnoresLdc => gemm,
    /// `gemm` swaps the flag of `B` where `B` is square.
    GemmSwapsSquareB => gemm,
    /// `gemm` leaves out the products that do not fill a block of eight.
    GemmDropsTail => gemm,
    /// `gemm_batched` uses the first `B` for all.
    BatchReusesB => gemm_batched,
    // Maps.
    /// `fill` loses the sign of zero.
    FillLosesSign => fill,
    /// ReLU makes zero of NaN.
    ReluLosesNan => unary_relu,
    /// `tanh` is `(e²ˣ − 1) / (e²ˣ + 1)`, which cancels and overflows.
    TanhNaive => unary_tanh,
    /// Softplus is `ln(1 + eˣ)` as it is written, which overflows.
    SoftplusNaive => unary_softplus,
    /// ELU's exponential is not scaled.
    EluIgnoresAlpha => unary_elu,
    /// Swish takes its factor as 1.
    SwishIgnoresBeta => unary_swish,
    /// What equals a threshold is above it.
    ThresholdAtLeast => unary_threshold,
    /// The exponential forgets what is added.
    ExpAffineDropsShift => unary_exp_affine,
    /// The logarithm forgets its factor.
    LnAffineDropsFactor => unary_ln_affine,
    /// The power applies before the sum.
    PowAffineShiftsLate => unary_pow_affine,
    /// A map in place leaves its operand alone.
    InPlaceIgnored => unary_exp,
    /// An operation in place takes `b` for `a`.
    InPlaceSource => binary_sub,
    /// The maximum with NaN is the other operand.
    MaxLosesNan => binary_max,
    /// ReLU's gradient passes at zero.
    ReluGradAtZero => binary_relu_grad,
    /// A product forgets its scalar.
    MulScaledDropsScalar => binary_mul_scaled,
    /// A product with what is not negative remains.
    MulNegativeIsMul => binary_mul_negative,
    /// What is divided by zero is not 0.
    DivOrZeroDivides => binary_div_or_zero,
    /// What equals another is greater.
    GreaterAtEqual => binary_greater,
    /// What equals another is not as great.
    GreaterEqualIsGreater => binary_greater_equal,
    /// The slope applies on both sides.
    PreluIsMul => binary_prelu,
    /// The slope is 1 at zero.
    PreluSlopeAtZero => binary_prelu_slope,
    /// The gradient of `|x|` passes at zero.
    AbsGradAtZero => binary_abs_grad,
    /// ELU's gradient takes its output for its input.
    EluGradOfInput => binary_elu_grad,
    /// Softplus' gradient takes its output for its input.
    SoftplusGradOfInput => binary_softplus_grad,
    /// Swish's gradient leaves out the factor's inner derivative.
    SwishGradDropsBeta => binary_swish_grad,
    /// The gradient does not pass at the bounds.
    ClipGradInside => binary_clip_grad,
    /// The logarithm's gradient leaves out the inner derivative.
    LnAffineGradDropsScale => binary_ln_affine_grad,
    /// The power's gradient of a constant is NaN where its base is 0.
    PowAffineGradOfConstant => binary_pow_affine_grad,
    /// `broadcast` runs along the last axis.
    BroadcastAxis => broadcast,
    /// `affine` adds before it multiplies.
    AffineAddsFirst => affine,
    /// `convert` cuts off what does not fit `bf16`.
    ConvertTruncates => convert,
    /// `convert_integers` goes through `f32`.
    IntegersNarrow => convert_integers,
    /// A sequence that begins keeps its cells.
    LstmNeverBegins => lstm,
    /// The gradient of the cells passes by the forget gate.
    LstmForgetsNothing => lstm_backward,
    // Along an axis.
    /// The mean is not divided.
    MeanIsSum => reduce_mean,
    /// The maximum starts from zero.
    MaxFromZero => reduce_max,
    /// `sum_to_axis` adds, whatever β.
    SumOntoAdds => sum_to_axis,
    /// `dot_to_axis` overwrites, whatever β.
    DotOntoOverwrites => dot_to_axis,
    /// `arg_max` takes the last of several.
    ArgMaxLast => arg_max,
    /// `top_k` names the first of equals, each time.
    TopKFirst => top_k,
    /// Softmax does not subtract the maximum first.
    SoftmaxOverflows => softmax,
    /// The variance divides by `n − 1`.
    VarianceUnbiased => moments,
    /// ε is added to the variance, wherever it should.
    EpsilonInVariance => standardize,
    /// The gradient takes mean and variance for constants.
    StatisticsConstant => standardize_backward,
    /// LRN across channels does not divide α by `n`.
    LrnAlphaUndivided => lrn_across,
    /// LRN within a channel takes `k` as given.
    LrnWithinTakesK => lrn_within,
    // Images.
    /// `im2col` ignores dilation.
    DilationIgnored => im2col,
    /// `im2col` repeats the edge instead of padding.
    PadIsEdge => im2col,
    /// `col2im` overwrites where windows overlap.
    Col2imOverwrites => col2im,
    /// `convolve` leaves out the bias.
    BiasIgnored => convolve,
    /// `convolve_with_activation` does no more than `convolve`.
    ActivationIgnored => convolve_with_activation,
    /// The function is one of sums that have not been rounded yet.
    ActivatesSums => convolve_with_activation,
    /// The gradient of filters overwrites what was accumulated.
    FiltersOverwritten => convolve_backward_filters,
    /// Of several maxima the mask has the last.
    MaskHasLast => max_pool,
    /// Padding takes part in the maximum as zero.
    PadInMaximum => max_pool,
    /// The average divides by what the image has of a window.
    AverageClipped => average_pool,
    /// Elements are drawn as if all were equal.
    DrawsEvenly => stochastic_pool,
    // Losses and steps.
    /// The loss counts labels that are ignored.
    LossCountsIgnored => softmax_loss,
    /// The loss divides by all labels, not by those that count.
    LossDividesByAll => softmax_loss,
    /// The gradient of the loss leaves out its factor.
    LossIgnoresScale => softmax_loss_backward,
    /// The accuracy counts labels that are ignored.
    AccuracyCountsIgnored => accuracy,
    /// The accuracy by class counts labels that are ignored.
    ByClassCountsIgnored => accuracy_by_class,
    /// The loss of classes leaves out its matrix.
    MatrixIgnored => class_loss,
    /// The gradient of probabilities is that of scores.
    GradientOfScores => class_loss_backward,
    /// The loss of pairs counts targets that are ignored.
    PairsCountIgnored => elementwise_loss,
    /// The gradient of pairs divides by all targets, not by those that count.
    PairsDivideByAll => elementwise_loss_backward,
    /// The rate applies to what is kept of the last step as well.
    SgdRateAfterMomentum => descend_sgd,
    /// Decay pulls on the weight instead of its sign.
    L1IsL2 => descend_sgd,
    /// Masters are left alone.
    MastersIgnored => descend_sgd,
    /// Masters count whatever the weights are.
    MastersOverrule => descend_sgd,
    /// Nesterov's step does not look ahead.
    NesterovIsSgd => descend_nesterov,
    /// AdaGrad's divisor has no `delta`.
    AdaGradDropsDelta => descend_adagrad,
    /// RMSProp's history is a sum, as AdaGrad's is.
    RmsPropSums => descend_rmsprop,
    /// AdaDelta's two histories are exchanged.
    AdaDeltaSwaps => descend_adadelta,
    /// Adam keeps of each of its means what it should keep of the other.
    AdamSwapsBetas => descend_adam,
    // Moves and random numbers.
    /// `copy_2d` packs its result.
    CopyPacks => copy_2d,
    /// `gather` takes an index past the table for the last.
    GatherClamps => gather,
    /// `scatter_add` overwrites.
    ScatterOverwrites => scatter_add,
    /// `permute` goes the other way.
    PermuteInverse => permute,
    /// `to_indices` leaves out fractions.
    IndicesTruncated => to_indices,
    /// `tile` repeats elements instead of runs.
    TileInner => tile,
    /// A random number has its neighbour's index.
    RandomOffByOne => uniform,
    /// Numbers of a narrow deviation are drawn in `f32`.
    GaussianNarrow => gaussian,
    /// What stays is not scaled up.
    DropoutUnscaled => dropout,
    /// An integer is a remainder.
    IntegerModulo => integer,
    /// A Bernoulli number is 1 where the word is large, not where it is small.
    BernoulliFlipped => bernoulli,
}
