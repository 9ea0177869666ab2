/** Bytes with a header and a checksum <-> a file that appears only when it is complete, and that no other user can read. */
import { randomUUID, webcrypto } from 'node:crypto';
import fs from 'node:fs/promises';
import { parseJson } from '../json.ts';
import { rename } from './durable-files.ts';

/** Bytes at the start of a file in which its header ends. */
const HEADER_BYTES = 4096;

/** The file is of another kind, incomplete or changed. */
export class DamagedFile extends Error {}

/**
 * Writes `magic`, a line of JSON with the fields of `header` and the SHA-256 of the payload, and the payload. The file replaces an older
 * one; after an error nothing is left. `usedSeconds` is the file's access and change time.
 */
export async function writeSealed(
  file: string,
  { magic, header, payload, usedSeconds }: SealedFile,
): Promise<void> {
  const temporary = `${file}.${randomUUID()}.part`;
  try {
    const line = JSON.stringify({ ...header, sha256: await sha256(payload) });
    await fs.writeFile(temporary, [magic, `${line}\n`, payload], { mode: 0o600, flag: 'wx' });
    if (usedSeconds !== undefined) await fs.utimes(temporary, usedSeconds, usedSeconds);
    await rename(temporary, file);
  } catch (error) {
    await fs.rm(temporary, { force: true }).catch(() => {});
    throw error;
  }
}

type SealedFile = {
  /** First line, which names the kind of file and its version. */
  readonly magic: string;
  readonly header: object;
  readonly payload: Uint8Array;
  readonly usedSeconds?: number;
};

/**
 * Reads what {@link writeSealed} wrote. `isFit` checks the header before the payload is hashed; it may throw.
 * @throws DamagedFile
 */
export async function readSealed<Header extends object>(
  file: string,
  magic: string,
  isFit: (header: Header) => void = () => {},
): Promise<{ readonly header: Header; readonly payload: Uint8Array }> {
  const content = await fs.readFile(file);
  const end = content.subarray(0, HEADER_BYTES).indexOf('\n', magic.length);
  if (content.subarray(0, magic.length).toString() !== magic || end < 0)
    throw new DamagedFile('the file is of another kind');
  const header = parseJson(content.subarray(magic.length, end).toString()) as
    | (Header & { readonly sha256: string })
    | undefined;
  if (typeof header !== 'object' || header === null) throw new DamagedFile('the file is damaged');
  isFit(header);
  const payload = content.subarray(end + 1);
  if (header.sha256 !== (await sha256(payload))) throw new DamagedFile('the file is damaged');
  return { header, payload };
}

/** Hashes off the event loop. */
async function sha256(bytes: Uint8Array): Promise<string> {
  return Buffer.from(await webcrypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>)).toString(
    'hex',
  );
}
