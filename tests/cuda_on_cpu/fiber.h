// Fibers: separate stacks between which one host thread switches.
#pragma once

#include <stddef.h>

namespace cuda_on_cpu {

// Fiber with a separate stack. All calls for a fiber must come from one host thread.
class Fiber {
  public:
    Fiber();
    Fiber(const Fiber &) = delete;
    ~Fiber();

    // Prepares the fiber so that the next `resume` calls `body`. The function that the fiber ran
    // before must have returned.
    void prepare(void (*body)());

    // Runs the fiber until it pauses or its body returns.
    void resume();

    // Pauses the fiber that calls this function, and returns to the caller of `resume`.
    void pause();

  private:
    static void begin();

    char *stack;
    // Saved stack pointers: of the fiber, and of the caller of `resume`.
    void *own_sp, *caller_sp;
    // State of the address sanitizer, which must know every stack.
    void *own_fake_stack;
    const void *caller_stack;
    size_t caller_stack_size;
};

}  // namespace cuda_on_cpu
