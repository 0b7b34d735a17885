#include "driver/quantize/quantize.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "driver/plan_folder/model_files.h"
#include "driver/temporary_folder.h"
#include "driver/text_file.h"
#include "frontends/files/bounded_file.h"
#include "frontends/files/json.h"
#include "frontends/files/shards.h"
#include "frontends/huggingface/quantization.h"
#include "frontends/model/build_weights.h"
#include "frontends/quantized/layout_names.h"
#include "ir/scalar_math.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.json";
constexpr std::string_view kEnd = ".weight";
constexpr uint64_t kMaxFileBytes = uint64_t{16} << 20;
/// Files beside those that travel with a plan.
constexpr const char* kOtherFiles[] = {"generation_config.json",
                                       "special_tokens_map.json",
                                       "added_tokens.json",
                                       "vocab.json",
                                       "merges.txt",
                                       "vocab.txt"};

/// A tensor of the files that becomes codes and scales: [out, in], or the matrices of all experts.
struct Matrix {
  std::string tensor;
  int64_t out = 0, in = 0;  // rows of all matrices, columns
  bool transposed = false;  // in the files
  WeightScheme scheme = {};
};

/// Routers and gates of shared experts keep their elements: they are small, and a rounded router
/// chooses other experts.
bool is_rounded(const LogicalWeight& weight, const QuantizeOptions& options) {
  if (weight.dims.size() < 2) return false;
  if (weight.table) return options.embeddings;
  if (weight.key == "l{i}.router.weight" || weight.key == "l{i}.shared_gate.weight") return false;
  return weight.key.starts_with("l{i}.") || (options.head && weight.key == "lm_head.weight");
}

/// The matrices that are rounded, each once, by their tensors' names.
std::vector<Matrix> matrices_of(const OpenedModel& model, const QuantizeOptions& options) {
  std::map<std::string, const Weight*, std::less<>> weights;
  for (const Weight& weight : model.module.weights) weights[weight.name] = &weight;
  std::map<std::string, Matrix> matrices;
  for (const LogicalWeight& logical : logical_weights(*model.spec)) {
    if (!is_rounded(logical, options)) continue;
    const llvm::ArrayRef<Op> ops = weights.at(logical.name)->init.ops();
    Matrix matrix;
    matrix.scheme = logical.table ? options.format.table : options.format.scheme;
    matrix.transposed =
        llvm::any_of(ops, [](const Op& op) { return op.kind == OpKind::transpose; });
    for (const Op& op : ops) {
      if (op.kind != OpKind::file) continue;
      matrix.tensor = op.attrs.get<std::string>(AttrName::tensor);
      matrix.in = op.type.dims.back().constant();
      matrix.out = volume(DimsRef(op.type.dims)).constant() / matrix.in;
      matrices.emplace(matrix.tensor, matrix);
    }
  }
  std::vector<Matrix> list;
  for (auto& [tensor, matrix] : matrices) list.push_back(std::move(matrix));
  return list;
}

Status check_matrix(const Matrix& matrix, const std::string& origin) {
  if (matrix.transposed || !matrix.tensor.ends_with(kEnd))
    return fail(fmt::format("tensor {} is {}, for which compressed-tensors has no layout",
                            printable(matrix.tensor),
                            matrix.transposed ? "a matrix [in, out]" : "no \".weight\""),
                origin,
                matrix.transposed ? "quantize a model of another family"
                                  : "quantize the files that the model was published as");
  const int64_t group = matrix.scheme.group;
  if (group == 0 || matrix.in % group == 0) return {};
  std::string others;
  for (const RoundedFormat& other : rounded_formats())
    if (other.scheme.group == 0 || matrix.in % other.scheme.group == 0)
      others += fmt::format("{}{}", others.empty() ? "" : ", ", other.name);
  return fail(fmt::format("rows of tensor {} have {} elements, which groups of {} do not divide",
                          printable(matrix.tensor), matrix.in, group),
              origin, fmt::format("possible are {}", others));
}

Status check_target(const std::string& folder) {
  return check_output_folder(folder, [&](const fs::path&) {
    return fail("there is something of this name", printable(folder, 4096),
                "give another folder, or move this one away");
  });
}

/// Elements [begin, end) of a tensor as floats.
void to_floats(FileDType dtype, std::span<const std::byte> bytes, size_t begin,
               std::span<float> out) {
  if (dtype == FileDType::F32) {
    std::memcpy(out.data(), bytes.data() + begin * sizeof(float), out.size() * sizeof(float));
    return;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    math::u16 bits;
    std::memcpy(&bits, bytes.data() + (begin + i) * sizeof bits, sizeof bits);
    out[i] = dtype == FileDType::F16 ? math::f16_to_float(bits) : math::bf16_to_float(bits);
  }
}

struct Rounded {
  std::vector<std::byte> codes, scales;
};

/// Rounds the rows by all processors.
Result<Rounded> round_matrix(const Matrix& matrix, DType scale, FileDType dtype,
                             std::span<const std::byte> bytes) {
  const WeightScheme& scheme = matrix.scheme;
  const auto rows = static_cast<size_t>(matrix.out), in = static_cast<size_t>(matrix.in);
  const size_t row_bytes = rounded_row_bytes(scheme, matrix.in);
  const auto scale_bytes =
      static_cast<size_t>(storage_bytes(scale, rounded_row_scales(scheme, matrix.in)));
  Rounded rounded{std::vector<std::byte>(rows * row_bytes),
                  std::vector<std::byte>(rows * scale_bytes)};
  constexpr size_t kMinElements = size_t{1} << 16;  // of a thread
  const size_t threads = std::clamp<size_t>(rows * in / kMinElements, 1,
                                            std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::vector<float>> buffers(threads, std::vector<float>(in));
  std::vector<size_t> not_finite(threads, rows);  // the first such row
  const auto work = [&](size_t thread) {
    const size_t end = rows * (thread + 1) / threads;
    for (size_t row = rows * thread / threads; row < end; ++row) {
      to_floats(dtype, bytes, row * in, buffers[thread]);
      if (round_row(scheme, scale, buffers[thread],
                    std::span(rounded.codes).subspan(row * row_bytes, row_bytes),
                    std::span(rounded.scales).subspan(row * scale_bytes, scale_bytes)))
        continue;
      not_finite[thread] = row;
      return;
    }
  };
  {
    std::vector<std::jthread> workers;
    for (size_t thread = 1; thread < threads; ++thread) workers.emplace_back(work, thread);
    work(0);
  }
  if (const size_t row = *llvm::min_element(not_finite); row < rows)
    return fail(fmt::format("row {} of tensor {} has a value that is not finite, or too large for "
                            "a scale in {}",
                            row, printable(matrix.tensor), to_string(scale)),
                {},
                "download the weights again where a value is not finite; else give them a "
                "type whose scales have a larger range");
  return rounded;
}

class QuantizedFolderWriter {
 public:
  QuantizedFolderWriter(const OpenedModel& model, const QuantizeOptions& options,
                        const FileTensors& files)
      : options_(options), scale_(model.spec->dtype), origin_(model.origin), files_(files) {
    for (Matrix& matrix : matrices_of(model, options)) {
      std::string name = matrix.tensor;
      matrices_.emplace(std::move(name), std::move(matrix));
    }
  }

  Result<QuantizedFolder> write(const fs::path& folder) {
    for (const std::string& name : files_.names()) plan(*files_.entry(name));
    sort_entries(entries_);
    for (size_t i = 0; i < entries_.size(); ++i) places_[entries_[i].name] = i;
    for (const TensorEntry& entry : entries_) {
      SINTER_LET(bytes, tensor_bytes(entry.dtype, entry.dims));
      result_.bytes_after += bytes;
    }
    // transformers asks for this word.
    SINTER_LET(writer, SafetensorsWriter::create((folder / "model.safetensors").string(), entries_,
                                                 {{"format", "pt"}}));
    const std::vector<std::string> names = files_.names();
    for (size_t i = 0; i < names.size(); ++i) {
      if (options_.stage)
        options_.stage(fmt::format("rounding weights, {} of {} tensors", i, names.size()));
      SINTER_TRY(write_tensor(writer, *files_.entry(names[i])));
    }
    SINTER_TRY(writer.commit());
    SINTER_TRY(write_config(folder));
    SINTER_TRY(copy_files(folder));
    return result_;
  }

 private:
  static std::string module_of(std::string_view tensor) {
    return std::string(tensor.substr(0, tensor.size() - kEnd.size()));
  }
  static std::string codes_name(const Matrix& matrix) {
    return module_of(matrix.tensor) + std::string(names_of(matrix.scheme.layout).codes);
  }
  static std::string scales_name(const Matrix& matrix) {
    return module_of(matrix.tensor) + std::string(names_of(matrix.scheme.layout).scales);
  }
  static std::string shape_name(const std::string& module) {
    return module + std::string(kShapeEnd);
  }

  /// The tensors that one of the files becomes.
  void plan(const FileTensor& tensor) {
    result_.bytes_before += tensor.end - tensor.begin;
    const auto at = matrices_.find(tensor.name);
    if (at == matrices_.end()) {
      entries_.push_back({tensor.name, tensor.dtype, tensor.dims});
      if (tensor.dims.size() == 2 && tensor.name.ends_with(kEnd))
        kept_.insert(module_of(tensor.name));
      return;
    }
    const Matrix& matrix = at->second;
    const bool packed = matrix.scheme.layout == WeightLayout::packed;
    const auto row_bytes = static_cast<int64_t>(rounded_row_bytes(matrix.scheme, matrix.in));
    const auto rows_of = [&](int64_t columns) {
      auto dims = tensor.dims;
      dims.back() = columns;
      return dims;
    };
    entries_.push_back({codes_name(matrix),
                        packed                   ? FileDType::I32
                        : matrix.scheme.is_float ? FileDType::F8_E4M3
                                                 : FileDType::I8,
                        rows_of(packed ? row_bytes / 4 : row_bytes)});
    entries_.push_back({scales_name(matrix), to_file_dtype(scale_),
                        rows_of(rounded_row_scales(matrix.scheme, matrix.in))});
    if (packed)
      entries_.push_back({shape_name(module_of(tensor.name)),
                          FileDType::I64,
                          {static_cast<int64_t>(tensor.dims.size())}});
    ++result_.matrices;
    result_.elements += matrix.out * matrix.in;
  }

  Status write_tensor(SafetensorsWriter& writer, const FileTensor& tensor) const {
    std::vector<std::byte> bytes(tensor.end - tensor.begin);
    SINTER_TRY(files_.read_raw(tensor.name, bytes));
    const auto at = matrices_.find(tensor.name);
    if (at == matrices_.end()) return writer.write(places_.at(tensor.name), bytes);
    const Matrix& matrix = at->second;
    auto rounded = round_matrix(matrix, scale_, tensor.dtype, bytes);
    if (!rounded) {
      Error error = std::move(rounded.error());
      error.where = files_.files().front();
      return tl::make_unexpected(std::move(error));
    }
    SINTER_TRY(writer.write(places_.at(codes_name(matrix)), rounded->codes));
    SINTER_TRY(writer.write(places_.at(scales_name(matrix)), rounded->scales));
    if (matrix.scheme.layout != WeightLayout::packed) return {};
    return writer.write(places_.at(shape_name(module_of(tensor.name))),
                        std::as_bytes(std::span(tensor.dims)));
  }

  /// The model's own config with a member for the quantization.
  Status write_config(const fs::path& folder) {
    if (!options_.head) kept_.insert("lm_head");
    SINTER_LET(config, read_json((fs::path(origin_) / kConfig).string(), kMaxFileBytes));
    const std::vector<std::string> kept(kept_.begin(), kept_.end());
    std::string text = "{\n";
    for (const JsonMember& member : *config.root.object())
      if (member.key != "quantization_config")
        text += fmt::format("  {}: {},\n", json_quoted(member.key), to_text(member.value));
    text += fmt::format(
        "  \"quantization_config\": {}\n}}\n",
        compressed_tensors_text(options_.format.scheme,
                                options_.embeddings ? &options_.format.table : nullptr, kept));
    return write_text((folder / kConfig).string(), text);
  }

  Status copy_files(const fs::path& folder) const {
    SINTER_LET(files, read_model_files(origin_));
    for (const char* name : kOtherFiles) {
      const fs::path path = fs::path(origin_) / name;
      if (!path_exists(path) ||
          llvm::any_of(files, [&](const ModelFile& file) { return file.path == name; }))
        continue;
      SINTER_LET(bytes, read_small_file(path.string(), kMaxFileBytes));
      files.push_back({name, std::move(bytes)});
    }
    for (const ModelFile& file : files) {
      const fs::path path = folder / file.path;
      std::error_code error;
      fs::create_directories(path.parent_path(), error);
      if (error) return cannot_write(path, error.message());
      SINTER_TRY(write_text(path.string(), file.bytes));
    }
    return {};
  }

  const QuantizeOptions& options_;
  DType scale_;
  std::string origin_;
  const FileTensors& files_;
  std::map<std::string, Matrix, std::less<>> matrices_;
  std::vector<TensorEntry> entries_;
  std::map<std::string, size_t, std::less<>> places_;  // of entries, by name
  std::set<std::string> kept_;                         // modules that stay as they are
  QuantizedFolder result_;
};

}  // namespace

Status check_quantizable(const OpenedModel& model, const std::string& folder,
                         const QuantizeOptions& options) {
  if (model.plan || !model.spec || !path_exists(fs::path(model.origin) / kConfig))
    return fail("only folders of Hugging Face models are quantized", model.origin,
                "give the folder with config.json and the model's safetensors");
  if (!model.tensors)
    return fail("the folder has no weights", model.origin, "download the model's safetensors, too");
  if (!model.quantization.empty())
    return fail("the model's weights are quantized already", model.origin,
                "give the model that they were made from");
  if (options.head && (model.spec->encoder || model.spec->tied))
    return fail(model.spec->encoder ? "an encoder has no output projection"
                : options.embeddings
                    ? "the output projection is the embedding table, which --embeddings rounds"
                    : "the output projection is the embedding table",
                model.origin,
                model.spec->encoder || options.embeddings
                    ? "leave out --head"
                    : "leave out --head, and give --embeddings to round it",
                ExitCode::usage);
  for (const Matrix& matrix : matrices_of(model, options))
    SINTER_TRY(check_matrix(matrix, model.origin));
  return check_target(folder);
}

Result<QuantizedFolder> quantize(const OpenedModel& model, const std::string& folder,
                                 const QuantizeOptions& options) {
  SINTER_TRY(check_quantizable(model, folder, options));
  const fs::path target = real_path(folder);
  SINTER_LET(files, open_weights(model.origin));
  SINTER_LET(made, TemporaryFolder::beside(target));
  SINTER_LET(result, QuantizedFolderWriter(model, options, *files).write(made.path()));
  if (options.stage) options.stage("reading the folder back");
  LoadOptions load;
  load.ignored_keys = options.ignored_keys;
  SINTER_TRY(load_model(made.path().string(), load));
  SINTER_TRY(made.rename_to(target));
  return result;
}

}  // namespace sinter
