bool is_name(char c) { return std::isalpha(c); }
