// The weights of a model as load-time functions of the tensors in its files.
#pragma once

#include <memory>

#include "frontends/model/model_spec.h"
#include "frontends/quantized/coded_tensor.h"
#include "ir/tensor_source.h"

namespace sinter {

/// A weight that a model's graph uses: `name` as in the graph ("l3.q.weight"), `key` as in a
/// WeightMap ("l{i}.q.weight"). Weights of linears are [out, in], of experts [experts, out, in],
/// norms and biases [width], embedding tables [rows, hidden].
struct LogicalWeight {
  std::string name, key;
  int64_t layer = 0;  // of a key with "{i}"
  Dims dims;
  bool wide = false;      // float32, from a tensor that was rounded to the spec's type
  bool plus_one = false;  // 1 + the tensor, in float32
  bool table = false;     // rows are chosen by numbers; of a tied model also the output projection
};

/// All weights that come from files, in the order of their use.
std::vector<LogicalWeight> logical_weights(const ModelSpec& spec);

/// The names a checkpoint uses: a layout and the prefix that was found in it.
struct WeightNames {
  WeightMap map;
  std::string prefix;
  /// The tensors that are codes and scales, in the form that CodeTensors gives them.
  CodedTensors coded = {};

  /// The codes and scales that a file's tensor is given as; null: it has elements.
  const CodedTensor* codes_of(std::string_view tensor) const;
};

/// Codes with the extents of a weight [out, in] or [experts, rows, in].
CodedTensor codes_of_dims(DimsRef dims);

/// Weights with codes whose inputs are sorted: the name of the weight i32 [in] that says which
/// column of x each column of the matrix takes. Matrices of one order share it.
using OrderWeights = std::map<std::string, std::string, std::less<>>;
OrderWeights order_weights(const ModelSpec& spec, const WeightNames& names);

/// Name of the file tensor that holds a logical weight. "{e}" stays where each expert has its own.
std::string tensor_name(const LogicalWeight& weight, const WeightNames& names);

/// A tensor of the files and its type there.
struct SourceTensor {
  std::string name;
  TensorType type;
};

/// The tensors that a weight is made of, in the order in which their rows follow one another, as
/// the spec asks for them. The weight of experts may be stacked from several for each of them.
std::vector<SourceTensor> source_tensors(const LogicalWeight& weight, const WeightNames& names,
                                         DType dtype);

/// One Weight per logical weight, and one for each order of inputs. A weight of codes and scales is
/// a packed matrix (op pack_codes) of its own format; op dequantize has its elements. With a
/// source, each tensor must exist in it with the dims that the spec asks for and a float type, else
/// the error names the tensor, both shapes and `place` (the model's file or folder). Without one
/// (null), tensors are taken to be of the spec's type.
Result<std::vector<Weight>> build_weights(const ModelSpec& spec, const WeightNames& names,
                                          const TensorSource* source, std::string_view place);

/// Fails if the source lists a tensor that is neither part of a weight nor ignorable: a term of the
/// model would be missing without a word. A tied model ignores an output projection.
Status refuse_unused_tensors(const ModelSpec& spec, const WeightNames& names,
                             const TensorSource& source, std::string_view place);

}  // namespace sinter
