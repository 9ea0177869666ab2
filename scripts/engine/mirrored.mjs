// Two releases of llama.cpp -> what changed of the functions that this library repeats or relies on, and which file of ours to compare.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');
const TRAITS = 'native/trainer/weights/traits.cc';

/** [file of llama.cpp, functions or null for all of the file, our file]. */
const MIRRORED = [
  ['src/llama-model.cpp', ['create_memory'], 'src/engine/gguf/architectures.ts'],
  ['src/llama-hparams.cpp', null, 'src/engine/gguf/architectures.ts'],
  ['src/llama-arch.cpp', ['llm_arch_supports_rs_rollback'], 'src/engine/gguf/architectures.ts'],
  ['src/llama-arch.cpp', ['llm_arch_is_recurrent', 'llm_arch_is_hybrid'], 'src/engine/gguf/architectures.ts'],
  ['src/llama-graph.cpp', ['build_attn_mha', 'build_attn'], 'native/engine-assumptions/attention/node.cc'],
  ['src/llama-graph.cpp', ['build_rs'], 'native/engine-assumptions/attention/state-places.cc'],
  [
    'src/llama-graph.cpp',
    ['build_lora_mm', 'build_lora_mm_id'],
    'native/engine-assumptions/attention/low-rank.cc',
  ],
  [
    'src/llama-graph.cpp',
    ['build_moe_ffn'],
    'native/engine-assumptions/expert-record.cc, native/trainer/experts.h',
  ],
  ['src/llama-graph.cpp', ['build_norm', 'build_ffn'], 'native/trainer/layer.cc'],
  ['src/models/delta-net-base.cpp', null, 'native/trainer/delta-net.cc'],
  ['src/models/models.h', ['build_gdn_l2_norm'], 'native/trainer/delta-net.cc'],
  [
    'src/llama-kv-cache.cpp',
    ['cpy_k', 'cpy_v', 'build_input_k_idxs'],
    'native/engine-assumptions/attention/cell-positions.h',
  ],
  ['src/llama-memory-recurrent.cpp', ['seq_rm', 'find_slot'], 'native/engine-assumptions/rollback.h'],
  ['src/llama-ext.h', null, 'native/engine-assumptions/library.cc'],
  ['include/llama.h', null, 'native/base/engine.h'],
  ['ggml/src/ggml-backend-impl.h', null, 'native/engine-assumptions/cpu-buffers.cc'],
  ['ggml/src/ggml-cpu/traits.h', null, 'native/engine-assumptions/matmul/cpu-backend.h'],
  ['ggml/src/ggml-cpu/ggml-cpu-impl.h', null, 'native/engine-assumptions/matmul/team.h'],
  [
    'ggml/src/ggml.c',
    ['ggml_mul_mat', 'ggml_mul_mat_id', 'ggml_set_rows', 'ggml_get_rows'],
    'native/engine-assumptions/matmul/node.cc',
  ],
  [
    'ggml/src/ggml.c',
    ['ggml_flash_attn_ext', 'ggml_gated_delta_net', 'ggml_ssm_conv'],
    'native/engine-assumptions/attention/node.cc',
  ],
  ['tools/mtmd/mtmd.h', null, 'native/media/decoder'],
];

/** Returns [what, lines changed, our file, difference] of all that changed. */
export function mirroredChanges(before, after) {
  const rows = [...MIRRORED, ...trainedFiles(after)];
  return rows.flatMap(([file, functions, ours]) => {
    const parts =
      functions === null ? [[file, before.read(file), after.read(file)]] : functionParts(file, functions);
    return parts
      .filter(([, a, b]) => a !== b)
      .map(([what, a, b]) => {
        const difference = differenceOf(what, a, b);
        return [what, difference.match(/^[+-](?![+-]{2})/gm)?.length ?? 0, ours, difference];
      });
  });

  function functionParts(file, functions) {
    const [a, b] = [before.read(file), after.read(file)];
    return functions.map((name) => [`${file}: ${name}`, functionsNamed(a, name), functionsNamed(b, name)]);
  }
}

/** Returns the names of architectures that only the later release has. */
export function newArchitectures(before, after) {
  const known = new Set(architecturesOf(before).values());
  return [...architecturesOf(after).values()].filter((name) => !known.has(name));
}

/** Returns enumerator -> name of each architecture. */
function architecturesOf({ read }) {
  const rows = read('src/llama-arch.cpp').matchAll(/\{ (LLM_ARCH_\w+), +"([^"]+)" +\}/g);
  return new Map(Array.from(rows, ([, id, name]) => [id, name]));
}

/** The files of the architectures that the trainer knows. */
function trainedFiles(source) {
  const ids = new Map([...architecturesOf(source)].map(([id, name]) => [name, id]));
  const made = source.read('src/llama-model.cpp');
  const files = source.list('src/models').filter((file) => file.endsWith('.cpp'));
  const names = fs.readFileSync(path.join(root, TRAITS), 'utf8').matchAll(/\{\.name = "([^"]+)"/g);
  const found = Array.from(names, ([, name]) => {
    const [, type] = new RegExp(`case ${ids.get(name)}:\\s+return new (\\w+)\\(`).exec(made) ?? [];
    return files.find((file) => type && source.read(file).includes(`${type}::load_arch_hparams`));
  });
  return [...new Set(found)].filter(Boolean).map((file) => [file, null, 'native/trainer']);
}

/** Returns the texts of all functions of a name: llama.cpp's begin in the first column and end with a brace there. */
function functionsNamed(text, name) {
  const lines = text.split('\n');
  const starts = lines.flatMap((line, i) => (new RegExp(`^[a-z].*\\b${name}\\(`).test(line) ? [i] : []));
  return starts
    .map((start) => {
      const end = lines.findIndex((line, i) => i >= start && /^\}|;$/.test(line) && !/^\s/.test(line));
      return lines.slice(start, end + 1).join('\n');
    })
    .join('\n');
}

function differenceOf(what, before, after) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-difference-'));
  try {
    fs.writeFileSync(path.join(folder, 'before'), before);
    fs.writeFileSync(path.join(folder, 'after'), after);
    const words = ['diff', '--no-index', '--no-color', '--ignore-all-space', 'before', 'after'];
    const { stdout } = spawnSync('git', words, { cwd: folder, encoding: 'utf8' });
    return `=== ${what}\n${stdout.split('\n').slice(4).join('\n')}`;
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}
