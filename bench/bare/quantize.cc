// A GGUF file and another file's path -> the same model with its matrices in Q4_K_M, by libllama.
#include <llama.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "quantize: expected two paths\n");
    return 2;
  }
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.ftype = LLAMA_FTYPE_MOSTLY_Q4_K_M;
  params.allow_requantize = true;
  return llama_model_quantize(argv[1], argv[2], &params) == 0 ? 0 : 1;
}
