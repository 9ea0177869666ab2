/** Text that clients carry along without reading it: Base64 behind a mark, not a secret. */

const MARK = 'onpolicy.';

/** As `encrypted_content`. */
export function seal(text: string): string {
  return MARK + Buffer.from(text).toString('base64url');
}

/** The text again; null for what another server sealed. */
export function unseal(sealed: string | null | undefined): string | null {
  return sealed?.startsWith(MARK) ? Buffer.from(sealed.slice(MARK.length), 'base64url').toString() : null;
}
