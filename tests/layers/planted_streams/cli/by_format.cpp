// A message that throws where stderr is closed.
void print() { fmt::print(stderr, "message"); }
