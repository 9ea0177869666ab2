// The bare engine, for comparison: reads prompts as token ids, prints the argmax continuation of each, one line a prompt.
// usage: greedy <libraries folder> <model> <tokens to predict> tokens|logits|rows [f32] < prompts
// With "logits": prints the logits after each prompt instead, as hexadecimal floats. With "rows": those after each token of
// the one prompt, from one pass. With "f32": the KV cache has 32 bits, and attention is not fused.
#include <algorithm>
#include <ggml-backend-impl.h>
#include <ggml-backend.h>
#include <llama.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr char kExtraTypes[] = "ggml_backend_dev_get_extra_bufts";
void* (*g_address)(ggml_backend_reg_t, const char*);
ggml_backend_buffer_type_t g_types[8] = {};

ggml_backend_buffer_type_t* Types(ggml_backend_dev_t) { return g_types; }

void* AddressOf(ggml_backend_reg_t reg, const char* name) {
  return std::strcmp(name, kExtraTypes) == 0 ? reinterpret_cast<void*>(&Types) : g_address(reg, name);
}

// On processors with AMX the engine's matmuls round activations differently than on all others. Weights then stay out of AMX's buffers.
void LeaveOutAmx() {
  ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(cpu);
  const auto types =
      reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(ggml_backend_reg_get_proc_address(reg, kExtraTypes));
  size_t count = 0;
  for (auto* next = types ? types(cpu) : nullptr; next && *next && count + 1 < std::size(g_types); ++next)
    if (std::strcmp(ggml_backend_buft_name(*next), "AMX") != 0) g_types[count++] = *next;
  g_address = reg->iface.get_proc_address;
  reg->iface.get_proc_address = AddressOf;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  ggml_backend_load_all_from_path(argv[1]);
  LeaveOutAmx();
  llama_model* model = llama_model_load_from_file(argv[2], llama_model_default_params());
  if (!model) return 3;
  llama_context_params params = llama_context_default_params();
  if (argc > 5 && std::string(argv[5]) == "f32") {
    params.type_k = params.type_v = GGML_TYPE_F32;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  }
  params.n_threads = params.n_threads_batch = 1;  // small models: more threads only wait for each other
  const int vocab_size = llama_vocab_n_tokens(llama_model_get_vocab(model));
  const bool prints_logits = std::string(argv[4]) == "logits";
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::vector<llama_token> tokens;
    for (llama_token token; words >> token;) tokens.push_back(token);
    params.n_ctx = static_cast<uint32_t>(std::max<size_t>(512, tokens.size() + std::stoul(argv[3])));
    if (std::string(argv[4]) == "rows") params.n_ctx = params.n_batch = params.n_ubatch = static_cast<uint32_t>(tokens.size());
    llama_context* context = llama_init_from_model(model, params);
    if (std::string(argv[4]) == "rows") {
      llama_batch batch = llama_batch_get_one(tokens.data(), static_cast<int>(tokens.size()));
      std::vector<int8_t> wants_logits(tokens.size(), 1);
      batch.logits = wants_logits.data();
      if (llama_decode(context, batch) != 0) return 4;
      for (size_t at = 0; at < tokens.size(); ++at) {
        const float* logits = llama_get_logits_ith(context, static_cast<int32_t>(at));
        for (int id = 0; id < vocab_size; ++id) std::printf("%a ", static_cast<double>(logits[id]));
        std::printf("\n");
      }
      continue;
    }
    for (int i = 0; i < std::atoi(argv[3]); ++i) {
      if (llama_decode(context, llama_batch_get_one(tokens.data(), static_cast<int>(tokens.size()))) != 0) return 4;
      const float* logits = llama_get_logits_ith(context, -1);
      if (prints_logits) {
        for (int id = 0; id < vocab_size; ++id) std::printf("%a ", static_cast<double>(logits[id]));
        break;
      }
      int best = 0;
      for (int id = 1; id < vocab_size; ++id)
        if (logits[id] > logits[best]) best = id;
      std::printf("%d ", best);
      tokens.assign(1, best);
    }
    std::printf("\n");
    llama_free(context);
  }
  llama_model_free(model);
  return 0;
}
