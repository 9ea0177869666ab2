// Between the engine and a Vulkan device in software, loaded with LD_PRELOAD:
// - Once the file named by LOST_DEVICE is there, every wait and every submission reports that the device was lost.
// - Buffers are never destroyed. Mesa 22.3 keeps those of the last dispatch bound without holding them, and crashes at the next.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void (*Function)(void);
typedef Function (*Lookup)(void *, const char *);

static const int kDeviceLost = -4;  // VK_ERROR_DEVICE_LOST

static int (*real_submit)(void *, uint32_t, const void *, void *);
static int (*real_wait)(void *, uint32_t, const void *, uint32_t, uint64_t);
static int (*real_status)(void *, void *);
static int (*real_idle)(void *);

static int IsLost(void) {
  const char *file = getenv("LOST_DEVICE");
  return file && access(file, F_OK) == 0;
}

static int Submit(void *queue, uint32_t count, const void *submits, void *fence) {
  return IsLost() ? kDeviceLost : real_submit(queue, count, submits, fence);
}
static int Wait(void *device, uint32_t count, const void *fences, uint32_t all, uint64_t timeout) {
  return IsLost() ? kDeviceLost : real_wait(device, count, fences, all, timeout);
}
static int Status(void *device, void *fence) { return IsLost() ? kDeviceLost : real_status(device, fence); }
static int Idle(void *device) { return IsLost() ? kDeviceLost : real_idle(device); }
static void Keep(void *device, void *buffer, const void *allocator) { (void)device, (void)buffer, (void)allocator; }

static Function Replace(const char *name, Function found, const char *wanted, void *real, Function ours) {
  if (strcmp(name, wanted) != 0) return NULL;
  if (real) memcpy(real, &found, sizeof found);
  return ours;
}

static Function Wrapped(const char *name, Function found) {
  Function ours = NULL;
  if (!found) return NULL;
  if (!ours) ours = Replace(name, found, "vkQueueSubmit", &real_submit, (Function)Submit);
  if (!ours) ours = Replace(name, found, "vkWaitForFences", &real_wait, (Function)Wait);
  if (!ours) ours = Replace(name, found, "vkGetFenceStatus", &real_status, (Function)Status);
  if (!ours) ours = Replace(name, found, "vkDeviceWaitIdle", &real_idle, (Function)Idle);
  if (!ours) ours = Replace(name, found, "vkDestroyBuffer", NULL, (Function)Keep);
  return ours ? ours : found;
}

static Lookup Real(const char *name) {
  return (Lookup)dlsym(dlopen("libvulkan.so.1", RTLD_NOW), name);
}

Function vkGetDeviceProcAddr(void *device, const char *name) {
  static Lookup real;
  if (!real) real = Real("vkGetDeviceProcAddr");
  return Wrapped(name, real(device, name));
}

Function vkGetInstanceProcAddr(void *instance, const char *name) {
  static Lookup real;
  if (!real) real = Real("vkGetInstanceProcAddr");
  if (strcmp(name, "vkGetDeviceProcAddr") == 0) return (Function)vkGetDeviceProcAddr;
  return Wrapped(name, real(instance, name));
}
