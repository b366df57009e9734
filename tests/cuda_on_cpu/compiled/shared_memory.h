// The shared memory of simulated thread blocks.
#pragma once

namespace cuda_on_cpu {

// Fills the shared memory of all kernels with NaN, which reveals a kernel that reads shared memory
// before writing it. On a GPU, the initial contents of shared memory are undefined. The driver
// calls `poison_shared_memory` before each launch, but not between the blocks of a launch.
//
// Each `__shared__` array is a `thread_local` variable of this library. `poison_shared_memory`
// overwrites all `thread_local` variables of the calling thread except `current_card`.
void poison_shared_memory();

// Returns whether a kernel that reads shared memory before writing it reads NaN, in the kernel's
// first launch and in the second.
bool shared_memory_is_poisoned();

}  // namespace cuda_on_cpu
