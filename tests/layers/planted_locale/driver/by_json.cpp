auto read(const std::string& text) { return nlohmann::json::parse(text); }
