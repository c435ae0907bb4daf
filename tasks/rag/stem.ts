/**
 * The English stemmer of Snowball ("Porter2", https://snowballstem.org/algorithms/english/stemmer.html), the same as in
 * PostgreSQL's `english`: a test compares the two. Takes a word in lower case; one with letters that are not English is
 * returned as it is.
 */
export function stem(word: string): string {
  if (word.length < 3 || !/^[a-z]+$/.test(word)) return word
  const whole = WHOLE.get(word)
  if (whole !== undefined) return whole
  // A y that is a consonant is written as Y.
  const marked = word.replace(/^y|(?<=[aeiouy])y/g, 'Y')
  const [r1, r2] = regions(marked)
  const plural = withoutPlural(marked)
  if (KEPT.has(plural)) return plural
  const verb = terminalY(withoutPast(plural, r1))
  return withoutE(step4(step3(step2(verb, r1), r1, r2), r2), r1, r2).toLowerCase()
}

const WHOLE = new Map(
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
const KEPT = new Set(['inning', 'outing', 'canning', 'herring', 'earring', 'proceed', 'exceed', 'succeed'])
const VOWEL = /[aeiouy]/

/** Where R1 and R2 begin: what follows the first consonant after a vowel, and the same within R1. */
function regions(word: string): readonly [number, number] {
  const after = (from: number): number => {
    const found = /[aeiouy][^aeiouy]/.exec(word.slice(from))
    return found === null ? word.length : from + found.index + 2
  }
  const special = /^(gener|commun|arsen)/.exec(word)
  const r1 = special === null ? after(0) : special[0].length
  return [r1, after(r1)]
}

function withoutPlural(word: string): string {
  if (word.endsWith('sses')) return word.slice(0, -2)
  if (word.endsWith('ied') || word.endsWith('ies')) return word.slice(0, word.length > 4 ? -2 : -1)
  if (!word.endsWith('s') || word.endsWith('us') || word.endsWith('ss')) return word
  return VOWEL.test(word.slice(0, -2)) ? word.slice(0, -1) : word
}

function withoutPast(word: string, r1: number): string {
  const eed = /eed(ly)?$/.exec(word)
  if (eed !== null) return eed.index >= r1 ? word.slice(0, eed.index + 2) : word
  const past = /(ed|ing)(ly)?$/.exec(word)
  if (past === null) return word
  const base = word.slice(0, past.index)
  if (!VOWEL.test(base)) return word
  if (/(at|bl|iz)$/.test(base)) return `${base}e`
  // Except in words such as add, ebb and off.
  if (/(bb|dd|ff|gg|mm|nn|pp|rr|tt)$/.test(base)) return /^[aeo]..$/.test(base) ? base : base.slice(0, -1)
  return r1 >= base.length && endsShort(base) ? `${base}e` : base
}

/** Whether it ends in a short syllable. */
function endsShort(word: string): boolean {
  return /[^aeiouy][aeiouy][^aeiouywxY]$/.test(word) || /^[aeiouy][^aeiouy]$/.test(word)
}

function terminalY(word: string): string {
  return /.[^aeiouy][yY]$/.test(word) ? `${word.slice(0, -1)}i` : word
}

const STEP2: readonly (readonly [string, string])[] = [
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

function step2(word: string, r1: number): string {
  const found = STEP2.find(([suffix]) => word.endsWith(suffix))
  if (found !== undefined) return replaced(word, found, r1)
  if (word.endsWith('ogi')) return word.at(-4) === 'l' && word.length - 3 >= r1 ? word.slice(0, -1) : word
  return /[cdeghkmnrt]li$/.test(word) && word.length - 2 >= r1 ? word.slice(0, -2) : word
}

const STEP3: readonly (readonly [string, string])[] = [
  ['ational', 'ate'],
  ['tional', 'tion'],
  ['alize', 'al'],
  ['icate', 'ic'],
  ['iciti', 'ic'],
  ['ical', 'ic'],
  ['ness', ''],
  ['ful', ''],
]

function step3(word: string, r1: number, r2: number): string {
  if (word.endsWith('ative')) return replaced(word, ['ative', ''], r2)
  const found = STEP3.find(([suffix]) => word.endsWith(suffix))
  return found === undefined ? word : replaced(word, found, r1)
}

function replaced(word: string, [suffix, by]: readonly [string, string], from: number): string {
  const start = word.length - suffix.length
  return start >= from ? word.slice(0, start) + by : word
}

const STEP4 = /(ement|ance|ence|able|ible|ment|ant|ent|ism|ate|iti|ous|ive|ize|ion|al|er|ic)$/

function step4(word: string, r2: number): string {
  const found = STEP4.exec(word)
  if (found === null || found.index < r2) return word
  if (found[0] === 'ion' && !/[st]ion$/.test(word)) return word
  return word.slice(0, found.index)
}

function withoutE(word: string, r1: number, r2: number): string {
  const start = word.length - 1
  if (word.endsWith('e')) {
    const gone = start >= r2 || (start >= r1 && !endsShort(word.slice(0, -1)))
    return gone ? word.slice(0, -1) : word
  }
  return word.endsWith('ll') && start >= r2 ? word.slice(0, -1) : word
}
