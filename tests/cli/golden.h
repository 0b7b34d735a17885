// Models of tests/golden that several tests run.
#pragma once

#include <string>

namespace sinter {

inline const std::string kGpt2 = SINTER_TESTS_DIR "/golden/gpt2";
inline const std::string kBert = SINTER_TESTS_DIR "/golden/bert_post_ln";

}  // namespace sinter
