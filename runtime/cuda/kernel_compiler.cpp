#include "runtime/cuda/kernel_compiler.h"

#include <llvm/ADT/SmallVector.h>

namespace sinter {
namespace {

CacheKey key_of(const NvrtcFile& nvrtc, const KernelSource& source,
                llvm::ArrayRef<EmbeddedHeader> headers, llvm::ArrayRef<std::string> options) {
  llvm::SmallVector<std::string_view> parts = {nvrtc.identity, source.text};
  parts.append(options.begin(), options.end());
  for (const EmbeddedHeader& header : headers) {
    parts.push_back(header.name);
    parts.push_back(header.text);
  }
  return CacheKey::of(parts);
}

}  // namespace

Result<CompiledKernels> compile_cached(const NvrtcFile& nvrtc, const KernelCache& cache,
                                       llvm::ArrayRef<KernelSource> sources,
                                       llvm::ArrayRef<EmbeddedHeader> headers,
                                       const std::string& arch, unsigned threads) {
  CompiledKernels result;
  llvm::SmallVector<CacheKey> keys;
  llvm::SmallVector<KernelSource> missing;
  llvm::SmallVector<size_t> missing_index;
  const std::vector<std::string> options = nvrtc_options(arch);
  for (const KernelSource& source : sources) {
    keys.push_back(key_of(nvrtc, source, headers, options));
    Cubin& cubin = result.cubins.emplace_back();
    if (std::optional<std::string> bytes = cache.find(keys.back())) {
      cubin.bytes = std::move(*bytes);
      ++result.from_cache;
    } else {
      missing_index.push_back(result.cubins.size() - 1);
      missing.push_back(source);
    }
  }
  if (missing.empty()) return result;
  SINTER_LET(compiled, compile_kernels(nvrtc, missing, headers, arch, threads));
  for (size_t i = 0; i < compiled.size(); ++i) {
    cache.store(keys[missing_index[i]], compiled[i].bytes);
    result.cubins[missing_index[i]] = std::move(compiled[i]);
  }
  cache.trim();
  return result;
}

}  // namespace sinter
