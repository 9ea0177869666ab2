/** Headers of this library's own, which client and server both know. */

/** `true`: the request yields to others. */
export const BACKGROUND_HEADER = 'x-background';
