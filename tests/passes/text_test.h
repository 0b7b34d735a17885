// Cases of the passes as text: a module, what is asked of the compiler, and what it answers.
//
//   What the case shows, for a person.
//   input:                       a module in text IR, up to the line "}"
//   model: golden/llama          or a model's folder under tests/
//   entry: decode                default: the first entry
//   forbid: a, b                 may repeat, as may require
//   require: a, b
//   stop-after: 1
//   target: sm_80
//   no-fuse: yes
//   numerics: fast             default: strict; fast plans are not run
//   run: 3, 16                   symbol values of the run; default: small ones
//   groups:                      expectation: every kernel and call of the entry, in their order
//     rows 1: res1 norm2 => res1 norm2        leading axes that make a row: members => results
//     call: up                                a contraction
//   group of res1:               the line of one value's kernel
//   why norm1 res1:              the verdict: reason id, what decided, the path
//   reductions in norm2:         reductions in the kernel that computes a value
//   distinct kernels:            of the whole program; text: CUDA without comment and name
//   after merge_linears:         the module as that pass leaves it
//   error:                       why it cannot be compiled
//
// Expectations stand below their heading, indented. A case with an `input` is also run, fused and
// unfused (plan_runs.h).
#pragma once

#include <string>

namespace sinter::test {

/// Runs the case in the file and returns its text with today's answers in place of the
/// expectations; `failure` says where the file cannot be understood or the plans differ.
struct CaseResult {
  std::string text;
  std::string failure;
};
CaseResult run_case(const std::string& text, const std::string& path);

/// Lines of `wanted` and `got` that differ, marked - and +, with a line of context.
std::string line_difference(const std::string& wanted, const std::string& got);

/// Checks a text against the file `name` below tests: a doctest failure shows the difference and
/// how to accept it, by the name that ctest knows the `test` by; with SINTER_BLESS=1 the file is
/// rewritten.
void check_text_file(const std::string& text, const std::string& name, const std::string& test);

/// Runs the case file below tests/passes: a doctest failure shows the difference and how to accept
/// it; with SINTER_BLESS=1 the file is rewritten.
void check_case_file(const std::string& path);

}  // namespace sinter::test
