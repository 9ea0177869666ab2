/** The decoder of pictures and sounds -> opened. It is llama.cpp's `mtmd` in a separate library. */
import fs from 'node:fs';
import { packageFile } from '../../common/index.ts';
import { loadAddon } from './addon.ts';
import { missingPart } from './missing-part.ts';
import { onDisk } from './on-disk.ts';

const FILES = [
  'native/media/decoder/build/Release/decoder.node',
  `prebuilds/${process.platform}-${process.arch}/decoder.node`,
].map(packageFile);

let opened: Promise<void> | undefined;
let version: string | null = null;

/** Opens the decoder. Fails with `NATIVE_UNAVAILABLE` and the command that builds it, if it is missing. */
export async function openDecoder(): Promise<void> {
  opened ??= open().catch((error: unknown) => {
    opened = undefined;
    throw error;
  });
  await opened;
}

/** Returns the version of the llama.cpp that the decoder is made of; null if this thread has not opened it. */
export function decoderVersion(): string | null {
  return version;
}

async function open(): Promise<void> {
  const file = FILES.find((one) => fs.existsSync(one));
  if (file === undefined) throw missingPart('decoder of pictures and sounds', FILES, 'build-decoder.mjs');
  version = await loadAddon().openDecoder(onDisk(file));
}
