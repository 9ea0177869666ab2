/** The data of a part `file` -> its text, null for media, or a description of the expected data. */

/** The text of a file, the data that was expected instead, or null for media. */
export type FileText = { readonly text: string } | { readonly expected: string } | null;

const DATA_URI = /^data:([^;,]*)((?:;[^;,]*)*),/i;
const MEDIA = /^(image|audio|video)\//i;

/**
 * A `data:` URI of the type `text/...` must be text. Bytes, bare base64 and other types are text if their bytes are UTF-8 without
 * NUL, and media otherwise.
 */
export function fileText(data: string | Uint8Array): FileText {
  if (typeof data !== 'string') return asText(data);
  const uri = DATA_URI.exec(data);
  if (!uri) {
    if (data.startsWith('data:') || data.startsWith('file:')) return null; // left to the media reader
    const bytes = fromBase64(data);
    return bytes && (asText(bytes) ?? { expected: 'text in UTF-8, or a data: URI' });
  }
  const [header, type = '', parameters = ''] = uri;
  if (MEDIA.test(type)) return null;
  const isText = /^text\//i.test(type);
  const body = data.slice(header.length);
  const bytes = /;base64$/i.test(parameters) ? fromBase64(body) : fromPercents(body);
  const charset = /;charset="?([^;"]*)/i.exec(parameters)?.[1];
  const found = bytes && asText(bytes, charset);
  if (found || !isText) return found;
  return { expected: bytes ? `text in ${charset ?? 'UTF-8'}` : 'base64, or text with percent-encoded bytes' };
}

function asText(bytes: Uint8Array, charset = 'utf-8'): { readonly text: string } | null {
  if (bytes.includes(0)) return null;
  try {
    return { text: new TextDecoder(charset, { fatal: true }).decode(bytes) };
  } catch {
    return null; // the bytes are invalid in this encoding, or the encoding is unknown
  }
}

/** Decodes base64 strictly: returns null if the text is not valid base64. */
function fromBase64(text: string): Uint8Array | null {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === Math.floor(((text.length - padding) * 3) / 4) ? bytes : null;
}

function fromPercents(text: string): Uint8Array | null {
  try {
    return new TextEncoder().encode(decodeURIComponent(text));
  } catch {
    return null;
  }
}
