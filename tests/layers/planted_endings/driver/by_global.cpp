#include <string>

std::string planted_global = "a name that is longer than any string keeps in itself";
