#include "shim/shim_module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <set>

#include "runtime/cuda/kernel_cache.h"
#include "shim/shim_compiler.h"
#include "shim/shim_source.h"

namespace sinter {
namespace {

/// The folder of PTX instructions in kernel text, which tests/shim/isa plays on the CPU.
constexpr std::string_view kInstructions = "kernels/isa/";

/// The headers of one text, rewritten, with cuda_shim.h precompiled beside them.
class HeaderFolder {
 public:
  static Result<const HeaderFolder*> find(llvm::ArrayRef<EmbeddedHeader> headers);
  std::string path() const { return folder_.path().string(); }
  /// All headers as they are written.
  const std::string& text() const { return text_; }
  std::string prelude() const { return (folder_.path() / "prelude.h").string(); }

 private:
  Status fill(llvm::ArrayRef<EmbeddedHeader> headers);
  Status add(const std::filesystem::path& name, std::string_view text);
  ScratchFolder folder_;
  std::string text_;
};

Result<const HeaderFolder*> HeaderFolder::find(llvm::ArrayRef<EmbeddedHeader> headers) {
  static std::map<std::string, std::unique_ptr<HeaderFolder>> folders;
  std::string key;
  for (const EmbeddedHeader& header : headers)
    key += fmt::format("{}\n{}\n", header.name, header.text);
  auto& folder = folders[key];
  if (!folder) {
    auto made = std::make_unique<HeaderFolder>();
    SINTER_TRY(made->fill(headers));
    folder = std::move(made);
  }
  return folder.get();
}

Status HeaderFolder::fill(llvm::ArrayRef<EmbeddedHeader> headers) {
  const std::filesystem::path& path = folder_.path();
  for (const EmbeddedHeader& header : headers)
    if (!header.name.starts_with(kInstructions)) SINTER_TRY(add(header.name, header.text));
  std::set<std::filesystem::path> instructions;
  for (const auto& file : std::filesystem::directory_iterator(SINTER_SHIM_INCLUDE "/shim/isa"))
    if (file.path().extension() == ".cuh") instructions.insert(file.path());
  for (const std::filesystem::path& file : instructions)
    SINTER_TRY(add(std::string(kInstructions) + file.filename().string(), read_file(file)));
  write_file(path / "prelude.h", "#include \"shim/cuda_shim.h\"\n");
  return run_compiler({"-x", "c++-header", prelude(), "-o", prelude() + ".gch"},
                      path / "prelude.log");
}

Status HeaderFolder::add(const std::filesystem::path& name, std::string_view header) {
  SINTER_LET(text, rewrite_shared(header));
  std::filesystem::create_directories((folder_.path() / name).parent_path());
  write_file(folder_.path() / name, text);
  text_ += fmt::format("{}\n{}\n", name.string(), text);
  return {};
}

/// One translation unit: all includes, then a namespace and an entry function per kernel.
Result<std::string> translation_unit(const std::map<std::string, std::string_view>& kernels) {
  std::set<std::string> includes;
  std::string body;
  size_t number = 0;
  for (const auto& [name, text] : kernels) {
    auto rewritten = rewrite_shared(hoist_includes(text, includes));
    if (!rewritten) return fail(rewritten.error().what, name);
    fmt::format_to(std::back_inserter(body),
                   "namespace sinter_kernel_{0} {{\n#line 1 \"{1}.cu\"\n{2}\n}}\n"
                   "extern \"C\" void sinter_run_{0}(void** arguments) {{\n"
                   "  sinter_shim::call_kernel(&sinter_kernel_{0}::{1}, arguments);\n}}\n"
                   "extern \"C\" const int sinter_parameters_{0} =\n"
                   "    sinter_shim::count_parameters(&sinter_kernel_{0}::{1});\n",
                   number++, name, *rewritten);
  }
  std::string unit;
  for (const std::string& include : includes) unit += include + '\n';
  return unit + body +
         "extern \"C\" void sinter_connect(const sinter_shim::Calls* calls) {\n"
         "  sinter_shim_calls = calls;\n}\n";
}

/// Compiles a unit into the library `binary`, or takes it from the folder that SINTER_SHIM_CACHE
/// names, where one process finds what another has compiled.
Status make_library(const std::string& unit, const HeaderFolder& headers,
                    const ScratchFolder& folder, const std::string& binary) {
  const char* kept = std::getenv("SINTER_SHIM_CACHE");
  const KernelCache cache(kept ? kept : "");
  const CacheKey key = CacheKey::of({compiler_identity(), headers.text(), unit});
  if (const auto found = cache.find(key)) {
    write_file(binary, *found);
    return {};
  }
  const std::string source = (folder.path() / "kernels.cpp").string();
  write_file(source, unit);
  SINTER_TRY(run_compiler({"-I" + headers.path(), "-include", headers.prelude(), "-shared",
                           "-Wl,-Bsymbolic", source, "-o", binary},
                          folder.path() / "kernels.log"));
  if (kept) cache.store(key, read_file(binary));
  return {};
}

}  // namespace

void ShimModule::Close::operator()(void* library) const { dlclose(library); }

Status ShimModule::prepare(llvm::ArrayRef<EmbeddedHeader> headers) {
  SINTER_TRY(HeaderFolder::find(headers));
  return {};
}

Result<ShimModule> ShimModule::compile(llvm::ArrayRef<ShimSource> kernels,
                                       llvm::ArrayRef<EmbeddedHeader> headers,
                                       const std::string& prefix) {
  std::map<std::string, std::string_view> by_name;
  for (const ShimSource& kernel : kernels) {
    const auto [entry, added] = by_name.try_emplace(kernel.name, kernel.text);
    if (!added && entry->second != kernel.text)
      return fail("two kernels of one name have different texts", kernel.name);
  }
  SINTER_LET(header_folder, HeaderFolder::find(headers));
  SINTER_LET(unit, translation_unit(by_name));
  ScratchFolder folder;
  const std::string binary = (folder.path() / "kernels.so").string();
  SINTER_TRY(make_library(prefix + unit, *header_folder, folder, binary));

  ShimModule module;
  module.library_.reset(dlopen(binary.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!module.library_) return fail(dlerror(), binary);
  const auto symbol = [&](const std::string& name) {
    void* address = dlsym(module.library_.get(), name.c_str());
    SINTER_CHECK(address, "no symbol {}", name);
    return address;
  };
  reinterpret_cast<void (*)(const sinter_shim::Calls*)>(symbol("sinter_connect"))(runner_calls());
  size_t number = 0;
  for (const auto& [name, text] : by_name) {
    const std::string suffix = std::to_string(number++);
    module.kernels_[name] = {
        reinterpret_cast<sinter_shim::KernelEntry>(symbol("sinter_run_" + suffix)),
        *static_cast<const int*>(symbol("sinter_parameters_" + suffix))};
  }
  return module;
}

int ShimModule::parameter_count(std::string_view name) const {
  const auto kernel = kernels_.find(name);
  SINTER_CHECK(kernel != kernels_.end(), "no kernel {}", name);
  return kernel->second.parameter_count;
}

Status ShimModule::launch(std::string_view name, const Grid& grid, llvm::ArrayRef<void*> arguments,
                          ThreadOrder order) const {
  const auto kernel = kernels_.find(name);
  SINTER_CHECK(kernel != kernels_.end(), "no kernel {}", name);
  if (static_cast<size_t>(kernel->second.parameter_count) != arguments.size())
    return fail(fmt::format("the kernel has {} parameters, the launch {} arguments",
                            kernel->second.parameter_count, arguments.size()),
                std::string(name));
  return run_grid(name, kernel->second.entry, grid, const_cast<void**>(arguments.data()), order);
}

}  // namespace sinter
