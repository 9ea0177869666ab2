// Prints every C++ source of the addon: a new file needs no entry in binding.gyp.
const fs = require('node:fs');
const path = require('node:path');

const folders = ['napi', 'llama', 'rows', 'sampler', 'grammar', 'trainer'].filter((name) =>
  fs.existsSync(path.join(__dirname, name)),
);
for (const folder of folders)
  for (const file of fs.readdirSync(path.join(__dirname, folder)).sort())
    if (file.endsWith('.cc')) process.stdout.write(`${folder}/${file}\n`);
