// Settings as key=value words (libraries, model, fused), and lines of a count and token ids -> for each line, what bare llama_decode says of the
// tokens behind the first `count`: the likeliest id, its log-probability, and that of the token which is there. The first `count` are one
// batch, the others one each. Everything has 32 bits: attention is fused only with fused=1.
#include <ggml-backend.h>
#include <llama.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

const char* Setting(int argc, char** argv, const char* key) {
  const size_t length = std::strlen(key);
  for (int i = 1; i < argc; i++)
    if (std::strncmp(argv[i], key, length) == 0 && argv[i][length] == '=') return argv[i] + length + 1;
  std::fprintf(stderr, "loop: missing setting %s\n", key);
  std::exit(2);
}

void Print(const float* logits, int vocab_size, llama_token token) {
  int best = 0;
  for (int id = 1; id < vocab_size; id++)
    if (logits[id] > logits[best]) best = id;
  double sum = 0;
  for (int id = 0; id < vocab_size; id++) sum += std::exp(static_cast<double>(logits[id]) - logits[best]);
  std::printf("%d %.6f %.6f ", best, -std::log(sum), logits[token] - logits[best] - std::log(sum));
}

}  // namespace

int main(int argc, char** argv) {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  ggml_backend_load_all_from_path(Setting(argc, argv, "libraries"));
  llama_model* model = llama_model_load_from_file(Setting(argc, argv, "model"), llama_model_default_params());
  if (!model) return 3;
  llama_context_params params = llama_context_default_params();
  params.n_ctx = 1024;
  params.type_k = params.type_v = GGML_TYPE_F32;
  const bool is_fused = std::strcmp(Setting(argc, argv, "fused"), "1") == 0;
  params.flash_attn_type = is_fused ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.n_threads = params.n_threads_batch = 1;
  llama_context* context = llama_init_from_model(model, params);
  if (!context) return 4;
  const int vocab_size = llama_vocab_n_tokens(llama_model_get_vocab(model));
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    size_t count = 0;
    words >> count;
    std::vector<llama_token> tokens;
    for (llama_token token; words >> token;) tokens.push_back(token);
    llama_memory_clear(llama_get_memory(context), true);
    for (size_t at = 0; at + 1 < tokens.size() || at == 0;) {
      const size_t size = at == 0 ? count : 1;
      if (llama_decode(context, llama_batch_get_one(&tokens[at], static_cast<int>(size))) != 0) return 5;
      at += size;
      if (at < tokens.size()) Print(llama_get_logits_ith(context, -1), vocab_size, tokens[at]);
    }
    std::printf("\n");
  }
  std::fflush(stdout);
  std::_Exit(0);
}
