#pragma once
#include <brotli/decode.h>
#include <zlib.h>
#include <zstd.h>

/* A macro, which Swift does not see. */
static inline int larder_inflate_init(z_stream *stream, int window_bits) {
    return inflateInit2(stream, window_bits);
}
