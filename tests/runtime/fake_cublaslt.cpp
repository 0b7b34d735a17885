// A cuBLASLt for machines without a device: products of float32 on the host, where the memory of
// the made-up driver is, enqueued in its streams. It proposes the algorithms that a test names;
// each has a number and a time, and otherwise the same configuration.
#include "runtime/fake_cublaslt.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace {

using sinter::FakeAlgorithm;
using sinter::FakeCublasLt;

constexpr int kNotSupported = 15;

/// In column order; one copy alone.
struct Layout {
  uint64_t rows, columns;
  int64_t leading;
};
struct Matmul {
  bool transposed[2] = {false, false};
};
// As cublasLt.h has them: the fake shares no declaration with what is tested against it.
struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};

struct Work {
  Matmul matmul;
  Layout a, b, d;
  const float *a_data, *b_data;
  float* d_data;
  bool wrong;
};

FakeCublasLt::Propose propose = nullptr;
uint32_t last_id = 0;
uint64_t last_rows = 0;
uint64_t last_workspace = 0;
size_t products = 0;

/// A recorded graph computes its products again at each replay, so nobody frees `data`.
void multiply(void* data) {
  const Work& work = *static_cast<const Work*>(data);
  const uint64_t terms = work.matmul.transposed[0] ? work.a.rows : work.a.columns;
  const auto element = [](const float* at, const Layout& layout, bool transposed, uint64_t row,
                          uint64_t column) {
    if (transposed) std::swap(row, column);
    return at[row + column * static_cast<uint64_t>(layout.leading)];
  };
  for (uint64_t j = 0; j < work.d.columns; ++j)
    for (uint64_t i = 0; i < work.d.rows; ++i) {
      float sum = 0;
      for (uint64_t l = 0; l < (work.wrong ? terms / 2 : terms); ++l)
        sum += element(work.a_data, work.a, work.matmul.transposed[0], i, l) *
               element(work.b_data, work.b, work.matmul.transposed[1], l, j);
      work.d_data[i + j * static_cast<uint64_t>(work.d.leading)] = sum;
    }
}

}  // namespace

extern "C" {

void sinter_fake_propose(FakeCublasLt::Propose function) { propose = function; }
uint32_t sinter_fake_last_id() { return last_id; }
uint64_t sinter_fake_last_rows() { return last_rows; }
uint64_t sinter_fake_last_workspace() { return last_workspace; }
size_t sinter_fake_take_products() { return std::exchange(products, 0); }

size_t cublasLtGetVersion() { return 130100; }
const char* cublasLtGetStatusName(int) { return "FAKE_STATUS"; }
int cublasLtCreate(void** handle) { return *handle = &products, 0; }
int cublasLtDestroy(void*) { return 0; }
int cublasLtMatmulDescCreate(Matmul** matmul, int, int) { return *matmul = new Matmul, 0; }
int cublasLtMatmulDescDestroy(Matmul* matmul) { return delete matmul, 0; }
int cublasLtMatmulDescSetAttribute(Matmul* matmul, int attribute, const void* value, size_t) {
  constexpr int kTransposeA = 3, kTransposeB = 4;
  int32_t number = 0;
  std::memcpy(&number, value, sizeof(number));
  if (attribute != kTransposeA && attribute != kTransposeB) return kNotSupported;
  matmul->transposed[attribute - kTransposeA] = number == 1;
  return 0;
}
int cublasLtMatrixLayoutCreate(Layout** layout, int, uint64_t rows, uint64_t columns,
                               int64_t leading) {
  return *layout = new Layout{rows, columns, leading}, 0;
}
int cublasLtMatrixLayoutDestroy(Layout* layout) { return delete layout, 0; }
int cublasLtMatrixLayoutSetAttribute(Layout*, int, const void*, size_t) { return kNotSupported; }
int cublasLtMatmulPreferenceCreate(void** preference) { return *preference = &products, 0; }
int cublasLtMatmulPreferenceDestroy(void*) { return 0; }
int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t) { return 0; }

int cublasLtMatmulAlgoGetHeuristic(void*, Matmul*, Layout*, Layout*, Layout*, Layout* d, void*,
                                   int wanted, Heuristic* results, int* found) {
  for (*found = 0; *found < wanted; ++*found) {
    FakeAlgorithm algorithm;
    if (!propose || !propose(d->columns, *found, algorithm)) break;
    Heuristic& result = results[*found];
    result = {};
    result.algorithm.data[0] = algorithm.id;
    result.algorithm.data[1] = algorithm.wrong;
    std::memcpy(&result.algorithm.data[2], &algorithm.milliseconds, sizeof(double));
    result.workspace_bytes = d->columns;  // of another size for another length
  }
  return *found == 0 ? kNotSupported : 0;
}
int cublasLtMatmulAlgoConfigGetAttribute(const Algorithm* algorithm, int attribute, void* value,
                                         size_t bytes, size_t* written) {
  std::memset(value, 0, bytes);
  if (attribute == 0) std::memcpy(value, &algorithm->data[0], bytes);
  return *written = bytes, 0;
}
int cublasLtMatmul(void*, Matmul* matmul, const float*, const float* a, Layout* a_layout,
                   const float* b, Layout* b_layout, const float*, const float*, Layout*, float* d,
                   Layout* d_layout, const Algorithm* algorithm, void* workspace, size_t,
                   void* stream) {
  using Enqueue = void(void*, void (*)(void*), void*, double);
  static const auto enqueue = reinterpret_cast<Enqueue*>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "sinter_fake_enqueue"));
  last_id = static_cast<uint32_t>(algorithm->data[0]);
  last_rows = d_layout->columns;
  last_workspace = reinterpret_cast<uint64_t>(workspace);
  ++products;
  double milliseconds = 0;
  std::memcpy(&milliseconds, &algorithm->data[2], sizeof(milliseconds));
  enqueue(stream, multiply,
          new Work{*matmul, *a_layout, *b_layout, *d_layout, a, b, d, algorithm->data[1] != 0},
          milliseconds);
  return 0;
}

}  // extern "C"
