#include "trainer/weights/shape.h"

#include <algorithm>
#include <cmath>

#include "kernels/delta-net.h"
#include "trainer/weights/metadata.h"

namespace onpolicy::training {
namespace {

constexpr int64_t kMostLayers = 4096;
// Constants of the engine for models with several streams.
constexpr int64_t kStreams = 4, kSparseLayers = 10, kLaurelRank = 64, kOwnInputWidth = 256, kLayersWithKeys = 20;
constexpr int64_t kLogisticGating = 2;      // as files number it
constexpr int64_t kLargestDeltaNet = 4096;  // of each of its sizes

[[noreturn]] void Unsupported(const std::string& what) { throw Failure("UNSUPPORTED", what); }

void ReadSizes(const Metadata& metadata, const Traits& traits, Shape* shape) {
  shape->width = metadata.Integer("embedding_length", 0);
  // Excludes the last layers, which draft tokens.
  shape->layers = metadata.Integer("block_count", 0) - metadata.Integer("nextn_predict_layers", 0);
  shape->heads = metadata.Integer("attention.head_count", 0);
  const std::vector<int64_t> kv_heads = metadata.List("attention.head_count_kv", shape->layers);
  shape->kv_heads = kv_heads.empty() ? metadata.Integer("attention.head_count_kv", static_cast<double>(shape->heads))
                                     : *std::max_element(kv_heads.begin(), kv_heads.end());
  const std::vector<int64_t> hidden = metadata.List("feed_forward_length", shape->layers);
  shape->hidden = hidden.empty() ? metadata.Integer("feed_forward_length", 0) : *std::max_element(hidden.begin(), hidden.end());
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
  const char* epsilon = traits.is_norm_centered ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
  shape->norm_epsilon = metadata.Float(epsilon, 1e-5);
  if (!(shape->norm_epsilon >= 0 && shape->norm_epsilon <= 1))
    Unsupported(shape->architecture + "." + epsilon + ": expected a number from 0 to 1");
}

void ReadExperts(const Metadata& metadata, const Traits& traits, Shape* shape) {
  shape->experts = metadata.Integer("expert_count", 0);
  if (shape->experts <= 0) {
    shape->experts = 0;
    if (traits.experts == ExpertUse::kAll) Unsupported("training needs the number of experts");
    return;
  }
  if (traits.experts == ExpertUse::kNone)
    Unsupported(std::string("training supports no experts in the architecture ") + traits.name);
  shape->routing = traits.has_sinks ? RoutingKind::kBestScores : RoutingKind::kSoftMax;
  if (metadata.Integer("expert_gating_func", traits.is_router_logistic ? kLogisticGating : 1) == kLogisticGating)
    shape->routing = RoutingKind::kLogistic;
  shape->experts_used = metadata.Integer("expert_used_count", 0);
  if (shape->experts_used < 1 || shape->experts_used > shape->experts)
    Unsupported("training needs the number of experts that a token takes");
  const double own = shape->architecture == "qwen3moe" ? shape->hidden / shape->experts_used : shape->hidden;
  const int64_t hidden = metadata.Integer("expert_feed_forward_length", 0);
  shape->expert_hidden = hidden > 0 ? hidden : static_cast<int64_t>(own);
  shape->dense_layers = metadata.Integer("leading_dense_block_count", 0);
  const int64_t shared = metadata.Integer("expert_shared_feed_forward_length", 0);
  if (traits.has_shared_expert)
    shape->shared_hidden = shared > 0 ? shared : shape->expert_hidden * metadata.Integer("expert_shared_count", 0);
  else if (shared > 0)
    Unsupported("training supports no experts that all tokens share in the architecture " + shape->architecture);
  const double scale = metadata.Number("expert_weights_scale", 0);
  if (shape->routing == RoutingKind::kLogistic) {
    if (scale != 0) shape->expert_scale = static_cast<float>(scale);
    if (metadata.Number("expert_weights_norm", 0) == 0) Unsupported("training needs weights of experts that are divided by their sum");
    if (metadata.Integer("expert_group_count", 0) > 1) Unsupported("training supports no groups of experts");
  } else if (scale != 0 && scale != 1) {
    Unsupported("training supports no scale of the experts' weights");
  }
}

void ReadScales(const Metadata& metadata, const Traits& traits, Shape* shape) {
  shape->activation = traits.activation;
  if (traits.is_gemma) {
    shape->activation = Activation::kGelu;
    shape->embedding_scale = std::sqrt(static_cast<float>(shape->width));
    shape->logit_cap = metadata.Float("final_logit_softcapping", traits.logit_cap);
  }
  if (traits.has_multipliers) {
    // A factor of 0 means that there is no factor.
    const auto factor = [&](const char* key) {
      const float value = metadata.Float(key, 0);
      return value == 0 ? 1.0f : value;
    };
    shape->embedding_scale = factor("embedding_scale");
    shape->residual_scale = factor("residual_scale");
    shape->logit_scale = 1 / factor("logit_scale");
  }
  if (traits.is_parallel && metadata.Float("logit_scale", 0) != 0) shape->logit_scale = metadata.Float("logit_scale", 1);
}

// Computes the magnitude for the engine, which multiplies it by a factor that depends on the scale alone. That factor is divided out here.
void ReadYarn(const Metadata& metadata, const Traits& traits, Rotation* rotation) {
  const auto magnitude = [&](float multiplier) {
    return rotation->scale >= 1 ? 1 : 1 - 0.1f * multiplier * std::log(rotation->scale);
  };
  const float multiplier = traits.reads_yarn ? metadata.Float("rope.scaling.yarn_log_multiplier", 0) : 0;
  rotation->extension = 1;
  rotation->magnitude = magnitude(1) / (1 - 0.1f * std::log(rotation->scale));
  if (multiplier != 0) rotation->magnitude /= magnitude(multiplier);
  if (!traits.reads_yarn) return;
  rotation->beta_fast = metadata.Float("rope.scaling.yarn_beta_fast", rotation->beta_fast);
  rotation->beta_slow = metadata.Float("rope.scaling.yarn_beta_slow", rotation->beta_slow);
}

// Reads the rotation of layers without a window.
Rotation ReadRotation(const Metadata& metadata, const Traits& traits, const Shape& shape) {
  Rotation rotation{.mode = traits.rope_mode};
  rotation.size = static_cast<int>(metadata.Integer("rope.dimension_count", static_cast<double>(shape.head_size)));
  if (rotation.size < 2 || rotation.size > shape.head_size || rotation.size % 2 != 0)
    Unsupported(shape.architecture + ".rope.dimension_count: expected an even number from 2 to the size of a head, " +
                std::to_string(shape.head_size) + ", got " + std::to_string(rotation.size));
  rotation.is_on = !traits.has_multipliers || metadata.Number("rope.scaling.finetuned", 1) != 0;
  if (traits.sections_mode > 0) {
    const std::vector<int64_t> sections = metadata.List("rope.dimension_sections", kPositions);
    for (size_t i = 0; i < sections.size(); ++i)
      rotation.sections[i] = static_cast<int>(std::clamp<int64_t>(sections[i], 0, rotation.size));
  }
  if (rotation.has_sections()) rotation.mode = traits.sections_mode;
  rotation.base = metadata.Float("rope.freq_base", 10000);
  rotation.original_context =
      static_cast<int>(metadata.Integer("rope.scaling.original_context_length", static_cast<double>(shape.context)));
  const auto size = static_cast<float>(shape.head_size);
  if (const float alpha = metadata.Float("rope.scaling.alpha", 0); traits.are_head_norms_last && alpha > 0)
    rotation.base *= std::pow(alpha, size / (size - 2));
  const double factor = metadata.Number("rope.scaling.factor", metadata.Number("rope.scale_linear", 0));
  const std::string scaling = metadata.Text("rope.scaling.type");
  if (factor > 0 && scaling != "none") rotation.scale = static_cast<float>(1 / factor);
  if (scaling == "yarn") ReadYarn(metadata, traits, &rotation);
  else if (!scaling.empty() && scaling != "none" && scaling != "linear" && scaling != "longrope")
    Unsupported("training supports no rope scaling of type " + scaling);
  rotation.magnitude *= metadata.Float("rope.scaling.attn_factor", 1);
  return rotation;
}

// Reads the attention of layers without a window.
AttentionShape ReadAttention(const Metadata& metadata, const Traits& traits, const Shape& shape) {
  const int64_t scaled_by = shape.layers == traits.layers_of_largest ? shape.width / shape.heads : shape.head_size;
  const float scale = metadata.Float("attention.scale", 0);
  AttentionShape attention;
  attention.heads = shape.heads;
  attention.kv_heads = shape.kv_heads;
  attention.head_size = shape.head_size;
  attention.scale = scale > 0 && !traits.is_gemma ? scale : 1.0f / std::sqrt(static_cast<float>(scaled_by));
  if (traits.attention_cap > 0) attention.cap = metadata.Float("attn_logit_softcapping", traits.attention_cap);
  attention.is_gated = traits.delta_net_step > 0;
  if (traits.is_attention_unscaled) attention.scale = 1;
  attention.are_values_normed = traits.are_values_normed;
  attention.has_sinks = traits.has_sinks;
  attention.are_norms_wide = traits.are_head_norms_wide;
  attention.are_norms_last = traits.are_head_norms_last;
  attention.rotation = ReadRotation(metadata, traits, shape);
  return attention;
}

// Returns for each layer whether it has a gated delta net.
std::vector<bool> ReadDeltaNets(const Metadata& metadata, const Traits& traits, Shape* shape) {
  const auto layers = static_cast<size_t>(shape->layers);
  if (traits.delta_net_step == 0) return std::vector<bool>(layers, false);
  DeltaNetShape& net = shape->delta_net;
  net = {.key_heads = metadata.Integer("ssm.group_count", 0),
         .value_heads = metadata.Integer("ssm.time_step_rank", 0),
         .size = metadata.Integer("ssm.state_size", 0),
         .kernel = metadata.Integer("ssm.conv_kernel", 0),
         .is_grouped = traits.is_delta_net_grouped};
  const auto is_size = [](int64_t value) { return value > 0 && value <= kLargestDeltaNet; };
  if (!is_size(net.key_heads) || !is_size(net.value_heads) || !is_size(net.size) || !is_size(net.kernel) ||
      net.value_heads % net.key_heads != 0 || metadata.Integer("ssm.inner_size", 0) != net.value_width())
    Unsupported("training needs a gated delta net with as many or a multiple of as many heads of values as of keys, of one size");
  if (net.size % kDeltaLanes != 0)
    Unsupported("training needs a gated delta net whose heads' size is a multiple of " + std::to_string(kDeltaLanes));
  const std::vector<int64_t> list = metadata.List("attention.recurrent_layers", shape->layers);
  if (!list.empty()) return {list.begin(), list.end()};
  const int64_t step = metadata.Integer("full_attention_interval", static_cast<double>(traits.delta_net_step));
  if (step < 1) Unsupported("training needs " + shape->architecture + ".full_attention_interval as a number from 1");
  std::vector<bool> made;
  for (int64_t i = 0; i < shape->layers; ++i) made.push_back((i + 1) % step != 0);
  return made;
}

// Returns for each layer whether it has a window.
std::vector<bool> ReadWindows(const Metadata& metadata, const Traits& traits, Shape* shape) {
  std::vector<bool> made(static_cast<size_t>(shape->layers), false);
  if (traits.window_pattern == 0 || (traits.window_layers > 0 && traits.window_layers != shape->layers)) return made;
  shape->window = metadata.Integer("attention.sliding_window", traits.window);
  if (shape->window <= 0) return made;
  const std::vector<int64_t> list = metadata.List("attention.sliding_window_pattern", shape->layers);
  if (!list.empty()) return {list.begin(), list.end()};
  const double pattern = metadata.Number("attention.sliding_window_pattern", traits.window_pattern);
  if (std::isnan(pattern))
    Unsupported("training needs " + shape->architecture + ".attention.sliding_window_pattern as one number or one for each layer");
  const auto step = static_cast<int64_t>(std::clamp(pattern, 0.0, kLargestSize));
  for (int64_t i = 0; i < shape->layers; ++i) made[static_cast<size_t>(i)] = step > 0 && i % step < step - 1;
  return made;
}

// Returns the number of KV heads of each layer. 0 means a short convolution in place of attention.
std::vector<int64_t> ReadKvHeads(const Metadata& metadata, const Shape& shape) {
  std::vector<int64_t> list = metadata.List("attention.head_count_kv", shape.layers);
  if (list.empty()) list.assign(static_cast<size_t>(shape.layers), shape.kv_heads);
  for (int64_t heads : list)
    if (heads < 0 || (heads > 0 && shape.heads % heads != 0) || (heads == 0 && shape.convolution_kernel == 0))
      Unsupported("training needs heads of keys that divide those of queries, not " + std::to_string(heads) + " of " +
                  std::to_string(shape.heads));
  return list;
}

// Reads the attention of layers with a window, whose heads may have another size.
void ReadLocal(const Metadata& metadata, const Traits& traits, const Shape& shape, AttentionShape* attention) {
  Rotation& rotation = attention->rotation;
  attention->window = shape.window;
  if (traits.local_base > 0) rotation.base = static_cast<float>(traits.local_base);
  if (traits.is_local_unscaled) rotation.scale = 1, rotation.extension = 0, rotation.magnitude = 1;
  rotation.base = metadata.Float("rope.freq_base_swa", rotation.base);
  if (!traits.has_own_inputs) return;
  rotation.has_factors = false;
  attention->head_size = metadata.Integer("attention.key_length_swa", static_cast<double>(attention->head_size));
  rotation.size = static_cast<int>(metadata.Integer("rope.dimension_count_swa", rotation.size));
  if (attention->head_size <= 0 || rotation.size < 2 || rotation.size > attention->head_size ||
      metadata.Integer("attention.value_length_swa", static_cast<double>(shape.head_size)) != attention->head_size)
    Unsupported("training needs keys and values of one size in layers with a window");
}

// The last layers may read the keys and values of the last layer of their kind before them.
void ReadSharedKeys(const Metadata& metadata, const Traits& traits, Shape* shape) {
  int64_t shared = traits.has_own_inputs ? metadata.Integer("attention.shared_kv_layers", 0) : 0;
  if (traits.has_streams) shared = std::max<int64_t>(0, shape->layers - kLayersWithKeys);
  for (int64_t i = shape->layers - shared; i < shape->layers; ++i) {
    AttentionShape& reader = shape->of_layer[static_cast<size_t>(i)].attention;
    const int64_t from = shape->layers - shared - (reader.window > 0 ? 2 : 1);
    if (shared < 0 || from < 0) Unsupported("training needs layers with keys in front of those that read them");
    AttentionShape& source = shape->of_layer[static_cast<size_t>(from)].attention;
    if (source.head_size != reader.head_size || source.kv_heads != reader.kv_heads || (source.window > 0) != (reader.window > 0))
      Unsupported("training needs layers that share keys to be alike");
    reader.kv_layer = from;
    source.is_kv_read = true;
  }
}

void ReadLayers(const Metadata& metadata, const Traits& traits, Shape* shape) {
  const AttentionShape attention = ReadAttention(metadata, traits, *shape);
  if (metadata.Number("attention.temperature_scale", 0) != 0) shape->position_limit = attention.rotation.original_context;
  shape->convolution_kernel = metadata.Integer("shortconv.l_cache", 0);
  const std::vector<bool> has_delta_net = ReadDeltaNets(metadata, traits, shape);
  const std::vector<bool> has_window = ReadWindows(metadata, traits, shape);
  const std::vector<int64_t> kv_heads = ReadKvHeads(metadata, *shape);
  const std::vector<int64_t> hidden = metadata.List("feed_forward_length", shape->layers);
  if (traits.has_own_inputs) shape->input_width = metadata.Integer("embedding_length_per_layer_input", 0);
  if (traits.has_streams) {
    shape->streams = kStreams;
    shape->sparse_layers = kSparseLayers;
    shape->laurel_rank = kLaurelRank;
    shape->input_width = kOwnInputWidth;
  }
  for (int64_t i = 0; i < shape->layers; ++i) {
    const auto index = static_cast<size_t>(i);
    LayerShape layer{.attention = attention, .experts = i < shape->dense_layers ? 0 : shape->experts};
    if (has_delta_net[index]) layer.mixer = MixerKind::kDeltaNet;
    if (kv_heads[index] == 0) layer.mixer = MixerKind::kConvolution;
    else layer.attention.kv_heads = kv_heads[index];
    Rotation& rotation = layer.attention.rotation;
    if (traits.unrotated_step > 0 && (i + 1) % traits.unrotated_step == 0) rotation.is_on = false;
    if (has_window[index]) {
      ReadLocal(metadata, traits, *shape, &layer.attention);
    } else if (traits.is_global_unrotated && shape->window > 0) {
      rotation.is_on = false;
    }
    layer.hidden = hidden.empty() ? shape->hidden : hidden[index];
    if (layer.hidden <= 0 && layer.experts == 0) Unsupported("training needs a feed-forward part in each layer");
    shape->of_layer.push_back(layer);
  }
  ReadSharedKeys(metadata, traits, shape);
}

}  // namespace

Shape ReadShape(gguf_context* gguf) {
  const Metadata metadata(gguf);
  Shape shape;
  shape.architecture = metadata.Whole("general.architecture");
  const Traits& traits = TraitsOf(shape.architecture);
  shape.traits = &traits;
  ReadSizes(metadata, traits, &shape);
  ReadExperts(metadata, traits, &shape);
  ReadScales(metadata, traits, &shape);
  ReadLayers(metadata, traits, &shape);
  return shape;
}

}  // namespace onpolicy::training
