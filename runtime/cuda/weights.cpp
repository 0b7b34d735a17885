#include "runtime/cuda/weights.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

namespace sinter {
namespace {

constexpr size_t kMaxStagingBytes = size_t{16} << 20;  // of each of two buffers
constexpr unsigned kMaxWorkers = 16;

size_t weight_bytes(const Weight& weight) {
  return static_cast<size_t>(storage_bytes(weight.type).constant());
}

std::vector<std::string> described_weights(const Program& program) {
  std::vector<std::string> names;
  for (const Weight& weight : program.weights)
    names.push_back(weight.name + ' ' + to_string(weight.type, program.symbols));
  return names;
}

/// Weights computed ahead by several threads, handed out in order.
class WeightQueue {
 public:
  WeightQueue(const Program& program, const TensorSource* source)
      : program_(program), source_(source) {
    const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
    workers_ = std::min<unsigned>(
        {processors, kMaxWorkers, static_cast<unsigned>(program.weights.size())});
    results_.resize(program.weights.size());
    for (unsigned i = 0; i < workers_; ++i) threads_.emplace_back([this] { work(); });
  }
  ~WeightQueue() {
    {
      const std::lock_guard lock(mutex_);
      next_ = results_.size();
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  Result<HostTensor> take(size_t index) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return results_[index].has_value(); });
    taken_ = index + 1;
    changed_.notify_all();
    Result<HostTensor> result = std::move(*results_[index]);
    results_[index] = Result<HostTensor>(HostTensor{});
    return result;
  }

 private:
  void work() {
    for (;;) {
      size_t index;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock,
                      [&] { return next_ >= results_.size() || next_ < taken_ + 2 * workers_; });
        if (next_ >= results_.size()) return;
        index = next_++;
      }
      Result<HostTensor> tensor = evaluate_weight(program_, index, source_);
      {
        const std::lock_guard lock(mutex_);
        results_[index] = std::move(tensor);
      }
      changed_.notify_all();
    }
  }

  const Program& program_;
  const TensorSource* source_;
  unsigned workers_ = 1;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t next_ = 0, taken_ = 0;
  std::vector<std::optional<Result<HostTensor>>> results_;
  std::vector<std::thread> threads_;
};

/// Copies through two pinned buffers: one is filled while the other is on its way.
class Uploader {
 public:
  /// For `payload` bytes in all.
  static Result<Uploader> create(const CudaDevicePtr& device, size_t payload) {
    Uploader uploader;
    uploader.staging_bytes_ = std::min(payload, kMaxStagingBytes);
    SINTER_LET(stream, CudaStream::create(device));
    uploader.stream_ = std::move(stream);
    for (Slot& slot : uploader.slots_) {
      SINTER_LET(memory, PinnedMemory::allocate(device, uploader.staging_bytes_));
      SINTER_LET(event, CudaEvent::create(device));
      slot = {std::move(memory), std::move(event)};
      SINTER_TRY(slot.free.record(uploader.stream_));
    }
    return uploader;
  }

  Status upload(CudaAddress to, std::span<const std::byte> from) {
    for (size_t at = 0; at < from.size(); at += staging_bytes_) {
      const auto piece = from.subspan(at, std::min(staging_bytes_, from.size() - at));
      Slot& slot = slots_[next_++ % 2];
      SINTER_TRY(slot.free.wait());
      std::memcpy(slot.memory.data(), piece.data(), piece.size());
      SINTER_TRY(stream_.copy_to_device(to + at, {slot.memory.data(), piece.size()}));
      SINTER_TRY(slot.free.record(stream_));
    }
    return {};
  }
  Status finish() { return stream_.synchronize("uploading weights"); }

 private:
  struct Slot {
    PinnedMemory memory;
    CudaEvent free;  // the last copy out of it is done
  };
  CudaStream stream_;
  size_t staging_bytes_ = 0;
  Slot slots_[2];
  size_t next_ = 0;
};

}  // namespace

Result<std::shared_ptr<const CudaWeights>> CudaWeights::load(CudaDevicePtr device,
                                                             const Program& program,
                                                             const TensorSource* source,
                                                             const Progress& progress) {
  auto weights = std::make_shared<CudaWeights>();
  size_t total = 0, payload = 0;
  for (const Weight& weight : program.weights) {
    weights->offsets_.push_back(total);
    payload += weight_bytes(weight);
    total += aligned_bytes(weight_bytes(weight));
  }
  weights->names_ = described_weights(program);
  SINTER_LET(memory, CudaMemory::allocate(device, total, "the weights"));
  weights->memory_ = std::move(memory);
  if (program.weights.empty()) return weights;

  WeightQueue queue(program, source);
  SINTER_LET(uploader, Uploader::create(device, payload));
  size_t done = 0;
  for (size_t i = 0; i < program.weights.size(); ++i) {
    SINTER_LET(tensor, queue.take(i));
    SINTER_TRY(uploader.upload(weights->address(i), tensor.bytes));
    done += tensor.bytes.size();
    if (progress) progress(done, payload);
  }
  SINTER_TRY(uploader.finish());
  return weights;
}

bool CudaWeights::serves(const Program& program) const {
  return described_weights(program) == names_;
}

}  // namespace sinter
