//! Functions of the WebAssembly module, with C's calling convention.
//!
//! JavaScript writes inputs to buffers in the module's memory, calls a function, and reads outputs
//! from other buffers. A call can replace the buffers of the weights and of the error message, and
//! can grow the module's memory, which detaches JavaScript's views. JavaScript must therefore cache
//! neither addresses nor views.

mod recognizer;

use cortado::{Error, Result};
use recognizer::{DIGITS, PIXELS, Recognizer};
use std::cell::RefCell;

/// The state of the page.
struct Page {
    weights: Vec<u8>,
    recognizer: Option<Recognizer>,
    pixels: [f32; PIXELS],
    probabilities: [f32; DIGITS],
    /// Message of the last error.
    error: String,
}

thread_local! {
    static PAGE: RefCell<Page> = const {
        RefCell::new(Page {
            weights: Vec::new(),
            recognizer: None,
            pixels: [0.0; PIXELS],
            probabilities: [0.0; DIGITS],
            error: String::new(),
        })
    };
}

fn with_page<R>(body: impl FnOnce(&mut Page) -> R) -> R {
    PAGE.with_borrow_mut(body)
}

/// Runs `body`. Returns whether `body` succeeded, and stores the message of an error.
fn succeeds(body: impl FnOnce(&mut Page) -> Result<()>) -> bool {
    with_page(|page| {
        let result = body(page);
        let has_succeeded = result.is_ok();
        page.error = result.err().map(|error| error.to_string()).unwrap_or_default();
        has_succeeded
    })
}

/// Returns the address of a buffer for `len` bytes of weights.
#[unsafe(no_mangle)]
pub extern "C" fn weights_buffer(len: usize) -> *mut u8 {
    with_page(|page| {
        page.weights = vec![0; len];
        page.weights.as_mut_ptr()
    })
}

/// Builds the net with the weights in the buffer, and frees the buffer.
#[unsafe(no_mangle)]
pub extern "C" fn load_weights() -> bool {
    succeeds(|page| {
        let weights = std::mem::take(&mut page.weights);
        page.recognizer = Some(Recognizer::new(&weights)?);
        Ok(())
    })
}

/// Returns the address of the buffer for the pixels, 784 values of `f32` from 0 to 1.
#[unsafe(no_mangle)]
pub extern "C" fn pixels_buffer() -> *mut f32 {
    with_page(|page| page.pixels.as_mut_ptr())
}

/// Computes the probabilities of the digits from the pixels in the buffer.
#[unsafe(no_mangle)]
pub extern "C" fn recognize() -> bool {
    succeeds(|page| {
        let unloaded = || Error::InvalidData("no weights; call load_weights first".into());
        let recognizer = page.recognizer.as_mut().ok_or_else(unloaded)?;
        page.probabilities = recognizer.probabilities(&page.pixels)?;
        Ok(())
    })
}

/// Returns the address of the ten probabilities, values of `f32`.
#[unsafe(no_mangle)]
pub extern "C" fn probabilities_buffer() -> *const f32 {
    with_page(|page| page.probabilities.as_ptr())
}

/// Returns the address of the message of the last error, as UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn error_buffer() -> *const u8 {
    with_page(|page| page.error.as_ptr())
}

/// Returns the length in bytes of the message of the last error.
#[unsafe(no_mangle)]
pub extern "C" fn error_len() -> usize {
    with_page(|page| page.error.len())
}
