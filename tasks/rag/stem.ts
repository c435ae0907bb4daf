/**
 * Stems an English word in lower case. Returns a word with letters other than a to z unchanged. The algorithm is
 * Snowball's "Porter2" (https://snowballstem.org/algorithms/english/stemmer.html), which PostgreSQL's `english`
 * configuration also uses. A test compares the two.
 */
export function stemWord(word: string): string {
  if (word.length < 3 || !/^[a-z]+$/.test(word)) return word
  const exception = EXCEPTIONS.get(word)
  if (exception !== undefined) return exception
  // Y marks a y that is a consonant.
  const marked = word.replace(/^y|(?<=[aeiouy])y/g, 'Y')
  const [r1, r2] = findRegions(marked)
  const singular = stripPluralSuffix(marked)
  if (UNCHANGED_WORDS.has(singular)) return singular
  const verb = replaceFinalY(stripPastSuffix(singular, r1))
  return stripFinalE(applyStep4(applyStep3(applyStep2(verb, r1), r1, r2), r2), r1, r2).toLowerCase()
}

const EXCEPTIONS = new Map(
  [
    ['skis', 'ski'],
    ['skies', 'sky'],
    ['dying', 'die'],
    ['lying', 'lie'],
    ['tying', 'tie'],
    ['idly', 'idl'],
    ['gently', 'gentl'],
    ['ugly', 'ugli'],
    ['early', 'earli'],
    ['only', 'onli'],
    ['singly', 'singl'],
    ...['sky', 'news', 'howe', 'atlas', 'cosmos', 'bias', 'andes'].map((word) => [word, word]),
  ].map(([from, to]) => [from!, to!]),
)
const UNCHANGED_WORDS = new Set([
  'inning',
  'outing',
  'canning',
  'herring',
  'earring',
  'proceed',
  'exceed',
  'succeed',
])
const VOWEL = /[aeiouy]/

/**
 * Returns the starts of the regions R1 (after the first consonant that follows a vowel) and R2 (the same within R1).
 */
function findRegions(word: string): readonly [number, number] {
  const after = (from: number): number => {
    const found = /[aeiouy][^aeiouy]/.exec(word.slice(from))
    return found === null ? word.length : from + found.index + 2
  }
  const special = /^(gener|commun|arsen)/.exec(word)
  const r1 = special === null ? after(0) : special[0].length
  return [r1, after(r1)]
}

function stripPluralSuffix(word: string): string {
  if (word.endsWith('sses')) return word.slice(0, -2)
  if (word.endsWith('ied') || word.endsWith('ies')) return word.slice(0, word.length > 4 ? -2 : -1)
  if (!word.endsWith('s') || word.endsWith('us') || word.endsWith('ss')) return word
  return VOWEL.test(word.slice(0, -2)) ? word.slice(0, -1) : word
}

function stripPastSuffix(word: string, r1: number): string {
  const eed = /eed(ly)?$/.exec(word)
  if (eed !== null) return eed.index >= r1 ? word.slice(0, eed.index + 2) : word
  const past = /(ed|ing)(ly)?$/.exec(word)
  if (past === null) return word
  const base = word.slice(0, past.index)
  if (!VOWEL.test(base)) return word
  if (/(at|bl|iz)$/.test(base)) return `${base}e`
  // Undoubles the consonant, except in words such as add, ebb and off.
  if (/(bb|dd|ff|gg|mm|nn|pp|rr|tt)$/.test(base)) return /^[aeo]..$/.test(base) ? base : base.slice(0, -1)
  return r1 >= base.length && endsInShortSyllable(base) ? `${base}e` : base
}

/** True if a word ends in a short syllable. */
function endsInShortSyllable(word: string): boolean {
  return /[^aeiouy][aeiouy][^aeiouywxY]$/.test(word) || /^[aeiouy][^aeiouy]$/.test(word)
}

function replaceFinalY(word: string): string {
  return /.[^aeiouy][yY]$/.test(word) ? `${word.slice(0, -1)}i` : word
}

const STEP2_SUFFIXES: readonly (readonly [string, string])[] = [
  ['ization', 'ize'],
  ['ational', 'ate'],
  ['fulness', 'ful'],
  ['ousness', 'ous'],
  ['iveness', 'ive'],
  ['tional', 'tion'],
  ['biliti', 'ble'],
  ['lessli', 'less'],
  ['entli', 'ent'],
  ['ation', 'ate'],
  ['alism', 'al'],
  ['aliti', 'al'],
  ['ousli', 'ous'],
  ['iviti', 'ive'],
  ['fulli', 'ful'],
  ['enci', 'ence'],
  ['anci', 'ance'],
  ['abli', 'able'],
  ['izer', 'ize'],
  ['ator', 'ate'],
  ['alli', 'al'],
  ['bli', 'ble'],
]

function applyStep2(word: string, r1: number): string {
  const found = STEP2_SUFFIXES.find(([suffix]) => word.endsWith(suffix))
  if (found !== undefined) return replaceSuffix(word, found, r1)
  if (word.endsWith('ogi')) return word.at(-4) === 'l' && word.length - 3 >= r1 ? word.slice(0, -1) : word
  return /[cdeghkmnrt]li$/.test(word) && word.length - 2 >= r1 ? word.slice(0, -2) : word
}

const STEP3_SUFFIXES: readonly (readonly [string, string])[] = [
  ['ational', 'ate'],
  ['tional', 'tion'],
  ['alize', 'al'],
  ['icate', 'ic'],
  ['iciti', 'ic'],
  ['ical', 'ic'],
  ['ness', ''],
  ['ful', ''],
]

function applyStep3(word: string, r1: number, r2: number): string {
  if (word.endsWith('ative')) return replaceSuffix(word, ['ative', ''], r2)
  const found = STEP3_SUFFIXES.find(([suffix]) => word.endsWith(suffix))
  return found === undefined ? word : replaceSuffix(word, found, r1)
}

function replaceSuffix(word: string, [suffix, by]: readonly [string, string], from: number): string {
  const start = word.length - suffix.length
  return start >= from ? word.slice(0, start) + by : word
}

const STEP4_SUFFIX = /(ement|ance|ence|able|ible|ment|ant|ent|ism|ate|iti|ous|ive|ize|ion|al|er|ic)$/

function applyStep4(word: string, r2: number): string {
  const found = STEP4_SUFFIX.exec(word)
  if (found === null || found.index < r2) return word
  if (found[0] === 'ion' && !/[st]ion$/.test(word)) return word
  return word.slice(0, found.index)
}

function stripFinalE(word: string, r1: number, r2: number): string {
  const start = word.length - 1
  if (word.endsWith('e')) {
    const isDropped = start >= r2 || (start >= r1 && !endsInShortSyllable(word.slice(0, -1)))
    return isDropped ? word.slice(0, -1) : word
  }
  return word.endsWith('ll') && start >= r2 ? word.slice(0, -1) : word
}
