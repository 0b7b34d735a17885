std::string write(double x) {
  std::ostringstream text;
  text << x;
  return text.str();
}
