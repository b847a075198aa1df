#pragma once
#include <openssl/hmac.h>
#include <openssl/rand.h>
