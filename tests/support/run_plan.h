// Plans that somebody may have changed, run on the host.
#pragma once

#include <memory>

#include "plan/program.h"

namespace sinter::test {

/// Runs every entry once, on zeros, with seeded weights and the least sizes that are not below 3. A
/// text that tells two outcomes apart: hashes of the outputs, or the error. Empty where the plan
/// computes more than `most` elements in a step: that would take long and says nothing.
std::string outcome_on_host(const std::shared_ptr<const Program>& program, double most);

/// The greatest number of elements that one thing in the plan has.
double largest_of(const Program& program, llvm::ArrayRef<int64_t> sizes);

}  // namespace sinter::test
