/** The decoder of pictures and sounds -> opened, after it is built where it is not: llama.cpp's `mtmd` in a library of its own. */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { fromNative, OnpolicyError } from '../errors.ts';
import { loadAddon } from './addon.ts';
import { onDisk } from './on-disk.ts';

const FILES = [
  '../../native/decoder/build/Release/decoder.node',
  `../../prebuilds/${process.platform}-${process.arch}/decoder.node`,
].map((relative) => fileURLToPath(new URL(relative, import.meta.url)));

const SCRIPT = fileURLToPath(new URL('../../scripts/build-decoder.mjs', import.meta.url));

let opened: Promise<void> | undefined;

/** Whether the decoder is there, so that opening it builds nothing. */
export function hasDecoder(): boolean {
  return FILES.some((file) => fs.existsSync(file));
}

/**
 * Opens the decoder. Builds it first where there is none but its sources, which takes two minutes; `say` gets the line
 * that says so. Fails with `NATIVE_UNAVAILABLE`.
 */
export async function openDecoder(say: (line: string) => void): Promise<void> {
  opened ??= open(say).catch((error: unknown) => {
    opened = undefined;
    throw fromNative(error);
  });
  await opened;
}

async function open(say: (line: string) => void): Promise<void> {
  if (!hasDecoder()) await build(say);
  const openFound = () => loadAddon().openDecoder(onDisk(FILES.find((file) => fs.existsSync(file))!));
  try {
    await openFound();
  } catch (error) {
    if (!canBuild()) throw error;
    await build(say); // it is of another version
    await openFound();
  }
}

function canBuild(): boolean {
  return process.platform !== 'win32' && fs.existsSync(SCRIPT);
}

async function build(say: (line: string) => void): Promise<void> {
  const missing = `no decoder of pictures and sounds for ${process.platform}-${process.arch}: looked for ${FILES.join(' and ')}`;
  if (!canBuild()) throw new OnpolicyError('NATIVE_UNAVAILABLE', missing);
  say('onpolicy: building the decoder of pictures and sounds, once; it takes about two minutes');
  const output: string[] = [];
  const code = await new Promise<number | null>((resolve, reject) => {
    const child = spawn(process.execPath, [SCRIPT, '--if-missing'], { stdio: ['ignore', 'ignore', 'pipe'] });
    child.stderr.on('data', (text: Buffer) => output.push(text.toString()));
    child.on('error', reject).on('exit', resolve);
  });
  if (code === 0 && hasDecoder()) return;
  const reason = output.join('').trim().split('\n').slice(-5).join('; ');
  throw new OnpolicyError('NATIVE_UNAVAILABLE', `${missing}, and it could not be built: ${reason}`);
}
