// Writes a model again with its matrices in Q8_0 or F32, as llama.cpp does it.
// usage: quantize <libraries folder> <model> <new file> q8_0|f32
#include <cstring>
#include <ggml-backend.h>
#include <llama.h>

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  ggml_backend_load_all_from_path(argv[1]);
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.ftype = std::strcmp(argv[4], "f32") == 0 ? LLAMA_FTYPE_ALL_F32 : LLAMA_FTYPE_MOSTLY_Q8_0;
  params.allow_requantize = true;
  return static_cast<int>(llama_model_quantize(argv[2], argv[3], &params));
}
