{
  "targets": [
    {
      "target_name": "onpolicy",
      "sources": ["<!@(node sources.cjs)"],
      "include_dirs": [
        ".",
        "include",
        "<!(node -p \"require('node-addon-api').include_dir\")"
      ],
      "defines": [
        "NAPI_VERSION=9",
        "NAPI_CPP_EXCEPTIONS",
        "NODE_API_NO_EXTERNAL_BUFFERS_ALLOWED",
        "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS",
        "NODE_ADDON_API_DISABLE_DEPRECATED"
      ],
      "cflags!": ["-fno-exceptions", "-fno-rtti"],
      "cflags_cc!": ["-fno-exceptions", "-fno-rtti", "-std=gnu++17", "-std=gnu++20"],
      # GCC 12 warns of overlapping copies in std::string's own operator+ where there are none (its bug 105651).
      "cflags_cc": [
        "-std=c++20", "-O3", "-Wall", "-Wextra", "-Wno-restrict", "-Wno-unknown-warning-option", "-fvisibility=hidden",
        "-ffp-contract=off"
      ],
      "libraries": [],
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
    }
  ]
}
