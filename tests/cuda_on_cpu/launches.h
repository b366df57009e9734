// Kernel launches, which calls queue one by one or as nodes of a graph.
#pragma once

#include "card.h"
#include "execution.h"

namespace cuda_on_cpu {

// Kernel of a module that a simulated GPU has loaded.
struct Function {
    std::string name;
    const Kernel *kernel;
    Card *card;
};

// Launch of a kernel, with copies of the kernel's name and arguments, because a queued launch may run
// after the kernel's module has been unloaded.
struct PreparedLaunch {
    std::string name;
    Card *card;
    Launch launch;

    // Executes the launch. A queued launch calls this function when it runs.
    Code execute();
};

// Checks the parameters of a launch on `card` as the driver does, and copies the arguments.
Code prepare(Card &card, const Function *function, Index blocks, Index threads, unsigned shared,
             void **arguments, void **extra, PreparedLaunch *prepared);

}  // namespace cuda_on_cpu
