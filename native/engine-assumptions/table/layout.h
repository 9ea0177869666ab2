// The structures of the engine's interface -> one number. Releases with the same number can share a library that was compiled for one of them.
#pragma once
#include <gguf.h>
#include <llama.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace onpolicy {

constexpr uint64_t LayoutOf(std::initializer_list<size_t> numbers) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (size_t number : numbers) hash = (hash ^ number) * 1099511628211u;
  return hash;
}

// Sizes and places of what the decoder passes to the engine's functions.
constexpr uint64_t kEngineLayout =
    LayoutOf({sizeof(llama_model_params), sizeof(llama_context_params), sizeof(llama_batch), sizeof(ggml_tensor), sizeof(ggml_init_params),
              sizeof(gguf_init_params), offsetof(ggml_tensor, type), offsetof(ggml_tensor, ne), offsetof(ggml_tensor, nb),
              offsetof(ggml_tensor, op), offsetof(ggml_tensor, flags), offsetof(ggml_tensor, src), offsetof(ggml_tensor, view_src),
              offsetof(ggml_tensor, data), offsetof(ggml_tensor, name), GGML_MAX_SRC, GGML_MAX_NAME, GGML_TYPE_COUNT,
              offsetof(llama_context_params, flash_attn_type), offsetof(llama_context_params, cb_eval),
              offsetof(llama_context_params, type_k), offsetof(llama_context_params, kv_unified)});

}  // namespace onpolicy
