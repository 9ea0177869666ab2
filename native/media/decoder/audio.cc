// WAV, MP3, FLAC -> samples of one channel at the rate that the projector asks for. They are read block by block, so that a declared
// length does not matter.
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "media/decoder/arena.h"
#include "media/decoder/functions.h"

#define MINIAUDIO_IMPLEMENTATION
#define MA_NO_ENCODING
#define MA_NO_DEVICE_IO
#define MA_NO_RESOURCE_MANAGER
#define MA_NO_NODE_GRAPH
#define MA_NO_ENGINE
#define MA_NO_GENERATION
#define MA_API static
#define ONPOLICY_MEDIA_ASSERT(condition) ((condition) ? (void)0 : throw std::runtime_error(#condition))
#define MA_ASSERT ONPOLICY_MEDIA_ASSERT
#define MA_DR_WAV_ASSERT ONPOLICY_MEDIA_ASSERT
#define MA_DR_FLAC_ASSERT ONPOLICY_MEDIA_ASSERT
#define MA_DR_MP3_ASSERT ONPOLICY_MEDIA_ASSERT
#include <miniaudio/miniaudio.h>

namespace onpolicy {
namespace {

constexpr size_t kBlockFrames = 16384;
constexpr uint64_t kAudioBytes = 48u << 20;
constexpr uint32_t kLeastRate = 1000;
constexpr uint32_t kMostRate = 768000;

bool IsKnownSound(const uint8_t* bytes, size_t size) {
  if (size < 4) return false;
  if (std::memcmp(bytes, "RIFF", 4) == 0) return size >= 12 && std::memcmp(bytes + 8, "WAVE", 4) == 0;
  return std::memcmp(bytes, "fLaC", 4) == 0 || std::memcmp(bytes, "ID3", 3) == 0 ||
         (bytes[0] == 0xFF && (bytes[1] & 0xE0) == 0xE0);
}

Status Damaged(const std::string& reason) {
  return Status::Fail("INVALID_REQUEST", "the sound is damaged: " + reason);
}

Status Read(ma_decoder& decoder, const DecodeLimits& limits, std::vector<float>* samples) {
  const auto most = static_cast<size_t>(limits.audio_seconds * limits.sample_rate);
  for (;;) {
    const size_t at = samples->size();
    samples->resize(at + kBlockFrames);
    ma_uint64 read = 0;
    const ma_result result = ma_decoder_read_pcm_frames(&decoder, samples->data() + at, kBlockFrames, &read);
    samples->resize(at + static_cast<size_t>(read));
    if (samples->size() > most)
      return Status::Fail("INVALID_REQUEST", "expected a sound of at most " + std::to_string(limits.audio_seconds) +
                                                 " seconds, got a longer one");
    if (result != MA_SUCCESS || read == 0) break;
  }
  if (samples->size() < 2) return Damaged("it holds no samples");
  for (float sample : *samples)
    if (!std::isfinite(sample)) return Damaged("a sample is not a finite number");
  return Status::Ok();
}

}  // namespace

Status DecodeAudio(const uint8_t* bytes, size_t size, const DecodeLimits& limits, Media* media) {
  if (!IsKnownSound(bytes, size))
    return Status::Fail("INVALID_REQUEST", "expected a WAV, MP3 or FLAC sound, got an unknown type");
  Arena arena(kAudioBytes);
  ma_decoder_config config = ma_decoder_config_init(ma_format_f32, 1, static_cast<ma_uint32>(limits.sample_rate));
  config.allocationCallbacks.pUserData = &arena;
  config.allocationCallbacks.onMalloc = [](size_t size, void* arena) { return static_cast<Arena*>(arena)->Allocate(size); };
  config.allocationCallbacks.onRealloc = [](void* block, size_t size, void* arena) {
    return static_cast<Arena*>(arena)->Grow(block, size);
  };
  config.allocationCallbacks.onFree = [](void* block, void* arena) { static_cast<Arena*>(arena)->Free(block); };
  try {
    ma_decoder decoder;
    if (ma_decoder_init_memory(bytes, size, &config, &decoder) != MA_SUCCESS) return Damaged("no decoder reads it");
    ma_format format;
    ma_uint32 channels = 0, rate = 0;
    ma_data_source_get_data_format(decoder.pBackend, &format, &channels, &rate, nullptr, 0);
    Status status = rate < kLeastRate || rate > kMostRate
                        ? Damaged("its rate is " + std::to_string(rate) + " Hz")
                        : Read(decoder, limits, &media->samples);
    ma_decoder_uninit(&decoder);
    media->kind = MediaKind::kAudio;
    return status;
  } catch (const std::exception& error) {
    return Damaged(error.what());
  }
}

Status DecodeMedia(MediaKind kind, const uint8_t* bytes, size_t size, const DecodeLimits& limits, Media* media) {
  return kind == MediaKind::kImage ? DecodeImage(bytes, size, limits, media) : DecodeAudio(bytes, size, limits, media);
}

}  // namespace onpolicy
