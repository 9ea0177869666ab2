// Prints the definitions, the compiler's flags or the linker's of the addon, for binding.gyp and scripts/prebuild.mjs: `node flags.cjs defines`.
// ONPOLICY_SANITIZERS=address,undefined : for the build of scripts/check/check-sanitize.mjs. The large kernels, which take half of the compiler's
// time, are checked only if ONPOLICY_SANITIZED_KERNELS is set.
const sanitizers = process.env.ONPOLICY_SANITIZERS;
const sanitize = sanitizers ? [`-fsanitize=${sanitizers}`] : [];
const checks = sanitizers ? [...sanitize, '-g1', '-fno-omit-frame-pointer', '-fno-sanitize-recover=all'] : [];
const flags = {
  defines: [
    'NAPI_VERSION=9',
    'NAPI_CPP_EXCEPTIONS',
    'NODE_ADDON_API_CPP_EXCEPTIONS_ALL', // every function of the addons turns what it throws into an error of JavaScript
    'NODE_API_NO_EXTERNAL_BUFFERS_ALLOWED',
    'NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS',
    'NODE_ADDON_API_DISABLE_DEPRECATED',
    ...(sanitizers ? ['ONPOLICY_SANITIZED'] : []),
  ],
  // GCC 12 warns of overlapping copies in std::string's own operator+ where there are none (its bug 105651).
  cflags: [
    '-std=c++20',
    sanitizers ? '-O1' : '-O3',
    '-Wall',
    '-Wextra',
    '-Wno-restrict',
    '-Wno-unknown-warning-option',
    '-fvisibility=hidden',
    '-ffp-contract=off',
    ...checks,
  ],
  kernels_without: process.env.ONPOLICY_SANITIZED_KERNELS ? [] : ['-O1', ...checks],
  ldflags: sanitize,
};
for (const flag of flags[process.argv[2]]) process.stdout.write(`${flag}\n`);
