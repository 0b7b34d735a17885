double read(const char* text) { return std::strtod(text, nullptr); }
