// NVIDIA's profiling library CUPTI, found when it is asked for: the part that records what a device
// did and when. Nothing of CUDA is needed when Sinter is built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ir/error.h"

namespace sinter {

/// The library's entry points in use, with the types and numbers that its C interface gives them
/// (cupti_activity.h of CUDA 12 and 13).
struct CuptiApi {
  // CUptiResult
  static constexpr int kSuccess = 0, kMaxLimitReached = 12;
  // CUpti_ActivityKind
  static constexpr int kMemcpy = 1, kMemset = 2, kKernel = 3, kDriver = 4, kRuntime = 5,
                       kConcurrentKernel = 10, kExternalCorrelation = 39;
  // CUpti_ExternalCorrelationKind: the first that is the caller's own
  static constexpr int kCustom = 3;
  // CUpti_ActivityFlag: also buffers that are not full, records of unfinished work excepted
  static constexpr uint32_t kFlushForced = 1;
  // CUpti_ActivityMemcpyKind
  static constexpr uint8_t kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 8,
                           kHostToHost = 9, kPeerToPeer = 10;

  /// The field that every record begins with.
  struct Record {
    int32_t kind;
  };
  /// The front of CUpti_ActivityKernel9 and 10, which later versions continue.
  struct Kernel {
    int32_t kind;
    uint8_t cache_config, shared_memory_config;
    uint16_t registers;
    int32_t partitioned_cache_requested, partitioned_cache_executed;
    uint64_t start, end, completed;  // ns
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint32_t local_per_thread, local_total;
    uint32_t correlation;
    int64_t grid_id;
    const char* name;
  };
  /// The front of CUpti_ActivityMemcpy5 and 6, and with `copy_kind` without meaning of
  /// CUpti_ActivityMemset4.
  struct Copy {
    int32_t kind;
    uint8_t copy_kind, source_kind, target_kind, flags;
    uint64_t bytes;
    uint64_t start, end;  // ns
    uint32_t device, context, stream;
    uint32_t correlation;
  };
  /// CUpti_ActivityExternalCorrelation: the call `correlation` was made under `id`.
  struct ExternalCorrelation {
    int32_t kind, external_kind;
    uint64_t id;
    uint32_t correlation, reserved;
  };

  using Requested = void (*)(uint8_t** buffer, size_t* bytes, size_t* max_records);
  using Completed = void (*)(struct CudaContextHandle* context, uint32_t stream, uint8_t* buffer,
                             size_t bytes, size_t valid_bytes);

  int (*version)(uint32_t* version);
  int (*result_string)(int result, const char** text);
  int (*register_callbacks)(Requested requested, Completed completed);
  int (*enable)(int kind);
  int (*disable)(int kind);
  int (*flush_all)(uint32_t flags);
  int (*next_record)(uint8_t* buffer, size_t valid_bytes, Record** record);
  int (*dropped_records)(struct CudaContextHandle* context, uint32_t stream, size_t* count);
  int (*push_external)(int kind, uint64_t id);
  int (*pop_external)(int kind, uint64_t* last);
};

/// The library of this machine, loaded on first use and kept: where the dynamic loader finds it,
/// then in extras/CUPTI/lib64 and lib64 of $CUDA_HOME, $CUDA_PATH and /usr/local/cuda. Thread-safe.
/// The error (exit code 5) says where it was sought.
Result<const CuptiApi*> load_cupti();

/// "cuptiActivityEnable: CUPTI_ERROR_NOT_INITIALIZED (15)". `result` is not 0.
Error cupti_error(const CuptiApi& api, std::string_view call, int result);

}  // namespace sinter
