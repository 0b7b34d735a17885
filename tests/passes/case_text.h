// Cases of the passes as text: a module in the text form, whose comments say what is asked of the
// compiler and what it answers.
//
//   // What the case shows, for a person.
//   // model: golden/llama          a model's folder under tests/, in place of a module
//   // entry: decode                default: the first entry
//   // forbid: a, b                 may repeat, as may require
//   // require: a, b
//   // stop-after: 1
//   // target: sm_80
//   // no-fuse: yes
//   // numerics: fast               default: strict; fast plans are not run
//   // device-inputs: yes           kernels check the row numbers among inputs
//   // run: 3, 16                   symbol values of the run; default: small ones
//   module @m {
//     ...
//   }
//   // groups:                      question: every kernel and call of the entry, in their order
//   //   rows 1: res1 norm2 => res1 norm2        leading axes that make a row: members => results
//   //   call: up                                a contraction
//   // group of res1:               the line of one value's kernel
//   // why norm1 res1:              the verdict: reason id, what decided, the path
//   // reductions in norm2:         reductions in the kernel that computes a value
//   // distinct kernels:            of the whole program; text: CUDA without comment and name
//   // after merge_linears:         the module as that pass leaves it
//   // error:                       why it cannot be compiled
//
// An answer stands below its question, indented.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace sinter::test {

struct Question {
  std::string keyword;             // "why"
  std::vector<std::string> names;  // {"norm1", "res1"}
  std::string answer;              // lines, each with its line end
};

class CaseText {
 public:
  explicit CaseText(const std::string& text);

  /// A setting's values: of a keyword that may repeat one for each line.
  std::map<std::string, std::vector<std::vector<std::string>>> settings;
  std::vector<Question> questions;

  /// The case with the answers as they are in `questions`.
  std::string text() const;

 private:
  std::vector<std::string> pieces_;  // pieces_[i] ends with question i, the last one with the text
};

}  // namespace sinter::test
