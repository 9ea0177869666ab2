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
    { "target_name": "onpolicy", "sources": ["<!@(node sources.cjs onpolicy)"] },
    { "target_name": "grammar", "sources": ["<!@(node sources.cjs grammar)"] }
  ]
}
