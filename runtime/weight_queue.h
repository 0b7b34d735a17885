// The weights of a program, computed ahead by several threads and handed out in order: a few are in
// memory at a time.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/executable.h"

namespace sinter {

class WeightQueue {
 public:
  /// The threads begin at once, with the weights `wanted`, which are numbers in ascending order.
  /// `program` and `source` outlive this; `source` must allow reads from several threads, and may
  /// be null where no weight comes from a file.
  WeightQueue(const Program& program, const TensorSource* source, std::vector<size_t> wanted);
  /// All weights.
  WeightQueue(const Program& program, const TensorSource* source);
  /// Waits for the weights that are being computed.
  ~WeightQueue();

  /// The next of the wanted weights.
  Result<HostTensor> take();

 private:
  void work();

  const Program& program_;
  const TensorSource* source_;
  std::vector<size_t> wanted_;
  unsigned workers_ = 1;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t next_ = 0, taken_ = 0;
  std::vector<std::optional<Result<HostTensor>>> results_;
  std::vector<std::thread> threads_;
};

}  // namespace sinter
