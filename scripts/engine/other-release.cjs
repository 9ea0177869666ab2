// Loaded with `node --require`: modules find a platform package of the engine in ONPOLICY_ENGINE_PACKAGES, a folder, if it is there.
const fs = require('node:fs');
const Module = require('node:module');
const path = require('node:path');

const folder = process.env.ONPOLICY_ENGINE_PACKAGES;
const resolve = Module._resolveFilename;
Module._resolveFilename = (request, ...more) => {
  const [, name] = /^@node-llama-cpp\/([a-z0-9-]+)$/.exec(request) ?? [];
  const other = name && path.join(folder, name);
  return resolve(other && fs.existsSync(other) ? other : request, ...more);
};
