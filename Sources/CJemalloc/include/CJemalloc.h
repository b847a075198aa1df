#pragma once
/* jemalloc replaces malloc and free of the whole program. Nothing calls it by name. */
