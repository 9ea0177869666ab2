/** Nothing -> the path of Chromium, for the tests of pages. */
import fs from 'node:fs';

/** Path of Chromium. Undefined if it is not installed, and on Windows: under wine the file exists but does not start. */
export const CHROMIUM =
  process.platform === 'win32'
    ? undefined
    : ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((file) => fs.existsSync(file));
if (!CHROMIUM) process.stderr.write('tests of pages skipped: no Chromium in /usr/bin\n');

/** Folder of screenshots, if they are requested. */
export const SCREENSHOTS = process.env['ONPOLICY_SCREENSHOTS'];
