// A library that calls a function of another one, directly and through a pointer to it.
#include <unistd.h>

namespace {
pid_t (*volatile pointer)() = &getppid;
}

extern "C" int called() { return static_cast<int>(getppid()); }
extern "C" int called_through_pointer() { return static_cast<int>((*pointer)()); }
