#include "trainer/weights/weights.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "trainer/weights/matmul.h"

namespace onpolicy::training {
namespace {

// Tensors of a file by name.
class Finder {
 public:
  Finder(ggml_context* tensors, const std::string& path) : tensors_(tensors), path_(path) {}

  Tensor Named(const std::string& name) const { return TensorNamed(tensors_, name); }

  // Returns null if the tensor is missing and optional.
  Tensor Find(const std::string& name, std::array<int64_t, 3> sizes, bool is_required) {
    Tensor t = Named(name);
    if (t && t->ne[0] == sizes[0] && t->ne[1] == sizes[1] && t->ne[2] == sizes[2]) return t;
    if (t || is_required) Fail("the tensor " + name + (t ? " has an unexpected shape" : " is missing"));
    return nullptr;
  }

  Tensor Vector(const std::string& name, int64_t size, bool is_required) { return Floats(name, {size, 1, 1}, is_required); }

  Tensor Floats(const std::string& name, std::array<int64_t, 3> sizes, bool is_required) {
    Tensor found = Find(name, sizes, is_required);
    if (found && found->type != GGML_TYPE_F32) Fail("the tensor " + name + " is not F32");
    return found;
  }

  Linear Matrix(const std::string& name, int64_t in, int64_t out, int64_t experts = 1) {
    Linear result;
    result.name = name;
    result.weight = Find(name + ".weight", {in, out, experts}, true);
    result.bias = Floats(name + ".bias", {out, experts, 1}, false);
    if (experts == 1) Refuse(name + ".scale", "a scale of a matrix");
    else result.scale = Floats(name + ".scale", {experts, 1, 1}, false);
    return result;
  }

  // Throws if the file has this tensor, which the trainer does not support.
  void Refuse(const std::string& name, const std::string& meaning) {
    if (Named(name)) Fail("the tensor " + name + " is " + meaning + ", which training does not support");
  }

  [[noreturn]] void Fail(const std::string& fault) { throw Failure("UNSUPPORTED", path_ + ": " + fault); }

 private:
  ggml_context* tensors_;
  const std::string& path_;
};

void FindAttention(Finder& find, const std::string& prefix, const Shape& shape, Layer* layer) {
  const AttentionShape& attention = layer->shape.attention;
  const int64_t query = attention.query_width(), kv = attention.kv_width();
  const bool is_wide = attention.are_norms_wide;
  layer->query_norm = find.Vector(prefix + "attn_q_norm.weight", is_wide ? query : attention.head_size, shape.traits->has_head_norms);
  const bool has_keys = attention.kv_layer < 0;
  if (has_keys) layer->key_norm = find.Vector(prefix + "attn_k_norm.weight", is_wide ? kv : attention.head_size, shape.traits->has_head_norms);
  if (attention.has_sinks) layer->sinks = find.Vector(prefix + "attn_sinks.weight", attention.heads, true);
  if (find.Named(prefix + "attn_qkv.weight")) {
    layer->query_key_value = find.Matrix(prefix + "attn_qkv", shape.width, query + 2 * kv);
  } else {
    layer->query = find.Matrix(prefix + "attn_q", shape.width, attention.is_gated ? 2 * query : query);
    if (has_keys) layer->key = find.Matrix(prefix + "attn_k", shape.width, kv);
    // If values are normed, the file may have no matrix for them: they are then the keys before norm and rotation.
    if (has_keys && (!attention.are_values_normed || find.Named(prefix + "attn_v.weight")))
      layer->value = find.Matrix(prefix + "attn_v", shape.width, kv);
  }
  layer->output = find.Matrix(prefix + "attn_output", query, shape.width);
}

void FindDeltaNet(Finder& find, const std::string& prefix, const Shape& shape, Layer* layer) {
  const DeltaNetShape& net = shape.delta_net;
  find.Refuse(prefix + "ssm_in.weight", "an older form of attn_qkv and attn_gate");
  layer->query_key_value = find.Matrix(prefix + "attn_qkv", shape.width, net.width());
  layer->output_gate = find.Matrix(prefix + "attn_gate", shape.width, net.value_width());
  if (net.is_grouped) {
    layer->beta_alpha = find.Matrix(prefix + "ssm_ba", shape.width, 2 * net.value_heads);
  } else {
    layer->beta = find.Matrix(prefix + "ssm_beta", shape.width, net.value_heads);
    layer->alpha = find.Matrix(prefix + "ssm_alpha", shape.width, net.value_heads);
  }
  layer->convolution = find.Floats(prefix + "ssm_conv1d.weight", {net.kernel, net.width(), 1}, true);
  layer->alpha_bias = find.Vector(prefix + "ssm_dt.bias", net.value_heads, true);
  layer->decay = find.Vector(prefix + "ssm_a", net.value_heads, true);
  layer->state_norm = find.Vector(prefix + "ssm_norm.weight", net.size, true);
  layer->output = find.Matrix(prefix + "ssm_out", net.value_width(), shape.width);
}

void FindConvolution(Finder& find, const std::string& prefix, const Shape& shape, Layer* layer) {
  layer->convolved = find.Matrix(prefix + "shortconv.in_proj", shape.width, 3 * shape.width);
  layer->convolution = find.Floats(prefix + "shortconv.conv.weight", {shape.convolution_kernel, shape.width, 1}, true);
  layer->output = find.Matrix(prefix + "shortconv.out_proj", shape.width, shape.width);
}

void FindExperts(Finder& find, const std::string& prefix, const Shape& shape, Layer* layer) {
  const int64_t hidden = shape.expert_hidden, shared = shape.shared_hidden;
  layer->router.weight = find.Find(prefix + "ffn_gate_inp.weight", {shape.width, shape.experts, 1}, true);
  layer->router.bias = find.Vector(prefix + "ffn_gate_inp.bias", shape.experts, false);
  layer->router_preference = find.Vector(prefix + "exp_probs_b.bias", shape.experts, false);
  if (find.Named(prefix + "ffn_gate_up_exps.weight")) {
    layer->gate_up = find.Matrix(prefix + "ffn_gate_up_exps", shape.width, 2 * hidden, shape.experts);
  } else {
    layer->gate = find.Matrix(prefix + "ffn_gate_exps", shape.width, hidden, shape.experts);
    layer->up = find.Matrix(prefix + "ffn_up_exps", shape.width, hidden, shape.experts);
  }
  layer->down = find.Matrix(prefix + "ffn_down_exps", hidden, shape.width, shape.experts);
  if (shape.traits->has_dense_beside) {
    layer->router_scale = find.Vector(prefix + "ffn_gate_inp.scale", shape.width, true);
    layer->expert_norm = find.Vector(prefix + "pre_ffw_norm_2.weight", shape.width, true);
    layer->expert_post_norm = find.Vector(prefix + "post_ffw_norm_2.weight", shape.width, true);
    layer->shared_post_norm = find.Vector(prefix + "post_ffw_norm_1.weight", shape.width, true);
    layer->shared_gate = find.Matrix(prefix + "ffn_gate", shape.width, layer->shape.hidden);
    layer->shared_up = find.Matrix(prefix + "ffn_up", shape.width, layer->shape.hidden);
    layer->shared_down = find.Matrix(prefix + "ffn_down", layer->shape.hidden, shape.width);
  }
  if (shared == 0) return;
  layer->shared_weight = find.Vector(prefix + "ffn_gate_inp_shexp.weight", shape.width, false);
  layer->shared_gate = find.Matrix(prefix + "ffn_gate_shexp", shape.width, shared);
  layer->shared_up = find.Matrix(prefix + "ffn_up_shexp", shape.width, shared);
  layer->shared_down = find.Matrix(prefix + "ffn_down_shexp", shared, shape.width);
}

void FindFeedForward(Finder& find, const std::string& prefix, const Shape& shape, Layer* layer) {
  if (shape.traits->has_dense_beside && !find.Named(prefix + "ffn_gate_inp.weight")) layer->shape.experts = 0;
  if (layer->shape.experts > 0) return FindExperts(find, prefix, shape, layer);
  if (shape.traits->is_gate_fused) {
    layer->gate_up = find.Matrix(prefix + "ffn_up", shape.width, 2 * layer->shape.hidden);
  } else {
    layer->gate = find.Matrix(prefix + "ffn_gate", shape.width, layer->shape.hidden);
    layer->up = find.Matrix(prefix + "ffn_up", shape.width, layer->shape.hidden);
  }
  layer->down = find.Matrix(prefix + "ffn_down", layer->shape.hidden, shape.width);
}

void FindStreams(Finder& find, const std::string& prefix, const Shape& shape, Layer* layer) {
  layer->laurel_left = find.Matrix(prefix + "laurel_l", shape.width, shape.laurel_rank);
  layer->laurel_right = find.Matrix(prefix + "laurel_r", shape.laurel_rank, shape.width);
  layer->laurel_norm = find.Vector(prefix + "laurel_post_norm.weight", shape.width, true);
  layer->stream_norm = find.Vector(prefix + "altup_router_norm.weight", shape.width, true);
  layer->stream_router = find.Find(prefix + "altup_router.weight", {shape.width, shape.streams, 1}, true);
  layer->stream_prediction = find.Find(prefix + "altup_predict_coef.weight", {shape.streams, shape.streams * shape.streams, 1}, true);
  layer->stream_correction = find.Find(prefix + "altup_correct_coef.weight", {shape.streams, shape.streams, 1}, true);
  layer->stream_scale = find.Vector(prefix + "altup_correct_scale.weight", shape.width, true);
}

void FindOwnInput(Finder& find, const std::string& prefix, const Shape& shape, Layer* layer) {
  layer->output_scale = find.Vector(prefix + "layer_output_scale.weight", 1, false);
  if (shape.input_width == 0) return;
  layer->input_gate = find.Matrix(prefix + "inp_gate", shape.width, shape.input_width);
  layer->input_output = find.Matrix(prefix + "proj", shape.input_width, shape.width);
  layer->input_norm = find.Vector(prefix + "post_norm.weight", shape.width, true);
}

// Throws if weights of a type cannot be read as floats.
void RequireReadable(ggml_type type) {
  if (type != GGML_TYPE_F32 && !Api().ggml_get_type_traits(type)->to_float)
    throw Failure("UNSUPPORTED", std::string("training supports no weights of type ") + Api().ggml_type_name(type));
}

}  // namespace

Weights::~Weights() {
  if (mapped_) Api().ggml_backend_buffer_free(mapped_);
  if (tensors_) Api().ggml_free(tensors_);
  if (gguf_) Api().gguf_free(gguf_);
}

std::unique_ptr<Weights> Weights::Load(Device* device, const std::string& path, int64_t context) {
  auto loaded = std::unique_ptr<Weights>(new Weights);
  loaded->file_ = FileMap::Open(path);
  loaded->ReadHeader(path, context);
  loaded->Place(device);
  return loaded;
}

std::unique_ptr<Weights> Weights::Describe(const Device& device, const std::string& path, int64_t context) {
  auto described = std::unique_ptr<Weights>(new Weights);
  described->ReadHeader(path, context);
  for (Tensor tensor = Api().ggml_get_first_tensor(described->tensors_); tensor; tensor = Api().ggml_get_next_tensor(described->tensors_, tensor))
    tensor->data = tensor;
  described->PlanTransposed(device);
  return described;
}

std::string Weights::WhyNot(const std::string& path) {
  Weights weights;
  try {
    weights.ReadHeader(path, /*context=*/0);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

void Weights::ReadHeader(const std::string& path, int64_t context) {
  path_ = path;
  gguf_ = Api().gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = &tensors_});
  if (!gguf_) throw Failure("MODEL_INVALID", path + " is not a readable GGUF file");
  shape = ReadShape(gguf_);
  FindTensors(context);
  for (Linear* linear : AllLinears()) RequireReadable(linear->weight->type);
}

Tensor Weights::Embed(Graph& graph, Tensor tokens) const {
  Tensor rows = graph.Rows(embedding, tokens);
  return shape.embedding_scale == 1 ? rows : graph.Scale(rows, shape.embedding_scale);
}

Tensor Weights::OwnInputs(Graph& graph, Matmuls& matmuls, Tensor tokens, Tensor embedded) const {
  const auto width = static_cast<float>(shape.width), own = static_cast<float>(shape.input_width);
  const auto split = [&](Tensor x) { return graph.Reshape(x, shape.input_width, shape.layers, tokens->ne[0]); };
  Tensor of_stream = split(graph.Scale(matmuls.Forward(inputs_of_stream.weight, embedded), 1 / std::sqrt(width)));
  of_stream = graph.Times(graph.RmsNorm(of_stream, shape.norm_epsilon), inputs_norm);
  Tensor of_token = split(graph.Scale(graph.Rows(inputs_table, tokens), std::sqrt(own)));
  return graph.Scale(graph.Plus(of_stream, of_token), 1 / std::sqrt(2.0f));
}

void Weights::FindTensors(int64_t context) {
  Finder find(tensors_, path_);
  const Tensor table = TensorNamed(tensors_, "token_embd.weight");
  if (!table) throw Failure("MODEL_INVALID", path_ + ": the tensor token_embd.weight is missing");
  shape.vocabulary = table->ne[1];
  embedding = find.Find("token_embd.weight", {shape.width, shape.vocabulary, 1}, true);
  output_norm = find.Vector(std::string(shape.traits->output_norm) + ".weight", shape.width, true);
  int rotated = 0;
  for (const LayerShape& layer : shape.of_layer)
    if (layer.attention.rotation.has_factors) rotated = std::max(rotated, layer.attention.rotation.size);
  const bool is_long = context > shape.of_layer[0].attention.rotation.original_context;
  const char* long_factors = is_long ? "rope_factors_long.weight" : "rope_factors_short.weight";
  rope_factors = find.Vector(find.Named("rope_freqs.weight") ? "rope_freqs.weight" : long_factors, rotated / 2, false);
  head.name = "output";
  head.weight = find.Find("output.weight", {shape.width, shape.vocabulary, 1}, false);
  if (!head.weight) head.weight = embedding;
  head.bias = find.Vector("output.bias", shape.vocabulary, false);
  if (const int64_t all = shape.input_width * shape.layers; all > 0) {
    inputs_table = find.Find("per_layer_token_embd.weight", {all, shape.vocabulary, 1}, true);
    inputs_of_stream = find.Matrix("per_layer_model_proj", shape.width, all);
    inputs_norm = find.Vector("per_layer_proj_norm.weight", shape.input_width, true);
  }
  if (shape.streams > 1) {
    stream_in = find.Find("altup_proj.weight", {shape.width, shape.width, shape.streams - 1}, true);
    stream_out = find.Find("altup_unembd_proj.weight", {shape.width, shape.width, shape.streams - 1}, true);
  }
  for (int64_t i = 0; i < shape.layers; ++i) {
    const std::string prefix = "blk." + std::to_string(i) + ".";
    Layer layer;
    layer.index = i;
    layer.shape = shape.of_layer[static_cast<size_t>(i)];
    if (shape.traits->has_input_norms) layer.attention_norm = find.Vector(prefix + "attn_norm.weight", shape.width, true);
    if (shape.traits->has_input_norms && !shape.traits->is_parallel)
      layer.ffn_norm = find.Vector(prefix + shape.traits->ffn_norm + ".weight", shape.width, true);
    if (shape.traits->has_post_norms) {
      layer.attention_post_norm = find.Vector(prefix + "post_attention_norm.weight", shape.width, true);
      layer.ffn_post_norm = find.Vector(prefix + "post_ffw_norm.weight", shape.width, true);
    }
    const auto find_mixer = layer.shape.mixer == MixerKind::kDeltaNet      ? FindDeltaNet
                            : layer.shape.mixer == MixerKind::kConvolution ? FindConvolution
                                                                            : FindAttention;
    find_mixer(find, prefix, shape, &layer);
    FindFeedForward(find, prefix, shape, &layer);
    if (shape.of_layer[0].attention.are_values_normed) FindOwnInput(find, prefix, shape, &layer);
    if (shape.streams > 1) FindStreams(find, prefix, shape, &layer);
    layers.push_back(std::move(layer));
  }
}

void Weights::Place(Device* device) {
  const Library& api = Api();
  const size_t start = api.gguf_get_data_offset(gguf_);
  if (start >= file_->size()) throw Failure("MODEL_INVALID", path_ + " is truncated");
  // The CPU reads the mapped file. Another device gets a copy of all tensors except the embedding.
  mapped_ = api.ggml_backend_cpu_buffer_from_ptr(file_->data(), file_->size());
  api.ggml_backend_buffer_set_usage(mapped_, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
  const bool is_host = device->is_cpu();
  PlanTransposed(*device);
  std::vector<std::pair<Tensor, size_t>> uploads;
  on_device_ = std::make_unique<Arena>(device);
  for (int64_t i = 0; i < api.gguf_get_n_tensors(gguf_); ++i) {
    Tensor tensor = TensorNamed(tensors_, api.gguf_get_tensor_name(gguf_, i));
    const size_t offset = start + api.gguf_get_tensor_offset(gguf_, i);
    const size_t bytes = tensor ? api.ggml_nbytes(tensor) : 0;
    if (!tensor || offset > file_->size() || bytes > file_->size() - offset)
      throw Failure("MODEL_INVALID", path_ + " is truncated");
    if (is_host || tensor == embedding || tensor == inputs_table)
      api.ggml_backend_tensor_alloc(mapped_, tensor, file_->data() + offset);
    else
      uploads.emplace_back(tensor, on_device_->Reserve(bytes));
    if (!is_host && tensor == embedding && head.weight == embedding) {
      tied_head_ = std::make_unique<Graph>();  // the context of the file has room only for the file's tensors
      head.weight = api.ggml_new_tensor(tied_head_->context(), tensor->type, 2, tensor->ne);
      uploads.emplace_back(head.weight, on_device_->Reserve(bytes));
    }
  }
  on_device_->Allocate();
  if (on_device_->buffer())
    api.ggml_backend_buffer_set_usage(on_device_->buffer(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
  for (auto& [tensor, slot] : uploads) {
    api.ggml_backend_tensor_alloc(on_device_->buffer(), tensor, on_device_->AddressOf(slot));
    const bool is_tied = tensor == head.weight && tied_head_;
    api.ggml_backend_tensor_set(tensor, file_->data() + OffsetInFile(is_tied ? embedding : tensor), 0,
                                api.ggml_nbytes(tensor));
  }
}

size_t Weights::OffsetInFile(Tensor tensor) const {
  const Library& api = Api();
  return api.gguf_get_data_offset(gguf_) + api.gguf_get_tensor_offset(gguf_, api.gguf_find_tensor(gguf_, tensor->name));
}

}  // namespace onpolicy::training
