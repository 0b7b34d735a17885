#include "ir/verdict.h"

#include "ir/error.h"

namespace sinter {

std::string_view reason_id(Reason reason) {
  switch (reason) {
#define X(name, id, text) \
  case Reason::name:      \
    return id;
    SINTER_REASONS(X)
#undef X
  }
  SINTER_CHECK(false, "reason");
}

std::string_view reason_text(Reason reason) {
  switch (reason) {
#define X(name, id, text) \
  case Reason::name:      \
    return text;
    SINTER_REASONS(X)
#undef X
  }
  SINTER_CHECK(false, "reason");
}

}  // namespace sinter
