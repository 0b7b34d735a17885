// Records of a made-up device, in numbers that are easy to add.
#pragma once

#include "driver/profile/profile.h"

namespace sinter::test {

inline KernelRecord kernel(std::string name, uint64_t start_ns, uint64_t end_ns,
                           uint32_t correlation = 0, std::optional<uint64_t> tag = {}) {
  KernelRecord record;
  record.name = std::move(name);
  record.start_ns = start_ns;
  record.end_ns = end_ns;
  record.correlation = correlation;
  record.tag = tag;
  record.grid[0] = 132;
  record.block[0] = 256;
  record.stream = 7;
  return record;
}

inline CopyRecord copy(CopyRecord::Kind kind, uint64_t bytes, uint64_t start_ns) {
  return {kind, bytes, start_ns, start_ns + 100, 7, 0};
}

/// Two steps: a norm of one kernel, and a product of two kernels of the library.
inline std::vector<ProfiledStep> two_steps() {
  return {
      {"decode", "add_rms_norm_1a2b", {"l0.res1", "l0.norm2"}, {1000, 1000, 0}, StepClass::norms},
      {"decode", "gemm 1x64x64 bf16", {"l0.qkv"}, {9000, 100, 8000}, StepClass::products}};
}

/// A token, all of one `correlation`, from `start_ns` on: the norm takes 1 µs, 1 µs nothing, then 2
/// µs and, touching, 3 µs of the product.
inline void add_token(DeviceRecords& records, uint64_t start_ns, uint32_t correlation) {
  records.kernels.push_back(kernel("add_rms_norm_1a2b", start_ns, start_ns + 1000, correlation));
  records.kernels.push_back(kernel("gemv", start_ns + 2000, start_ns + 4000, correlation));
  records.kernels.push_back(kernel("reduce", start_ns + 4000, start_ns + 7000, correlation));
  records.copies.push_back(copy(CopyRecord::Kind::device_to_host, 4, start_ns + 7500));
}

/// A token every 10 µs.
inline DeviceRecords records_of(size_t tokens) {
  DeviceRecords records;
  for (size_t i = 0; i < tokens; ++i)
    add_token(records, 100000 + 10000 * i, static_cast<uint32_t>(50 + i));
  return records;
}

/// The same with tags, as steps are launched one by one.
inline DeviceRecords tagged_records(size_t tokens) {
  DeviceRecords records = records_of(tokens);
  for (size_t i = 0; i < records.kernels.size(); ++i) {
    records.kernels[i].tag = i / 3 * 2 + (i % 3 > 0 ? 1 : 0);
    records.kernels[i].correlation = static_cast<uint32_t>(1000 + i);
  }
  return records;
}

inline ProfileCeilings ceilings() {
  return {{4e9, 0, {}, "kernel"}, {2e9, 0, {}, "driver"}, {1e12, 0, {}, "cuBLASLt 130000"}};
}

}  // namespace sinter::test
