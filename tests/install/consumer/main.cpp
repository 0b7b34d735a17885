// A program of somebody else's: compiles the model that it is given and asks about it.
#include <sinter/driver/sinter.h>

#include <cstdio>

namespace {

int failed(const char* what) {
  std::fprintf(stderr, "failed: %s\n", what);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return failed("usage: consumer MODEL");
  const auto fused = sinter::CompiledModel::compile(argv[1]);
  if (!fused) return failed(fused.error().message().c_str());
  sinter::ModelOptions separate;
  separate.fuse = false;
  const auto unfused = sinter::CompiledModel::compile(argv[1], separate);
  if (!unfused) return failed(unfused.error().message().c_str());

  if (fused->entries().empty()) return failed("no entry points");
  const std::string entry = fused->entries()[0];
  const auto before = unfused->launches(entry), after = fused->launches(entry);
  if (!before || !after || *after >= *before) return failed("fusion saves no launch");
  std::printf("%s: %lld launches, %lld fused\n", entry.c_str(), static_cast<long long>(*before),
              static_cast<long long>(*after));

  const auto why = fused->why(entry, "l0.norm1", "l0.res1");
  if (!why) return failed(why.error().message().c_str());
  if (why->same_kernel || why->path.size() < 3) return failed("no path between norm and residual");
  std::printf("%s\n", why->detail.c_str());

  const auto tokens = fused->generate({1, 2, 3}, 4);
  if (!tokens) return failed(tokens.error().message().c_str());
  if (tokens->size() != 4) return failed("not the number of tokens that was asked for");

  const auto absent = sinter::CompiledModel::compile("/no/such/model");
  if (absent || absent.error().code != sinter::ExitCode::bad_input)
    return failed("a model that is not there is compiled");
  return 0;
}
