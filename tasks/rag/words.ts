import { stemWord } from './stem.ts'

/**
 * Tokenizes a text into words in lower case, without accents, stemmed. An identifier in code yields its parts and the
 * whole. Chinese, Japanese and Korean text yields pairs of characters. Omits stop words.
 */
export function tokenize(text: string): string[] {
  const terms: string[] = []
  for (const [run] of text.normalize('NFKC').matchAll(WORD_PATTERN)) {
    if (CJK_CHARACTER.test(run)) addCharacterPairs(run, terms)
    else addWord(run, terms)
  }
  return terms
}

const WORD_PATTERN =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]+|(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}])[\p{L}\p{N}\p{M}])+/gu
const CJK_CHARACTER = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u
// Matches word boundaries within identifiers such as readFileSync or HTTPServer.
const PART_BOUNDARY = /(?<=[\p{Ll}\p{N}])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u
// A longer word is data, such as a hash, a key or an encoded image.
const MAX_WORD_LENGTH = 64

function addWord(run: string, terms: string[]): void {
  if (run.length > MAX_WORD_LENGTH) return
  const parts = run.split(PART_BOUNDARY)
  if (parts.length > 1) for (const part of parts) addTerm(part, terms)
  addTerm(run, terms)
}

// Caches the term of each word, because most words of a collection are the same few thousand.
const cachedTerms = new Map<string, string | null>()
const MAX_CACHED_TERMS = 100_000

/** Clears the cached terms, which keep the texts of their words in memory. */
export const clearTermCache = (): void => cachedTerms.clear()

function addTerm(run: string, terms: string[]): void {
  let term = cachedTerms.get(run)
  if (term === undefined) {
    term = termOf(run)
    if (cachedTerms.size >= MAX_CACHED_TERMS) cachedTerms.clear()
    cachedTerms.set(run, term)
  }
  if (term !== null) terms.push(term)
}

function termOf(run: string): string | null {
  const plain = run.toLowerCase().normalize('NFD').replace(/\p{M}/gu, '')
  return plain === '' || STOP_WORDS.has(plain) ? null : stemWord(plain)
}

function addCharacterPairs(run: string, terms: string[]): void {
  const characters = [...run]
  if (characters.length === 1) terms.push(run)
  for (let i = 0; i + 1 < characters.length; i++) terms.push(characters[i]! + characters[i + 1]!)
}

/** Returns a 32-bit hash of a term (FNV-1a with a final mix). Among 100,000 terms, about one pair collides. */
export function hashTerm(term: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < term.length; i++) hash = Math.imul(hash ^ term.charCodeAt(i), 0x01000193)
  hash ^= hash >>> 16
  hash = Math.imul(hash, 0x85ebca6b)
  hash ^= hash >>> 13
  return hash >>> 0
}

// Articles, pronouns, prepositions, conjunctions, auxiliaries, remains of contractions, and question words.
const STOP_WORDS = new Set(
  `a about above across after afterwards again against ain all almost alone along already also although always am among
  amongst an and another any anybody anyhow anyone anything anyway anyways anywhere apart are aren around as aside at away
  b be became because become becomes becoming been before beforehand behind being below beside besides between beyond both
  but by c came can cannot cant come comes could couldn d did didn do does doesn doing don done down during e each either
  else elsewhere etc even ever every everybody everyone everything everywhere except f few for former formerly from
  further furthermore g get gets getting give given gives go goes going gone got h had hadn has hasn have haven having he
  hence her here hereafter hereby herein hers herself him himself his hither how howbeit however i ie if in inasmuch indeed
  instead into inward is isn it its itself j just k keep keeps kept know known knows l last lately later latter latterly
  least less lest let like likely ll m made mainly make makes many may maybe me meanwhile merely might mine more moreover
  most mostly much must my myself n namely near nearly neither never nevertheless next no nobody non none noone nor not
  nothing now nowhere o of off often on once one ones only onto or other others otherwise ought our ours ourselves out
  outside over own p per perhaps please possible probably q quite r rather re really regarding s said same saw say saying
  says see seeing seem seemed seeming seems seen self selves several shall she should shouldn since so some somebody
  somehow someone something sometime sometimes somewhat somewhere soon still such t take taken tell than that the their
  theirs them themselves then thence there thereafter thereby therefore therein thereof thereupon these they this those
  though through throughout thru thus to together too toward towards tried try trying u under unless unlike until unto up
  upon us use used useful uses using usually v ve various very via w want wants was wasn way we well went were weren what
  whatever when whence whenever where whereafter whereas whereby wherein whereupon wherever whether which while whither who
  whoever whole whom whose why will with within without won would wouldn x y yes yet you your yours yourself yourselves z`.split(
    /\s+/,
  ),
)
