#include "trainer/weights.h"

#include <algorithm>
#include <array>

namespace onpolicy::training {
namespace {

// Tensors of a file by name.
class Finder {
 public:
  Finder(ggml_context* tensors, const std::string& path) : tensors_(tensors), path_(path) {}

  Tensor Named(const std::string& name) const { return TensorNamed(tensors_, name); }

  // Null when it is missing and may be.
  Tensor Find(const std::string& name, std::array<int64_t, 3> sizes, bool is_required) {
    Tensor t = Named(name);
    if (t && t->ne[0] == sizes[0] && t->ne[1] == sizes[1] && t->ne[2] == sizes[2]) return t;
    if (t || is_required) Fail("the tensor " + name + (t ? " has an unexpected shape" : " is missing"));
    return nullptr;
  }

  Tensor Vector(const std::string& name, int64_t size, bool is_required) {
    Tensor found = Find(name, {size, 1, 1}, is_required);
    if (found && found->type != GGML_TYPE_F32) Fail("the tensor " + name + " is not F32");
    return found;
  }

  Linear Matrix(const std::string& name, int64_t in, int64_t out, int64_t experts = 1) {
    Linear result;
    result.name = name;
    result.weight = Find(name + ".weight", {in, out, experts}, true);
    result.bias = Vector(name + ".bias", out, false);
    if (result.bias && experts > 1) Fail("training supports no bias of experts, as " + name + " has");
    return result;
  }

  // What a layer of any architecture may have and the trainer does not compute.
  void Refuse(const std::string& name, const std::string& meaning) {
    if (Named(name)) Fail("the tensor " + name + " is " + meaning + ", which training does not support");
  }

  [[noreturn]] void Fail(const std::string& fault) { throw Failure("UNSUPPORTED", path_ + ": " + fault); }

 private:
  ggml_context* tensors_;
  const std::string& path_;
};

void FindAttention(Finder& find, const std::string& prefix, const Shape& shape, Layer* layer) {
  const int64_t query = shape.query_width(), kv = shape.kv_width();
  if (find.Named(prefix + "attn_qkv.weight")) {
    layer->query_key_value = find.Matrix(prefix + "attn_qkv", shape.width, query + 2 * kv);
  } else {
    layer->query = find.Matrix(prefix + "attn_q", shape.width, query);
    layer->key = find.Matrix(prefix + "attn_k", shape.width, kv);
    layer->value = find.Matrix(prefix + "attn_v", shape.width, kv);
  }
  layer->output = find.Matrix(prefix + "attn_output", query, shape.width);
}

void FindFeedForward(Finder& find, const std::string& prefix, const Shape& shape, Layer* layer) {
  const std::string end = shape.experts > 0 ? "_exps" : "";
  const int64_t experts = std::max<int64_t>(1, shape.experts);
  if (shape.experts > 0) layer->router = find.Matrix(prefix + "ffn_gate_inp", shape.width, experts);
  if (shape.is_gate_fused) {
    layer->gate_up = find.Matrix(prefix + "ffn_up", shape.width, 2 * shape.hidden);
  } else {
    layer->gate = find.Matrix(prefix + "ffn_gate" + end, shape.width, shape.hidden, experts);
    layer->up = find.Matrix(prefix + "ffn_up" + end, shape.width, shape.hidden, experts);
  }
  layer->down = find.Matrix(prefix + "ffn_down" + end, shape.hidden, shape.width, experts);
}

}  // namespace

Weights::~Weights() {
  if (mapped_) Api().ggml_backend_buffer_free(mapped_);
  if (tensors_) Api().ggml_free(tensors_);
  if (gguf_) Api().gguf_free(gguf_);
}

std::unique_ptr<Weights> Weights::Load(Device* device, const std::string& path) {
  auto loaded = std::unique_ptr<Weights>(new Weights);
  loaded->path_ = path;
  loaded->file_ = FileMap::Open(path);
  loaded->gguf_ = Api().gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = &loaded->tensors_});
  if (!loaded->gguf_) throw Failure("MODEL_INVALID", path + " is no readable GGUF file");
  loaded->shape = ReadShape(loaded->gguf_);
  loaded->FindTensors();
  loaded->Place(device);
  return loaded;
}

Tensor Weights::Embed(Graph& graph, Tensor tokens) const {
  Tensor rows = graph.Rows(embedding, tokens);
  return shape.embedding_scale == 1 ? rows : graph.Scale(rows, shape.embedding_scale);
}

void Weights::FindTensors() {
  Finder find(tensors_, path_);
  const Tensor table = TensorNamed(tensors_, "token_embd.weight");
  if (!table) throw Failure("MODEL_INVALID", path_ + ": the tensor token_embd.weight is missing");
  shape.vocabulary = table->ne[1];
  embedding = find.Find("token_embd.weight", {shape.width, shape.vocabulary, 1}, true);
  output_norm = find.Vector("output_norm.weight", shape.width, true);
  rope_factors = find.Vector("rope_freqs.weight", shape.rope_size / 2, false);
  find.Refuse("rope_factors_long.weight", "LongRoPE");
  head.name = "output";
  head.weight = find.Find("output.weight", {shape.width, shape.vocabulary, 1}, false);
  if (!head.weight) head.weight = embedding;
  head.bias = find.Vector("output.bias", shape.vocabulary, false);
  for (int64_t i = 0; i < shape.layers; ++i) {
    const std::string prefix = "blk." + std::to_string(i) + ".";
    Layer layer;
    layer.rotation = shape.rotations[static_cast<size_t>(i)];
    layer.attention_norm = find.Vector(prefix + "attn_norm.weight", shape.width, true);
    layer.ffn_norm = find.Vector(prefix + "ffn_norm.weight", shape.width, true);
    layer.query_norm = find.Vector(prefix + "attn_q_norm.weight", shape.head_size, shape.has_head_norms);
    layer.key_norm = find.Vector(prefix + "attn_k_norm.weight", shape.head_size, shape.has_head_norms);
    if (shape.has_post_norms) {
      layer.attention_post_norm = find.Vector(prefix + "post_attention_norm.weight", shape.width, true);
      layer.ffn_post_norm = find.Vector(prefix + "post_ffw_norm.weight", shape.width, true);
    }
    FindAttention(find, prefix, shape, &layer);
    FindFeedForward(find, prefix, shape, &layer);
    layers.push_back(std::move(layer));
  }
}

void Weights::Place(Device* device) {
  const Library& api = Api();
  const size_t start = api.gguf_get_data_offset(gguf_);
  if (start >= file_->size()) throw Failure("MODEL_INVALID", path_ + " is truncated");
  // The CPU reads the mapped file; another device gets a copy of all tensors but the embedding.
  mapped_ = api.ggml_backend_cpu_buffer_from_ptr(file_->data(), file_->size());
  api.ggml_backend_buffer_set_usage(mapped_, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
  const bool is_host = device->is_cpu();
  std::vector<std::pair<Tensor, size_t>> uploads;
  on_device_ = std::make_unique<Arena>(device);
  for (int64_t i = 0; i < api.gguf_get_n_tensors(gguf_); ++i) {
    Tensor tensor = TensorNamed(tensors_, api.gguf_get_tensor_name(gguf_, i));
    const size_t offset = start + api.gguf_get_tensor_offset(gguf_, i);
    const size_t bytes = tensor ? api.ggml_nbytes(tensor) : 0;
    if (!tensor || offset > file_->size() || bytes > file_->size() - offset)
      throw Failure("MODEL_INVALID", path_ + " is truncated");
    if (is_host || tensor == embedding)
      api.ggml_backend_tensor_alloc(mapped_, tensor, file_->data() + offset);
    else
      uploads.emplace_back(tensor, on_device_->Reserve(bytes));
    if (!is_host && tensor == embedding && head.weight == embedding) {
      tied_head_ = std::make_unique<Graph>(1);  // the file's own context has room for the file's tensors only
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
