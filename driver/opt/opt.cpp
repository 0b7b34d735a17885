#include "driver/opt/opt.h"

#include <array>
#include <cstdio>

#include "frontends/load_model.h"
#include "ir/text.h"

namespace sinter {
namespace {

Result<std::vector<Pass>> chosen_passes(llvm::ArrayRef<std::string> names) {
  if (names.empty()) return pipeline().vec();
  std::vector<Pass> chosen;
  for (const std::string& name : names) {
    const auto* pass = llvm::find_if(pipeline(), [&](const Pass& p) { return p.name == name; });
    if (pass == pipeline().end())
      return fail(fmt::format("no pass is called \"{}\"", printable(name)), "--pass",
                  "the passes are " + pass_names(), ExitCode::usage);
    chosen.push_back(*pass);
  }
  return chosen;
}

std::string read_stdin() {
  std::string text;
  std::array<char, 1 << 16> chunk;
  while (const size_t count = std::fread(chunk.data(), 1, chunk.size(), stdin))
    text.append(chunk.data(), count);
  return text;
}

Result<Module> read_module(const std::string& path) {
  if (path == "-") return parse_module(read_stdin(), "<stdin>");
  SINTER_LET(model, load_model(path));
  return std::move(model.module);
}

}  // namespace

Result<std::string> opt(const OptRequest& request) {
  SINTER_LET(passes, chosen_passes(request.passes));
  SINTER_LET(module, read_module(request.path));
  for (const Pass& pass : passes) run_pass(pass, module, request.options);
  return print_module(module);
}

std::string pass_names() {
  std::vector<std::string_view> names;
  for (const Pass& pass : pipeline()) names.push_back(pass.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace sinter
