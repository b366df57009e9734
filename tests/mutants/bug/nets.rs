//! Bugs in image kernels, losses, solver updates, indexing and random numbers.

/// Adds the bugs to the list in brackets, and passes the list to the next macro.
macro_rules! nets_bugs {
    ([$($listed:tt)*] $next:ident $($rest:ident)*) => { $next! { [$($listed)*
        // Bugs in image kernels.
        /// Bug: the kernel `im2col` ignores the dilation.
        DilationIgnored => im2col,
        /// Bug: the kernel `im2col` repeats the edge of the image instead of padding with zeros.
        PadIsEdge => im2col,
        /// Bug: the kernel `col2im` overwrites elements where windows overlap instead of summing
        /// the taps.
        Col2imOverwrites => col2im,
        /// Bug: the kernel `convolve` ignores the bias.
        BiasIgnored => convolve,
        /// Bug: the kernel `convolve` treats NaN in an image as 0.
        ConvolveLosesNan => convolve,
        /// Bug: the kernel `convolve` skips the images after the first 2¹⁶.
        ConvolveStops => convolve,
        /// Bug: the kernel `convolve` truncates the index of a position to 20 bits.
        ConvolveWraps => convolve,
        /// Bug: the kernel `convolve` adds only the first 256 terms of each sum.
        ConvolveStopsAtTerm => convolve,
        /// Bug: the kernel `convolve_backward_input` writes 0 to the planes after the first 2¹⁵.
        InputGradientStops => convolve_backward_input,
        /// Bug: the kernel `convolve_with_activation` does not apply the activation.
        ActivationIgnored => convolve_with_activation,
        /// Bug: the kernel `convolve_with_activation` applies the activation to sums that are not
        /// yet rounded to the element type.
        ActivatesUnrounded => convolve_with_activation,
        /// Bug: the gradient of a convolution's filters is overwritten instead of accumulated.
        FiltersOverwritten => convolve_backward_filters,
        /// Bug: the kernel `convolve_backward_filters` skips the images after the first 2¹⁶.
        FilterGradientStops => convolve_backward_filters,
        /// Bug: the mask of the kernel `max_pool` holds the index of the last of several equal
        /// maxima in a window.
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
        /// Bug: the kernel `average_pool` divides by the number of elements inside the image,
        /// without padding.
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
        /// Bug: the kernel `softmax_loss` divides by the number of all labels instead of the number
        /// of valid labels.
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
        /// Bug: the kernel `accuracy_by_class` skips the rows after the first 2¹⁶.
        ByClassStops => accuracy_by_class,
        /// Bug: the kernel `class_loss` ignores the infogain matrix.
        MatrixIgnored => class_loss,
        /// Bug: the kernel `class_loss` skips the rows after the first 2¹⁶.
        ClassLossStops => class_loss,
        /// Bug: the kernel `class_loss_backward` returns the gradient of the scores instead of the
        /// gradient of the probabilities.
        GradientOfScores => class_loss_backward,
        /// Bug: the kernel `class_loss_backward` truncates the index of a row to 16 bits.
        ClassGradientWraps => class_loss_backward,
        /// Bug: the kernel `elementwise_loss` adds the losses of ignored targets.
        TargetsCountIgnored => elementwise_loss,
        /// Bug: the kernel `elementwise_loss` returns 1 if `x` and `t` are the same view.
        LossOfItself => elementwise_loss,
        /// Bug: the kernel `elementwise_loss` skips the elements after the first 2²⁰.
        TargetsStop => elementwise_loss,
        /// Bug: the kernel `elementwise_loss_backward` divides by the number of all targets instead
        /// of the number of valid targets.
        TargetsDivideByAll => elementwise_loss_backward,
        /// Bug: the kernel `elementwise_loss_backward` truncates indices to 20 bits.
        TargetsWrap => elementwise_loss_backward,
        /// Bug: the SGD update multiplies the momentum term by the learning rate as well.
        SgdRateAfterMomentum => solver_update_sgd,
        /// Bug: the solver update skips the weights after the first 2²⁰.
        UpdateStops => solver_update_sgd,
        /// Bug: the solver update leaves a weight unchanged instead of making it NaN.
        UpdateSkipsNan => solver_update_sgd,
        /// Bug: weight decay by the L1 norm subtracts a multiple of the weight instead of a
        /// multiple of the weight's sign.
        L1IsL2 => solver_update_sgd,
        /// Bug: the solver update does not update the master weights.
        MastersIgnored => solver_update_sgd,
        /// Bug: the solver update ignores master weights of a wrong length instead of returning an
        /// error.
        MastersAnyLength => solver_update_sgd,
        /// Bug: the solver update starts from the master weights although the caller has changed
        /// the 16-bit weights.
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
        /// Bug: the kernel `copy_2d` flushes subnormal numbers to 0.
        BlocksFlushSubnormals => copy_2d,
        /// Bug: the kernel `gather` returns the last row of the table for an index beyond the
        /// table's end.
        GatherClamps => gather,
        /// Bug: the kernel `gather` truncates indices to 16 bits.
        GatherNarrow => gather,
        /// Bug: the kernel `gather` writes 0 to the rows after the first 2¹⁶.
        GatherStops => gather,
        /// Bug: the kernel `gather` flushes subnormal numbers to 0.
        GatherFlushesSubnormals => gather,
        /// Bug: the kernel `scatter_add` overwrites rows of the table instead of adding to the
        /// rows.
        ScatterOverwrites => scatter_add,
        /// Bug: the kernel `scatter_add` skips the rows after the first 2¹⁶.
        ScatterStops => scatter_add,
        /// Bug: the kernel `permute` applies the inverse permutation of the axes.
        PermuteInverse => permute,
        /// Bug: the kernel `permute` truncates indices to 20 bits.
        PermuteWraps => permute,
        /// Bug: the kernel `permute` flushes subnormal numbers to 0.
        PermuteFlushesSubnormals => permute,
        /// Bug: the kernel `to_indices` truncates fractions instead of returning an error.
        IndicesTruncated => to_indices,
        /// Bug: the kernel `tile` repeats each element instead of each block of `inner` elements.
        TileInner => tile,
        /// Bug: the kernel `tile` truncates indices to 20 bits.
        TileWraps => tile,
        /// Bug: the kernel `tile` flushes subnormal numbers to 0.
        TileFlushesSubnormals => tile,
        /// Bug: a random fill stores element `i + 1` of the random sequence at index `i`.
        RandomOffByOne => uniform,
        /// Bug: a random fill truncates the index of an element to 20 bits.
        UniformWraps => uniform,
        /// Bug: the kernel `gaussian` rounds random numbers with a small standard deviation to
        /// `f32`.
        GaussianNarrow => gaussian,
        /// Bug: the kernel `gaussian` truncates the index of an element to 20 bits.
        GaussianWraps => gaussian,
        /// Bug: the kernel `dropout` does not scale up the elements that it keeps.
        DropoutUnscaled => dropout,
        /// Bug: the kernel `dropout` multiplies dropped elements by 0 instead of writing 0.
        DropoutMultiplies => dropout,
        /// Bug: the kernel `dropout` truncates the index of an element to 16 bits.
        DropoutWraps => dropout,
        /// Bug: a random integer is a random word modulo the bound, so the distribution is not
        /// uniform.
        RandomIntegersModulo => random_integers,
        /// Bug: the kernel `random_integers` truncates the index of an element to 20 bits.
        RandomIntegersWrap => random_integers,
        /// Bug: a Bernoulli sample is 1 if the random word is above the threshold instead of below
        /// it.
        BernoulliFlipped => bernoulli,
        /// Bug: a Bernoulli fill truncates the index of an element to 16 bits.
        BernoulliWraps => bernoulli,
    ] $($rest)* } };
}
pub(super) use nets_bugs;
