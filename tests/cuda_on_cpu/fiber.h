// Fibers: stacks between which one host thread switches.
#pragma once

#include <stddef.h>

namespace cuda_on_cpu {

// A fiber. All calls must come from one host thread.
class Fiber {
  public:
    Fiber();
    Fiber(const Fiber &) = delete;
    ~Fiber();

    // Makes the next `resume` start `body`. A previous body must have ended.
    void prepare(void (*body)());

    // Runs the fiber until it pauses.
    void resume();

    // Called in the fiber: returns to the caller of `resume`.
    void pause();

  private:
    static void begin();

    char *stack;
    // Saved stack pointers of the fiber and of the caller of `resume`.
    void *own_sp, *caller_sp;
    // State for the address sanitizer, which must know every stack.
    void *own_fake_stack;
    const void *caller_stack;
    size_t caller_stack_size;
};

}  // namespace cuda_on_cpu
