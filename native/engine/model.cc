#include "engine/model.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <system_error>

#include "base/file-path.h"
#include "base/thread-budget.h"
#include "base/utf8.h"
#include "engine-assumptions/attention/hook.h"
#include "engine-assumptions/error-log.h"
#include "engine-assumptions/matmul/buffer-type.h"
#include "engine-assumptions/matmul/install.h"
#include "engine-assumptions/table/assumptions.h"
#include "kernels/matmul/packing.h"

#ifdef __linux__
#include <sys/mman.h>

#include <cinttypes>
#include <fstream>
#endif

namespace onpolicy {
namespace {

bool MentionsMemory(const ErrorLog& log) {
  for (const char* words : {"failed to allocate", "unable to allocate", "out of memory", "bad_alloc", "not enough memory"})
    if (log.Mentions(words)) return true;
  return false;
}

Failure LoadFailure(const std::string& path, const ErrorLog& log) {
  if (MentionsMemory(log)) return {"OUT_OF_MEMORY", path + " does not fit into memory: " + log.Text()};
  const bool is_unknown = log.Mentions("unknown model architecture");
  return {"MODEL_INVALID", path + (is_unknown ? " has an architecture that the engine does not know: " : " does not load: ") + log.Text()};
}

// Returns true if this addon's matmuls can be used. Logs the reason if they or attention cannot.
bool CanPack() {
  for (const Assumed row : {Assumed::kWeightTypes, Assumed::kMatmulResults, Assumed::kMarks, Assumed::kAttentionResults})
    if (IsBroken(row)) LogLine(GGML_LOG_LEVEL_WARN, (FindingOf(row).problem + "; " + TextOf(row).without + "\n").c_str());
  return matmul::Installed() != nullptr;
}

// Returns true if the graphs of a model have matmuls of packed weights that this addon does not know.
bool HasUnknownMatmul(llama_model* model, bool is_unfused) {
  llama_context_params params = Api().llama_context_default_params();
  params.n_ctx = 256;
  params.n_batch = params.n_ubatch = 8;
  params.n_seq_max = 1;
  params.no_perf = true;
  if (is_unfused) params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  ErrorLog log;
  return matmul::HasUnknownMatmul([&] {
    if (llama_context* context = log.Run([&] { return Api().llama_init_from_model(model, params); })) Api().llama_free(context);
  });
}

// Releases the mapped pages of a GGUF file, and of its other parts, to the system. They stay mapped, and are read again from the system's
// file cache. Only on Linux.
void ReleaseMappedPages([[maybe_unused]] const std::string& path) {
#ifdef __linux__
  std::error_code error;
  std::string name = std::filesystem::canonical(FilePath(path), error).string();
  if (error) return;
  if (const size_t part = name.rfind("-00001-of-"); part != std::string::npos) name.resize(part);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    char access[5] = {};
    // Only read-only maps: their dropped pages are read again from the file.
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, access) != 3 || access[1] != '-') continue;
    const size_t file = line.find('/');
    if (file == std::string::npos || line.compare(file, name.size(), name) != 0) continue;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
#endif
}

// Returns the text that `call(buffer, size)` writes. `call` returns the whole length, or a negative number if there is no text.
template <class Call>
std::string ReadText(Call call) {
  std::string text(256, '\0');
  int32_t length = call(text.data(), text.size());
  if (length >= static_cast<int32_t>(text.size())) {
    text.resize(static_cast<size_t>(length) + 1);
    length = call(text.data(), text.size());
  }
  text.resize(static_cast<size_t>(std::max(length, 0)));
  return text;
}

}  // namespace

std::shared_ptr<Model> Model::Load(const ModelOptions& options) {
  // One load at a time: the engine reports failures through one process-wide log.
  static std::mutex load_mutex;
  std::lock_guard<std::mutex> lock(load_mutex);
  return LoadAlone(options);
}

std::shared_ptr<Model> Model::LoadAlone(const ModelOptions& options) {
  const Library& api = Api();
  struct Progress {
    const ModelOptions& options;
    bool stopped = false;
  } progress{options};
  llama_model_params params = api.llama_model_default_params();
  const bool use_gpu = options.use_gpu && options.gpu_layers != 0 && HasGpuDevice();
  std::vector<ggml_backend_dev_t> devices;
  for (const std::string& name : options.devices) {
    devices.push_back(api.ggml_backend_dev_by_name(name.c_str()));
    if (!devices.back()) throw Failure("INVALID_REQUEST", "devices: no device is named " + name);
  }
  if (!use_gpu) devices.clear();
  devices.push_back(nullptr);
  if (!use_gpu || devices.size() > 1) params.devices = devices.data();
  std::vector<float> shares = options.tensor_split;
  shares.resize(api.llama_max_devices(), 0.0f);
  if (!options.tensor_split.empty()) params.tensor_split = shares.data();
  ggml_backend_dev_t cpu = api.ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  const llama_model_tensor_buft_override kept[] = {{options.cpu_tensors.c_str(), api.ggml_backend_dev_buffer_type(cpu)}, {nullptr, nullptr}};
  if (use_gpu && !options.cpu_tensors.empty()) params.tensor_buft_overrides = kept;
  params.load_mtp = options.load_heads;
  params.vocab_only = options.vocab_only;
  params.n_gpu_layers = use_gpu ? options.gpu_layers : 0;
  if (options.mlock) params.load_mode = options.mmap.value_or(true) ? LLAMA_LOAD_MODE_MMAP_MLOCK : LLAMA_LOAD_MODE_MLOCK;
  else if (options.mmap) params.load_mode = *options.mmap ? LLAMA_LOAD_MODE_MMAP : LLAMA_LOAD_MODE_NONE;
  params.progress_callback_user_data = &progress;
  params.progress_callback = [](float fraction, void* data) {
    auto* state = static_cast<Progress*>(data);
    return InCallback(
        [&] {
          ThreadBudget::Shared().Look();
          if (state->options.on_progress && !state->options.on_progress(fraction)) state->stopped = true;
          return !state->stopped;
        },
        false);
  };
  const bool packs = options.packs && !use_gpu && CanPack();
  ErrorLog log;
  std::error_code unknown;
  const auto bytes = std::filesystem::file_size(FilePath(options.path), unknown);
  auto packing = std::make_optional<matmul::Packing>(packs, unknown ? 0 : bytes);
  std::unique_ptr<llama_model, Freed<&Library::llama_model_free>> raw(
      log.Run([&] { return api.llama_model_load_from_file(options.path.c_str(), params); }));
  const size_t packed_bytes = packing->packed_bytes();
  packing.reset();  // frees reserved memory that was not used
  if (!raw && packs && !progress.stopped && MentionsMemory(log)) {
    ModelOptions plain = options;
    plain.packs = false;
    const std::string line = "matmuls: plain, as packed weights do not fit into memory: " + log.Text() + "\n";
    LogLine(GGML_LOG_LEVEL_WARN, line.c_str());
    return LoadAlone(plain);
  }
  if (!raw && progress.stopped) throw Failure("ABORTED", "loading " + options.path + " was aborted");
  if (!raw) throw LoadFailure(options.path, log);
  if (packed_bytes > 0 && HasUnknownMatmul(raw.get(), options.is_unfused)) {
    ModelOptions plain = options;
    plain.packs = false;
    raw.reset();
    return LoadAlone(plain);
  }
  std::unique_ptr<Model> owner(new Model(raw.get(), use_gpu));
  llama_model* const loaded = raw.release();
  std::shared_ptr<Model> model = std::move(owner);
  model->has_own_kernels_ = packs;
  if (packed_bytes > 0) {
    model->kernels_ = matmul::Installed();
    ReleaseMappedPages(options.path);
  }
  if (!api.llama_model_has_decoder(loaded) || api.llama_model_is_diffusion(loaded) || model->vocab_size() == 0)
    throw Failure("UNSUPPORTED", options.path + " is not a model that generates text token by token");
  return model;
}

Model::Model(llama_model* model, bool use_gpu)
    : model_(model),
      vocab_(Api().llama_model_get_vocab(model)),
      vocab_size_(Api().llama_vocab_n_tokens(vocab_)),
      use_gpu_(use_gpu) {}

bool Model::is_f32() const {
  return (Api().llama_model_ftype(model_) & ~LLAMA_FTYPE_GUESSED) == LLAMA_FTYPE_ALL_F32;
}

Model::~Model() {
  if (!is_abandoned_) Api().llama_model_free(model_);
}

std::vector<int32_t> Model::Tokenize(const std::string& text, bool add_special, bool parse_special) const {
  std::vector<int32_t> ids(text.size() / 3 + 16);
  const auto tokenize = [&] {
    return Api().llama_tokenize(vocab_, text.data(), static_cast<int32_t>(text.size()), ids.data(), static_cast<int32_t>(ids.size()),
                                add_special, parse_special);
  };
  int32_t count = 0;
  try {
    count = tokenize();
  } catch (const EngineThrew& failure) {  // the engine throws for a byte that has no token
    const std::string unspelled = Unspelled(text);
    if (!unspelled.empty()) throw Failure("UNSUPPORTED", "the vocabulary of this model cannot spell " + unspelled);
    throw Failure("UNSUPPORTED", "the vocabulary of the model cannot write the text: " + failure.status().message);
  }
  if (count == INT32_MIN) throw Failure("INVALID_REQUEST", "the text has more tokens than can be counted");
  if (count < 0) {
    ids.resize(static_cast<size_t>(-count));
    count = tokenize();
  }
  if (count < 0) throw Failure("BACKEND_FAILED", "the tokenizer changed its mind about the length of a text");
  ids.resize(static_cast<size_t>(count));
  if (std::any_of(ids.begin(), ids.end(), [this](int32_t id) { return id < 0 || id >= vocab_size_; }))
    throw Failure("UNSUPPORTED", "the vocabulary of the model has no token for a part of the text");
  return ids;
}

std::string Model::Unspelled(const std::string& text) const {
  std::set<uint32_t> tried;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const uint32_t code_point = grammar::ReadCodePoint(text, &at);
    if (!tried.insert(code_point).second) continue;
    int32_t ids[16];
    try {
      Api().llama_tokenize(vocab_, text.data() + start, static_cast<int32_t>(at - start), ids, 16, false, false);
    } catch (const EngineThrew&) {
      char name[16];
      std::snprintf(name, sizeof(name), "U+%04X", static_cast<unsigned>(code_point));
      return "\"" + text.substr(start, at - start) + "\" (" + name + ")";
    }
  }
  return "";
}

VocabularyTable Model::Table() const {
  const Library& api = Api();
  VocabularyTable table;
  table.offsets.reserve(static_cast<size_t>(vocab_size_) + 1);
  table.offsets.push_back(0);
  std::vector<char> piece(256);
  for (int32_t id = 0; id < vocab_size_; ++id) {
    int32_t length = api.llama_token_to_piece(vocab_, id, piece.data(), static_cast<int32_t>(piece.size()), 0, true);
    if (length < 0) {
      piece.resize(static_cast<size_t>(-length));
      length = api.llama_token_to_piece(vocab_, id, piece.data(), static_cast<int32_t>(piece.size()), 0, true);
    }
    table.bytes.insert(table.bytes.end(), piece.data(), piece.data() + std::max(length, 0));
    table.offsets.push_back(static_cast<int32_t>(table.bytes.size()));
    const int attributes = api.llama_vocab_get_attr(vocab_, id);
    table.is_special.push_back((attributes & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) != 0);
    table.is_end.push_back(api.llama_vocab_is_eog(vocab_, id));
  }
  return table;
}

ConstraintTokens Model::TokensForConstraints() const {
  const VocabularyTable table = Table();
  ConstraintTokens tokens;
  tokens.offsets.push_back(0);
  for (int32_t id = 0; id < vocab_size_; ++id) {
    const auto at = static_cast<size_t>(id);
    const bool is_unused = (Api().llama_vocab_get_attr(vocab_, id) & LLAMA_TOKEN_ATTR_UNUSED) != 0;
    const std::string_view unused = is_unused ? Api().llama_vocab_get_text(vocab_, id) : "";
    if (is_unused) tokens.bytes.insert(tokens.bytes.end(), unused.begin(), unused.end());
    else tokens.bytes.insert(tokens.bytes.end(), table.bytes.begin() + table.offsets[at], table.bytes.begin() + table.offsets[at + 1]);
    tokens.offsets.push_back(static_cast<uint32_t>(tokens.bytes.size()));
    if (is_unused || table.is_special[at]) tokens.specials.push_back(id);
  }
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    if (const std::string text = MetadataValue(key); !text.empty())
      if (const unsigned long id = std::stoul(text); id < static_cast<unsigned long>(vocab_size_)) tokens.ends.push_back(static_cast<int32_t>(id));
  return tokens;
}

std::vector<std::pair<std::string, std::string>> Model::Metadata() const {
  const Library& api = Api();
  std::vector<std::pair<std::string, std::string>> entries;
  const int32_t count = api.llama_model_meta_count(model_);
  for (int32_t i = 0; i < count; ++i)
    entries.emplace_back(
        ReadText([&](char* buffer, size_t size) { return api.llama_model_meta_key_by_index(model_, i, buffer, size); }),
        ReadText([&](char* buffer, size_t size) { return api.llama_model_meta_val_str_by_index(model_, i, buffer, size); }));
  return entries;
}

std::string Model::MetadataValue(const char* key) const {
  return ReadText([&](char* buffer, size_t size) { return Api().llama_model_meta_val_str(model_, key, buffer, size); });
}

bool Model::has_experts() const {
  const std::string count = MetadataValue((MetadataValue("general.architecture") + ".expert_count").c_str());
  return !count.empty() && count != "0";
}

std::string Model::ChatTemplate(const char* name) const {
  const char* text = Api().llama_model_chat_template(model_, name);
  return text ? text : "";
}

}  // namespace onpolicy
