/** Paths into archives, as Electron gives them. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { onDisk } from '../../../src/engine/native/on-disk.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-asar-'));
const unpacked = path.join(folder, 'app.asar.unpacked', 'models');
fs.mkdirSync(unpacked, { recursive: true });
fs.writeFileSync(path.join(unpacked, 'a.gguf'), '');
afterAll(() => fs.rmSync(folder, { recursive: true }));

describe('onDisk', () => {
  it.each([
    ['an unpacked file', 'app.asar/models/a.gguf', 'app.asar.unpacked/models/a.gguf'],
    ['a file that was left in the archive', 'app.asar/models/b.gguf', 'app.asar/models/b.gguf'],
    ['a path that is unpacked already', 'app.asar.unpacked/models/a.gguf', 'app.asar.unpacked/models/a.gguf'],
    ['a file that ends like an archive', 'models/a.asar', 'models/a.asar'],
    ['any other path', 'models/a.gguf', 'models/a.gguf'],
  ])('%s', (_, given, expected) => {
    expect(onDisk(path.join(folder, given))).toBe(path.join(folder, expected));
  });
});
