import { createRequire } from 'node:module'
import { decodeLatin1, EXTRA_ENCODINGS, findMarkedEncoding, findUnmarkedUtf16, isUtf8 } from './encodings.ts'

/** Decodes text of any encoding. No other module imports `jschardet` and `iconv-lite`. */

const require = createRequire(import.meta.url)
// Both load on first use: most texts are UTF-8, and the models of the detector have 1 MB.
const loadDetector = () => require('jschardet') as typeof import('jschardet')
const loadIconv = () => require('iconv-lite') as typeof import('iconv-lite')

export interface DecodedText {
  readonly text: string
  /** The encoding, as in a `charset` parameter. */
  readonly encoding: string
}

export interface EncodingHints {
  /** The encoding that a person named, which decides; null if none did. Names are those of `resolveEncoding`. */
  readonly given?: string | null
  /** The encoding that the file declares, which counts only if the bytes prove no other one. */
  readonly declared?: string | null
}

/**
 * Decodes a text. A byte order mark decides, then `given`. Then UTF-16 without a mark, UTF-8, `declared` and the
 * statistics of letters in all languages follow. Null if none fits: the text would be garbage. Drops NUL, with which
 * programs pad logs.
 */
export function decodeText(
  bytes: Uint8Array,
  { given = null, declared = null }: EncodingHints = {},
): DecodedText | null {
  const certain = findMarkedEncoding(bytes)
  if (certain !== null) return decodeAs(bytes, certain)
  if (given !== null) return decodeSoundly(bytes, given)
  const unpadded = dropNul(bytes)
  const wide = findUnmarkedUtf16(bytes)
  if (wide !== null) return decodeAs(bytes, wide)
  const plain = findIso2022(unpadded) ?? (isUtf8(unpadded) ? 'utf-8' : null)
  if (plain !== null) return decodeAs(unpadded, plain)
  const asDeclared = declared === null ? null : decodeSoundly(unpadded, declared)
  if (asDeclared !== null) return asDeclared
  const asUtf8 = decodeAs(unpadded, 'utf-8')
  const damage = measureDamage(asUtf8.text)
  if (damage <= MAX_DAMAGED_UTF8_SHARE) return asUtf8
  if (damage <= MAX_MIXED_UTF8_SHARE && UTF8_LINE.test(asUtf8.text)) return null
  const detected = detectEncoding(takeSample(unpadded))
  return detected === null ? null : decodeSoundly(unpadded, detected)
}

function decodeSoundly(bytes: Uint8Array, encoding: string): DecodedText | null {
  const decoded = decodeAs(bytes, encoding)
  return isSound(decoded.text) ? decoded : null
}

/** Decodes bytes in an encoding that the caller knows. Bytes that it does not define become U+FFFD or controls. */
export function decodeAs(bytes: Uint8Array, encoding: string): DecodedText {
  // `stream` drops an incomplete character at the end of a large text, which may be cut.
  const text = EXTRA_ENCODINGS.has(encoding)
    ? loadIconv().decode(bytes, encoding)
    : new TextDecoder(encoding).decode(bytes, { stream: bytes.length >= SAMPLE_BYTES })
  return { text, encoding }
}

const dropNul = (bytes: Uint8Array): Uint8Array =>
  bytes.includes(0) ? bytes.filter((byte) => byte !== 0) : bytes

// Real texts have a few damaged characters; a wrong encoding damages many of those beyond ASCII.
const MAX_DAMAGED_SHARE = 0.02
// Valid characters of UTF-8 are rare by chance, so a text with up to this share of damage is damaged UTF-8. With more
// damage, UTF-8 and another encoding are mixed.
const MAX_DAMAGED_UTF8_SHARE = 0.25
const MAX_MIXED_UTF8_SHARE = 0.6
// Matches a line with several characters beyond ASCII, none of them damaged.
const UTF8_LINE = /^(?=[^\n]*\P{ASCII}[^\n]*\P{ASCII})[^\n\ufffd]*$/mu

/** True if a text has hardly any undefined bytes, which a wrong encoding yields. */
const isSound = (text: string): boolean => measureDamage(text) <= MAX_DAMAGED_SHARE

/** Returns the share of undefined characters and controls among the characters beyond ASCII. */
function measureDamage(text: string): number {
  let damaged = 0
  let all = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x80) continue
    all++
    if (code === 0xfffd || code < 0xa0 || (code >= 0xe000 && code < 0xf900)) damaged++
  }
  return all === 0 ? 0 : damaged / all
}

// Escape sequences of ISO-2022-JP. Other texts with escapes are coloured logs (`ESC [`).
const ISO_2022_JP = /\p{Cc}(?:\$[@B]|\([BJI])/u
const SAMPLE_BYTES = 64 * 1024

/** Returns `iso-2022-jp` for a text in it, which consists of ASCII bytes. */
function findIso2022(bytes: Uint8Array): string | null {
  const at = bytes.indexOf(0x1b)
  if (at === -1 || !ISO_2022_JP.test(decodeLatin1(bytes.subarray(at, at + SAMPLE_BYTES)))) return null
  return isSound(decodeAs(bytes, 'iso-2022-jp').text) ? 'iso-2022-jp' : null
}

/** Returns the part of a text that the detector reads: from the line of the first byte beyond ASCII on. */
function takeSample(bytes: Uint8Array): Uint8Array {
  const first = bytes.findIndex((byte) => byte >= 0x80)
  const start = bytes.length <= SAMPLE_BYTES ? 0 : bytes.lastIndexOf(0x0a, first) + 1
  const from = Math.max(start, first - SAMPLE_BYTES / 2)
  // The detector takes texts with control characters for other files.
  return bytes.slice(from, from + SAMPLE_BYTES).map((byte) => (byte < 0x20 && !isSpace(byte) ? 0x20 : byte))
}

const isSpace = (byte: number): boolean => byte === 0x09 || byte === 0x0a || byte === 0x0d

// Names of the detector and of `TextDecoder`. The detector knows more, which would only be chance hits.
const DETECTED: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...Object.fromEntries([...'012345678'].map((n) => [`windows-125${n}`, `windows-125${n}`])),
    cp1258: 'windows-1258',
    cp874: 'windows-874',
    cp932: 'shift_jis',
    'euc-jp': 'euc-jp',
    'euc-jis-2004': 'euc-jp',
    cp949: 'euc-kr',
    'euc-kr': 'euc-kr',
    gb18030: 'gb18030',
    big5hkscs: 'big5',
    big5: 'big5',
    'koi8-r': 'koi8-r',
    'koi8-u': 'koi8-u',
    ...Object.fromEntries(
      [2, 5, 6, 7, 8, 9, 13, 15].map((n) => [`iso-8859-${n}`, n === 9 ? 'windows-1254' : `iso-8859-${n}`]),
    ),
    'iso8859-15': 'iso-8859-15',
    cp437: 'cp437',
    cp850: 'cp850',
    cp852: 'cp852',
    cp857: 'cp857',
    cp862: 'cp862',
    cp866: 'ibm866',
    ibm866: 'ibm866',
    'mac-roman': 'macintosh',
    macroman: 'macintosh',
    'mac-cyrillic': 'x-mac-cyrillic',
    maccyrillic: 'x-mac-cyrillic',
  }),
)
const MULTI_BYTE = new Set(['shift_jis', 'euc-jp', 'euc-kr', 'gb18030', 'big5'])
// Pairs that differ in rare letters only: a close second does not make the first one doubtful.
const SIMILAR = [new Set(['windows-1251', 'x-mac-cyrillic']), new Set(['koi8-r', 'koi8-u'])]

interface Candidate {
  readonly encoding: string
  readonly confidence: number
  readonly text: string
}

function detectEncoding(sample: Uint8Array): string | null {
  const candidates = listCandidates(sample)
  const best = candidates[0]
  if (best === undefined) return null
  if (isLatin(sample)) return chooseLatin(candidates)
  return chooseOther(addCapitals(candidates, sample), countHighBytes(sample))
}

/** Lists the possible encodings, the most likely first. If several yield the same text, only the most common counts. */
function listCandidates(sample: Uint8Array, among = [...DETECTED.keys()]): readonly Candidate[] {
  const options = { detectEncodings: among, minimumThreshold: 0 }
  const found = new Map<string, Candidate>()
  for (const { encoding: name, confidence } of loadDetector().detectAll(sample, options)) {
    const encoding = DETECTED.get(name?.toLowerCase() ?? '')
    if (encoding === undefined) continue
    const { text } = decodeAs(sample, encoding)
    const same = found.get(text)
    if (same !== undefined && rankOf(encoding) > rankOf(same.encoding)) found.set(text, { ...same, encoding })
    else if (same === undefined && isSound(text) && !hasOddWords(text))
      found.set(text, { encoding, confidence, text })
  }
  return [...found.values()]
}

const rankOf = (encoding: string): number =>
  encoding === WESTERN ? 2 : encoding.startsWith('windows-') ? 1 : 0

// A wrong encoding turns letters with accents into symbols, capitals or letters of another script within words, such as
// `Caf‚s`, `MŸller` and `Grפßה`. Han and kana do stand next to Latin letters.
const ODD_IN_WORD = new RegExp(
  [
    '[A-Za-z](?![\\p{L}\\p{M}’‘·…\\u00ad\\u2010-\\u2015])\\P{ASCII}(?=[A-Za-z])',
    '[A-Za-z][‚„ˆ]',
    '[a-z](?=\\p{Lu})\\P{ASCII}',
    '[A-Za-z][\\p{sc=Cyrillic}\\p{sc=Greek}\\p{sc=Hebrew}\\p{sc=Arabic}\\p{sc=Thai}]',
  ].join('|'),
  'gu',
)
const MAX_ODD_SHARE = 0.1

function hasOddWords(text: string): boolean {
  const odd = countMatches(text, ODD_IN_WORD)
  return odd > 0 && odd > MAX_ODD_SHARE * countMatches(text, /\P{ASCII}/gu)
}

const countHighBytes = (bytes: Uint8Array): number =>
  bytes.reduce((count, byte) => count + (byte >= 0x80 ? 1 : 0), 0)

// In texts with so few bytes beyond ASCII, one ASCII letter makes all Latin.
const MAX_FEW_HIGH_BYTES = 4

/** True if most letters of a text are ASCII letters, as in Latin script with accents. */
function isLatin(bytes: Uint8Array): boolean {
  // Sets the bit of lower case.
  const isLetter = (byte: number): boolean => byte < 0x80 && (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a
  const ascii = bytes.reduce((count, byte) => count + (isLetter(byte) ? 1 : 0), 0)
  const high = countHighBytes(bytes)
  return ascii > high || (ascii > 0 && high <= MAX_FEW_HIGH_BYTES)
}

// Symbols and few accents prove little, and most texts in Latin script that are not UTF-8 are in windows-1252.
const WESTERN = 'windows-1252'
const WESTERN_SHARE = 0.85
const FEW_ACCENTS_CONFIDENCE = 0.08

function chooseLatin(candidates: readonly Candidate[]): string {
  const best = candidates[0]!
  const western = candidates.find(({ encoding }) => encoding === WESTERN)
  if (western !== undefined && !/(?![A-Za-z])\p{L}/u.test(western.text)) return WESTERN
  const isDoubtful = best.confidence < FEW_ACCENTS_CONFIDENCE
  return isDoubtful && western !== undefined && western.confidence >= WESTERN_SHARE * best.confidence
    ? WESTERN
    : best.encoding
}

// Scripts with capitals, in which the models know hardly more than small letters.
const CASED = ['windows-1251', 'koi8-r', 'koi8-u', 'ibm866', 'iso-8859-5', 'windows-1253']
const CASE_SAMPLE_BYTES = 4096

/** Scores the encodings of Cyrillic and Greek again, with small letters, if the text is in capitals in them. */
function addCapitals(candidates: readonly Candidate[], sample: Uint8Array): readonly Candidate[] {
  const head = sample.subarray(0, CASE_SAMPLE_BYTES)
  const others = candidates.filter(({ encoding }) => !CASED.includes(encoding))
  const cased = CASED.flatMap((encoding) => {
    const { text } = decodeAs(head, encoding)
    const known = candidates.find((candidate) => candidate.encoding === encoding)
    if (!isSound(text) || !isInCapitals(text)) return known ?? []
    const small = loadIconv().encode(text.toLowerCase(), encoding)
    const [scored] = listCandidates(small, [encoding, WESTERN]).filter((one) => one.encoding === encoding)
    const confidence = Math.max(known?.confidence ?? 0, scored?.confidence ?? 0)
    return confidence === 0 ? [] : [{ encoding, text, confidence }]
  })
  return [...others, ...cased].sort((a, b) => b.confidence - a.confidence)
}

const countMatches = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0

const isInCapitals = (text: string): boolean =>
  countMatches(text, /\p{Lu}/gu) > 3 * countMatches(text, /\p{Ll}/gu)

const MIN_WORD_SHARE = 0.8

/** True if most characters beyond ASCII are letters and punctuation. */
const hasWords = (text: string): boolean =>
  countMatches(text, /(?!\p{ASCII})[\p{L}\p{M}\p{N}\p{P}]/gu) >=
  MIN_WORD_SHARE * countMatches(text, /\P{ASCII}/gu)

const MIN_HIGH_BYTES = 7
const MIN_CONFIDENCE = { multi: 0.04, single: 0.05 }
const MIN_LEAD = 1.5
const MIN_CLEAR_CONFIDENCE = 0.2
const MIN_CLEAR_LEAD = 1.25

/** True for windows-1251 without the letters that begin words if the encoding is really that of Macs. */
const isRussian = ({ encoding, text }: Candidate): boolean =>
  encoding === 'windows-1251' && !/[ЂЃ‚ѓ„…†‡€‰Љ‹ЊЌЋЏђљњќћџ]\p{L}/u.test(text)

/** Chooses the encoding of another script, in which nearly every byte is a guess; null if another one is as likely. */
function chooseOther(candidates: readonly Candidate[], highBytes: number): string | null {
  const best = candidates[0]!
  if (best.encoding === 'x-mac-cyrillic' && candidates.some(isRussian)) return 'windows-1251'
  if (!hasWords(best.text)) return null
  const isMulti = MULTI_BYTE.has(best.encoding)
  if (!isMulti && highBytes < MIN_HIGH_BYTES) return null
  if (best.confidence < (isMulti ? MIN_CONFIDENCE.multi : MIN_CONFIDENCE.single)) return null
  const rival = candidates.find(
    ({ encoding }) =>
      encoding !== best.encoding && !SIMILAR.some((pair) => pair.has(encoding) && pair.has(best.encoding)),
  )
  const lead = best.confidence >= MIN_CLEAR_CONFIDENCE ? MIN_CLEAR_LEAD : MIN_LEAD
  return rival === undefined || best.confidence >= lead * rival.confidence ? best.encoding : null
}
