// Names in the engine's graphs, libraries and tables that its public headers do not promise.
#pragma once

namespace onpolicy {

constexpr char kEmbeddingTable[] = "token_embd.weight";
// The states that the output layer reads.
constexpr char kPooledState[] = "result_norm";
// Prefix of the name of a layer's chosen experts; the layer's number follows.
constexpr char kChosenExperts[] = "ffn_moe_topk-";
// Words of the log before the sizes of a context's caches.
constexpr const char* kCacheSizes[] = {"KV buffer size", "RS buffer size"};
// Ends of the names of an adapter's factors.
constexpr char kFactorA[] = ".lora_a", kFactorB[] = ".lora_b";
// End of the name of a vector that scales a matmul's output.
constexpr char kOutputScale[] = ".scale";

// The CPU backend's function that lists its extra buffer types, and their names.
constexpr char kExtraTypes[] = "ggml_backend_dev_get_extra_bufts";
constexpr char kRepackType[] = "CPU_REPACK", kAmxType[] = "AMX";

}  // namespace onpolicy
