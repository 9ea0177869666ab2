/** Text <-> an opaque form that clients send back unread: Base64 behind a mark. It is not encrypted. */

const MARK = 'onpolicy.';

/** Returns the text in the form of `encrypted_content`. */
export function seal(text: string): string {
  return MARK + Buffer.from(text).toString('base64url');
}

/** Returns the sealed text, or null if another server sealed it. */
export function unseal(sealed: string | null | undefined): string | null {
  return sealed?.startsWith(MARK) ? Buffer.from(sealed.slice(MARK.length), 'base64url').toString() : null;
}
