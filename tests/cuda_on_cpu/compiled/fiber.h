// Fibers: separate stacks between which one host thread switches.
#pragma once

#include <stddef.h>

namespace cuda_on_cpu {

// Fiber: a function with a separate stack, which can pause and resume. All calls for a fiber must
// come from the same host thread.
class Fiber {
  public:
    Fiber();
    Fiber(const Fiber &) = delete;
    ~Fiber();

    // Prepares the fiber so that the next `resume` calls `body`. The body that the fiber ran before
    // must have returned.
    void prepare(void (*body)());

    // Runs the fiber until the fiber pauses or its body returns.
    void resume();

    // Pauses the fiber that calls this function, and returns to the caller of `resume`.
    void pause();

  private:
    static void begin();

    char *stack;
    // Saved stack pointers of the fiber and of the caller of `resume`.
    void *own_sp, *caller_sp;
    // State that the address sanitizer needs when the host thread switches between stacks.
    void *own_fake_stack;
    const void *caller_stack;
    size_t caller_stack_size;
};

}  // namespace cuda_on_cpu
