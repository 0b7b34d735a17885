#include "plan/step.h"
template <typename Kind>
Kind& as(Step& step) {
  return std::get<Kind>(step.run);
}
