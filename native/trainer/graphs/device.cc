#include "trainer/graphs/device.h"

#include <algorithm>

#include "trainer/graphs/graph.h"

namespace onpolicy::training {
namespace {

constexpr size_t kAlignment = 256;  // at least the alignment of every backend
constexpr size_t kLeastTensors = 2048;

}  // namespace

Arena::~Arena() {
  if (buffer_) Api().ggml_backend_buffer_free(buffer_);
}

size_t Arena::Reserve(size_t bytes) {
  const size_t offset = bytes_;
  bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return offset;
}

void Arena::Allocate() {
  if (bytes_ <= allocated_bytes_) return;
  if (buffer_) Api().ggml_backend_buffer_free(buffer_);
  allocated_bytes_ = 0;
  // Backends may align the base to less than a slot's alignment, so more bytes are allocated.
  buffer_ = Api().ggml_backend_buft_alloc_buffer(device_->memory(), bytes_ + kAlignment);
  if (!buffer_)
    throw Failure("OUT_OF_MEMORY", "cannot allocate " + std::to_string(bytes_ >> 20) + " MiB on " +
                                             device_->name() + " for training");
  allocated_bytes_ = bytes_;
}

void* Arena::AddressOf(size_t offset) const {
  const auto base = reinterpret_cast<uintptr_t>(Api().ggml_backend_buffer_get_base(buffer_));
  return reinterpret_cast<void*>((base + kAlignment - 1) / kAlignment * kAlignment + offset);
}

std::unique_ptr<Device> Device::Open(const std::string& device, int threads) {
  const Library& api = Api();
  auto opened = std::unique_ptr<Device>(new Device);
  opened->threads_ = threads;
  opened->pool_ = std::make_unique<ThreadPool>(threads);
  ggml_backend_dev_t cpu = api.ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  ggml_backend_dev_t wanted = device.empty() ? cpu : nullptr;
  for (size_t i = 0; i < api.ggml_backend_dev_count() && !wanted; ++i)
    if (device == api.ggml_backend_dev_name(api.ggml_backend_dev_get(i))) wanted = api.ggml_backend_dev_get(i);
  if (!wanted) throw Failure("INVALID_REQUEST", "no device is named " + device);
  for (ggml_backend_dev_t one : {wanted, cpu}) {
    if (!opened->backends_.empty() && one == wanted) continue;
    ggml_backend_t backend = api.ggml_backend_dev_init(one, nullptr);
    if (!backend)
      throw Failure("BACKEND_FAILED", std::string("cannot start ") + api.ggml_backend_dev_name(one));
    opened->backends_.push_back(backend);
  }
  opened->share_ = std::make_unique<ThreadBudget::User>(threads);
  if (api.ggml_backend_cpu_set_threadpool)
    api.ggml_backend_cpu_set_threadpool(opened->backends_.back(), opened->pool_->get());
  opened->name_ = api.ggml_backend_dev_name(wanted);
  opened->memory_ = api.ggml_backend_get_default_buffer_type(opened->backends_.front());
  return opened;
}

Device::~Device() {
  if (is_lost_) {  // freeing waits for the device, which would end the process
    pool_.release();
    return;
  }
  if (scheduler_) Api().ggml_backend_sched_free(scheduler_);
  for (ggml_backend_t backend : backends_) Api().ggml_backend_free(backend);
}

void Device::MakeRoom(size_t tensors) {
  // Copies of tensors between the device and the CPU also need room.
  const size_t needed = std::max(kLeastTensors, tensors + tensors / 2);
  if (needed <= room_) return;
  if (scheduler_) Api().ggml_backend_sched_free(scheduler_);
  scheduler_ = Api().ggml_backend_sched_new(backends_.data(), nullptr, static_cast<int>(backends_.size()), needed, false, false);
  room_ = needed;
}

void Device::Run(Graph& graph) {
  if (aborted_) throw Failure("ABORTED", "training was aborted");
  const Library& api = Api();
  ggml_cgraph* nodes = graph.get();
  MakeRoom(graph.size());
  api.ggml_backend_sched_reset(scheduler_);
  if (!api.ggml_backend_sched_alloc_graph(scheduler_, nodes))
    throw Failure("OUT_OF_MEMORY", "a layer's graph does not fit into the memory of " + name_);
  const ThreadBudget::Share share(*share_, uses_all_ ? threads_ : 1);
  api.ggml_backend_set_n_threads(backends_.back(), share.threads());
  std::string reason;
  bool is_done = false;
  try {
    is_done = api.ggml_backend_sched_graph_compute(scheduler_, nodes) == GGML_STATUS_SUCCESS;
  } catch (const std::exception& error) {
    is_lost_ = !is_cpu();
    reason = std::string(": ") + error.what();
  }
  graph.RethrowFailure();
  if (!is_done) throw Failure("BACKEND_FAILED", name_ + " failed to compute a training graph" + reason);
}

size_t Device::MeasureScratch(Graph& graph) const {
  const Library& api = Api();
  const ggml_gallocr_t measure = api.ggml_gallocr_new(memory_);
  size_t bytes = 0;
  api.ggml_gallocr_reserve_n_size(measure, graph.get(), nullptr, nullptr, &bytes);
  api.ggml_gallocr_free(measure);
  return bytes;
}

size_t Device::scratch_bytes() const {
  size_t bytes = 0;
  if (!scheduler_) return bytes;
  for (ggml_backend_t backend : backends_)
    bytes += Api().ggml_backend_sched_get_buffer_size(scheduler_, backend);
  return bytes;
}

}  // namespace onpolicy::training
