// A length in tokens and an index -> a prompt of about that length that shares no prefix with another index's.

// Each is one token, with the space before it, in the vocabularies used here.
const WORDS =
  `the of and to in is that for it was on are as with his they be at one have this from or had by not but
what some we can out other were all there when up use your how said each she which do their time if will way about
many then them write would like so these her long make thing see him two has look more day could go come did number
sound no most people my over know water than call first who may down side been now find any new work part take get
place made live where after back little only round man year came show every good me give our under name very through
just form great think say help low line differ turn cause much mean before move right boy old too same tell does set
three want air well also play small end put home read hand port large add even land here must big high such follow
act why ask men change went light kind off need house picture try us again animal point mother world near build self
earth father`.split(/\s+/);

/** Words of one token each, joined by spaces. */
export function wordPrompt(tokenCount, index) {
  let state = (index + 1) * 0x9e3779b1;
  const next = () => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5;
    return (state ^ (state >>> 13)) >>> 0;
  };
  return Array.from({ length: tokenCount }, () => WORDS[next() % WORDS.length]).join(' ');
}
