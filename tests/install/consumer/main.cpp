#include <sinter/ir/error.h>

#include <cstdio>

int main() {
  const sinter::Error error{"dims 3 and 4 differ", "model.json", "make them equal"};
  std::puts(error.message().c_str());
  return error.message() == "model.json: dims 3 and 4 differ; make them equal" ? 0 : 1;
}
