{
  "targets": [
    {
      "target_name": "decoder",
      "sources": ["<!@(node sources.cjs)"],
      "include_dirs": [
        "../..", "source/include", "source/ggml/include", "source/tools/mtmd", "source/vendor"
      ],
      # A failed check of mtmd calls `ggml_abort`: here it throws.
      "defines": ["NDEBUG", "ggml_abort=onpolicy_media_abort"],
      "cflags!": ["-fno-exceptions", "-fno-rtti"],
      "cflags_cc!": ["-fno-exceptions", "-fno-rtti", "-std=gnu++17", "-std=gnu++20", "-O3"],
      "cflags_cc": ["-std=c++20", "-O2", "-w", "-fvisibility=hidden"],
      "conditions": [
        # The names of ggml and llama are those of the libraries that the addon has opened.
        ["OS=='linux'", { "libraries": ["-lpthread"] }],
        ["OS=='mac'", {
          "xcode_settings": {
            "GCC_ENABLE_CPP_EXCEPTIONS": "YES",
            "GCC_ENABLE_CPP_RTTI": "YES",
            "CLANG_CXX_LANGUAGE_STANDARD": "c++20",
            "GCC_OPTIMIZATION_LEVEL": "2",
            "GCC_SYMBOLS_PRIVATE_EXTERN": "YES",
            "MACOSX_DEPLOYMENT_TARGET": "12.0",
            "OTHER_LDFLAGS": ["-undefined", "dynamic_lookup"]
          }
        }]
      ]
    }
  ]
}
