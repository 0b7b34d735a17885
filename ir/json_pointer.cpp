#include "ir/json_pointer.h"

namespace sinter {

std::string json_pointer_step(std::string_view key) {
  std::string step = "/";
  for (char c : key) {
    if (c == '~')
      step += "~0";
    else if (c == '/')
      step += "~1";
    else
      step += c;
  }
  return step;
}

}  // namespace sinter
