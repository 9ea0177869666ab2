// The decoder library, pictures and sounds, projectors: bytes -> pixels or samples -> chunks of a prompt -> rows of embeddings.
#include <algorithm>
#include <atomic>
#include <mutex>

#include "addon/arguments.h"
#include "addon/async-task.h"
#include "addon/environment.h"
#include "addon/handle.h"
#include "addon/register.h"
#include "addon/unwrap.h"
#include "base/compute-turns.h"
#include "engine-assumptions/shared-library.h"
#include "engine-assumptions/table/assumptions.h"
#include "engine-assumptions/table/layout.h"
#include "media/decoder.h"

namespace onpolicy {
namespace {

using Rows = const std::vector<float>;

constexpr napi_type_tag kMediaTag = {0x1fb8d3764ac9e025u, 0x9d20c5e7318fb64au};
constexpr napi_type_tag kChunkTag = {0xc64a0e9f72d5b813u, 0x47f1903bd6e8a25cu};
constexpr napi_type_tag kRowsTag = {0x78e35d1bf0a4c962u, 0xe05b9c24a7d1386fu};
constexpr char kHandle[] = "a handle of the addon";

std::shared_ptr<const Media> UnwrapMedia(Napi::Value value, const char* field) {
  return UnwrapShared<const Media>(value, kMediaTag, field, kHandle);
}

std::mutex g_decoder_mutex;
// Null until it is opened: once per process, and after the engine's libraries, because it calls their functions.
std::atomic<const DecoderTable*> g_decoder{nullptr};

// Opens the decoder library unless it is open. Returns the version of the llama.cpp that it is made of.
std::string OpenDecoder(const std::string& path) {
  std::lock_guard<std::mutex> lock(g_decoder_mutex);
  if (g_decoder) return g_decoder.load()->engine_version;
  void* handle = OpenSharedLibrary(path, Names::kOwn);
  if (!handle) throw Failure("NATIVE_UNAVAILABLE", "the decoder does not load: " + LibraryError());
  const auto entry = reinterpret_cast<const DecoderTable* (*)()>(LibrarySymbol(handle, kDecoderEntry));
  const DecoderTable* table = entry ? entry() : nullptr;
  if (!table || table->version != kDecoderVersion) {
    CloseSharedLibrary(handle);  // so that a decoder that is built again can be opened
    throw Failure("NATIVE_UNAVAILABLE", path + " is not the decoder of this version");
  }
  if (table->layout != kEngineLayout) {
    const std::string problem = path + " was built with llama.cpp " + table->engine_version + ", whose layout is not that of " + Api().version;
    CloseSharedLibrary(handle);
    Break(Assumed::kDecoder, problem);
    throw Failure("NATIVE_UNAVAILABLE", problem);
  }
  Confirm(Assumed::kDecoder);
  table->set_log(LogLine);
  g_decoder = table;
  return table->engine_version;
}

// openDecoder(path) -> Promise<string>, the version of the llama.cpp that the decoder is made of
Napi::Value OpenDecoderAsync(const Napi::CallbackInfo& info) {
  RequireLibrary(info.Env());
  return AsyncTask::Run(
      info.Env(), [path = ReadText(info[0], "path")] { return OpenDecoder(path); },
      [](Napi::Env env, const std::string& version) { return Napi::String::New(env, version); });
}

const DecoderTable& RequireDecoder(Napi::Env env) {
  const DecoderTable* table = g_decoder;
  if (!table) throw ToError(env, Status::Fail("NATIVE_UNAVAILABLE", "the decoder is not open"));
  return *table;
}

// decodeMedia({ kind: 'image' | 'audio', bytes, pixels, seconds, timeMs, sampleRate }). Nothing may write to `bytes` meanwhile.
// -> Promise<{ handle, width, height, samples }>
Napi::Value DecodeMediaAsync(const Napi::CallbackInfo& info) {
  const DecoderTable& decoder = RequireDecoder(info.Env());
  const Fields given(info[0]);
  DecodeLimits limits;
  limits.pixels = static_cast<uint64_t>(given.Number("pixels"));
  limits.audio_seconds = given.Number("seconds");
  limits.time_ms = given.Number("timeMs");
  limits.sample_rate = given.Integer("sampleRate", 0, 768000);
  const MediaKind kind = given.Text("kind") == "audio" ? MediaKind::kAudio : MediaKind::kImage;
  auto bytes = ReadArray<uint8_t>(given["bytes"], "bytes");
  return AsyncTask::Run(
      info.Env(), bytes,
      [&decoder, kind, limits, data = bytes.Data(), size = bytes.ElementLength()] {
        auto media = std::make_shared<Media>();
        Require(decoder.decode(kind, data, size, limits, media.get()));
        return media;
      },
      [](Napi::Env env, const std::shared_ptr<const Media>& media) {
        const size_t samples = media->samples.size(), bytes = media->rgb.size() + samples * sizeof(float);
        return ObjectOf(env, "width", media->width, "height", media->height, "samples", samples, "handle",
                        WrapShared(env, kMediaTag, media, bytes));
      });
}

// mediaSize(handle) -> { width, height }
Napi::Value MediaSize(const Napi::CallbackInfo& info) {
  const auto media = UnwrapMedia(info[0], "media");
  return ObjectOf(info.Env(), "width", media->width, "height", media->height);
}

// copyPixels(handle, rgb: Uint8Array(3 * width * height)) -> Promise<void>
Napi::Value CopyPixelsAsync(const Napi::CallbackInfo& info) {
  const auto media = UnwrapMedia(info[0], "media");
  auto rgb = ReadArray<uint8_t>(info[1], "rgb");
  if (rgb.ElementLength() != media->rgb.size())
    RefuseField(info.Env(), "rgb", std::to_string(media->rgb.size()) + " bytes");
  return AsyncTask::Run(info.Env(), rgb, [media, target = rgb.Data()] { std::copy(media->rgb.begin(), media->rgb.end(), target); });
}

// copySamples(handle, samples: Float32Array(samples)) -> Promise<void>
Napi::Value CopySamplesAsync(const Napi::CallbackInfo& info) {
  const auto media = UnwrapMedia(info[0], "media");
  auto samples = ReadArray<float>(info[1], "samples");
  if (samples.ElementLength() != media->samples.size())
    RefuseField(info.Env(), "samples", std::to_string(media->samples.size()) + " numbers");
  return AsyncTask::Run(info.Env(), samples,
                        [media, target = samples.Data()] { std::copy(media->samples.begin(), media->samples.end(), target); });
}

Napi::Value ToChunk(Napi::Env env, const MediaChunk& chunk) {
  if (!chunk.input) return ObjectOf(env, "tokens", chunk.tokens);
  return ObjectOf(env, "part", chunk.part, "count", chunk.count, "advance", chunk.advance, "isNonCausal", chunk.is_non_causal,
                  "positions", chunk.positions, "handle", WrapShared(env, kChunkTag, std::make_shared<const MediaChunk>(chunk)));
}

class JsProjector : public Napi::ObjectWrap<JsProjector> {
 public:
  static Napi::Function Define(Napi::Env env) {
    return DefineClass(env, "Projector",
                       {InstanceMethod<&JsProjector::Tokenize>("tokenize"), InstanceMethod<&JsProjector::Encode>("encode"),
                        InstanceMethod<&JsProjector::Close>("close")});
  }

  explicit JsProjector(const Napi::CallbackInfo& info) : Napi::ObjectWrap<JsProjector>(info) {}

  void Hold(std::shared_ptr<Projector> projector, std::shared_ptr<Model> model) {
    projector_ = std::move(projector);
    model_ = std::move(model);
  }

 private:
  std::shared_ptr<Projector> Open(Napi::Env env) const {
    if (!projector_) throw ToError(env, Status::Fail("CLOSED", "the projector is closed"));
    return projector_;
  }

  // tokenize(parts: (string | handle)[], addSpecial) -> Promise<chunks>
  Napi::Value Tokenize(const Napi::CallbackInfo& info) {
    std::vector<MediaPart> parts;
    const auto list = info[0].As<Napi::Array>();
    for (uint32_t i = 0; i < list.Length(); ++i) {
      const Napi::Value part = list[i];
      if (part.IsString()) parts.push_back({ReadText(part, "parts"), nullptr});
      else parts.push_back({"", UnwrapMedia(part, "parts")});
    }
    return AsyncTask::Run(
        info.Env(), info.This().As<Napi::Object>(),
        [projector = Open(info.Env()), model = model_, parts = std::move(parts), add_special = info[1].ToBoolean().Value()] {
          std::vector<MediaChunk> chunks;
          Require(Guard([&] { return projector->Tokenize(parts, add_special, &chunks); }));
          return chunks;
        },
        [](Napi::Env env, const std::vector<MediaChunk>& chunks) {
          return ListOf(env, chunks, [env](const MediaChunk& chunk) { return ToChunk(env, chunk); });
        });
  }

  // encode(chunk, cancelled: Int32Array(1)) -> Promise<{ handle, bytes, slices }>. `cancelled[0]` set to 1 ends it.
  Napi::Value Encode(const Napi::CallbackInfo& info) {
    const auto chunk = UnwrapShared<const MediaChunk>(info[0], kChunkTag, "chunk", kHandle);
    const auto cancelled = ReadArray<int32_t>(info[1], "cancelled");
    const volatile int32_t* flag = cancelled.Data();  // kept alive as the task's owner
    struct Encoded {
      std::shared_ptr<std::vector<float>> rows = std::make_shared<std::vector<float>>();
      uint32_t slices = 0;
    };
    return AsyncTask::Run(
        info.Env(), cancelled,
        [projector = Open(info.Env()), model = model_, chunk, flag, ending = Environment::Of(info.Env()).ending()] {
          Encoded encoded;
          ComputeTurns::Encode turn;
          EncodePace pace;
          pace.pause = [&turn, flag, ending](double work) {
            turn.Pause(work);
            return *flag == 0 && !*ending;
          };
          pace.longest_work = [&turn] { return turn.LongestWork(); };
          Require(Guard([&] { return projector->Encode(*chunk, pace, encoded.rows.get()); }));
          encoded.slices = turn.slices();
          return encoded;
        },
        [](Napi::Env env, const Encoded& encoded) {
          const size_t bytes = encoded.rows->size() * sizeof(float);
          return ObjectOf(env, "bytes", bytes, "handle", WrapShared<Rows>(env, kRowsTag, encoded.rows, bytes), "slices", encoded.slices);
        });
  }

  // Its weights are freed when the last call that uses them has ended.
  void Close(const Napi::CallbackInfo&) {
    projector_.reset();
    model_.reset();
  }

  // The projector reads the model's vocabulary, so it is destroyed first.
  std::shared_ptr<Model> model_;
  std::shared_ptr<Projector> projector_;
};

// openProjector(model, { path, useGpu, threads, minImageTokens, maxImageTokens }) -> Promise<Projector>
Napi::Value OpenProjectorAsync(const Napi::CallbackInfo& info) {
  const DecoderTable& decoder = RequireDecoder(info.Env());
  const auto owner = info[0].As<Napi::Object>();
  std::shared_ptr<Model> model = RequireModel(owner);
  const Fields given(info[1]);
  ProjectorOptions options;
  options.path = given.Text("path");
  options.use_gpu = given.Flag("useGpu");
  options.threads = given.Integer("threads", 1, 512);
  if (given.Has("minImageTokens")) options.min_image_tokens = given.Integer("minImageTokens", 1);
  if (given.Has("maxImageTokens")) options.max_image_tokens = given.Integer("maxImageTokens", 1);
  return AsyncTask::Run(
      info.Env(), owner,
      [&decoder, options, model] {
        std::unique_ptr<Projector> opened;
        Require(Guard([&] { return decoder.open(options, model->get(), &opened); }));
        return std::shared_ptr<Projector>(std::move(opened));
      },
      [model](Napi::Env env, const std::shared_ptr<Projector>& projector) {
        Napi::Object object = Environment::Of(env).Construct("Projector");
        SetFields(object, "sees", projector->sees(), "hears", projector->hears(), "sampleRate", projector->sample_rate(), "wholeRows",
                  projector->largest_whole_chunk());
        JsProjector::Unwrap(object)->Hold(projector, model);
        return object;
      });
}

}  // namespace

std::vector<MediaRows> ReadMediaRows(Napi::Value value) {
  std::vector<MediaRows> media;
  const auto list = value.As<Napi::Array>();
  for (uint32_t i = 0; i < list.Length(); ++i) {
    const Fields given(list.Get(i), "media");
    MediaRows rows;
    rows.at = given.Integer("at");
    rows.count = given.Integer("count", 1);
    rows.first = given.Integer("first");
    rows.rows = UnwrapShared<Rows>(given["rows"], kRowsTag, "rows", kHandle);
    rows.positions = given.IntegersOrNone("positions");
    rows.is_non_causal = given.Flag("isNonCausal");
    media.push_back(std::move(rows));
  }
  return media;
}

void RegisterMedia(Napi::Env env, Napi::Object exports) {
  Environment::Of(env).AddClass("Projector", JsProjector::Define(env));
  exports.Set("openDecoder", Napi::Function::New(env, OpenDecoderAsync));
  exports.Set("decodeMedia", Napi::Function::New(env, DecodeMediaAsync));
  exports.Set("mediaSize", Napi::Function::New(env, MediaSize));
  exports.Set("copyPixels", Napi::Function::New(env, CopyPixelsAsync));
  exports.Set("copySamples", Napi::Function::New(env, CopySamplesAsync));
  exports.Set("openProjector", Napi::Function::New(env, OpenProjectorAsync));
}

}  // namespace onpolicy
