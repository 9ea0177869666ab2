/** The app -> installers, by `npx electron-forge make`. */
const fs = require('node:fs');
const path = require('node:path');

const SYSTEMS = { linux: 'linux', win32: 'win', darwin: 'mac' };

module.exports = {
  packagerConfig: {
    // Files that the operating system opens cannot be in an archive.
    asar: { unpack: '**/node_modules/{onpolicy/{prebuilds,native/build,models},@node-llama-cpp}/**' },
    osxSign: { optionsForFile: () => ({ entitlements: 'entitlements.plist' }) },
  },
  rebuildConfig: { onlyModules: [] }, // the addon is the same for Node and every Electron
  makers: [{ name: '@electron-forge/maker-zip' }],
  hooks: {
    /** Engines and addons of other platforms are left out. */
    packageAfterPrune: async (_, folder, __, platform, arch) => {
      const modules = path.join(folder, 'node_modules');
      keepOnly(path.join(modules, '@node-llama-cpp'), (name) =>
        name.startsWith(`${SYSTEMS[platform]}-${arch}`),
      );
      keepOnly(path.join(modules, 'onpolicy', 'prebuilds'), (name) => name === `${platform}-${arch}`);
      keepOnly(path.join(modules, 'onpolicy', 'native'), (name) => name === 'build');
      for (const name of ['docs', 'scripts'])
        fs.rmSync(path.join(modules, 'onpolicy', name), { recursive: true, force: true });
    },
  },
};

function keepOnly(folder, isKept) {
  const names = fs.existsSync(folder) ? fs.readdirSync(folder) : [];
  for (const name of names) if (!isKept(name)) fs.rmSync(path.join(folder, name), { recursive: true });
}
