/** An assert that the engine fails in any function that this library calls ends one piece of work, and the next one goes well. */
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { writeTinyModel } from '../rl/tiny-model.ts';

type Elsewhere = { readonly command: readonly string[]; readonly library: string };
/** `npm run check:platform -- win32-x64` sets it: what starts Node there, and the folder of the installed library. */
const ELSEWHERE = process.env['ONPOLICY_FORCED_ASSERTS_ON'];
const elsewhere = ELSEWHERE === undefined ? undefined : (JSON.parse(ELSEWHERE) as Elsewhere);
const compiler = elsewhere ? 'x86_64-w64-mingw32-gcc-posix' : 'cc';
const hasCompiler =
  process.platform === 'linux' && process.arch === 'x64' && !spawnSync(compiler, ['--version']).error;
const name = `asserts of the engine${hasCompiler ? '' : ' (skipped: they are forced with a C compiler on x64 Linux)'}`;
/** `ONPOLICY_FORCED_ASSERTS=100` forces each so often. */
const ROUNDS = Number(process.env['ONPOLICY_FORCED_ASSERTS'] ?? (elsewhere ? 2 : 5));
const LIMIT_MS = 300_000 + 60_000 * ROUNDS;
const ROOT = path.join(import.meta.dirname, '..', '..');
const ENGINE = fs.readFileSync(path.join(ROOT, 'native/base/engine.h'), 'utf8');
/** Functions of the engine that run before asserts are caught. */
const FIRST = ['llama_version', 'ggml_set_abort_callback', 'llama_log_set', 'llama_backend_init'];
/** The functions of its C API that the addon calls, and two that its kernels call on Linux on all threads of a computation, inside a node. */
const NAMES = [...ENGINE.matchAll(/^ {2}X\((\w+)\)/gm)]
  .map(([, name]) => name!)
  .filter((one) => !FIRST.includes(one))
  .concat('ggml_barrier', 'ggml_threadpool_chunk_add');
/** A function that frees something does not fail, and work that is optional is left out. */
const ALLOWED = /^(BACKEND_FAILED|MODEL_INVALID|OUT_OF_MEMORY|UNSUPPORTED|KV_FULL|done|not called)$/;

describe.skipIf(!hasCompiler)(name, () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-forced-asserts-'));
  afterAll(() => fs.rmSync(folder, { recursive: true }));
  const at = (file: string): string => path.join(folder, file);

  it(
    'end one piece of work',
    async () => {
      fs.writeFileSync(
        at('names.h'),
        `#define COUNT ${NAMES.length}\n#define NAMES ${NAMES.map((one) => `"${one}"`).join(', ')}\n`,
      );
      const source = path.join(import.meta.dirname, 'forced-asserts.c');
      const flags = [
        '-O1',
        '-fexceptions',
        '-fvisibility=hidden',
        '-shared',
        ...(elsewhere ? [] : ['-fPIC']),
      ];
      execFileSync(compiler, [...flags, '-I', folder, '-o', at('hook.node'), source]);
      await writeTinyModel(at('model.gguf'), { architecture: 'llama', type: 'q8_0' });
      await writeTinyModel(at('vectors.gguf'), { architecture: 'qwen3', type: 'q8_0', pooling: 3 });
      let program = path.join(import.meta.dirname, 'forced-asserts.mjs');
      if (elsewhere) {
        fs.cpSync(path.join(ROOT, 'dist'), path.join(elsewhere.library, 'dist'), { recursive: true }); // also what is not public
        const there = path.join(elsewhere.library, path.relative(ROOT, program));
        fs.cpSync(program, there);
        program = there;
      }
      const [command, ...words] = elsewhere?.command ?? [process.execPath];
      const files = ['model.gguf', 'vectors.gguf', 'hook.node'];
      const log = fs.openSync(at('log.txt'), 'w'); // Node under wine cannot write to a pipe of this system
      const { status, signal } = spawnSync(
        command!,
        [...words, program, ...files, JSON.stringify(NAMES), String(ROUNDS), 'report.json'],
        {
          cwd: folder,
          env: elsewhere ? process.env : { ...process.env, LD_PRELOAD: at('hook.node') },
          stdio: ['ignore', log, log],
          timeout: LIMIT_MS,
        },
      );
      fs.closeSync(log);
      expect({ status, signal }, fs.readFileSync(at('log.txt'), 'utf8')).toEqual({ status: 0, signal: null });
      const report = JSON.parse(fs.readFileSync(at('report.json'), 'utf8')) as Record<
        string,
        Record<string, Record<string, number>>
      >;
      const outcomes = Object.entries(report).flatMap(([work, functions]) =>
        Object.entries(functions).flatMap(([one, found]) =>
          Object.keys(found).map((outcome) => [work, one, outcome]),
        ),
      );
      expect(outcomes.filter(([, , outcome]) => !ALLOWED.test(outcome!))).toEqual([]);
      const failed = { BACKEND_FAILED: ROUNDS };
      const inNodes = elsewhere ? {} : { ggml_threadpool_chunk_add: failed };
      expect(report['answering']).toMatchObject({ llama_decode: failed, ...inNodes });
      expect(report['training']).toMatchObject({
        ggml_backend_sched_graph_compute: failed,
        ggml_rms_norm: failed,
      });
      const called = new Set(outcomes.map(([, one]) => one));
      expect(called.size).toBeGreaterThan(80);
    },
    LIMIT_MS + 60_000,
  );
});
