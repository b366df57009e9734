//! A program that depends on cortado's feature `cuda`. `.ci/cuda` builds the program outside the
//! repository and runs it on a machine without a driver.

/// Another CUDA crate may define a driver function that cortado defines as well. If two crates
/// define the same driver function, the program must still link.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
extern "C" fn cuArrayDestroy(_: *mut u8) -> i32 {
    0
}

fn main() {
    assert_eq!(cortado::device::device_names(), ["cpu"]);
    match cortado::device::open("cuda:0", Default::default()) {
        Err(error) => println!("{error}"),
        Ok(_) => panic!("cuda:0 opened without a driver"),
    }
}
