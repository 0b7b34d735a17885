#include <string>

const std::string& name() {
  static const std::string made = "a name that is longer than any string keeps in itself";
  return made;
}
