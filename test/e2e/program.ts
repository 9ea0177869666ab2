/** A program's source -> what it printed and how it ended, run in a process of its own that imports the built package by name. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** How a program ended. */
export type Outcome = {
  readonly code: number | null;
  /** Set when a signal killed it: a crash. */
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
};

/** Options of {@link runNode}. */
export type RunOptions = {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Flags of Node itself. */
  readonly nodeFlags?: readonly string[];
  /** Its standard input. Default: empty. */
  readonly input?: string;
  /** A program that has not ended by then is killed, so `signal` is set. */
  readonly timeoutMs?: number;
};

/** Makes a folder where the package is installed, and beside it these of the packages that it is tested with. */
export function packageFolder(prefix: string, names: readonly string[] = []): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), prefix));
  const modules = path.join(folder, 'node_modules');
  const link = (target: string, name: string): void => {
    fs.mkdirSync(path.dirname(path.join(modules, name)), { recursive: true });
    fs.symlinkSync(target, path.join(modules, name), 'junction');
  };
  link(ROOT, 'onpolicy');
  for (const name of names) link(path.join(ROOT, 'node_modules', name), name);
  return folder;
}

/** Runs `source` as `program.<extension>` in an empty folder where the package is installed. */
export async function runProgram(
  source: string,
  extension: 'mjs' | 'cjs' = 'mjs',
  options: RunOptions = {},
): Promise<Outcome> {
  const folder = packageFolder('onpolicy-program-');
  try {
    const file = path.join(folder, `program.${extension}`);
    fs.writeFileSync(file, source);
    return await runNode([file], { cwd: folder, ...options });
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs Node with its output in pipes. */
export function runNode(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...(options.nodeFlags ?? []), ...args], {
      cwd: options.cwd ?? ROOT,
      env: options.env ?? process.env,
      stdio: 'pipe',
      timeout: options.timeoutMs ?? 60_000,
      killSignal: 'SIGKILL',
    });
    const output = { stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
    child.stdin.on('error', () => {}); // it ended without reading
    child.stdin.end(options.input ?? '');
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, ...output }));
  });
}

/** A port of this machine where nothing listens. */
export async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  server.close();
  return port;
}
