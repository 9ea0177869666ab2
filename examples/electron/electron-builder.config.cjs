/** The app -> installers, by `npx electron-builder`. */
module.exports = {
  appId: 'com.example.onpolicy',
  productName: 'onpolicy-example',
  npmRebuild: false, // the addon is the same for Node and every Electron
  // Engines and addons of other platforms are left out.
  files: [
    '**/*',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: electron-builder fills them in
    '!node_modules/@node-llama-cpp/!(${os}-${arch}*)/**',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: electron-builder fills them in
    '!node_modules/onpolicy/prebuilds/!(${platform}-${arch})/**',
    '!node_modules/onpolicy/{docs,native/!(build),scripts}{,/**}',
  ],
  // Files that the operating system opens cannot be in an archive.
  asarUnpack: ['node_modules/onpolicy/{prebuilds,native/build,models}/**', 'node_modules/@node-llama-cpp/**'],
  mac: {
    hardenedRuntime: true,
    entitlements: 'entitlements.plist',
    entitlementsInherit: 'entitlements.plist',
  },
};
