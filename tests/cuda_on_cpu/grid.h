// Simulation of kernel launches: the thread blocks of a grid run one after the other.
#pragma once

#include <string>
#include <vector>

#include "include/block.h"
#include "include/registry.h"

namespace cuda_on_cpu {

struct Launch {
    const Kernel *kernel;
    Index blocks, threads;
    // Copies of the arguments of the launched kernel.
    std::vector<std::vector<char>> arguments;
};

// Runs all thread blocks of a kernel launch. Returns an empty string, or a description of a
// synchronization error.
std::string run(Launch &launch);

}  // namespace cuda_on_cpu
