{
  "target_defaults": {
    "include_dirs": [
      ".",
      "include",
      "<!(node -p \"require('node-addon-api').include_dir\")"
    ],
    "defines": ["<!@(node flags.cjs defines)"],
    "cflags!": ["-fno-exceptions", "-fno-rtti"],
    "cflags_cc!": ["-fno-exceptions", "-fno-rtti", "-std=gnu++17", "-std=gnu++20"],
    "cflags_cc": ["<!@(node flags.cjs cflags)"],
    "ldflags": ["<!@(node flags.cjs ldflags)"],
    "conditions": [
      ["OS=='linux'", { "libraries": ["-ldl", "-lpthread"] }],
      ["OS=='mac'", {
        "xcode_settings": {
          "GCC_ENABLE_CPP_EXCEPTIONS": "YES",
          "CLANG_CXX_LANGUAGE_STANDARD": "c++20",
          "GCC_OPTIMIZATION_LEVEL": "3",
          "MACOSX_DEPLOYMENT_TARGET": "12.0"
        }
      }],
      ["OS=='win'", {
        "msvs_settings": { "VCCLCompilerTool": { "ExceptionHandling": 1, "AdditionalOptions": ["/std:c++20", "/O2"] } }
      }]
    ]
  },
  "targets": [
    { "target_name": "base_part", "type": "static_library", "sources": ["<!@(node sources.cjs base)"] },
    { "target_name": "engine_part", "type": "static_library", "sources": ["<!@(node sources.cjs engine)"] },
    { "target_name": "trainer_part", "type": "static_library", "sources": ["<!@(node sources.cjs trainer)"] },
    {
      "target_name": "kernel_part",
      "type": "static_library",
      "sources": ["<!@(node sources.cjs kernel)"],
      "cflags_cc!": ["<!@(node flags.cjs kernels_without)"]
    },
    { "target_name": "grammar_part", "type": "static_library", "sources": ["<!@(node sources.cjs grammar)"] },
    { "target_name": "answers", "sources": ["addon/answers-entry.cc"], "dependencies": ["engine_part", "base_part"] },
    {
      "target_name": "onpolicy",
      "sources": ["addon/onpolicy-entry.cc"],
      "dependencies": ["trainer_part", "engine_part", "kernel_part", "base_part"]
    },
    { "target_name": "grammar", "sources": ["addon/grammar-entry.cc"], "dependencies": ["grammar_part", "base_part"] },
    {
      "target_name": "testing",
      "sources": ["<!@(node sources.cjs testing)"],
      "dependencies": ["trainer_part", "engine_part", "kernel_part", "grammar_part", "base_part"]
    }
  ]
}
