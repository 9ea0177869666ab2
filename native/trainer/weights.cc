#include "trainer/weights.h"

#include <cmath>

namespace onpolicy::training {
namespace {

constexpr double kGemmaPattern = 6;            // one layer in so many has no window, unless the file says otherwise
constexpr int64_t kLayersOfLargestGemma = 62;  // the 27B model scales attention by the width of its heads' share
constexpr const char* kArchitectures[] = {"llama", "qwen2", "qwen3", "gemma3"};

// Metadata of a GGUF file, by key. Reads numbers of any integer type.
class Metadata {
 public:
  explicit Metadata(gguf_context* gguf) : gguf_(gguf) {}

  std::string Text(const std::string& key) const {
    const int64_t id = Find(key);
    return id >= 0 && Api().gguf_get_kv_type(gguf_, id) == GGUF_TYPE_STRING ? Api().gguf_get_val_str(gguf_, id)
                                                                            : "";
  }

  double Number(const std::string& key, double otherwise) const {
    const int64_t id = Find(key);
    if (id < 0) return otherwise;
    const Library& api = Api();
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
      default:
        return std::nan("");
    }
  }

 private:
  int64_t Find(const std::string& key) const { return Api().gguf_find_key(gguf_, key.c_str()); }
  gguf_context* gguf_;
};

}  // namespace

Weights::~Weights() {
  if (mapped_) Api().ggml_backend_buffer_free(mapped_);
  if (tensors_) Api().ggml_free(tensors_);
  if (gguf_) Api().gguf_free(gguf_);
}

Status Weights::Load(Device* device, const std::string& path, std::unique_ptr<Weights>* out) {
  auto loaded = std::unique_ptr<Weights>(new Weights);
  loaded->path_ = path;
  if (Status status = FileMap::Open(path, &loaded->file_); !status.ok()) return status;
  loaded->gguf_ = Api().gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = &loaded->tensors_});
  if (!loaded->gguf_) return Status::Fail("MODEL_INVALID", path + " is no readable GGUF file");
  if (Status status = loaded->ReadShape(); !status.ok()) return status;
  if (Status status = loaded->FindTensors(); !status.ok()) return status;
  if (Status status = loaded->Place(device); !status.ok()) return status;
  *out = std::move(loaded);
  return Status::Ok();
}

Status Weights::ReadShape() {
  const Metadata metadata(gguf_);
  shape.architecture = metadata.Text("general.architecture");
  bool is_known = false;
  std::string known;
  for (const char* name : kArchitectures) {
    is_known |= shape.architecture == name;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  if (!is_known)
    return Status::Fail("UNSUPPORTED", "training supports the architectures " + known + "; this model's is \"" +
                                           shape.architecture + "\"");
  const std::string prefix = shape.architecture + ".";
  auto number = [&](const char* key, double otherwise) { return metadata.Number(prefix + key, otherwise); };
  shape.width = static_cast<int64_t>(number("embedding_length", 0));
  shape.layers = static_cast<int64_t>(number("block_count", 0));
  shape.heads = static_cast<int64_t>(number("attention.head_count", 0));
  const double kv_heads = number("attention.head_count_kv", static_cast<double>(shape.heads));
  shape.kv_heads = std::isnan(kv_heads) ? 0 : static_cast<int64_t>(kv_heads);
  if (shape.width <= 0 || shape.layers <= 0 || shape.heads <= 0 || shape.kv_heads <= 0 ||
      shape.heads % shape.kv_heads != 0)
    return Status::Fail("UNSUPPORTED", "training needs one width and one number of heads for all layers");
  shape.head_size = static_cast<int64_t>(
      number("attention.key_length", static_cast<double>(shape.width / shape.heads)));
  if (number("attention.value_length", static_cast<double>(shape.head_size)) !=
      static_cast<double>(shape.head_size))
    return Status::Fail("UNSUPPORTED", "training needs keys and values of one size");
  if (number("expert_count", 0) > 0) return Status::Fail("UNSUPPORTED", "training supports no expert layers");
  shape.context = static_cast<int64_t>(number("context_length", 0));
  shape.norm_epsilon = static_cast<float>(number("attention.layer_norm_rms_epsilon", 1e-5));
  const double scale = number("attention.scale", 0);
  shape.attention_scale =
      scale > 0 ? static_cast<float>(scale) : 1.0f / std::sqrt(static_cast<float>(shape.head_size));
  shape.rope_size = static_cast<int>(number("rope.dimension_count", static_cast<double>(shape.head_size)));
  shape.rope_mode = shape.architecture == "llama" ? GGML_ROPE_TYPE_NORMAL : GGML_ROPE_TYPE_NEOX;
  const std::string scaling = metadata.Text(prefix + "rope.scaling.type");
  if (!scaling.empty() && scaling != "none" && scaling != "linear")
    return Status::Fail("UNSUPPORTED", "training supports no rope scaling of type " + scaling);
  return is_gemma() ? ReadGemma() : Status::Ok();
}

Status Weights::ReadGemma() {
  const Metadata metadata(gguf_);
  shape.embedding_scale = std::sqrt(static_cast<float>(shape.width));
  shape.activation = Activation::kGelu;
  shape.window = static_cast<int64_t>(metadata.Number("gemma3.attention.sliding_window", 0));
  if (shape.layers == kLayersOfLargestGemma)
    shape.attention_scale = 1.0f / std::sqrt(static_cast<float>(shape.width / shape.heads));
  if (metadata.Number("gemma3.final_logit_softcapping", 0) != 0)
    return Status::Fail("UNSUPPORTED", "training supports no soft cap of logits");
  if (std::isnan(metadata.Number("gemma3.attention.sliding_window_pattern", kGemmaPattern)))
    return Status::Fail("UNSUPPORTED", "training needs gemma3.attention.sliding_window_pattern as one number");
  return Status::Ok();
}

void Weights::ReadRotation(int64_t index, Layer* layer) const {
  const Metadata metadata(gguf_);
  const std::string prefix = shape.architecture + ".";
  const auto pattern = static_cast<int64_t>(metadata.Number(prefix + "attention.sliding_window_pattern", kGemmaPattern));
  layer->is_local = shape.window > 0 && pattern > 0 && index % pattern < pattern - 1;
  if (layer->is_local) {
    layer->rope_base = static_cast<float>(metadata.Number(prefix + "rope.freq_base_swa", 10000));
    return;
  }
  layer->rope_base = static_cast<float>(metadata.Number(prefix + "rope.freq_base", 10000));
  const double factor =
      metadata.Number(prefix + "rope.scaling.factor", metadata.Number(prefix + "rope.scale_linear", 0));
  if (factor > 0 && metadata.Text(prefix + "rope.scaling.type") != "none")
    layer->rope_scale = static_cast<float>(1 / factor);
}

Tensor Weights::Embed(Graph& graph, Tensor tokens) const {
  Tensor rows = graph.Rows(embedding, tokens);
  return shape.embedding_scale == 1 ? rows : graph.Scale(rows, shape.embedding_scale);
}

Status Weights::FindTensors() {
  std::string fault;
  auto find = [&](const std::string& name, int64_t rows, int64_t columns, bool is_required) -> Tensor {
    Tensor t = TensorNamed(name);
    if (t && t->ne[0] == rows && t->ne[1] == columns && t->ne[2] == 1) return t;
    if ((t || is_required) && fault.empty()) fault = "the tensor " + name + (t ? " has an unexpected shape" : " is missing");
    return nullptr;
  };
  auto vector = [&](const std::string& name, int64_t size, bool is_required) {
    Tensor found = find(name, size, 1, is_required);
    if (found && found->type != GGML_TYPE_F32 && fault.empty())
      fault = "the tensor " + name + " is not F32";
    return found;
  };
  auto linear = [&](const std::string& name, int64_t in, int64_t out) {
    Linear result;
    result.name = name;
    result.weight = find(name + ".weight", in, out, true);
    result.bias = vector(name + ".bias", out, false);
    return result;
  };
  const Tensor table = TensorNamed("token_embd.weight");
  if (!table) return Status::Fail("MODEL_INVALID", path_ + ": the tensor token_embd.weight is missing");
  shape.vocabulary = table->ne[1];
  embedding = find("token_embd.weight", shape.width, shape.vocabulary, true);
  output_norm = vector("output_norm.weight", shape.width, true);
  rope_factors = vector("rope_freqs.weight", shape.rope_size / 2, false);
  head.name = "output";
  head.weight = find("output.weight", shape.width, shape.vocabulary, false);
  if (!head.weight) head.weight = embedding;
  head.bias = vector("output.bias", shape.vocabulary, false);
  const Metadata metadata(gguf_);
  const double ffn = metadata.Number(shape.architecture + ".feed_forward_length", 0);
  const int64_t query_width = shape.heads * shape.head_size;
  const int64_t kv_width = shape.kv_heads * shape.head_size;
  const bool has_head_norms = is_gemma() || shape.architecture == "qwen3";
  for (int64_t i = 0; i < shape.layers; ++i) {
    const std::string prefix = "blk." + std::to_string(i) + ".";
    const auto hidden = static_cast<int64_t>(ffn);
    Layer layer;
    layer.attention_norm = vector(prefix + "attn_norm.weight", shape.width, true);
    layer.ffn_norm = vector(prefix + "ffn_norm.weight", shape.width, true);
    layer.query_norm = vector(prefix + "attn_q_norm.weight", shape.head_size, has_head_norms);
    layer.key_norm = vector(prefix + "attn_k_norm.weight", shape.head_size, has_head_norms);
    if (is_gemma()) {
      layer.attention_post_norm = vector(prefix + "post_attention_norm.weight", shape.width, true);
      layer.ffn_post_norm = vector(prefix + "post_ffw_norm.weight", shape.width, true);
    }
    ReadRotation(i, &layer);
    layer.query = linear(prefix + "attn_q", shape.width, query_width);
    layer.key = linear(prefix + "attn_k", shape.width, kv_width);
    layer.value = linear(prefix + "attn_v", shape.width, kv_width);
    layer.output = linear(prefix + "attn_output", query_width, shape.width);
    layer.gate = linear(prefix + "ffn_gate", shape.width, hidden);
    layer.up = linear(prefix + "ffn_up", shape.width, hidden);
    layer.down = linear(prefix + "ffn_down", hidden, shape.width);
    layers.push_back(std::move(layer));
  }
  if (!fault.empty()) return Status::Fail("UNSUPPORTED", path_ + ": " + fault);
  return Status::Ok();
}

Status Weights::Place(Device* device) {
  const Library& api = Api();
  const size_t start = api.gguf_get_data_offset(gguf_);
  if (start >= file_->size()) return Status::Fail("MODEL_INVALID", path_ + " is truncated");
  // The CPU reads the mapped file; another device gets a copy of all tensors but the embedding.
  mapped_ = api.ggml_backend_cpu_buffer_from_ptr(file_->data(), file_->size());
  api.ggml_backend_buffer_set_usage(mapped_, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
  const bool is_host = device->is_cpu();
  std::vector<std::pair<Tensor, size_t>> uploads;
  on_device_ = std::make_unique<Arena>(device);
  for (int64_t i = 0; i < api.gguf_get_n_tensors(gguf_); ++i) {
    Tensor tensor = TensorNamed(api.gguf_get_tensor_name(gguf_, i));
    const size_t offset = start + api.gguf_get_tensor_offset(gguf_, i);
    const size_t bytes = tensor ? api.ggml_nbytes(tensor) : 0;
    if (!tensor || offset > file_->size() || bytes > file_->size() - offset)
      return Status::Fail("MODEL_INVALID", path_ + " is truncated");
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
  if (Status status = on_device_->Allocate(); !status.ok()) return status;
  if (on_device_->buffer())
    api.ggml_backend_buffer_set_usage(on_device_->buffer(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
  for (auto& [tensor, slot] : uploads) {
    api.ggml_backend_tensor_alloc(on_device_->buffer(), tensor, on_device_->AddressOf(slot));
    const bool is_tied = tensor == head.weight && tied_head_;
    api.ggml_backend_tensor_set(tensor, file_->data() + OffsetInFile(is_tied ? embedding : tensor), 0,
                                api.ggml_nbytes(tensor));
  }
  return Status::Ok();
}

Tensor Weights::TensorNamed(const std::string& name) const {
  const Library& api = Api();
  Tensor tensor = api.ggml_get_first_tensor(tensors_);
  while (tensor && name != tensor->name) tensor = api.ggml_get_next_tensor(tensors_, tensor);
  return tensor;
}

size_t Weights::OffsetInFile(Tensor tensor) const {
  const Library& api = Api();
  return api.gguf_get_data_offset(gguf_) + api.gguf_get_tensor_offset(gguf_, api.gguf_find_tensor(gguf_, tensor->name));
}

}  // namespace onpolicy::training
