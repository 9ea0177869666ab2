#include "trainer/shape.h"

#include <algorithm>
#include <cmath>

namespace onpolicy::training {
namespace {

constexpr int kPairs = GGML_ROPE_TYPE_NORMAL;  // the two numbers that rotate together lie side by side
constexpr int kHalves = GGML_ROPE_TYPE_NEOX;

constexpr double kLargestSize = 2147483648.0;
constexpr int64_t kMostLayers = 4096;

enum class Experts { kNone, kSome, kAll };

// How an architecture differs from a plain decoder.
struct Traits {
  const char* name;
  int rope_mode = kHalves;
  Experts experts = Experts::kNone;
  bool has_head_norms = false;
  bool has_post_norms = false;
  bool is_gate_fused = false;
  bool is_gemma = false;         // GELU, and an embedding scaled by the square root of the width
  bool has_multipliers = false;  // of embedding, residual stream and logits
  double window_pattern = 0;     // one layer in so many has no window, unless the file says otherwise; 0: none has one
  double window = 0;             // unless the file says otherwise
  double local_base = 0;         // of the rotation in layers with a window; 0: as in the others
  double attention_cap = 0, logit_cap = 0;  // unless the file says otherwise
  int64_t unrotated_step = 0;               // one layer in so many is not rotated; 0: all are
  int64_t layers_of_largest = 0;  // the model of so many layers scales attention by the width of its heads' share
};

constexpr Traits kTraits[] = {
    {.name = "llama", .rope_mode = kPairs, .experts = Experts::kSome},  // Mistral and Mixtral, too
    {.name = "qwen2"},
    {.name = "qwen3", .has_head_norms = true},
    {.name = "qwen3moe", .experts = Experts::kAll, .has_head_norms = true},
    {.name = "gemma2",
     .has_post_norms = true,
     .is_gemma = true,
     .window_pattern = 2,
     .window = 4096,
     .attention_cap = 50,
     .logit_cap = 30,
     .layers_of_largest = 46},
    {.name = "gemma3",
     .has_head_norms = true,
     .has_post_norms = true,
     .is_gemma = true,
     .window_pattern = 6,
     .local_base = 10000,
     .layers_of_largest = 62},
    {.name = "smollm3", .rope_mode = kPairs, .unrotated_step = 4},
    {.name = "granite", .rope_mode = kPairs, .has_multipliers = true},
    {.name = "granitemoe", .rope_mode = kPairs, .experts = Experts::kAll, .has_multipliers = true},
    {.name = "phi3", .is_gate_fused = true},
};

// Metadata of a GGUF file, by key after the architecture's name. Reads numbers of any integer type.
class Metadata {
 public:
  explicit Metadata(gguf_context* gguf) : gguf_(gguf) { prefix_ = Whole("general.architecture") + "."; }

  std::string Whole(const std::string& key) const {
    const int64_t id = Api().gguf_find_key(gguf_, key.c_str());
    return id >= 0 && Api().gguf_get_kv_type(gguf_, id) == GGUF_TYPE_STRING ? Api().gguf_get_val_str(gguf_, id)
                                                                            : "";
  }
  std::string Text(const std::string& key) const { return Whole(prefix_ + key); }

  // NaN when it is no number.
  double Number(const std::string& key, double otherwise) const {
    const Library& api = Api();
    const int64_t id = api.gguf_find_key(gguf_, (prefix_ + key).c_str());
    if (id < 0) return otherwise;
    switch (api.gguf_get_kv_type(gguf_, id)) {
      case GGUF_TYPE_UINT16:
        return api.gguf_get_val_u16(gguf_, id);
      case GGUF_TYPE_UINT32:
        return api.gguf_get_val_u32(gguf_, id);
      case GGUF_TYPE_INT32:
        return api.gguf_get_val_i32(gguf_, id);
      case GGUF_TYPE_UINT64:
        return static_cast<double>(api.gguf_get_val_u64(gguf_, id));
      case GGUF_TYPE_INT64:
        return static_cast<double>(api.gguf_get_val_i64(gguf_, id));
      case GGUF_TYPE_FLOAT32:
        return api.gguf_get_val_f32(gguf_, id);
      case GGUF_TYPE_BOOL:
        return *static_cast<const int8_t*>(api.gguf_get_val_data(gguf_, id)) != 0 ? 1 : 0;
      default:
        return std::nan("");
    }
  }
  // 0 when it is no number, or a size of no tensor.
  int64_t Integer(const std::string& key, double otherwise) const {
    const double value = Number(key, otherwise);
    return std::abs(value) < kLargestSize ? static_cast<int64_t>(value) : 0;
  }
  float Float(const std::string& key, double otherwise) const {
    return static_cast<float>(Number(key, otherwise));
  }

 private:
  gguf_context* gguf_;
  std::string prefix_;
};

[[noreturn]] void Unsupported(const std::string& what) { throw Failure("UNSUPPORTED", what); }

const Traits& TraitsOf(const std::string& architecture) {
  std::string known;
  for (const Traits& traits : kTraits) {
    if (architecture == traits.name) return traits;
    known += (known.empty() ? "" : ", ") + std::string(traits.name);
  }
  Unsupported("training supports the architectures " + known + "; this model's is \"" + architecture + "\"");
}

void ReadSizes(const Metadata& metadata, Shape* shape) {
  shape->width = metadata.Integer("embedding_length", 0);
  shape->layers = metadata.Integer("block_count", 0);
  shape->heads = metadata.Integer("attention.head_count", 0);
  shape->kv_heads = metadata.Integer("attention.head_count_kv", static_cast<double>(shape->heads));
  shape->hidden = metadata.Integer("feed_forward_length", 0);
  if (shape->width <= 0 || shape->layers <= 0 || shape->heads <= 0 || shape->kv_heads <= 0 ||
      shape->heads % shape->kv_heads != 0)
    Unsupported("training needs one width and one number of heads for all layers");
  if (shape->layers > kMostLayers)
    Unsupported("training takes " + std::to_string(kMostLayers) + " layers at most, this model says " +
                       std::to_string(shape->layers));
  shape->head_size = metadata.Integer("attention.key_length", static_cast<double>(shape->width / shape->heads));
  if (shape->head_size <= 0 || shape->heads > kMostLayers)
    Unsupported("training needs heads of attention with one size, not " + std::to_string(shape->heads) + " of " +
                       std::to_string(shape->head_size));
  if (metadata.Integer("attention.value_length", static_cast<double>(shape->head_size)) != shape->head_size)
    Unsupported("training needs keys and values of one size");
  shape->context = metadata.Integer("context_length", 0);
  shape->norm_epsilon = metadata.Float("attention.layer_norm_rms_epsilon", 1e-5);
  if (!(shape->norm_epsilon >= 0 && shape->norm_epsilon <= 1))
    Unsupported(shape->architecture + ".attention.layer_norm_rms_epsilon: expected a number from 0 to 1");
}

void ReadExperts(const Metadata& metadata, const Traits& traits, Shape* shape) {
  shape->experts = metadata.Integer("expert_count", 0);
  if (shape->experts <= 0) {
    shape->experts = 0;
    if (traits.experts == Experts::kAll) Unsupported("training needs the number of experts");
    return;
  }
  if (traits.experts == Experts::kNone)
    Unsupported(std::string("training supports no experts in the architecture ") + traits.name);
  shape->experts_used = metadata.Integer("expert_used_count", 0);
  if (shape->experts_used < 1 || shape->experts_used > shape->experts)
    Unsupported("training needs the number of experts that a token takes");
  if (metadata.Integer("expert_shared_feed_forward_length", 0) > 0)
    Unsupported("training supports no experts that all tokens share");
  const double scale = metadata.Number("expert_weights_scale", 0);
  if (scale != 0 && scale != 1) Unsupported("training supports no scale of the experts' weights");
  const double own = shape->architecture == "qwen3moe" ? shape->hidden / shape->experts_used : shape->hidden;
  const int64_t hidden = metadata.Integer("expert_feed_forward_length", 0);
  shape->hidden = hidden > 0 ? hidden : static_cast<int64_t>(own);
}

void ReadScales(const Metadata& metadata, const Traits& traits, Shape* shape) {
  const int64_t scaled_by =
      shape->layers == traits.layers_of_largest ? shape->width / shape->heads : shape->head_size;
  const float scale = metadata.Float("attention.scale", 0);
  shape->attention_scale = scale > 0 && !traits.is_gemma ? scale : 1.0f / std::sqrt(static_cast<float>(scaled_by));
  if (traits.attention_cap > 0)
    shape->attention_cap = metadata.Float("attn_logit_softcapping", traits.attention_cap);
  if (traits.is_gemma) {
    shape->activation = Activation::kGelu;
    shape->embedding_scale = std::sqrt(static_cast<float>(shape->width));
    shape->logit_cap = metadata.Float("final_logit_softcapping", traits.logit_cap);
  }
  if (traits.has_multipliers) {
    // A factor of 0 means none.
    const auto factor = [&](const char* key) {
      const float value = metadata.Float(key, 0);
      return value == 0 ? 1.0f : value;
    };
    shape->embedding_scale = factor("embedding_scale");
    shape->residual_scale = factor("residual_scale");
    shape->logit_scale = 1 / factor("logit_scale");
  }
}

void ReadRotations(const Metadata& metadata, const Traits& traits, Shape* shape) {
  shape->rope_mode = traits.rope_mode;
  shape->rope_size = static_cast<int>(metadata.Integer("rope.dimension_count", static_cast<double>(shape->head_size)));
  if (shape->rope_size < 2 || shape->rope_size > shape->head_size || shape->rope_size % 2 != 0)
    Unsupported(shape->architecture + ".rope.dimension_count: expected an even number from 2 to the size of a head, " +
                       std::to_string(shape->head_size) + ", got " + std::to_string(shape->rope_size));
  const std::string scaling = metadata.Text("rope.scaling.type");
  if (!scaling.empty() && scaling != "none" && scaling != "linear")
    Unsupported("training supports no rope scaling of type " + scaling);
  if (metadata.Number("rope.scaling.attn_factor", 1) != 1)
    Unsupported("training supports no rope scaling with a factor of attention (LongRoPE)");
  double pattern = 0;
  if (traits.window_pattern > 0) {
    shape->window = metadata.Integer("attention.sliding_window", traits.window);
    pattern = metadata.Number("attention.sliding_window_pattern", traits.window_pattern);
    if (std::isnan(pattern))
      Unsupported("training needs " + shape->architecture + ".attention.sliding_window_pattern as one number");
  }
  const auto step = static_cast<int64_t>(std::clamp(pattern, 0.0, kLargestSize));
  const double factor = metadata.Number("rope.scaling.factor", metadata.Number("rope.scale_linear", 0));
  const bool is_rotated = !traits.has_multipliers || metadata.Number("rope.scaling.finetuned", 1) != 0;
  for (int64_t i = 0; i < shape->layers; ++i) {
    Rotation rotation;
    rotation.is_local = shape->window > 0 && step > 0 && i % step < step - 1;
    rotation.is_rotated = is_rotated && (traits.unrotated_step == 0 || (i + 1) % traits.unrotated_step != 0);
    rotation.base = metadata.Float("rope.freq_base", 10000);
    if (factor > 0 && scaling != "none") rotation.scale = static_cast<float>(1 / factor);
    if (rotation.is_local) {
      if (traits.local_base > 0) rotation = {true, rotation.is_rotated, static_cast<float>(traits.local_base), 1};
      rotation.base = metadata.Float("rope.freq_base_swa", rotation.base);
    }
    shape->rotations.push_back(rotation);
  }
}

}  // namespace

Shape ReadShape(gguf_context* gguf) {
  const Metadata metadata(gguf);
  Shape shape;
  shape.architecture = metadata.Whole("general.architecture");
  const Traits& traits = TraitsOf(shape.architecture);
  shape.has_head_norms = traits.has_head_norms;
  shape.has_post_norms = traits.has_post_norms;
  shape.is_gate_fused = traits.is_gate_fused;
  ReadSizes(metadata, &shape);
  ReadExperts(metadata, traits, &shape);
  ReadScales(metadata, traits, &shape);
  ReadRotations(metadata, traits, &shape);
  return shape;
}

}  // namespace onpolicy::training
