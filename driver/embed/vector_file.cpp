#include "driver/embed/vector_file.h"

namespace sinter {

Status VectorFile::check_name(const std::string& path) {
  if (path.ends_with(".npy")) return {};
  return fail(fmt::format("the name \"{}\" does not end in .npy", printable(path)), "--output",
              "vectors are written in NumPy's format; give NAME.npy", ExitCode::usage);
}

Result<VectorFile> VectorFile::create(const std::string& path, size_t texts, int64_t width) {
  SINTER_LET(file, NpyWriter::create(path, FileDType::F32, {static_cast<int64_t>(texts), width}));
  return VectorFile(std::move(file));
}

Status VectorFile::write(llvm::ArrayRef<double> vector) {
  const std::vector<float> rounded(vector.begin(), vector.end());
  return file_.write(std::as_bytes(std::span(rounded)));
}

}  // namespace sinter
