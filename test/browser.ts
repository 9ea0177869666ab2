/** Where Chromium is, for the tests of pages. */
import fs from 'node:fs';

/** Undefined where there is none, and on Windows: under wine it is there, and does not start. */
export const CHROMIUM =
  process.platform === 'win32'
    ? undefined
    : ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((file) => fs.existsSync(file));
if (!CHROMIUM) process.stderr.write('tests of pages skipped: no Chromium in /usr/bin\n');

/** Where screenshots go, when someone wants to look at them. */
export const SCREENSHOTS = process.env['ONPOLICY_SCREENSHOTS'];
