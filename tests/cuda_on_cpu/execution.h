// How the simulated driver executes kernels. The folders `compiled` and `ptx` each implement the
// functions of this file; a build of the simulated driver contains one of the two implementations.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string>
#include <vector>

#include "include/block.h"

namespace cuda_on_cpu {

// Kernel of a loaded module.
struct Kernel;

struct Launch {
    const Kernel *kernel;
    // Number of the simulated GPU.
    int card;
    Index blocks, threads;
    // Copies of the arguments of the launched kernel.
    std::vector<std::vector<char>> arguments;
};

// Returns whether kernels can be executed. `cuInit` calls this function once per process.
bool can_execute();

// Returns the kernel `name` of a module with the text `ptx`, or null if the kernel cannot be
// executed. The kernel stays valid until the process ends.
const Kernel *find_kernel(const std::string &ptx, const std::string &name);

// Returns the sizes of the kernel's arguments in bytes.
std::vector<size_t> argument_sizes(const Kernel &kernel);

// Runs all thread blocks of a kernel launch. Returns an empty string, or a description of an error.
std::string run(Launch &launch);

// Owner of pinned host memory, which every GPU may access.
constexpr int HOST = -1;

// The driver reports changes of the memory that kernels may access: a new block of a GPU or of
// `HOST`, a block that is no longer valid, bytes that a call has written, and bytes that a call has
// copied.
void memory_added(uint64_t start, size_t bytes, int card);
void memory_removed(uint64_t start);
void memory_written(uint64_t start, size_t bytes);
void memory_copied(uint64_t to, uint64_t from, size_t bytes);

}  // namespace cuda_on_cpu
