/** An assert that the engine fails in any function that this library calls ends one piece of work, and the next one goes well. */
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { writeTinyModel } from '../rl/tiny-model.ts';

const hasCompiler =
  process.platform === 'linux' && process.arch === 'x64' && !spawnSync('cc', ['--version']).error;
const name = `asserts of the engine${hasCompiler ? '' : ' (skipped: they are forced with a C compiler on x64 Linux)'}`;
/** `ONPOLICY_FORCED_ASSERTS=100` forces each so often. */
const ROUNDS = process.env['ONPOLICY_FORCED_ASSERTS'] ?? '5';
const ENGINE = fs.readFileSync(path.join(import.meta.dirname, '../../native/base/engine.h'), 'utf8');
/** Functions of the engine that run before asserts are caught. */
const FIRST = ['llama_version', 'ggml_set_abort_callback', 'llama_log_set', 'llama_backend_init'];
/** The functions of its C API that the addon calls, and two that its kernels call on all threads of a computation, inside a node. */
const NAMES = [...ENGINE.matchAll(/^ {2}X\((\w+)\)/gm)]
  .map(([, name]) => name!)
  .filter((one) => !FIRST.includes(one))
  .concat('ggml_barrier', 'ggml_threadpool_chunk_add');
/** A function that frees something does not fail, and work that is optional is left out. */
const ALLOWED = /^(BACKEND_FAILED|MODEL_INVALID|OUT_OF_MEMORY|UNSUPPORTED|KV_FULL|done|not called)$/;

/** Each stub counts its call, and jumps to the function unless it is the one that fails. */
const stubs = () => `
.section .data.rel.ro, "aw"
.globl stubs
stubs:
${NAMES.map((_, i) => `.quad stub${i}`).join('\n')}
.text
${NAMES.map(
  (_, i) => `stub${i}:
.cfi_startproc
movq control(%rip), %r11
incl ${4 * (i + 2)}(%r11)
cmpl $${i + 1}, (%r11)
je 1f
jmpq *reals+${8 * (i + 1)}(%rip)
1: subq $8, %rsp
.cfi_adjust_cfa_offset 8
call fail
ud2
.cfi_endproc`,
).join('\n')}
.section .note.GNU-stack,"",@progbits
`;

describe.skipIf(!hasCompiler)(name, () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-forced-asserts-'));
  afterAll(() => fs.rmSync(folder, { recursive: true }));
  const at = (file: string): string => path.join(folder, file);

  it('end one piece of work', async () => {
    fs.writeFileSync(at('stubs.s'), stubs());
    fs.writeFileSync(
      at('names.h'),
      `#define COUNT ${NAMES.length}\n#define NAMES ${NAMES.map((one) => `"${one}"`).join(', ')}\n`,
    );
    const source = path.join(import.meta.dirname, 'forced-asserts.c');
    execFileSync('cc', [
      ...[
        '-O1',
        '-fexceptions',
        '-shared',
        '-fPIC',
        '-I',
        folder,
        '-o',
        at('hook.so'),
        source,
        at('stubs.s'),
      ],
    ]);
    fs.writeFileSync(at('control'), new Uint8Array(4 * (NAMES.length + 2)));
    await writeTinyModel(at('model.gguf'), { architecture: 'llama', type: 'q8_0' });
    await writeTinyModel(at('vectors.gguf'), { architecture: 'qwen3', type: 'q8_0', pooling: 3 });
    const { status, signal, stdout, stderr } = spawnSync(
      process.execPath,
      [
        ...[
          path.join(import.meta.dirname, 'forced-asserts.mjs'),
          at('model.gguf'),
          at('vectors.gguf'),
          at('control'),
        ],
        ...[JSON.stringify(NAMES), ROUNDS],
      ],
      {
        encoding: 'utf8',
        env: { ...process.env, LD_PRELOAD: at('hook.so'), FORCED_ASSERTS: at('control') },
      },
    );
    expect({ status, signal }, stderr).toEqual({ status: 0, signal: null });
    const report = JSON.parse(stdout) as Record<string, Record<string, Record<string, number>>>;
    const outcomes = Object.entries(report).flatMap(([work, functions]) =>
      Object.entries(functions).flatMap(([one, found]) =>
        Object.keys(found).map((outcome) => [work, one, outcome]),
      ),
    );
    expect(outcomes.filter(([, , outcome]) => !ALLOWED.test(outcome!))).toEqual([]);
    const failed = { BACKEND_FAILED: Number(ROUNDS) };
    expect(report['answering']).toMatchObject({ llama_decode: failed, ggml_threadpool_chunk_add: failed });
    expect(report['training']).toMatchObject({
      ggml_backend_sched_graph_compute: failed,
      ggml_rms_norm: failed,
    });
    const called = new Set(outcomes.map(([, one]) => one));
    expect(called.size).toBeGreaterThan(80);
  }, 600_000);
});
