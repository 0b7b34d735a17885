// Headers that kernels share with the host know nothing else of the host.
#include "ir/inner.h"
