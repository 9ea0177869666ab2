// The decoder library, pictures and sounds, projectors: bytes -> pixels or samples -> chunks of a prompt -> rows of embeddings.
#include "napi/media.h"

#include <algorithm>
#include <atomic>

#include "llama/asserts.h"
#include "media/library.h"
#include "napi/arguments.h"
#include "napi/async-task.h"
#include "napi/environment.h"
#include "napi/model.h"
#include "napi/register.h"
#include "threads/compute-turns.h"

namespace onpolicy {
namespace {

using Rows = std::shared_ptr<const std::vector<float>>;

// Memory outside of JavaScript's heap that a handle holds: the collector weighs it.
template <typename T>
Napi::Value ToHandle(Napi::Env env, T value, size_t bytes) {
  const auto size = static_cast<int64_t>(bytes);
  Napi::MemoryManagement::AdjustExternalMemory(env, size);
  return Napi::External<T>::New(env, new T(std::move(value)), [size](Napi::Env env, T* held) {
    delete held;
    Napi::MemoryManagement::AdjustExternalMemory(env, -size);
  });
}

template <typename T>
const T& FromHandle(Napi::Value value, const char* field) {
  if (!value.IsExternal()) RefuseField(value.Env(), field, "a handle of the addon");
  return *value.As<Napi::External<T>>().Data();
}

// openDecoder(path) -> Promise<void>
Napi::Value OpenDecoderAsync(const Napi::CallbackInfo& info) {
  RequireLibrary(info.Env());
  return AsyncTask::Run(info.Env(), [path = ReadText(info[0], "path")] { return OpenDecoder(path); });
}

const DecoderTable& RequireDecoder(Napi::Env env) {
  const DecoderTable* table = Decoder();
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
  auto media = std::make_shared<Media>();
  auto bytes = ReadArray<uint8_t>(given["bytes"], "bytes");
  return AsyncTask::Run(
      info.Env(), bytes,
      [&decoder, kind, limits, data = bytes.Data(), size = bytes.ElementLength(), media] {
        return decoder.decode(kind, data, size, limits, media.get());
      },
      [media](Napi::Env env) -> Napi::Value {
        Napi::Object object = Napi::Object::New(env);
        object.Set("width", media->width);
        object.Set("height", media->height);
        object.Set("samples", static_cast<double>(media->samples.size()));
        const size_t bytes = media->rgb.size() + 4 * media->samples.size();
        object.Set("handle", ToHandle<std::shared_ptr<const Media>>(env, media, bytes));
        return object;
      });
}

// mediaSize(handle) -> { width, height }
Napi::Value MediaSize(const Napi::CallbackInfo& info) {
  const auto media = FromHandle<std::shared_ptr<const Media>>(info[0], "media");
  Napi::Object object = Napi::Object::New(info.Env());
  object.Set("width", media->width);
  object.Set("height", media->height);
  return object;
}

// copyPixels(handle, rgb: Uint8Array(3 * width * height)) -> Promise<void>
Napi::Value CopyPixelsAsync(const Napi::CallbackInfo& info) {
  const auto media = FromHandle<std::shared_ptr<const Media>>(info[0], "media");
  auto rgb = ReadArray<uint8_t>(info[1], "rgb");
  if (rgb.ElementLength() != media->rgb.size())
    RefuseField(info.Env(), "rgb", std::to_string(media->rgb.size()) + " bytes");
  return AsyncTask::Run(info.Env(), rgb, [media, target = rgb.Data()] { std::copy(media->rgb.begin(), media->rgb.end(), target); });
}

// copySamples(handle, samples: Float32Array(samples)) -> Promise<void>
Napi::Value CopySamplesAsync(const Napi::CallbackInfo& info) {
  const auto media = FromHandle<std::shared_ptr<const Media>>(info[0], "media");
  auto samples = ReadArray<float>(info[1], "samples");
  if (samples.ElementLength() != media->samples.size())
    RefuseField(info.Env(), "samples", std::to_string(media->samples.size()) + " numbers");
  return AsyncTask::Run(info.Env(), samples,
                        [media, target = samples.Data()] { std::copy(media->samples.begin(), media->samples.end(), target); });
}

Napi::Value ToChunks(Napi::Env env, const std::vector<MediaChunk>& chunks) {
  Napi::Array list = Napi::Array::New(env, chunks.size());
  for (size_t i = 0; i < chunks.size(); ++i) {
    const MediaChunk& chunk = chunks[i];
    Napi::Object object = Napi::Object::New(env);
    if (!chunk.input) {
      object.Set("tokens", ToArray(env, chunk.tokens));
    } else {
      object.Set("part", chunk.part);
      object.Set("count", chunk.count);
      object.Set("advance", chunk.advance);
      object.Set("isNonCausal", chunk.is_non_causal);
      object.Set("positions", ToArray(env, chunk.positions));
      object.Set("handle", ToHandle<MediaChunk>(env, chunk, 0));
    }
    list.Set(static_cast<uint32_t>(i), object);
  }
  return list;
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
  std::shared_ptr<Projector> Require(Napi::Env env) const {
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
      else parts.push_back({"", FromHandle<std::shared_ptr<const Media>>(part, "parts")});
    }
    auto chunks = std::make_shared<std::vector<MediaChunk>>();
    return AsyncTask::Run(
        info.Env(), info.This().As<Napi::Object>(),
        [projector = Require(info.Env()), model = model_, parts = std::move(parts), add_special = info[1].ToBoolean().Value(),
         chunks] {
          const CatchFatal catching;
          return projector->Tokenize(parts, add_special, chunks.get());
        },
        [chunks](Napi::Env env) { return ToChunks(env, *chunks); });
  }

  // encode(chunk, cancelled: Int32Array(1)) -> Promise<{ handle, bytes, slices }>. `cancelled[0]` set to 1 ends it.
  Napi::Value Encode(const Napi::CallbackInfo& info) {
    const MediaChunk& chunk = FromHandle<MediaChunk>(info[0], "chunk");
    const auto cancelled = ReadArray<int32_t>(info[1], "cancelled");
    const volatile int32_t* flag = cancelled.Data();  // kept alive as the task's owner
    auto rows = std::make_shared<std::vector<float>>();
    auto slices = std::make_shared<uint32_t>(0);
    return AsyncTask::Run(
        info.Env(), cancelled,
        [projector = Require(info.Env()), model = model_, chunk, flag, ending = Environment::Of(info.Env()).ending(), rows,
         slices] {
          const CatchFatal catching;
          ComputeTurns::Encode turn;
          EncodePace pace;
          pace.pause = [&turn, flag, ending](double work) {
            turn.Pause(work);
            return *flag == 0 && !*ending;
          };
          pace.longest_work = [&turn] { return turn.LongestWork(); };
          const Status status = projector->Encode(chunk, pace, rows.get());
          *slices = turn.slices();
          return status;
        },
        [rows, slices](Napi::Env env) -> Napi::Value {
          Napi::Object object = Napi::Object::New(env);
          const size_t bytes = rows->size() * sizeof(float);
          object.Set("bytes", static_cast<double>(bytes));
          object.Set("handle", ToHandle<Rows>(env, rows, bytes));
          object.Set("slices", *slices);
          return object;
        });
  }

  // Its weights are freed when the last call on them has ended.
  Napi::Value Close(const Napi::CallbackInfo& info) {
    projector_.reset();
    model_.reset();
    return info.Env().Undefined();
  }

  // The projector reads the model's vocabulary, so it goes first.
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
  if (!IsAbsent(given["minImageTokens"])) options.min_image_tokens = given.Integer("minImageTokens", 1);
  if (!IsAbsent(given["maxImageTokens"])) options.max_image_tokens = given.Integer("maxImageTokens", 1);
  auto opened = std::make_shared<std::unique_ptr<Projector>>();
  return AsyncTask::Run(
      info.Env(), owner,
      [&decoder, options, model, opened] {
        const CatchFatal catching;
        return decoder.open(options, model->get(), opened.get());
      },
      [model, opened](Napi::Env env) -> Napi::Value {
        Napi::Object object = Environment::Of(env).Construct("Projector");
        const std::shared_ptr<Projector> projector = std::move(*opened);
        object.Set("sees", projector->sees());
        object.Set("hears", projector->hears());
        object.Set("sampleRate", projector->sample_rate());
        object.Set("wholeRows", projector->largest_whole_chunk());
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
    rows.rows = FromHandle<Rows>(given["rows"], "rows");
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
