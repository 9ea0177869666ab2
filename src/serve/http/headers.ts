/** Names of this library's own headers, which client and server share. */

/** Header of a background request, with the value `true`. Such a request yields to others. */
export const BACKGROUND_HEADER = 'x-background';
