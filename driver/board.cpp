#include "driver/board.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "driver/text_file.h"
#include "frontends/files/json.h"
#include "kernels/library.h"
#include "runtime/cuda/ceiling.h"

namespace sinter {
namespace {

// Long enough that the start of a kernel is less than a hundredth of its time.
constexpr size_t kMemoryBytes = size_t{1} << 30;
constexpr int64_t kProductSize = 8192, kFloatProductSize = 4096;
// About half a second of products: a board's clock falls within the first tens of milliseconds, and
// a model runs for longer.
constexpr int kProductRepeats = 96;
constexpr double kMinRate = 1e6, kMaxRate = 1e18, kShortest = 1e-9, kLongest = 1;

struct Field {
  const char* name;
  double BoardRates::*rate;
  double low, high;
};
constexpr Field kFields[] = {
    {"memory_bytes_per_s", &BoardRates::memory_bytes_per_s, kMinRate, kMaxRate},
    {"cache_bytes_per_s", &BoardRates::cache_bytes_per_s, kMinRate, kMaxRate},
    {"tensor_flops_per_s", &BoardRates::tensor_flops_per_s, kMinRate, kMaxRate},
    {"float_flops_per_s", &BoardRates::float_flops_per_s, kMinRate, kMaxRate},
    {"launch_s", &BoardRates::launch_s, kShortest, kLongest}};

}  // namespace

Result<BoardRates> measure_board(const CudaDevicePtr& device) {
  SINTER_LET(ceilings, CudaCeilings::create(device, kernel_library()));
  BoardRates rates;
  rates.device = device->name();
  SINTER_LET(copy, ceilings.copy(kMemoryBytes));
  SINTER_LET(cached, ceilings.cached_read(device->l2_bytes() / 4));
  SINTER_LET(half, ceilings.gemm(DType::f16, kProductSize, kProductRepeats));
  SINTER_LET(whole, ceilings.gemm(DType::f32, kFloatProductSize));
  SINTER_LET(launch_s, ceilings.launch_seconds());
  rates.memory_bytes_per_s = copy.per_s;
  rates.cache_bytes_per_s = std::max(cached.per_s, copy.per_s);
  rates.tensor_flops_per_s = half.per_s;
  rates.float_flops_per_s = whole.per_s;
  rates.launch_s = launch_s;
  return rates;
}

std::string board_json(const BoardRates& rates) {
  nlohmann::ordered_json json = {{"device", rates.device}};
  for (const Field& field : kFields) json[field.name] = rates.*field.rate;
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

Result<BoardRates> read_board(const std::string& path) {
  SINTER_LET(document, read_json(path));
  const JsonView root = document.view();
  BoardRates rates;
  SINTER_LET(device, root["device"].string());
  rates.device = std::move(device);
  for (const Field& field : kFields) {
    SINTER_LET(rate, root[field.name].number(field.low, field.high));
    rates.*field.rate = rate;
  }
  return rates;
}

std::string board_path(const std::string& device) {
  const KernelCache cache = KernelCache::of_user();
  if (cache.directory().empty()) return "";
  std::string name;
  for (char c : device) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    name += plain ? c : '-';
  }
  return cache.directory() + "/boards/" + name + ".json";
}

std::optional<BoardRates> kept_board(const std::string& device) {
  const std::string path = board_path(device);
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) return std::nullopt;
  Result<BoardRates> rates = read_board(path);
  if (!rates || rates->device != device) return std::nullopt;
  return std::move(*rates);
}

Status keep_board(const BoardRates& rates) {
  const std::string path = board_path(rates.device);
  if (path.empty())
    return fail("no place to keep the rates is set", "",
                "set SINTER_CACHE_DIR, XDG_CACHE_HOME or HOME");
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  return write_text(path, board_json(rates));
}

DeviceDescription with_rates(DeviceDescription device, const BoardRates& rates) {
  device.memory_bytes_per_s = rates.memory_bytes_per_s;
  device.cache_bytes_per_s = rates.cache_bytes_per_s;
  device.tensor_flops_per_s = rates.tensor_flops_per_s;
  device.float_flops_per_s = rates.float_flops_per_s;
  device.launch_s = rates.launch_s;
  return device;
}

}  // namespace sinter
