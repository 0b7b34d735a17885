// A result that bypasses cli/output.h.
void print() { std::cout << "result"; }
