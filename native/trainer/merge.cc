#include "trainer/merge.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <fstream>
#include <memory>

#include "base/file-path.h"
#include "base/threads.h"
#include "engine-assumptions/library.h"
#include "engine-assumptions/table/assumptions.h"
#include "trainer/graphs/graph.h"
#include "trainer/graphs/share.h"
#include "trainer/weights/file-map.h"

namespace onpolicy::training {
namespace {

constexpr int64_t kRowsAtOnce = 64;      // of one thread
constexpr size_t kBytesAtOnce = 64 << 20;  // of one write, about

using Header = std::unique_ptr<gguf_context, Freed<&Library::gguf_free>>;

// A GGUF file with its tensors' bytes.
class TensorFile {
 public:
  explicit TensorFile(const std::string& path)
      : bytes_(FileMap::Open(path)) {
    ggml_context* tensors = nullptr;
    gguf_.reset(Api().gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = &tensors}));
    tensors_.reset(tensors);
    if (!gguf_) throw Failure("MODEL_INVALID", path + " is not a readable GGUF file");
    for (int64_t i = 0; i < count(); ++i) {
      const size_t offset = OffsetOf(i), size = Api().gguf_get_tensor_size(gguf(), i);
      if (offset > bytes_->size() || size > bytes_->size() - offset)
        throw Failure("MODEL_INVALID", path + " is truncated");
    }
  }

  gguf_context* gguf() const { return gguf_.get(); }
  int64_t count() const { return Api().gguf_get_n_tensors(gguf()); }
  const char* DataOf(int64_t i) const { return bytes_->data() + OffsetOf(i); }
  ggml_tensor* Named(const std::string& name) const { return TensorNamed(tensors_.get(), name); }
  // Returns the numbers of a tensor of any type.
  std::vector<float> Floats(const ggml_tensor* tensor) const {
    std::vector<float> values(static_cast<size_t>(Api().ggml_nelements(tensor)));
    ReadFloats(tensor->type, DataOf(Api().gguf_find_tensor(gguf(), tensor->name)), values.size(), values.data());
    return values;
  }

  static void ReadFloats(ggml_type type, const char* from, size_t count, float* to) {
    if (type == GGML_TYPE_F32)
      std::copy_n(from, count * sizeof(float), reinterpret_cast<char*>(to));
    else
      Api().ggml_get_type_traits(type)->to_float(from, to, static_cast<int64_t>(count));
  }

 private:
  size_t OffsetOf(int64_t i) const { return Api().gguf_get_data_offset(gguf()) + Api().gguf_get_tensor_offset(gguf(), i); }

  std::unique_ptr<FileMap> bytes_;
  Header gguf_;
  std::unique_ptr<ggml_context, Freed<&Library::ggml_free>> tensors_;
};

// The addition of one adapter to a weight: scale b a, for each of its experts.
struct Addition {
  std::vector<float> a;  // (experts, rank, in)
  std::vector<float> b;  // (experts, out, rank)
  int64_t rank = 0;
  float scale = 0;
};

void ReadAddition(const TensorFile& adapter, const std::string& weight, float scale, std::vector<Addition>* out) {
  const Library& api = Api();
  const ggml_tensor* a = adapter.Named(weight + ".lora_a");
  const ggml_tensor* b = adapter.Named(weight + ".lora_b");
  if (!a || !b) return;
  if (weight == "token_embd.weight")
    throw Failure("UNSUPPORTED", "an adapter of token embeddings is not merged");
  for (const ggml_tensor* factor : {a, b})
    if (factor->type != GGML_TYPE_F32 && !api.ggml_get_type_traits(factor->type)->to_float)
      throw Failure("UNSUPPORTED", std::string(factor->name) + " has a type that cannot be read");
  const int64_t key = api.gguf_find_key(adapter.gguf(), "adapter.lora.alpha");
  const float alpha = key >= 0 ? api.gguf_get_val_f32(adapter.gguf(), key) : 0;
  Addition addition{.a = adapter.Floats(a), .b = adapter.Floats(b), .rank = b->ne[0]};
  addition.scale = alpha == 0 ? scale : scale * alpha / static_cast<float>(addition.rank);
  out->push_back(std::move(addition));
}

// Adds to row `row` of a weight of `in` numbers a row and `out` rows an expert. `gain` is the factor of the weight's output, which does
// not apply to the adapter's part.
void Add(const Addition& addition, int64_t in, int64_t out, int64_t row, float gain, float* values) {
  const float* a = addition.a.data() + row / out * addition.rank * in;
  for (int64_t r = 0; r < addition.rank; ++r, a += in) {
    const float factor = addition.scale / gain * addition.b[static_cast<size_t>(row * addition.rank + r)];
    for (int64_t i = 0; i < in; ++i) values[i] += factor * a[i];
  }
}

// Settings of writing one tensor.
struct Writing {
  ggml_type type;
  std::vector<Addition> additions;
  int64_t paired_heads = 0;
  float offset = 0;
  std::vector<float> gains = {};  // factors of the output of each expert's matrix, or one for all; empty means 1

  float GainOf(int64_t expert) const { return gains.empty() ? 1 : gains[gains.size() == 1 ? 0 : static_cast<size_t>(expert)]; }

  bool KeepsBytes(const ggml_tensor* tensor) const {
    return type == tensor->type && additions.empty() && paired_heads == 0 && offset == 0;
  }
  // Returns the row of the file that is written as row `row` of `out`.
  int64_t SourceOf(int64_t row, int64_t out) const {
    if (paired_heads == 0) return row;
    const int64_t size = out / paired_heads, half = size / 2, in_head = row % size;
    return row - in_head + (in_head < half ? 2 * in_head : 2 * (in_head - half) + 1);
  }
};

// Writes one tensor, some rows at a time.
void WriteTensor(const ggml_tensor* tensor, const char* from, const Writing& writing, int threads,
                   std::ofstream& file) {
  const ggml_type type = writing.type;
  const Library& api = Api();
  const int64_t in = tensor->ne[0], out = tensor->ne[1], rows = api.ggml_nelements(tensor) / in;
  const size_t from_bytes = api.ggml_row_size(tensor->type, in), to_bytes = api.ggml_row_size(type, in);
  if (writing.KeepsBytes(tensor)) {
    file.write(from, static_cast<std::streamsize>(static_cast<size_t>(rows) * from_bytes));
    return;
  }
  const int64_t most = std::max<int64_t>(kRowsAtOnce, static_cast<int64_t>(kBytesAtOnce / to_bytes) / kRowsAtOnce * kRowsAtOnce);
  std::vector<char> written(static_cast<size_t>(std::min(rows, most)) * to_bytes);
  for (int64_t start = 0; start < rows; start += most) {
    const int64_t here = std::min(most, rows - start);
    const auto write = [&](int64_t piece) {
      const int64_t first = piece * kRowsAtOnce, count = std::min(kRowsAtOnce, here - first);
      std::vector<float> values(static_cast<size_t>(count * in));
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = writing.SourceOf(start + first + i, out);
        float* to = values.data() + i * in;
        TensorFile::ReadFloats(tensor->type, from + static_cast<size_t>(row) * from_bytes, static_cast<size_t>(in), to);
        for (const Addition& addition : writing.additions) Add(addition, in, out, row, writing.GainOf(row / out), to);
        if (writing.offset != 0)
          for (int64_t k = 0; k < in; ++k) to[k] += writing.offset;
      }
      char* to = written.data() + static_cast<size_t>(first) * to_bytes;
      if (type == GGML_TYPE_F32)
        std::copy_n(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float), to);
      else
        api.ggml_quantize_chunk(type, values.data(), to, 0, count, in, nullptr);
    };
    std::atomic<int64_t> next{0};
    OnThreads(threads, [&](int) { Share(next, (here + kRowsAtOnce - 1) / kRowsAtOnce, write); });
    file.write(written.data(), static_cast<std::streamsize>(static_cast<size_t>(here) * to_bytes));
  }
}

ggml_type TypeOf(const ggml_tensor* tensor, MergedTypes types) {
  if (types == MergedTypes::kSame || tensor->type == GGML_TYPE_F32) return tensor->type;
  return types == MergedTypes::kWidest ? GGML_TYPE_F32 : GGML_TYPE_F16;
}

// Throws if a write has failed.
void CheckWritten(const std::ofstream& file, const std::string& to) {
  if (!file.good()) throw Failure("STORE_FAILED", "cannot write " + to + ": is the disk full?");
}

void Close(std::ofstream& file, const std::string& to) {
  file.close();
  CheckWritten(file, to);
}

// Writes the merged file's header, which is that of the model with other types and more entries, and returns it.
Header WriteHeader(const TensorFile& model, MergedTypes types, const HeaderEntries& entries, const std::string& to) {
  const Library& api = Api();
  if (const int64_t split = api.gguf_find_key(model.gguf(), "split.count"); split >= 0)
    if (api.gguf_get_val_u16(model.gguf(), split) > 1)
      throw Failure("UNSUPPORTED", "a model in several files is not exported; llama.cpp's gguf-split makes one of them");
  Header header(api.gguf_init_empty());
  api.gguf_set_kv(header.get(), model.gguf());
  for (int64_t i = 0; i < model.count(); ++i) {
    const ggml_tensor* tensor = model.Named(api.gguf_get_tensor_name(model.gguf(), i));
    api.gguf_add_tensor(header.get(), tensor);
    api.gguf_set_tensor_type(header.get(), tensor->name, TypeOf(tensor, types));
  }
  if (types != MergedTypes::kSame)
    api.gguf_set_val_u32(header.get(), "general.file_type",
                         types == MergedTypes::kWidest ? LLAMA_FTYPE_ALL_F32 : LLAMA_FTYPE_MOSTLY_F16);
  for (size_t i = 0; i < entries.texts.size(); ++i)
    api.gguf_set_val_str(header.get(), entries.text_keys[i].c_str(), entries.texts[i].c_str());
  for (size_t i = 0; i < entries.numbers.size(); ++i)
    api.gguf_set_val_f32(header.get(), entries.number_keys[i].c_str(), entries.numbers[i]);
  std::vector<char> bytes(api.gguf_get_meta_size(header.get()));
  api.gguf_get_meta_data(header.get(), bytes.data());
  std::ofstream file(FilePath(to), std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  Close(file, to);
  return header;
}

// The opened files of the model and its adapters.
struct Inputs {
  TensorFile model;
  std::deque<TensorFile> adapters;
  std::vector<float> scales;

  Inputs(const std::string& path, const std::vector<MergedAdapter>& given) : model(path) {
    for (const MergedAdapter& adapter : given) {
      adapters.emplace_back(adapter.file);
      scales.push_back(adapter.scale);
    }
  }

  // Returns the factors by which the model multiplies a weight's output. Empty if there are none.
  std::vector<float> GainsOf(const std::string& weight) const {
    const std::string end = ".weight";
    if (!weight.ends_with(end)) return {};
    const ggml_tensor* gains = model.Named(weight.substr(0, weight.size() - end.size()) + ".scale");
    std::vector<float> values = gains ? model.Floats(gains) : std::vector<float>{};
    if (std::count(values.begin(), values.end(), 0.0f) > 0)
      throw Failure("UNSUPPORTED", weight + " is scaled by 0, so no adapter is merged into it");
    return values;
  }

  // Writes a tensor with the additions of the adapters.
  void Write(const ggml_tensor* tensor, Writing writing, int threads, std::ofstream& file, const std::string& to) const {
    for (size_t i = 0; i < adapters.size(); ++i)
      ReadAddition(adapters[i], tensor->name, scales[i], &writing.additions);
    if (!writing.additions.empty()) writing.gains = GainsOf(tensor->name);
    if (!writing.additions.empty() && Api().ggml_quantize_requires_imatrix(writing.type))
      throw Failure("UNSUPPORTED", std::string(tensor->name) + " is " + Api().ggml_type_name(writing.type) +
                                             ", which cannot be written without a calibration; name another type");
    const char* from = model.DataOf(Api().gguf_find_tensor(model.gguf(), tensor->name));
    WriteTensor(tensor, from, writing, threads, file);
    CheckWritten(file, to);
  }
};

}  // namespace

void MergeModel(const std::string& model_path, const std::vector<MergedAdapter>& adapters, MergedTypes types,
                const HeaderEntries& entries, int threads, const std::string& to) {
  Require(Assumed::kTrainingFunctions);
  const Library& api = Api();
  const Inputs inputs(model_path, adapters);
  const TensorFile& model = inputs.model;
  const Header header = WriteHeader(model, types, entries, to);
  const size_t start = api.gguf_get_meta_size(header.get());
  std::ofstream file(FilePath(to), std::ios::binary | std::ios::app);
  file.seekp(0, std::ios::end);
  for (int64_t i = 0; i < model.count(); ++i) {
    const ggml_tensor* tensor = model.Named(api.gguf_get_tensor_name(model.gguf(), i));
    const std::string padding(start + api.gguf_get_tensor_offset(header.get(), i) - static_cast<size_t>(file.tellp()), '\0');
    file.write(padding.data(), static_cast<std::streamsize>(padding.size()));
    const Writing writing{.type = TypeOf(tensor, types), .additions = {}};
    inputs.Write(tensor, writing, threads, file, to);
  }
  Close(file, to);
}

void AppendTensors(const std::string& model_path, const std::vector<MergedAdapter>& adapters,
                     const std::vector<PlainTensor>& tensors, const std::string& type, int threads,
                     const std::string& to) {
  const Inputs inputs(model_path, adapters);
  std::ofstream file(FilePath(to), std::ios::binary | std::ios::app);
  const ggml_type plain = type == "bf16" ? GGML_TYPE_BF16 : type == "f16" ? GGML_TYPE_F16 : GGML_TYPE_F32;
  for (const PlainTensor& wanted : tensors) {
    const ggml_tensor* tensor = inputs.model.Named(wanted.name);
    if (!tensor) throw Failure("MODEL_INVALID", "the tensor " + wanted.name + " is missing");
    const Writing writing{
        .type = plain, .additions = {}, .paired_heads = wanted.paired_heads, .offset = wanted.offset};
    inputs.Write(tensor, writing, threads, file, to);
  }
  Close(file, to);
}

void QuantizeModel(const std::string& model, int file_type, int threads, const std::string& to) {
  const Library& api = Api();
  llama_model_quantize_params params = api.llama_model_quantize_default_params();
  params.nthread = threads;
  params.ftype = static_cast<llama_ftype>(file_type);
  if (api.llama_model_quantize(model.c_str(), to.c_str(), &params) == 0) return;
  // The engine does not report the reason, so test whether the disk is full.
  std::ofstream file(FilePath(to), std::ios::binary | std::ios::app);
  const std::string more(1 << 16, '\0');
  file.write(more.data(), static_cast<std::streamsize>(more.size()));
  Close(file, to);
  throw Failure("BACKEND_FAILED", "the engine cannot write the model in this type; its log says why");
}

}  // namespace onpolicy::training
