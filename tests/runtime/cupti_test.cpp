// CUPTI's interface as Sinter declares it against NVIDIA's header, where there is one; records in
// any order become ours; a machine without a device gets an error that says so.
#include <doctest/doctest.h>

#include <cstring>

#include "runtime/cuda/cupti_trace.h"
#include "runtime/cuda/driver.h"

#if __has_include(<cupti.h>)
#include <cupti.h>
#endif

namespace sinter::cupti_test {
namespace {

#if __has_include(<cupti.h>)

using Api = CuptiApi;

#define SAME_NUMBER(ours, theirs) \
  static_assert(static_cast<int>(Api::ours) == static_cast<int>(theirs), #theirs)
SAME_NUMBER(kSuccess, CUPTI_SUCCESS);
SAME_NUMBER(kMaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME_NUMBER(kMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME_NUMBER(kMemset, CUPTI_ACTIVITY_KIND_MEMSET);
SAME_NUMBER(kKernel, CUPTI_ACTIVITY_KIND_KERNEL);
SAME_NUMBER(kDriver, CUPTI_ACTIVITY_KIND_DRIVER);
SAME_NUMBER(kRuntime, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME_NUMBER(kConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME_NUMBER(kExternalCorrelation, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
SAME_NUMBER(kCustom, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
SAME_NUMBER(kFlushForced, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME_NUMBER(kHostToDevice, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
SAME_NUMBER(kDeviceToHost, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
SAME_NUMBER(kDeviceToDevice, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
SAME_NUMBER(kHostToHost, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH);
SAME_NUMBER(kPeerToPeer, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);

#define SAME_PLACE(record, ours, type, theirs)                          \
  static_assert(offsetof(Api::record, ours) == offsetof(type, theirs)); \
  static_assert(sizeof(Api::record::ours) == sizeof(type::theirs))
SAME_PLACE(Record, kind, CUpti_Activity, kind);

// The newest kernel record of a header; older ones agree in what is read (checked with CUDA 12's).
#if CUPTI_API_VERSION >= 130000
using TheirKernel = CUpti_ActivityKernel10;
using TheirCopy = CUpti_ActivityMemcpy6;
#else
using TheirKernel = CUpti_ActivityKernel9;
using TheirCopy = CUpti_ActivityMemcpy5;
#endif
SAME_PLACE(Kernel, kind, TheirKernel, kind);
SAME_PLACE(Kernel, registers, TheirKernel, registersPerThread);
SAME_PLACE(Kernel, start, TheirKernel, start);
SAME_PLACE(Kernel, end, TheirKernel, end);
SAME_PLACE(Kernel, stream, TheirKernel, streamId);
SAME_PLACE(Kernel, grid[0], TheirKernel, gridX);
SAME_PLACE(Kernel, grid[2], TheirKernel, gridZ);
SAME_PLACE(Kernel, block[0], TheirKernel, blockX);
SAME_PLACE(Kernel, block[2], TheirKernel, blockZ);
SAME_PLACE(Kernel, static_shared, TheirKernel, staticSharedMemory);
SAME_PLACE(Kernel, dynamic_shared, TheirKernel, dynamicSharedMemory);
SAME_PLACE(Kernel, correlation, TheirKernel, correlationId);
SAME_PLACE(Kernel, name, TheirKernel, name);
SAME_PLACE(Copy, copy_kind, TheirCopy, copyKind);
SAME_PLACE(Copy, bytes, TheirCopy, bytes);
SAME_PLACE(Copy, start, TheirCopy, start);
SAME_PLACE(Copy, end, TheirCopy, end);
SAME_PLACE(Copy, stream, TheirCopy, streamId);
SAME_PLACE(Copy, correlation, TheirCopy, correlationId);
SAME_PLACE(Copy, bytes, CUpti_ActivityMemset4, bytes);
SAME_PLACE(Copy, start, CUpti_ActivityMemset4, start);
SAME_PLACE(Copy, end, CUpti_ActivityMemset4, end);
SAME_PLACE(Copy, stream, CUpti_ActivityMemset4, streamId);
SAME_PLACE(Copy, correlation, CUpti_ActivityMemset4, correlationId);
SAME_PLACE(ExternalCorrelation, external_kind, CUpti_ActivityExternalCorrelation, externalKind);
SAME_PLACE(ExternalCorrelation, id, CUpti_ActivityExternalCorrelation, externalId);
SAME_PLACE(ExternalCorrelation, correlation, CUpti_ActivityExternalCorrelation, correlationId);

#endif

CuptiApi::Kernel kernel(const char* name, uint64_t start, uint32_t correlation) {
  CuptiApi::Kernel record = {};
  record.kind = CuptiApi::kConcurrentKernel;
  record.name = name;
  record.start = start;
  record.end = start + 10;
  record.registers = 40;
  record.grid[0] = 132;
  record.grid[1] = record.grid[2] = 1;
  record.block[0] = 256;
  record.block[1] = record.block[2] = 1;
  record.static_shared = 1000;
  record.dynamic_shared = 24;
  record.stream = 7;
  record.correlation = correlation;
  return record;
}

template <typename T>
void add(ActivityReader& reader, const T& record) {
  reader.add(reinterpret_cast<const CuptiApi::Record&>(record));
}

void add_tag(ActivityReader& reader, uint32_t correlation, uint64_t tag,
             int kind = CuptiApi::kCustom) {
  add(reader,
      CuptiApi::ExternalCorrelation{CuptiApi::kExternalCorrelation, kind, tag, correlation, 0});
}

TEST_CASE("records in any order are sorted, and kernels get the tag of their call") {
  ActivityReader reader;
  add(reader, kernel("late", 300, 12));
  add_tag(reader, 11, 5);
  add_tag(reader, 12, 99, CuptiApi::kCustom + 1);  // another tool's
  CuptiApi::Copy copy = {};
  copy.kind = CuptiApi::kMemcpy;
  copy.copy_kind = CuptiApi::kDeviceToHost;
  copy.bytes = 4;
  copy.start = 400;
  copy.end = 402;
  add(reader, copy);
  copy.kind = CuptiApi::kMemset;
  copy.start = 150;
  add(reader, copy);
  add(reader, kernel("early", 100, 11));
  add(reader, kernel("twin", 200, 11));
  add(reader, CuptiApi::Record{CuptiApi::kDriver});
  const DeviceRecords records = reader.take();

  REQUIRE(records.kernels.size() == 3);
  CHECK(records.kernels[0].name == "early");
  CHECK(records.kernels[0].tag == 5);
  CHECK(records.kernels[1].name == "twin");
  CHECK(records.kernels[1].tag == 5);
  CHECK(records.kernels[2].name == "late");
  CHECK(!records.kernels[2].tag);
  CHECK(records.kernels[0].end_ns == 110);
  CHECK(records.kernels[0].grid[0] == 132);
  CHECK(records.kernels[0].block[0] == 256);
  CHECK(records.kernels[0].registers == 40);
  CHECK(records.kernels[0].shared_bytes == 1024);
  CHECK(records.kernels[0].stream == 7);
  REQUIRE(records.copies.size() == 2);
  CHECK(records.copies[0].kind == CopyRecord::Kind::fill);
  CHECK(records.copies[1].kind == CopyRecord::Kind::device_to_host);
  CHECK(records.copies[1].bytes == 4);
  CHECK(crosses_bus(records.copies[1].kind));
  CHECK(!crosses_bus(records.copies[0].kind));
  CHECK(reader.take().kernels.empty());
}

TEST_CASE("a tag of an earlier collection does not reach later kernels") {
  ActivityReader reader;
  add_tag(reader, 11, 5);
  (void)reader.take();
  add(reader, kernel("k", 100, 11));
  CHECK(!reader.take().kernels[0].tag);
}

TEST_CASE("a machine without CUPTI or a device gets an error that says so") {
  const auto loaded = load_cupti();
  if (!loaded) {
    CHECK(loaded.error().code == ExitCode::device);
    CHECK(loaded.error().what.starts_with("CUPTI cannot be loaded as any of libcupti.so.13"));
    CHECK(loaded.error().hint.find("CUDA_HOME") != std::string::npos);
    CHECK(!CuptiTrace::begin());
    return;
  }
  uint32_t version = 0;
  CHECK((*loaded)->version(&version) == CuptiApi::kSuccess);
  CHECK(version > 0);
  CHECK(cupti_error(**loaded, "cuptiActivityEnable", 1).message() ==
        "cuptiActivityEnable: CUPTI_ERROR_INVALID_PARAMETER (1)");
  for (int again = 0; again < 2; ++again) {
    auto trace = CuptiTrace::begin();
    if (!trace) {
      CHECK(trace.error().code == ExitCode::device);
      CHECK(trace.error().what.starts_with("cuptiActivity"));
      MESSAGE(trace.error().message());
      continue;
    }
    CHECK(!CuptiTrace::begin());
    const auto records = (*trace)->collect();
    if (records)
      CHECK(records->kernels.empty());
    else
      MESSAGE(records.error().message());
  }
}

#undef SAME_NUMBER
#undef SAME_PLACE

}  // namespace
}  // namespace sinter::cupti_test
