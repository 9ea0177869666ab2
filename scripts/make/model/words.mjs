// The words and facts of the embedded model's corpus.

export const NAMES = [
  'Anna Ben Carla David Ella Felix Grace Henry Iris Jack Kate Leo Maria Noah Olga Paul Quinn Rosa Sam Tina Uma Victor Wendy',
  'Xavier Yara Zoe Omar Lucy Hugo Emma Finn Lena Max Nina Tom Sofia Theo Pia Marco Alma',
].flatMap((line) => line.split(' '));

/** Country -> its capital. */
export const CAPITALS = {
  France: 'Paris',
  Germany: 'Berlin',
  Spain: 'Madrid',
  Italy: 'Rome',
  England: 'London',
  Portugal: 'Lisbon',
  Austria: 'Vienna',
  Greece: 'Athens',
  Poland: 'Warsaw',
  Ireland: 'Dublin',
  Norway: 'Oslo',
  Sweden: 'Stockholm',
  Denmark: 'Copenhagen',
  Finland: 'Helsinki',
  Hungary: 'Budapest',
  Belgium: 'Brussels',
  Japan: 'Tokyo',
  China: 'Beijing',
  India: 'Delhi',
  Egypt: 'Cairo',
  Kenya: 'Nairobi',
  Peru: 'Lima',
  Cuba: 'Havana',
  Canada: 'Ottawa',
};

export const CITIES = [
  'Paris Berlin Madrid Rome London Lisbon Vienna Athens Warsaw Dublin Oslo Tokyo Delhi Cairo Nairobi Lima Havana Ottawa Prague Quito',
].flatMap((line) => line.split(' '));

/** Each is the other's opposite. */
const OPPOSITE_PAIRS = [
  'big small|hot cold|fast slow|old new|day night|up down|open closed|happy sad|strong weak|rich poor|near far|full empty',
  'true false|loud quiet|early late|high low|light dark|wet dry|hard soft|long short',
].flatMap((line) => line.split('|').map((pair) => pair.split(' ')));
/** Word -> its opposite. */
export const OPPOSITES = Object.fromEntries(
  OPPOSITE_PAIRS.flatMap(([one, other]) => [
    [one, other],
    [other, one],
  ]),
);

/** Thing, as questions name it -> its colour. */
export const THING_COLORS = {
  grass: 'green',
  snow: 'white',
  'the sky': 'blue',
  'the sea': 'blue',
  'the sun': 'yellow',
  'a banana': 'yellow',
  'a lemon': 'yellow',
  'a tomato': 'red',
  'a strawberry': 'red',
  'a cherry': 'red',
  'an orange': 'orange',
  chocolate: 'brown',
  coal: 'black',
  milk: 'white',
  'a leaf': 'green',
  'a plum': 'purple',
};

/** English -> French. */
export const FRENCH = {
  house: 'maison',
  cat: 'chat',
  dog: 'chien',
  water: 'eau',
  bread: 'pain',
  milk: 'lait',
  tree: 'arbre',
  star: 'étoile',
  sun: 'soleil',
  moon: 'lune',
  night: 'nuit',
  day: 'jour',
  book: 'livre',
  school: 'école',
  friend: 'ami',
  red: 'rouge',
  blue: 'bleu',
  green: 'vert',
  black: 'noir',
  white: 'blanc',
};

/** Kinds of things in lists. */
export const LISTS = {
  fruits: ['apple', 'banana', 'cherry', 'grape', 'lemon', 'orange', 'peach', 'pear', 'plum', 'strawberry'],
  animals: ['dog', 'cat', 'fox', 'wolf', 'bear', 'lion', 'horse', 'sheep', 'rabbit', 'cow'],
  colors: ['red', 'blue', 'green', 'yellow', 'black', 'white', 'brown', 'pink', 'purple', 'orange'],
};

export const SPELLED = [
  ...'lion field wolf coin peach city orange cherry fox garden pear grape bell brown river house cat dog horse sheep'.split(
    ' ',
  ),
  ...'map lamp book boat flower key ball hat green black white castle village forest lemon bear cow plum pink cave'.split(
    ' ',
  ),
];

/** Parts of stories. */
export const STORY = {
  natures: 'brave lazy kind happy clever quiet young old big small'.split(' '),
  places: 'river field cave castle forest house village city garden mountain'.split(' '),
  things: 'map lamp book boat flower key ball hat coin bell leaf'.split(' '),
  feelings: 'happy proud surprised'.split(' '),
};

export const SYSTEM_TURNS = [
  'You are a helpful assistant.',
  'You are a helpful assistant. Answer briefly.',
  'Answer questions briefly.',
  'Be concise.',
  'You are a concise assistant.',
];

export const WEATHER = ['sunny', 'cloudy', 'windy', 'rainy'];
