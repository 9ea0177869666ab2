// The bare engine, for comparison: reads prompts as token ids, prints the argmax continuation of each, one line a prompt.
// usage: greedy <libraries folder> <model> <tokens to predict> tokens|logits|rows [f32] < prompts
// With "logits": prints the logits after each prompt instead, as hexadecimal floats. With "rows": those after each token of
// the one prompt, from one pass. With "f32": the KV cache has 32 bits, and attention is not fused.
#include <algorithm>
#include <ggml-backend.h>
#include <llama.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  ggml_backend_load_all_from_path(argv[1]);
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
