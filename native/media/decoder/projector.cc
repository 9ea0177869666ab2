// A projector file -> tokens of a prompt with media, rows of embeddings of one chunk. No exception leaves this file, and no
// failed check of mtmd ends the process: `ggml_abort`, which its checks call, is compiled to `ThrowAbort`.
#include "media/decoder/functions.h"
#include "media/decoder/graph-pace.h"

#include <ggml.h>
#include <mtmd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <stdexcept>

// The build gives mtmd's `ggml_abort` this name.
extern "C" [[noreturn]] void onpolicy_media_abort(const char*, int, const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  throw std::runtime_error(text);
}

namespace onpolicy {
namespace {

std::atomic<void (*)(int, const char*)> g_log{nullptr};
thread_local std::string* g_errors = nullptr;  // receives the error lines of the call that runs on this thread

void OnLog(ggml_log_level level, const char* text, void*) {
  if (auto* log = g_log.load()) log(static_cast<int>(level), text);
  if (g_errors && level == GGML_LOG_LEVEL_ERROR && g_errors->size() < 500) *g_errors += text;
}

// Runs `call` and turns exceptions into a status of this code.
template <typename Call>
Status Guard(const char* code, const char* what, const Call& call) {
  std::string errors;
  g_errors = &errors;
  std::string reason;
  bool is_done = false;
  try {
    is_done = call();
  } catch (const std::exception& error) {
    reason = error.what();
  } catch (...) {
    reason = "unknown failure";
  }
  g_errors = nullptr;
  if (is_done) return Status::Ok();
  if (reason.empty()) reason = errors.empty() ? "the decoder gave no reason" : errors;
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  while (!reason.empty() && reason.back() == ' ') reason.pop_back();
  return Status::Fail(code, std::string(what) + ": " + reason);
}

using Chunks = std::unique_ptr<mtmd_input_chunks, decltype(&mtmd_input_chunks_free)>;
using Bitmap = std::unique_ptr<mtmd_bitmap, decltype(&mtmd_bitmap_free)>;

Bitmap ToBitmap(const Media& media, size_t part) {
  Bitmap bitmap(media.kind == MediaKind::kImage
                    ? mtmd_bitmap_init(media.width, media.height, media.rgb.data())
                    : mtmd_bitmap_init_from_audio(media.samples.size(), media.samples.data()),
                mtmd_bitmap_free);
  mtmd_bitmap_set_id(bitmap.get(), std::to_string(part).c_str());
  return bitmap;
}

class MtmdProjector : public Projector {
 public:
  static Status Open(const ProjectorOptions& options, const llama_model* model, std::unique_ptr<Projector>* projector) {
    std::unique_ptr<MtmdProjector> opened(new MtmdProjector);
    opened->threads_ = options.threads;
    mtmd_context_params params = mtmd_context_params_default();
    params.use_gpu = options.use_gpu;
    params.n_threads = options.threads;
    params.print_timings = false;
    params.warmup = false;
    params.image_min_tokens = options.min_image_tokens;
    params.image_max_tokens = options.max_image_tokens;
    params.cb_eval = [](ggml_tensor* result, bool asks, void* self) {
      GraphPace* pace = static_cast<MtmdProjector*>(self)->running_;
      if (!pace) return !asks;
      return asks ? pace->Before(result) : pace->After();
    };
    params.cb_eval_user_data = opened.get();
    const Status status = Guard("MODEL_INVALID", "the projector does not load", [&] {
      opened->context_ = mtmd_init_from_file(options.path.c_str(), model, params);
      if (!opened->context_) return false;
      opened->row_size_ = llama_model_n_embd_inp(model);
      return true;
    });
    if (!status.ok()) return status;
    opened->Measure();
    *projector = std::move(opened);
    return Status::Ok();
  }

  ~MtmdProjector() override { mtmd_free(context_); }

  bool sees() const override { return mtmd_support_vision(context_); }
  bool hears() const override { return mtmd_support_audio(context_); }
  int32_t sample_rate() const override { return std::max(0, mtmd_get_audio_sample_rate(context_)); }
  int32_t row_size() const override { return row_size_; }
  int32_t largest_whole_chunk() const override { return largest_whole_chunk_; }

  Status Tokenize(const std::vector<MediaPart>& parts, bool add_special, std::vector<MediaChunk>* chunks) const override {
    return Guard("INVALID_REQUEST", "the model's projector does not take this", [&] {
      std::vector<Bitmap> bitmaps;
      std::vector<mtmd_input_text> texts(parts.size());
      std::vector<mtmd_input_part> inputs(parts.size());
      std::vector<const mtmd_input_part*> pointers;
      for (size_t i = 0; i < parts.size(); ++i) {
        if (parts[i].media) {
          bitmaps.push_back(ToBitmap(*parts[i].media, i));
          inputs[i].bitmap = bitmaps.back().get();
        } else {
          texts[i] = {parts[i].text.data(), parts[i].text.size(), false, true};
          inputs[i].text = &texts[i];
        }
        pointers.push_back(&inputs[i]);
      }
      return Tokenize(pointers, add_special, chunks);
    });
  }

  Status Encode(const MediaChunk& chunk, const EncodePace& pace, std::vector<float>* rows) override {
    std::lock_guard<std::mutex> lock(encoding_);
    GraphPace running(pace, threads_);
    running_ = &running;
    const Status status = Guard("BACKEND_FAILED", "a medium could not be encoded", [&] {
      if (!pace.pause(0)) return running.Abort();
      if (mtmd_encode_chunk(context_, static_cast<const mtmd_input_chunk*>(chunk.input.get())) != 0) return false;
      const float* made = mtmd_get_output_embd(context_);
      rows->assign(made, made + static_cast<size_t>(chunk.count) * static_cast<size_t>(row_size_));
      return true;
    });
    running_ = nullptr;
    return running.is_aborted() ? Status::Fail("ABORTED", "encoding was aborted") : status;
  }

 private:
  MtmdProjector() = default;

  bool Tokenize(const std::vector<const mtmd_input_part*>& parts, bool add_special, std::vector<MediaChunk>* chunks) const {
    Chunks made(mtmd_input_chunks_init(), mtmd_input_chunks_free);
    if (mtmd_tokenize_from_parts(context_, made.get(), parts.data(), parts.size(), add_special) != 0) return false;
    for (size_t i = 0; i < mtmd_input_chunks_size(made.get()); ++i)
      chunks->push_back(ToChunk(mtmd_input_chunks_get(made.get(), i)));
    return true;
  }

  MediaChunk ToChunk(const mtmd_input_chunk* chunk) const {
    MediaChunk made;
    made.count = static_cast<int32_t>(mtmd_input_chunk_get_n_tokens(chunk));
    made.advance = static_cast<int32_t>(mtmd_input_chunk_get_n_pos(chunk));
    const auto type = mtmd_input_chunk_get_type(chunk);
    if (type == MTMD_INPUT_CHUNK_TYPE_TEXT) {
      size_t count = 0;
      const llama_token* tokens = mtmd_input_chunk_get_tokens_text(chunk, &count);
      made.tokens.assign(tokens, tokens + count);
      return made;
    }
    if (const char* id = mtmd_input_chunk_get_id(chunk)) made.part = std::atoi(id);
    made.is_non_causal = mtmd_decode_use_non_causal(context_, chunk);
    made.input = std::shared_ptr<const void>(
        mtmd_input_chunk_copy(chunk),
        [](const void* input) { mtmd_input_chunk_free(static_cast<mtmd_input_chunk*>(const_cast<void*>(input))); });
    if (mtmd_decode_use_mrope(context_)) made.positions = Positions(chunk, made.count);
    return made;
  }

  // Planes t, y, x, z, in this order, as the engine takes them.
  static std::vector<int32_t> Positions(const mtmd_input_chunk* chunk, int32_t count) {
    const auto size = static_cast<size_t>(count);
    std::vector<int32_t> planes(4 * size);
    const mtmd_image_tokens* image = mtmd_input_chunk_get_tokens_image(chunk);
    for (size_t i = 0; i < size; ++i) {
      const auto at = static_cast<uint32_t>(i);
      const mtmd_decoder_pos place =
          image ? mtmd_image_tokens_get_decoder_pos(image, 0, i) : mtmd_decoder_pos{at, at, at, at};
      planes[i] = static_cast<int32_t>(place.t);
      planes[size + i] = static_cast<int32_t>(place.y);
      planes[2 * size + i] = static_cast<int32_t>(place.x);
      planes[3 * size + i] = static_cast<int32_t>(place.z);
    }
    return planes;
  }

  // Counts the rows of empty pictures of several shapes, to find the largest number that one pass must contain.
  void Measure() {
    if (!sees() || !mtmd_decode_use_non_causal(context_, nullptr)) return;
    constexpr uint32_t kShapes[][2] = {{64, 64}, {1024, 1024}, {4096, 4096}, {4096, 512}, {512, 4096}};
    for (const auto& [width, height] : kShapes) {
      Guard("", "", [&, width = width, height = height] {
        const Bitmap bitmap(mtmd_bitmap_init(width, height, nullptr), mtmd_bitmap_free);
        mtmd_input_part part{nullptr, bitmap.get()};
        std::vector<MediaChunk> chunks;
        if (!Tokenize({&part}, false, &chunks)) return false;
        for (const MediaChunk& chunk : chunks)
          if (chunk.is_non_causal) largest_whole_chunk_ = std::max(largest_whole_chunk_, chunk.count);
        return true;
      });
    }
  }

  mtmd_context* context_ = nullptr;
  int32_t threads_ = 1;
  int32_t row_size_ = 0;
  int32_t largest_whole_chunk_ = 0;
  std::mutex encoding_;
  GraphPace* running_ = nullptr;  // of the running Encode
};

}  // namespace

Status OpenProjector(const ProjectorOptions& options, const llama_model* model, std::unique_ptr<Projector>* projector) {
  return MtmdProjector::Open(options, model, projector);
}

void SetDecoderLog(void (*log)(int level, const char* text)) {
  g_log = log;
  mtmd_log_set(OnLog, nullptr);
}

}  // namespace onpolicy
