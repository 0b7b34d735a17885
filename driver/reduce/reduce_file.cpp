#include "driver/reduce/reduce_file.h"

#include <filesystem>

#include "driver/temporary_folder.h"
#include "driver/text_file.h"
#include "frontends/load_model.h"
#include "ir/text.h"

namespace sinter {
namespace {

/// Asks the command about modules, each under the same path.
class FileCheck {
 public:
  static Result<FileCheck> create(const ReduceRequest& request) {
    SINTER_LET(folder, TemporaryFolder::beside(request.output));
    return FileCheck(std::move(folder), request.check);
  }
  Result<CheckEnd> run(const Module& module) const {
    const std::string path = (folder_.path() / "candidate.sir").string();
    SINTER_TRY(write_text(path, print_module(module)));
    return run_check(command_, path);
  }

 private:
  FileCheck(TemporaryFolder folder, CheckCommand command)
      : folder_(std::move(folder)), command_(std::move(command)) {}
  TemporaryFolder folder_;
  CheckCommand command_;
};

}  // namespace

Result<ReduceReport> reduce_file(const ReduceRequest& request) {
  SINTER_LET(model, load_model(request.path));
  SINTER_TRY(check_output_file(request.output));
  ReduceReport report;
  report.before = report.after = size_of(model.module);
  SINTER_LET(check, FileCheck::create(request));
  SINTER_LET(first, check.run(model.module));
  ++report.checks;
  if (!first.succeeded())
    return fail(
        fmt::format("the check ends with {} on the module itself", first.text(request.check)),
        "--check", "it must end with 0 where a module still fails: `! COMMAND` turns it round",
        ExitCode::usage);
  SINTER_TRY(write_text(request.output, print_module(model.module)));

  Status failed;  // of a check that could not be made
  ReduceOptions options;
  options.tries = request.tries;
  const auto tell = [&] {
    if (request.progress) request.progress(report.checks, report.after);
  };
  options.smaller = [&](const Reducible& best, int64_t) -> Status {
    report.after = size_of(best.module);
    tell();
    return write_text(request.output, print_module(best.module));
  };
  const auto fails = [&](const Reducible& candidate) {
    if (!failed) return false;
    ++report.checks;
    tell();
    auto end = check.run(candidate.module);
    if (!end) {
      failed = tl::make_unexpected(std::move(end.error()));
      return false;
    }
    report.timed_out += end->timed_out ? 1 : 0;
    return end->succeeded();
  };
  SINTER_LET(smallest, reduce({std::move(model.module), {}}, fails, options));
  SINTER_TRY(failed);
  report.text = print_module(smallest.module);
  report.after = size_of(smallest.module);
  return report;
}

}  // namespace sinter
