// The files of a folder and a seed -> the folder damaged: values of its JSON, bytes and headers of the others, missing files.
import fs from 'node:fs';
import path from 'node:path';
import { randomFrom } from './random.mjs';

const VALUES = [null, true, false, 0, -1, 1, 2, 1.5, 2 ** 31, 2 ** 53, 1e308, '', 'x', '__proto__', '\u0000', 'a'.repeat(1000), [], [null], [0], ['x'], [[]],
  {}, { id: 0 }, { content: 'x' }, { type: 'x' }]; // biome-ignore format: a table

/** Every place in a value: its owner and key. */
function places(value, found = []) {
  if (typeof value === 'object' && value !== null)
    for (const key of Object.keys(value)) {
      found.push([value, key]);
      places(value[key], found);
    }
  return found;
}

const FAVORITES =
  /added_tokens|vocab|merges|pattern|r$|alpha|target|eos|bos|decoder|normalizer|pre_tokenizer|dtype|shape|offsets/;

/** Damages a value. Gives what was done, and the value. */
function editJson(value, random) {
  const all = places(value);
  const small = all.filter(([, key]) => FAVORITES.test(key));
  const [owner, key] = random.pick(small.length > 0 && random.chance(0.5) ? small : all) ?? [{}, 'x'];
  const kind = random.pick(['value', 'value', 'value', 'missing', 'inside', 'added', 'root']);
  if (kind === 'root') return [kind, random.pick(VALUES)];
  if (kind === 'missing') delete owner[key];
  else if (kind === 'inside')
    owner[key] = random.pick([[owner[key]], { [key]: owner[key] }, [null, owner[key]]]);
  else if (kind === 'added') owner[random.pick(['x', '0', 'type', '__proto__', 'id'])] = random.pick(VALUES);
  else owner[key] = random.pick(VALUES);
  return [`${kind} at ${key}`, value];
}

function editBytes(bytes, random) {
  const kind = random.pick(['cut', 'flip', 'flips', 'empty', 'longer']);
  if (kind === 'empty') return [kind, Buffer.alloc(0)];
  if (kind === 'cut') return [kind, bytes.subarray(0, random.below(bytes.length))];
  if (kind === 'longer') return [kind, Buffer.concat([bytes, random.bytes(100)])];
  const changed = Buffer.from(bytes);
  const end = random.chance(0.7) ? Math.min(bytes.length, 4000) : bytes.length;
  for (let left = kind === 'flips' ? 20 : 1; left > 0; left--)
    changed[random.below(end)] ^= 1 << random.below(8);
  return [kind, changed];
}

/** The header of safetensors is JSON, behind its size. */
function editSafetensors(bytes, random) {
  const size = Number(bytes.readBigUInt64LE());
  const header = JSON.parse(bytes.subarray(8, 8 + size));
  const [done, edited] = editJson(header, random);
  const text = Buffer.from(JSON.stringify(edited) ?? 'null');
  const start = Buffer.alloc(8);
  start.writeBigUInt64LE(BigInt(text.length));
  return [done, Buffer.concat([start, text, bytes.subarray(8 + size)])];
}

function edit(name, bytes, random) {
  if (name.endsWith('.json') && random.chance(0.85)) {
    const [done, value] = editJson(JSON.parse(bytes), random);
    return [done, Buffer.from(JSON.stringify(value) ?? '')];
  }
  if (name.endsWith('.safetensors') && random.chance(0.7)) return editSafetensors(bytes, random);
  return editBytes(bytes, random);
}

/** The files of a folder by their path in it. */
export function readFolder(folder) {
  const names = fs.readdirSync(folder, { recursive: true }).filter((name) => fs.statSync(path.join(folder, name)).isFile());
  return Object.fromEntries(names.sort().map((name) => [name, fs.readFileSync(path.join(folder, name))]));
} // biome-ignore format: short rows

export function writeFolder(files, folder) {
  for (const [name, bytes] of Object.entries(files)) {
    const file = path.join(folder, name);
    fs.mkdirSync(bytes === null ? file : path.dirname(file), { recursive: true }); // null: a folder is in its place
    if (bytes !== null) fs.writeFileSync(file, bytes);
  }
  return folder;
}

/** The mutant with this number; below 0 none is damaged. */
export function mutateFolder(files, seed) {
  if (seed < 0) return { done: 'undamaged', files };
  const random = randomFrom(seed);
  const changed = { ...files };
  const done = [];
  for (let left = random.pick([1, 1, 1, 2, 3]); left > 0; left--) {
    const name = random.pick(Object.keys(changed));
    const bytes = changed[name];
    if (random.chance(0.04)) {
      delete changed[name];
      done.push(`no ${name}`);
    } else if (random.chance(0.02)) {
      changed[name] = null;
      done.push(`${name} is a folder`);
    } else if (bytes?.length > 0) {
      try {
        const [what, edited] = edit(name, bytes, random);
        changed[name] = edited;
        done.push(`${what} of ${name}`);
      } catch {
        // it was damaged before
      }
    }
    if (Object.keys(changed).length === 0) break;
  }
  return { done: done.join('; '), files: changed };
}
