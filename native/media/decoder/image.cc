// PNG, JPEG, GIF, BMP -> pixels. The header is checked before anything is decoded; memory and time are bounded while it runs.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "media/decoder/arena.h"
#include "media/decoder/functions.h"

namespace onpolicy {
namespace {

thread_local Arena* g_image_arena = nullptr;

void* ImageAllocate(size_t size) { return g_image_arena->Allocate(size); }
void* ImageGrow(void* block, size_t size) { return g_image_arena->Grow(block, size); }
void ImageFree(void* block) { g_image_arena->Free(block); }

}  // namespace
}  // namespace onpolicy

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_ONLY_GIF
#define STBI_ONLY_BMP
#define STBI_MAX_DIMENSIONS 65536
#define STBI_MALLOC(size) onpolicy::ImageAllocate(size)
#define STBI_REALLOC(block, size) onpolicy::ImageGrow(block, size)
#define STBI_FREE(block) onpolicy::ImageFree(block)
#define STBI_ASSERT(condition) ((condition) ? (void)0 : throw std::runtime_error(#condition))
#include <stb/stb_image.h>

namespace onpolicy {
namespace {

// Bytes that a decoder may hold for one pixel, and besides: 16 bits, four channels, twice, and tables.
constexpr uint64_t kBytesPerPixel = 24;
constexpr uint64_t kBytesBesides = 16u << 20;

// A file in memory that ends when the time limit is reached. The decoder then reports it as truncated.
struct Source {
  const uint8_t* bytes;
  size_t size;
  size_t at = 0;
  std::chrono::steady_clock::time_point deadline;
  bool is_late = false;

  static int Read(void* user, char* data, int size) {
    auto* self = static_cast<Source*>(user);
    self->is_late |= std::chrono::steady_clock::now() > self->deadline;
    if (self->is_late || size <= 0) return 0;
    const size_t count = std::min(static_cast<size_t>(size), self->size - self->at);
    std::memcpy(data, self->bytes + self->at, count);
    self->at += count;
    return static_cast<int>(count);
  }
  static void Skip(void* user, int count) {
    auto* self = static_cast<Source*>(user);
    const auto at = static_cast<int64_t>(self->at) + count;
    self->at = static_cast<size_t>(std::clamp<int64_t>(at, 0, static_cast<int64_t>(self->size)));
  }
  static int IsAtEnd(void* user) {
    const auto* self = static_cast<Source*>(user);
    return self->is_late || self->at >= self->size;
  }
};

constexpr stbi_io_callbacks kCallbacks{Source::Read, Source::Skip, Source::IsAtEnd};

bool HasTag(const uint8_t* bytes, size_t size, size_t at, const char* tag) {
  const size_t length = std::strlen(tag);
  return size >= at + length && std::memcmp(bytes + at, tag, length) == 0;
}

// Returns the type of a file that is none of the four, guessed from its first bytes.
const char* FoundType(const uint8_t* bytes, size_t size) {
  if (HasTag(bytes, size, 0, "RIFF") && HasTag(bytes, size, 8, "WEBP")) return "WebP";
  if (HasTag(bytes, size, 4, "ftypavif")) return "AVIF";
  if (HasTag(bytes, size, 4, "ftyphei") || HasTag(bytes, size, 4, "ftypmif1")) return "HEIC";
  if (HasTag(bytes, size, 4, "ftyp")) return "a film (MP4)";
  if (HasTag(bytes, size, 0, "II*") || HasTag(bytes, size, 0, "MM")) return "TIFF";
  if (HasTag(bytes, size, 0, "%PDF")) return "PDF";
  if (HasTag(bytes, size, 0, "<svg") || HasTag(bytes, size, 0, "<?xml")) return "SVG";
  if (HasTag(bytes, size, 0, "RIFF") || HasTag(bytes, size, 0, "fLaC") || HasTag(bytes, size, 0, "ID3")) return "sound";
  return size == 0 ? "nothing" : "an unknown type";
}

bool IsKnownImage(const uint8_t* bytes, size_t size) {
  return HasTag(bytes, size, 0, "\x89PNG") || HasTag(bytes, size, 0, "\xFF\xD8") || HasTag(bytes, size, 0, "GIF8") ||
         HasTag(bytes, size, 0, "BM");
}

std::string Reason(const char* fallback) {
  const char* reason = stbi_failure_reason();
  return reason ? reason : fallback;
}

Status Decode(Source& source, const DecodeLimits& limits, Arena& arena, Media* media) {
  int width = 0, height = 0, channels = 0;
  if (!stbi_info_from_callbacks(&kCallbacks, &source, &width, &height, &channels))
    return Status::Fail("INVALID_REQUEST", "the picture is damaged: " + Reason("no header"));
  const uint64_t pixels = static_cast<uint64_t>(width) * static_cast<uint64_t>(height);
  if (width <= 0 || height <= 0 || pixels > limits.pixels)
    return Status::Fail("INVALID_REQUEST", "expected a picture of at most " + std::to_string(limits.pixels) +
                                               " pixels, got " + std::to_string(width) + " x " + std::to_string(height));
  arena.Limit(pixels * kBytesPerPixel + kBytesBesides);
  source.at = 0;
  uint8_t* rgb = stbi_load_from_callbacks(&kCallbacks, &source, &width, &height, &channels, 3);
  if (source.is_late) return Status::Fail("INVALID_REQUEST", "the picture takes too long to decode");
  if (!rgb) return Status::Fail("INVALID_REQUEST", "the picture is damaged: " + Reason("no pixels"));
  if (static_cast<uint64_t>(width) * static_cast<uint64_t>(height) != pixels)
    return Status::Fail("INVALID_REQUEST", "the picture is damaged: its size changes");
  media->kind = MediaKind::kImage;
  media->width = static_cast<uint32_t>(width);
  media->height = static_cast<uint32_t>(height);
  media->rgb.assign(rgb, rgb + pixels * 3);
  return Status::Ok();
}

}  // namespace

Status DecodeImage(const uint8_t* bytes, size_t size, const DecodeLimits& limits, Media* media) {
  if (!IsKnownImage(bytes, size))
    return Status::Fail("INVALID_REQUEST",
                        std::string("expected a PNG, JPEG, GIF or BMP picture, got ") + FoundType(bytes, size));
  const auto time = std::chrono::microseconds(static_cast<int64_t>(limits.time_ms * 1000));
  Source source{bytes, size, 0, std::chrono::steady_clock::now() + time};
  Arena arena(kBytesBesides);
  g_image_arena = &arena;
  Status status;
  try {
    status = Decode(source, limits, arena, media);
  } catch (const std::exception& error) {
    status = Status::Fail("INVALID_REQUEST", std::string("the picture is damaged: ") + error.what());
  }
  g_image_arena = nullptr;
  return status;
}

}  // namespace onpolicy
