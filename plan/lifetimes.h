// The steps of a call between which it uses the memory of its inputs and outputs.
#pragma once

#include "plan/program.h"

namespace sinter {

struct Lifetimes {
  // By input of the entry: the number of steps after which the call does not read it.
  std::vector<size_t> input_ends;
  // By output of the entry: the first step that writes in its memory, or in the memory of another
  // output with this value; the number of steps if no step writes it, such as an input, which is
  // copied after the last step.
  std::vector<size_t> output_begins;
};

/// For a call with this layout. An input lives to the end if it is also an output, which is copied
/// behind the last step, or if it may hold row numbers that are looked at after the call: whole
/// numbers, where the entry has row checks. The program has passed check().
Lifetimes lifetimes(const Program& program, const EntryPlan& entry, const ArenaLayout& layout);

}  // namespace sinter
