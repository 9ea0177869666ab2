// Products of Q8_0 weights with activations rounded to the same blocks, by the 8-bit dot products of AVX-512.
// To be called only where HasAvx512().
#pragma once
#include <cstddef>
#include <cstdint>

namespace onpolicy::training {

// Tokens are rounded and multiplied in groups of this many.
constexpr int64_t kTokenGroup = 12;
// Outputs that one pass over all tokens computes.
constexpr int64_t kOutputPanel = 16;

// Room that rounded activations, (size, tokens), take.
size_t RoundedBytes(int64_t size, int64_t tokens);

// Rounds the groups [first, last) of x, (size, tokens) columns of whole blocks of 32, as ggml rounds activations to Q8_0.
void RoundTokens(const float* x, int64_t size, int64_t tokens, int64_t first_group, int64_t last_group, void* rounded);

// y = W x for the panels [first, last) of outputs. weight: (size, outputs) in Q8_0; y: (outputs, tokens) columns.
void Q8Product(float* y, const void* weight, const void* rounded, int64_t size, int64_t outputs, int64_t tokens,
               int64_t first_panel, int64_t last_panel);

}  // namespace onpolicy::training
