// What kernels share with the host knows nothing else of the host.
#include "ir/inner.h"
