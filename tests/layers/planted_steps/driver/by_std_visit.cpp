#include "plan/step.h"
void print(const Step& step) {
  std::visit([](const auto&) {}, step.run);
}
