// The embedded headers are the files, and each compiles by itself.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "device/capabilities.h"
#include "ir/dtype.h"
#include "kernels/library.h"
#include "support/nvrtc.h"

namespace sinter::kernel_library_test {
namespace {

namespace fs = std::filesystem;

TEST_CASE("every kernel header is embedded as it stands in its file, in the order of their paths") {
  const fs::path sources = fs::path(SINTER_TESTS_DIR).parent_path();
  std::vector<fs::path> files;
  for (const char* shared :
       {"activation.h", "attention_dropout.h", "packed_codes.h", "scalar_math.h"})
    files.push_back(sources / "ir" / shared);
  for (const auto& entry : fs::recursive_directory_iterator(sources / "kernels"))
    if (const fs::path& path = entry.path();
        path.extension() == ".cuh" || path.filename() == "order.h" || path.filename() == "layout.h")
      files.push_back(path);
  std::sort(files.begin(), files.end());

  REQUIRE(kernel_library().size() == files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    std::ifstream file(files[i], std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    CHECK(kernel_library()[i].name == files[i].lexically_relative(sources).generic_string());
    CHECK_MESSAGE(kernel_library()[i].text == text, files[i].string());
  }
}

TEST_CASE("no header loads past the wait for earlier kernels, but the one that measures memory") {
  for (const EmbeddedHeader& header : kernel_library()) {
    if (header.name == "kernels/common/bandwidth.cuh") continue;
    std::string code;  // without comments
    std::istringstream lines{std::string(header.text)};
    for (std::string line; std::getline(lines, line);)
      code += line.substr(0, line.find("//")) + '\n';
    CAPTURE(header.name);
    CHECK(code.find("__ldg") == std::string::npos);
    CHECK(code.find(".nc.") == std::string::npos);
  }
}

TEST_CASE("headers ask what a device can do by macros, and for no architecture") {
  const Capabilities all{true, true, true, true, true, true, true, true};
  const std::vector<std::string> known = kernel_macros(all);
  for (const EmbeddedHeader& header : kernel_library()) {
    CAPTURE(header.name);
    CHECK(header.text.find("__CUDA_ARCH__") == header.text.npos);
    const std::string text(header.text);
    const std::regex macro("SINTER_HAS_[A-Z0-9_]*");
    for (std::sregex_iterator at(text.begin(), text.end(), macro), end; at != end; ++at)
      CHECK_MESSAGE(std::find(known.begin(), known.end(), at->str()) != known.end(), at->str());
  }
}

TEST_CASE("every element type is loaded and stored by the kernel library") {
  const auto header = std::find_if(
      kernel_library().begin(), kernel_library().end(),
      [](const EmbeddedHeader& header) { return header.name == "kernels/common/vector.cuh"; });
  REQUIRE(header != kernel_library().end());
  for (const DTypeInfo& type : kDTypes)
    for (const std::string& function :
         {fmt::format("SINTER_DEVICE {} load(const {}* p)", type.registers, type.memory),
          fmt::format("SINTER_DEVICE void store({}* p, {} x)", type.memory, type.registers)})
      CHECK_MESSAGE(header->text.find(function) != header->text.npos, function);
}

TEST_CASE("every kernel header compiles alone" * doctest::test_suite("nvrtc")) {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  std::vector<std::string> texts;
  for (const EmbeddedHeader& header : kernel_library())
    texts.push_back(fmt::format("#include \"{}\"\n", header.name));
  std::vector<KernelSource> sources;
  for (size_t i = 0; i < texts.size(); ++i) sources.push_back({kernel_library()[i].name, texts[i]});
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const auto cubins = compile_kernels(*nvrtc, sources, kernel_library(), arch);
    CHECK_MESSAGE(cubins, cubins.error().message());
  }
}

}  // namespace
}  // namespace sinter::kernel_library_test
