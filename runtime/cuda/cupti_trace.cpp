#include "runtime/cuda/cupti_trace.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>

namespace sinter {
namespace {

// NVIDIA recommends buffers of 1 to 10 MB, aligned to 8 bytes.
constexpr size_t kBufferBytes = size_t{8} << 20;
constexpr std::align_val_t kBufferAlignment{16};

// CUPTI calls back from a thread of its own with no argument for us.
struct Collector {
  std::mutex mutex;
  const CuptiApi* api = nullptr;  // while a trace lives
  ActivityReader reader;
  int failed = CuptiApi::kSuccess;  // first result of reading that was an error
};
Collector& collector() {
  static Collector* const it =
      new Collector;  // never destroyed: CUPTI may call at the end of the process
  return *it;
}

void request_buffer(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(operator new(kBufferBytes, kBufferAlignment, std::nothrow));
  *bytes = *buffer != nullptr ? kBufferBytes : 0;
  *max_records = 0;  // as many as fit
}

void complete_buffer(CudaContextHandle*, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  if (buffer == nullptr) return;
  {
    Collector& to = collector();
    const std::lock_guard lock(to.mutex);
    CuptiApi::Record* record = nullptr;
    while (to.api != nullptr && valid_bytes > 0) {
      const int result = to.api->next_record(buffer, valid_bytes, &record);
      if (result != CuptiApi::kSuccess) {
        if (result != CuptiApi::kMaxLimitReached && to.failed == CuptiApi::kSuccess)
          to.failed = result;
        break;
      }
      to.reader.add(*record);
    }
  }
  operator delete(buffer, kBufferAlignment);
}

CopyRecord::Kind copy_kind(uint8_t kind) {
  switch (kind) {
    case CuptiApi::kHostToDevice:
      return CopyRecord::Kind::host_to_device;
    case CuptiApi::kDeviceToHost:
      return CopyRecord::Kind::device_to_host;
    case CuptiApi::kDeviceToDevice:
      return CopyRecord::Kind::device_to_device;
    case CuptiApi::kHostToHost:
      return CopyRecord::Kind::host_to_host;
    case CuptiApi::kPeerToPeer:
      return CopyRecord::Kind::peer;
    default:
      return CopyRecord::Kind::other;
  }
}

}  // namespace

std::string_view to_string(CopyRecord::Kind kind) {
  switch (kind) {
    case CopyRecord::Kind::host_to_device:
      return "host to device";
    case CopyRecord::Kind::device_to_host:
      return "device to host";
    case CopyRecord::Kind::device_to_device:
      return "device to device";
    case CopyRecord::Kind::host_to_host:
      return "host to host";
    case CopyRecord::Kind::peer:
      return "device to another device";
    case CopyRecord::Kind::fill:
      return "fill";
    case CopyRecord::Kind::other:
      break;
  }
  return "copy of another kind";
}

bool crosses_bus(CopyRecord::Kind kind) {
  return kind != CopyRecord::Kind::device_to_device && kind != CopyRecord::Kind::host_to_host &&
         kind != CopyRecord::Kind::fill;
}

void ActivityReader::add(const CuptiApi::Record& record) {
  switch (record.kind) {
    case CuptiApi::kKernel:
    case CuptiApi::kConcurrentKernel: {
      const auto& from = reinterpret_cast<const CuptiApi::Kernel&>(record);
      KernelRecord& to = records_.kernels.emplace_back();
      to.name = from.name != nullptr ? from.name : "";
      to.start_ns = from.start;
      to.end_ns = from.end;
      std::copy(std::begin(from.grid), std::end(from.grid), to.grid);
      std::copy(std::begin(from.block), std::end(from.block), to.block);
      to.registers = from.registers;
      to.shared_bytes = static_cast<uint32_t>(from.static_shared + from.dynamic_shared);
      to.stream = from.stream;
      to.correlation = from.correlation;
      break;
    }
    case CuptiApi::kMemcpy:
    case CuptiApi::kMemset: {
      const auto& from = reinterpret_cast<const CuptiApi::Copy&>(record);
      const CopyRecord::Kind kind =
          record.kind == CuptiApi::kMemset ? CopyRecord::Kind::fill : copy_kind(from.copy_kind);
      records_.copies.push_back(
          {kind, from.bytes, from.start, from.end, from.stream, from.correlation});
      break;
    }
    case CuptiApi::kExternalCorrelation: {
      const auto& from = reinterpret_cast<const CuptiApi::ExternalCorrelation&>(record);
      if (from.external_kind == CuptiApi::kCustom) tags_.emplace_back(from.correlation, from.id);
      break;
    }
    default:
      break;  // the driver's calls: enabled for the sake of external correlation
  }
}

DeviceRecords ActivityReader::take() {
  std::sort(tags_.begin(), tags_.end());
  for (KernelRecord& kernel : records_.kernels) {
    const auto at =
        std::lower_bound(tags_.begin(), tags_.end(), std::pair(kernel.correlation, uint64_t{0}));
    if (at != tags_.end() && at->first == kernel.correlation) kernel.tag = at->second;
  }
  tags_.clear();
  const auto earlier = [](const auto& a, const auto& b) {
    return std::pair(a.start_ns, a.end_ns) < std::pair(b.start_ns, b.end_ns);
  };
  std::stable_sort(records_.kernels.begin(), records_.kernels.end(), earlier);
  std::stable_sort(records_.copies.begin(), records_.copies.end(), earlier);
  return std::exchange(records_, {});
}

Result<std::unique_ptr<CuptiTrace>> CuptiTrace::begin() {
  SINTER_LET(api, load_cupti());
  {
    Collector& to = collector();
    const std::lock_guard lock(to.mutex);
    if (to.api != nullptr)
      return fail("a trace of the device is under way already", {}, {}, ExitCode::internal_error);
    to.api = api;
    to.reader = {};
    to.failed = CuptiApi::kSuccess;
  }
  std::unique_ptr<CuptiTrace> trace(new CuptiTrace(*api));
  SINTER_TRY(trace->check(api->register_callbacks(request_buffer, complete_buffer),
                          "cuptiActivityRegisterCallbacks"));
  // External correlation is recorded for calls of the driver and the runtime that are recorded too.
  for (int kind : {CuptiApi::kExternalCorrelation, CuptiApi::kDriver, CuptiApi::kRuntime,
                   CuptiApi::kMemcpy, CuptiApi::kMemset, CuptiApi::kConcurrentKernel}) {
    SINTER_TRY(
        trace->check(api->enable(kind), fmt::format("cuptiActivityEnable of kind {}", kind)));
    trace->enabled_.push_back(kind);
  }
  return trace;
}

CuptiTrace::~CuptiTrace() {
  for (int kind : enabled_) (void)api_.disable(kind);
  if (!enabled_.empty()) (void)api_.flush_all(CuptiApi::kFlushForced);
  Collector& from = collector();
  const std::lock_guard lock(from.mutex);
  from.api = nullptr;
  from.reader = {};
}

Result<DeviceRecords> CuptiTrace::collect() {
  SINTER_TRY(check(api_.flush_all(CuptiApi::kFlushForced), "cuptiActivityFlushAll"));
  size_t dropped = 0;
  SINTER_TRY(
      check(api_.dropped_records(nullptr, 0, &dropped), "cuptiActivityGetNumDroppedRecords"));
  if (dropped > 0)
    return fail(fmt::format("CUPTI lost {} records", dropped), {}, "profile fewer steps",
                ExitCode::device);
  Collector& from = collector();
  const std::lock_guard lock(from.mutex);
  SINTER_TRY(check(from.failed, "cuptiActivityGetNextRecord"));
  return from.reader.take();
}

Status CuptiTrace::check(int result, std::string_view call) const {
  if (result == CuptiApi::kSuccess) return {};
  Error error = cupti_error(api_, call, result);
  error.hint = "end other profilers of this process, and see that the user may profile";
  return tl::make_unexpected(std::move(error));
}

Status CuptiTrace::push(uint64_t tag) {
  return check(api_.push_external(CuptiApi::kCustom, tag),
               "cuptiActivityPushExternalCorrelationId");
}

Status CuptiTrace::pop() {
  uint64_t last = 0;
  return check(api_.pop_external(CuptiApi::kCustom, &last),
               "cuptiActivityPopExternalCorrelationId");
}

}  // namespace sinter
