// Loads that an epilogue issues ahead: it loads several chunks before it computes the first one, so
// that the waits for memory overlap.
//
// The text of an epilogue runs twice for a chunk (codegen/emission/element_ports.h). First with
// IssuedLoads instead of memory: each chunk of a 16-bit input is loaded into AheadWords, and what
// is stored is left out, with all that is computed for it. Then with TakenLoads, which gives those
// words in the same order. Other inputs are loaded the second time alone. Before, the text may have
// run with PrefetchedLoads, which bring what it loads into the L2 cache.
//
// A value may also be added up over the chunks of a thread: its store goes to summed().
#pragma once

#include "kernels/common/vector.cuh"
#include "kernels/isa/ld_global.cuh"

namespace sinter {

// The words of the first inputs of a chunk that are loaded ahead; further ones are not.
constexpr int kAheadInputs = 2;
struct AheadWords {
  uint4 input[kAheadInputs];
};

// Memory that nothing is stored to.
struct NoMemory {
  SINTER_DEVICE NoMemory operator+(long long) const { return {}; }
};
template <typename... Values>
SINTER_DEVICE void store(NoMemory, const Values&...) {}
template <typename... Values>
SINTER_DEVICE void store_chunk(NoMemory, const Values&...) {}

// A 16-bit input: `Loads` gives the words of a whole chunk.
template <typename T, typename Loads>
struct AheadInput {
  const T* at;
  Loads* loads;
  SINTER_DEVICE AheadInput operator+(long long n) const { return {at + n, loads}; }
};
template <typename T, typename Loads>
SINTER_DEVICE float load(AheadInput<T, Loads> p) {
  return load(p.at);
}
template <typename T, typename Loads>
SINTER_DEVICE void load_chunk(float (&out)[8], AheadInput<T, Loads> p) {
  widen(out, p.at, p.loads->words(p.at));
}
template <typename T, typename Loads>
SINTER_DEVICE void load_chunk(Packed<T>& out, AheadInput<T, Loads> p) {
  const uint4 words = p.loads->words(p.at);
  out.word[0] = words.x, out.word[1] = words.y, out.word[2] = words.z, out.word[3] = words.w;
}
template <typename Out, typename T, typename Loads>
SINTER_DEVICE void load_chunk(Out& out, AheadInput<T, Loads> p, int valid) {
  load_chunk(out, p.at, valid);
}

// Sums of 8 neighbouring elements over chunks, each rounded to T before it is added.
template <typename T>
struct SummedChunks {
  float (&sums)[8];
  SINTER_DEVICE SummedChunks operator+(long long) const { return *this; }
};
template <typename T>
SINTER_DEVICE void store_chunk(SummedChunks<T> to, const float (&in)[8]) {
  const T* const type = nullptr;
  float rounded[8];
  widen(rounded, type, narrow(type, in));
#pragma unroll
  for (int e = 0; e < 8; ++e) to.sums[e] = math::add(to.sums[e], rounded[e]);
}
template <typename T>
SINTER_DEVICE void store_chunk(SummedChunks<T> to, const Packed<T>& in) {
#pragma unroll
  for (int e = 0; e < 8; ++e) to.sums[e] = math::add(to.sums[e], in[e]);
}

// Loads that nothing is computed of: what the text stores is left out. `Loads` derives from it.
template <typename Loads>
class LoadsAlone {
 public:
  SINTER_DEVICE AheadInput<f16, Loads> of(const f16* p) { return {p, own()}; }
  SINTER_DEVICE AheadInput<bf16, Loads> of(const bf16* p) { return {p, own()}; }
  template <typename T>
  SINTER_DEVICE const T* of(const T* p) {
    return p;
  }
  template <typename T>
  SINTER_DEVICE NoMemory of(T*) {
    return {};
  }
  template <typename T>
  SINTER_DEVICE NoMemory summed() {
    return {};
  }

 private:
  SINTER_DEVICE Loads* own() { return static_cast<Loads*>(this); }
};

class PrefetchedLoads : public LoadsAlone<PrefetchedLoads> {
 public:
  SINTER_DEVICE uint4 words(const void* p) {
    prefetch_global_L2(p);
    return make_uint4(0, 0, 0, 0);
  }
};

class IssuedLoads : public LoadsAlone<IssuedLoads> {
 public:
  SINTER_DEVICE explicit IssuedLoads(AheadWords& words) : words_(words) {}

  SINTER_DEVICE uint4 words(const void* p) {
    const uint4 words = *static_cast<const uint4*>(p);
    if (next_ < kAheadInputs) words_.input[next_++] = words;
    return words;
  }

 private:
  AheadWords& words_;
  int next_ = 0;
};

class TakenLoads {
 public:
  SINTER_DEVICE TakenLoads(const AheadWords& words, float (&sums)[8])
      : words_(words), sums_(sums) {}

  SINTER_DEVICE AheadInput<f16, TakenLoads> of(const f16* p) { return {p, this}; }
  SINTER_DEVICE AheadInput<bf16, TakenLoads> of(const bf16* p) { return {p, this}; }
  template <typename T>
  SINTER_DEVICE T* of(T* p) {
    return p;
  }
  template <typename T>
  SINTER_DEVICE SummedChunks<T> summed() {
    return {sums_};
  }
  SINTER_DEVICE uint4 words(const void* p) {
    return next_ < kAheadInputs ? words_.input[next_++] : *static_cast<const uint4*>(p);
  }

 private:
  const AheadWords& words_;
  float (&sums_)[8];
  int next_ = 0;
};

}  // namespace sinter
