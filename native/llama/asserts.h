// A library of the engine -> its `assert`s do nothing.
#pragma once

namespace onpolicy {

// The engine's libraries for Windows are built with asserts, those of other systems without: there a NaN in a computation would end
// the process. `place`: any address in the library, as its handle is. Elsewhere than on Windows nothing is done.
void IgnoreAsserts(const void* place);

}  // namespace onpolicy
