//! The epilogue of a GEMM: the operations on each element of the result before it is stored.

/// The steps after the sum: adding a bias to each row of the result, and then ReLU.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(in crate::device::cuda) struct Epilogue {
    /// Whether the GEMM adds a bias, with one element per column of the row-major result.
    pub(in crate::device::cuda) bias: bool,
    /// Whether the GEMM applies ReLU.
    pub(in crate::device::cuda) relu: bool,
}

impl Epilogue {
    /// Returns the `cublasLtEpilogue_t`.
    pub(super) fn code(self) -> u32 {
        const DEFAULT: u32 = 1;
        const RELU: u32 = 2;
        const BIAS: u32 = 4;
        match (self.bias, self.relu) {
            (false, false) => DEFAULT,
            (bias, relu) => (BIAS * u32::from(bias)) | (RELU * u32::from(relu)),
        }
    }

    /// Returns a description of the steps, such as ` with bias`, or an empty string if there are no
    /// steps.
    pub(super) fn description(self) -> &'static str {
        match (self.bias, self.relu) {
            (false, false) => "",
            (true, false) => " with bias",
            (false, true) => " with ReLU",
            (true, true) => " with bias and ReLU",
        }
    }
}
