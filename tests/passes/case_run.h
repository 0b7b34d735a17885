// The compiler's answers to the questions of a case.
#pragma once

#include <string>
#include <vector>

namespace sinter::test {

struct CaseResult {
  std::string text;     // the case with today's answers
  std::string failure;  // why the case cannot be understood, or how its plans differ; or ""
  std::vector<std::string> changed_passes;  // those after which the module is not the expected one
};

/// Compiles the module of a case and answers its questions. A case that is no `model` is also run,
/// fused and unfused (plan_runs.h). Errors name the file of `path`.
CaseResult run_case(const std::string& text, const std::string& path);

/// The commands that run the case at `path` alone by `program`, accept its new answers and show the
/// modules after the passes that changed.
std::string case_commands(const CaseResult& result, const std::string& program,
                          const std::string& path);

}  // namespace sinter::test
