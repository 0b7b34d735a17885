#include "shim/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "ir/error.h"
#include "shim/address_marks.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace sinter {
namespace {

constexpr size_t kStackBytes = 320 * 1024;
constexpr size_t kStackGuardBytes = 64 * 1024;

// Stacks begin at places that differ in page and in cache line: the frames of a block's threads,
// all of one shape, would otherwise compete for the same few sets of the caches and of the TLB.
constexpr size_t kStackShift = 4096 + 64;
constexpr size_t kStackShifts = 15;

/// Bytes that the next stack leaves free at its top; fewer than 64 KiB.
size_t next_shift() {
  static size_t stacks = 0;
  return stacks++ % kStackShifts * kStackShift;
}

// `switch_stack(from, to)` saves the position in *from and continues at `to`. ucontext would do on
// every machine, but makes a system call at each switch, and blocks switch hundreds of times.
#if defined(__x86_64__)

extern "C" void sinter_switch_stack(void** from, void* to);
asm(R"(
.text
.type sinter_switch_stack, @function
sinter_switch_stack:
  endbr64
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size sinter_switch_stack, .-sinter_switch_stack
.type sinter_enter_fiber, @function
sinter_enter_fiber:
  movq %r12, %rdi
  callq *%r13
  ud2
.size sinter_enter_fiber, .-sinter_enter_fiber
)");
extern "C" void sinter_enter_fiber();

void switch_stack(void** from, void* to) { sinter_switch_stack(from, to); }

// A frame as switch_stack leaves it, whose return address is the trampoline. The stack ends `shift`
// bytes below its top.
void* initial_position(std::byte* stack, size_t shift, void (*start)(void*), void* argument) {
  auto* top = reinterpret_cast<void**>(stack + kStackBytes - shift) - 2;
  void** frame = top - 7;
  frame[0] = nullptr;                         // r15
  frame[1] = nullptr;                         // r14
  frame[2] = reinterpret_cast<void*>(start);  // r13
  frame[3] = argument;                        // r12
  frame[4] = nullptr;                         // rbx
  frame[5] = nullptr;                         // rbp
  frame[6] = reinterpret_cast<void*>(&sinter_enter_fiber);
  return frame;
}

#else

void switch_stack(void** from, void* to) {
  ucontext_t here;
  *from = &here;
  swapcontext(&here, static_cast<ucontext_t*>(to));
}

void enter(unsigned start_high, unsigned start_low, unsigned argument_high, unsigned argument_low) {
  const auto join = [](unsigned high, unsigned low) {
    return static_cast<uintptr_t>(uint64_t{high} << 32 | low);
  };
  reinterpret_cast<void (*)(void*)>(join(start_high, start_low))(
      reinterpret_cast<void*>(join(argument_high, argument_low)));
}

// makecontext passes ints only. The context lives at the far end of the fiber's own stack, which
// ends `shift` bytes below its top.
void* initial_position(std::byte* stack, size_t shift, void (*start)(void*), void* argument) {
  auto* context = new (stack) ucontext_t;
  getcontext(context);
  context->uc_stack.ss_sp = stack + sizeof(ucontext_t);
  context->uc_stack.ss_size = kStackBytes - shift - sizeof(ucontext_t);
  context->uc_link = nullptr;
  const uint64_t s = reinterpret_cast<uintptr_t>(start);
  const uint64_t a = reinterpret_cast<uintptr_t>(argument);
  makecontext(context, reinterpret_cast<void (*)()>(&enter), 4, static_cast<unsigned>(s >> 32),
              static_cast<unsigned>(s), static_cast<unsigned>(a >> 32), static_cast<unsigned>(a));
  return context;
}

#endif

std::byte* map_stack() {
  void* memory = mmap(nullptr, kStackGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  SINTER_CHECK(memory != MAP_FAILED, "no memory for a stack of {} bytes", kStackBytes);
  SINTER_CHECK(mprotect(memory, kStackGuardBytes, PROT_NONE) == 0);
  return static_cast<std::byte*>(memory) + kStackGuardBytes;
}

}  // namespace

Fiber::~Fiber() {
  if (stack_) munmap(stack_ - kStackGuardBytes, kStackGuardBytes + kStackBytes);
}

void Fiber::prepare(void (*body)(void*), void* argument) {
  if (!stack_) {
    stack_ = map_stack();
    shift_ = next_shift();
  }
  // A fiber that was abandoned half-way leaves marks of its frames.
  if (unfinished_) unpoison(stack_, kStackBytes);
  unfinished_ = true;
  body_ = body;
  argument_ = argument;
  position_ = initial_position(stack_, shift_, &Fiber::start, this);
}

void Fiber::start(void* self) {
  auto* fiber = static_cast<Fiber*>(self);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &fiber->outside_bottom_, &fiber->outside_bytes_);
#endif
  fiber->body_(fiber->argument_);
  fiber->unfinished_ = false;
  fiber->leave();
}

void Fiber::resume() {
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_, kStackBytes);
  switch_stack(&outside_, position_);
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#else
  switch_stack(&outside_, position_);
#endif
}

void Fiber::yield() {
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, outside_bottom_, outside_bytes_);
  switch_stack(&position_, outside_);
  __sanitizer_finish_switch_fiber(fake_stack, &outside_bottom_, &outside_bytes_);
#else
  switch_stack(&position_, outside_);
#endif
}

void Fiber::leave() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(nullptr, outside_bottom_, outside_bytes_);
#endif
  switch_stack(&position_, outside_);
  std::abort();
}

}  // namespace sinter
