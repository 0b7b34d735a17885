// Values for a module's tensors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "differential/generate.h"
#include "ir/tensor_source.h"
#include "runtime/evaluate/host_tensor.h"

namespace sinter {

/// The data that a case runs on.
struct CaseData {
  std::vector<HostTensor> inputs;           // of entry 0, in order
  std::map<std::string, HostTensor> files;  // the tensors that weight functions read
};

/// Data of a seed: mostly ordinary numbers; in one case of six some elements are zeros of either
/// sign, infinities, NaNs, subnormals and large numbers. Row numbers and ids are what ops.def asks
/// for, as the ops that read them show. A failure if there is no such data (more slots than rows).
Result<CaseData> random_data(const Case& test, uint64_t seed);

/// The files of a case as weights are loaded from.
class CaseFiles : public TensorSource {
 public:
  explicit CaseFiles(const CaseData& data);
  std::optional<TensorType> find(std::string_view name) const override;
  Status read(std::string_view name, std::span<std::byte> out) const override;

 private:
  const CaseData& data_;
};

}  // namespace sinter
