// Stacks that a thread of the host runs by turns.
#pragma once

#include <stddef.h>

namespace cuda_on_cpu {

// Runs `body` when first resumed. Everything here is of one thread of the host.
class Fiber {
  public:
    Fiber();
    Fiber(const Fiber &) = delete;
    ~Fiber();

    // To run `body` from its beginning, which must not be under way.
    void prepare(void (*body)());

    // Runs it until it pauses.
    void resume();

    // Called by what runs in it: goes back to whoever resumed it.
    void pause();

  private:
    static void begin();

    char *stack;
    // Where the fiber, and whoever resumed it, go on.
    void *own, *other;
    // Of the address sanitizer, which has to know about stacks.
    void *fake;
    const void *bottom;
    size_t size;
};

}  // namespace cuda_on_cpu
