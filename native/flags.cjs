// Prints the definitions or the compiler flags of the addon, for binding.gyp and scripts/prebuild.mjs: `node flags.cjs defines`.
const flags = {
  defines: [
    'NAPI_VERSION=9',
    'NAPI_CPP_EXCEPTIONS',
    'NODE_ADDON_API_CPP_EXCEPTIONS_ALL', // every function of the addons turns what it throws into an error of JavaScript
    'NODE_API_NO_EXTERNAL_BUFFERS_ALLOWED',
    'NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS',
    'NODE_ADDON_API_DISABLE_DEPRECATED',
  ],
  // GCC 12 warns of overlapping copies in std::string's own operator+ where there are none (its bug 105651).
  cflags: [
    '-std=c++20',
    '-O3',
    '-Wall',
    '-Wextra',
    '-Wno-restrict',
    '-Wno-unknown-warning-option',
    '-fvisibility=hidden',
    '-ffp-contract=off',
  ],
};
for (const flag of flags[process.argv[2]]) process.stdout.write(`${flag}\n`);
