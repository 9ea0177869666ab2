// Prints every C++ source of the addon: a new file needs no entry in binding.gyp.
const fs = require('node:fs');
const path = require('node:path');

const isFolder = (entry) => entry.isDirectory() && !['build', 'include'].includes(entry.name);
const folders = fs.readdirSync(__dirname, { withFileTypes: true }).filter(isFolder);
for (const { name } of folders)
  for (const file of fs.readdirSync(path.join(__dirname, name)).sort())
    if (file.endsWith('.cc')) process.stdout.write(`${name}/${file}\n`);
