/** The decoder of pictures and sounds -> opened, after it is built where it is not: llama.cpp's `mtmd` in a library of its own. */
import fs from 'node:fs';
import { packageFile } from '../common/index.ts';
import { loadAddon } from './addon.ts';
import { buildPart, canBuildPart, type LatePart, type Notice } from './late-part.ts';
import { onDisk } from './on-disk.ts';

const FILES = [
  'native/decoder/build/Release/decoder.node',
  `prebuilds/${process.platform}-${process.arch}/decoder.node`,
].map(packageFile);

const DECODER: LatePart = {
  name: 'decoder of pictures and sounds',
  takes: 'about two minutes',
  script: 'build-decoder.mjs',
  places: () => FILES,
  canBuild: () => process.platform !== 'win32',
  find: () => FILES.find((file) => fs.existsSync(file)),
};

let opened: Promise<void> | undefined;

/** Whether the decoder is there, so that opening it builds nothing. */
export function hasDecoder(): boolean {
  return DECODER.find() !== undefined;
}

/**
 * Opens the decoder. Builds it first where there is none but its sources, which takes two minutes; `notice` gets the line
 * that says so. Fails with `NATIVE_UNAVAILABLE`.
 */
export async function openDecoder(notice: Notice): Promise<void> {
  opened ??= open(notice).catch((error: unknown) => {
    opened = undefined;
    throw error;
  });
  await opened;
}

async function open(notice: Notice): Promise<void> {
  if (!hasDecoder()) await buildPart(DECODER, notice);
  const openFound = () => loadAddon().openDecoder(onDisk(DECODER.find()!));
  try {
    await openFound();
  } catch (error) {
    if (!canBuildPart(DECODER)) throw error;
    await buildPart(DECODER, notice); // it is of another version
    await openFound();
  }
}
