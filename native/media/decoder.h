// Bytes of pictures and sounds -> rows of embeddings: the interface of the decoder library. It is llama.cpp's `mtmd`, compiled
// from the source in the engine's package, in a separate library beside the addon.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

struct llama_model;

namespace onpolicy {

// Must be increased with every change of this file.
constexpr int kDecoderVersion = 6;

enum class MediaKind : int32_t { kImage = 0, kAudio = 1 };

struct DecodeLimits {
  uint64_t pixels = 0;
  double audio_seconds = 0;
  double time_ms = 0;       // a picture that takes longer to decode is refused
  int32_t sample_rate = 0;  // of the decoded sound, in Hz
};

// A decoded picture or sound.
struct Media {
  MediaKind kind = MediaKind::kImage;
  uint32_t width = 0;
  uint32_t height = 0;
  std::vector<uint8_t> rgb;    // (height, width, 3)
  std::vector<float> samples;  // (samples) one channel
};

// A part of a prompt: text, or a medium.
struct MediaPart {
  std::string text;
  std::shared_ptr<const Media> media;  // null: text
};

// A run of a prompt: tokens of text, or the embeddings of a medium that one encoder pass computes.
struct MediaChunk {
  std::vector<int32_t> tokens;     // empty: a medium
  int32_t part = -1;               // index of the part that it comes from
  int32_t count = 0;               // tokens, or rows of embeddings
  int32_t advance = 0;             // number of positions; with M-RoPE fewer than rows
  bool is_non_causal = false;      // its rows attend to each other, so one pass must contain all of them
  std::vector<int32_t> positions;  // (planes, count) relative to the first; empty: ascending by one
  std::shared_ptr<const void> input;
};

struct ProjectorOptions {
  std::string path;
  bool use_gpu = true;
  int32_t threads = 1;
  int32_t min_image_tokens = -1;  // -1: as the file says
  int32_t max_image_tokens = -1;
};

// Callbacks by which an encode shares the cores with other work.
struct EncodePace {
  // Called before operations with their number of multiplications. It may block. If it returns false, the encode fails with
  // ABORTED.
  std::function<bool(double)> pause;
  // Returns the maximum number of multiplications of one operation. A longer one is split if possible.
  std::function<double()> longest_work;
};

// A loaded projector. Tokenize may run on several threads; an Encode waits for the one before it.
class Projector {
 public:
  virtual ~Projector() = default;
  virtual bool sees() const = 0;
  virtual bool hears() const = 0;
  virtual int32_t sample_rate() const = 0;  // Hz; 0: the projector has no audio input
  virtual int32_t row_size() const = 0;     // floats of one row of embeddings
  // Rows of the largest non-causal chunk; 0: chunks may be split.
  virtual int32_t largest_whole_chunk() const = 0;
  virtual Status Tokenize(const std::vector<MediaPart>& parts, bool add_special, std::vector<MediaChunk>* chunks) const = 0;
  // rows: (count, row_size).
  virtual Status Encode(const MediaChunk& chunk, const EncodePace& pace, std::vector<float>* rows) = 0;
};

struct DecoderTable {
  int version;
  uint64_t layout;             // kEngineLayout of the release that the library was built for
  const char* engine_version;  // the version of llama.cpp in that release
  Status (*decode)(MediaKind kind, const uint8_t* bytes, size_t size, const DecodeLimits& limits, Media* media);
  Status (*open)(const ProjectorOptions& options, const llama_model* model, std::unique_ptr<Projector>* projector);
  // Sets the function that receives log lines of the decoder.
  void (*set_log)(void (*log)(int level, const char* text));
};

// Name of the only function that the library exports.
constexpr const char* kDecoderEntry = "onpolicy_decoder";

}  // namespace onpolicy
