#include "driver/plan_folder/write.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "device/capabilities.h"
#include "driver/explain/ledger.h"
#include "driver/plan_folder/content.h"
#include "driver/stored_plan/embed_weights.h"
#include "driver/stored_plan/fingerprint.h"
#include "driver/stored_plan/whole_plan.h"
#include "driver/temporary_folder.h"
#include "kernels/library.h"
#include "plan/plan_file.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

Status write_file(const fs::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) return cannot_write(path, errno_text());
  return {};
}

/// Nothing in a folder that is not empty but a plan.
Status check_content(const std::string& folder, const fs::path& path) {
  const std::string hint = "give another folder, or move this one away";
  SINTER_LET(foreign, foreign_file(path));
  const bool plan = holds_plan(path);
  if (!foreign.empty() && (plan || !foreign.starts_with("kernels/")))
    return fail(fmt::format("the folder holds {}, which is no part of a plan", printable(foreign)),
                printable(folder, 4096), hint);
  if (!plan)
    return fail("the folder holds no plan.json of Sinter and is not empty", printable(folder, 4096),
                hint);
  return {};
}

}  // namespace

Status check_plan_folder(const std::string& folder) {
  return read_whole_plan(real_path(folder).string(), [&] {
    return check_output_folder(folder,
                               [&](const fs::path& path) { return check_content(folder, path); });
  });
}

namespace {

/// Writes the files of a folder and notes their hashes.
class PlanFolderWriter {
 public:
  explicit PlanFolderWriter(fs::path root) : root_(std::move(root)) {}

  Status folder(const char* name) const {
    if (::mkdir((root_ / name).c_str(), 0777) != 0) return cannot_write(root_ / name, errno_text());
    return {};
  }
  Status file(const std::string& path, std::string_view bytes) {
    hashes_[path] = content_hash(bytes);
    std::error_code error;
    fs::create_directories((root_ / path).parent_path(), error);
    if (error) return cannot_write(root_ / path, error.message());
    return write_file(root_ / path, bytes);
  }
  const fs::path& root() const { return root_; }
  const std::map<std::string, std::string>& hashes() const { return hashes_; }

 private:
  fs::path root_;
  std::map<std::string, std::string> hashes_;
};

Status write_kernels(PlanFolderWriter& folder, const Program& program,
                     llvm::ArrayRef<MachineCode> code, Manifest& manifest) {
  for (const Kernel& kernel : program.kernels)
    SINTER_TRY(folder.file(kernel_path(kernel), kernel.source));
  for (const MachineCode& c : code) {
    if (!c.absent.empty()) continue;
    for (const MachineCode::Kernel& kernel : c.kernels) {
      const std::string path = fmt::format("kernels/{}.{}.cubin", kernel.name, c.arch);
      SINTER_TRY(folder.file(path, kernel.bytes));
      manifest.machine_code[c.arch][kernel.text_hash] = path;
    }
  }
  return {};
}

/// The headers that the kernels' text includes, for nvcc. It is told by target.h, which the first
/// of them includes, what NVRTC is told by options; and that it gets NVRTC's text of functions that
/// the host computes otherwise. Its own headers are read before.
Status write_headers(PlanFolderWriter& folder, const std::string& target) {
  constexpr std::string_view kIncludedByAll = "ir/scalar_math.h";
  std::string text = fmt::format(
      "// For nvcc: what {} can do, and that device code is compiled, as NVRTC is told by "
      "options.\n"
      "#pragma once\n#ifndef __CUDACC_RTC__\n#define __CUDACC_RTC__ 1\n",
      target);
  for (const std::string& macro : kernel_macros(capabilities_of(target)))
    text += fmt::format("#define {} 1\n", macro);
  SINTER_TRY(folder.file(fmt::format("{}/target.h", kHeaderFiles), text + "#endif\n"));
  for (const EmbeddedHeader& header : kernel_library()) {
    const std::string_view head = header.name == kIncludedByAll ? "#include \"target.h\"\n" : "";
    SINTER_TRY(folder.file(fmt::format("{}/{}", kHeaderFiles, header.name),
                           fmt::format("{}{}", head, header.text)));
  }
  return {};
}

/// Where the plan's weights are; those to embed are written.
Result<StoredWeights> store_weights(PlanFolderWriter& folder, const FolderRequest& request) {
  const Model& model = request.built.model;
  if (request.embed) {
    SINTER_TRY(folder.folder(kWeightFiles));
    SINTER_LET(embedded, write_embedded(request.built.weights, model.tensors.get(),
                                        (folder.root() / kWeightFiles).string()));
    return StoredWeights(std::move(embedded));
  }
  if (request.random_weights) return StoredWeights(SeededWeights{*request.random_weights});
  WeightFiles files;
  if (model.tensors) files.paths = model.tensors->files();
  if (files.paths.empty()) return StoredWeights(NoWeights{});
  for (std::string& path : files.paths) {
    SINTER_LET(fingerprint, sampled_fingerprint(path));
    files.fingerprints.push_back(std::move(fingerprint));
    path = fs::absolute(path).lexically_normal().string();
  }
  files.tied = model.tied_tensors;
  files.quantization = model.quantization;
  return StoredWeights(std::move(files));
}

}  // namespace

Status write_plan_folder(const std::string& folder, const FolderRequest& request) {
  SINTER_TRY(check_plan_folder(folder));
  const Built& built = request.built;
  const fs::path target = real_path(folder);
  SINTER_LET(made, TemporaryFolder::beside(target));
  PlanFolderWriter writer(made.path());
  const Program& program = *built.compiled.program;
  for (const char* part : {"ir", "kernels"}) SINTER_TRY(writer.folder(part));
  SINTER_TRY(writer.file("plan.json", write_plan(program)));
  SINTER_TRY(writer.file("fusion.json", ledger_json(built.compiled)));
  const auto dump_path = [&](size_t i) {
    return fmt::format("ir/{:02}-{}.sir", i, built.dumps[i].pass);
  };
  for (size_t i = 0; i < built.dumps.size(); ++i)
    SINTER_TRY(writer.file(dump_path(i), built.dumps[i].text));
  Manifest manifest;
  SINTER_TRY(write_kernels(writer, program, request.code, manifest));
  SINTER_TRY(write_headers(writer, program.target));
  for (const ModelFile& file : request.model_files)
    SINTER_TRY(writer.file(fmt::format("{}/{}", kModelFiles, file.path), file.bytes));
  if (!request.record.empty()) SINTER_TRY(writer.file(kRecordFile, request.record));
  SINTER_LET(weights, store_weights(writer, request));
  manifest.writer = SINTER_VERSION;
  manifest.kernel_library = kernel_library_hash();
  manifest.origin = printable(program.name);
  manifest.module = dump_path(0);
  manifest.compile = built.options;
  manifest.spec = built.model.spec;
  manifest.unapplied = built.model.unapplied;
  manifest.weights = std::move(weights);
  manifest.files = writer.hashes();
  SINTER_TRY(write_file(writer.root() / kManifestFile, write_manifest(manifest)));
  return made.put_at(target);
}

}  // namespace sinter
