// Folders of a room depend one way.
#include "frontends/files/json.h"
#include "frontends/huggingface/config.h"
