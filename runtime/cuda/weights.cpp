#include "runtime/cuda/weights.h"

#include <algorithm>
#include <cstring>

#include "runtime/weight_queue.h"

namespace sinter {
namespace {

constexpr size_t kMaxStagingBytes = size_t{16} << 20;  // of each of two buffers

size_t weight_bytes(const Weight& weight) {
  return static_cast<size_t>(storage_bytes(weight.type).constant());
}

std::vector<std::string> described_weights(const Program& program) {
  std::vector<std::string> names;
  for (const Weight& weight : program.weights)
    names.push_back(weight.name + ' ' + to_string(weight.type, program.symbols));
  return names;
}

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
                                                             const WeightProgress& progress,
                                                             llvm::ArrayRef<CudaAddress> given) {
  auto weights = std::make_shared<CudaWeights>();
  size_t total = 0, payload = 0;
  std::vector<size_t> loaded;
  for (size_t i = 0; i < program.weights.size(); ++i) {
    if (!given.empty() && given[i] != 0) {
      weights->addresses_.push_back(given[i]);
      continue;
    }
    loaded.push_back(i);
    weights->addresses_.push_back(total);  // from the allocation's begin
    payload += weight_bytes(program.weights[i]);
    total += aligned_bytes(weight_bytes(program.weights[i]));
  }
  weights->names_ = described_weights(program);
  SINTER_LET(memory, CudaMemory::allocate(device, total, "the weights"));
  weights->memory_ = std::move(memory);
  for (size_t i : loaded) weights->addresses_[i] += weights->memory_.address();
  if (loaded.empty()) return weights;

  WeightQueue queue(program, source, loaded);
  SINTER_LET(uploader, Uploader::create(device, payload));
  size_t done = 0;
  for (size_t i : loaded) {
    SINTER_LET(tensor, queue.take());
    SINTER_TRY(uploader.upload(weights->address(i), tensor.bytes));
    done += tensor.bytes.size();
    SINTER_TRY(report_progress(progress, done, payload));
  }
  SINTER_TRY(uploader.finish());
  return weights;
}

bool CudaWeights::serves(const Program& program) const {
  return described_weights(program) == names_;
}

}  // namespace sinter
