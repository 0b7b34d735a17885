// A device's kernels and copies with their times, recorded by CUPTI while a trace lives.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cuda/cupti.h"

namespace sinter {

/// One launch of a kernel. Times in nanoseconds of one clock.
struct KernelRecord {
  std::string name;  // as the machine code has it: mangled for C++
  uint64_t start_ns = 0, end_ns = 0;
  uint32_t grid[3] = {}, block[3] = {};
  uint32_t registers = 0;     // per thread
  uint32_t shared_bytes = 0;  // static and dynamic, per block
  uint32_t stream = 0;
  uint32_t correlation = 0;     // of the driver's call: one for a launch, one for a whole graph
  std::optional<uint64_t> tag;  // see CuptiTrace::tagged
};

/// One copy or fill.
struct CopyRecord {
  enum class Kind : uint8_t {
    host_to_device,
    device_to_host,
    device_to_device,
    host_to_host,
    peer,
    fill,
    other
  };
  Kind kind = Kind::other;
  uint64_t bytes = 0;
  uint64_t start_ns = 0, end_ns = 0;
  uint32_t stream = 0;
  uint32_t correlation = 0;
};
/// "device to host"
std::string_view to_string(CopyRecord::Kind kind);
/// Whether the bytes go from one memory to the other.
bool crosses_bus(CopyRecord::Kind kind);

/// In the order of their start.
struct DeviceRecords {
  std::vector<KernelRecord> kernels;
  std::vector<CopyRecord> copies;
};

/// Records all kernels, copies and fills of the process from begin() to its end. One at a time. A
/// graph must be made while it lives for its nodes to be recorded one by one. Recording costs time
/// on the host and some on the device: what matters in the end is measured without.
class CuptiTrace {
 public:
  /// Errors: no CUPTI; another tool that holds it; a trace that lives already.
  static Result<std::unique_ptr<CuptiTrace>> begin();
  ~CuptiTrace();
  CuptiTrace(const CuptiTrace&) = delete;
  CuptiTrace& operator=(const CuptiTrace&) = delete;

  /// Everything since begin() or the last collect(). Callers have waited for the work. An error
  /// where records were lost.
  Result<DeviceRecords> collect();

  /// Runs `launches` so that the kernels it launches carry `tag`.
  template <typename Launches>
  Status tagged(uint64_t tag, Launches&& launches) {
    SINTER_TRY(push(tag));
    Status done = launches();
    Status popped = pop();
    return done ? popped : done;
  }

 private:
  explicit CuptiTrace(const CuptiApi& api) : api_(api) {}
  Status check(int result, std::string_view call) const;
  Status push(uint64_t tag);
  Status pop();

  const CuptiApi& api_;
  std::vector<int> enabled_;
};

/// Turns CUPTI's records, which come in any order, into ours.
class ActivityReader {
 public:
  void add(const CuptiApi::Record& record);
  /// All records added, sorted; the reader is empty then.
  DeviceRecords take();

 private:
  DeviceRecords records_;
  std::vector<std::pair<uint32_t, uint64_t>> tags_;  // correlation, tag
};

}  // namespace sinter
