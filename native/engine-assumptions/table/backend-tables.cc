#include "engine-assumptions/table/backend-tables.h"

#ifdef __linux__
#include <unistd.h>
#endif

namespace onpolicy {

#ifdef __linux__
// Lets the system write the bytes that are already there: it refuses where a write of ours would end the process.
bool IsWritable(const void* place, size_t bytes) {
  int ends[2];
  if (pipe(ends) != 0) return true;
  const auto size = static_cast<ssize_t>(bytes);
  const bool is_writable = write(ends[1], place, bytes) == size && read(ends[0], const_cast<void*>(place), bytes) == size;
  close(ends[0]);
  close(ends[1]);
  return is_writable;
}
#else
bool IsWritable(const void*, size_t) { return true; }
#endif

}  // namespace onpolicy
