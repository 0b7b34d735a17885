// The tests' control of the library in fake_cublaslt.cpp, which is loaded at run time instead of
// libcublasLt.so.13.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/fake_library.h"

namespace sinter {

/// An algorithm that the library proposes.
struct FakeAlgorithm {
  uint32_t id = 0;
  double milliseconds = 1;
  bool wrong = false;  // leaves out half of k
};

/// The library's own entry points for tests. The driver of fake_driver.h is loaded before it.
class FakeCublasLt : public FakeLibrary {
 public:
  /// The proposal number `index` for a product of `rows` rows, if there is one.
  using Propose = bool (*)(uint64_t rows, int index, FakeAlgorithm& out);

  using FakeLibrary::FakeLibrary;

  void propose(Propose function) const { ask<void(Propose)>("sinter_fake_propose")(function); }
  /// The algorithm that was enqueued last, and the rows of its product.
  uint32_t last_id() const { return ask<uint32_t()>("sinter_fake_last_id")(); }
  uint64_t last_rows() const { return ask<uint64_t()>("sinter_fake_last_rows")(); }
  /// The memory in which that algorithm works.
  uint64_t last_workspace() const { return ask<uint64_t()>("sinter_fake_last_workspace")(); }
  /// Products that were enqueued since the last call.
  size_t take_products() const { return ask<size_t()>("sinter_fake_take_products")(); }
};

}  // namespace sinter
