import { parseLanguageTag } from '../../../tasks/voice/languages.ts'

// Whisper's names of languages that differ from the English names in CLDR
// (github.com/openai/whisper, whisper/tokenizer.py).
const WHISPER_NAMES: Readonly<Record<string, string>> = {
  bengali: 'bn',
  'haitian creole': 'ht',
  maori: 'mi',
  myanmar: 'my',
  nynorsk: 'nn',
  pashto: 'ps',
  tagalog: 'fil',
  cantonese: 'yue',
}

// Whisper's codes that differ from the canonical ones (whisper/tokenizer.py).
const WHISPER_CODES: Readonly<Record<string, string>> = { fil: 'tl', jv: 'jw', nb: 'no' }

let codes: ReadonlyMap<string, string> | null = null

/** Maps English names to ISO 639-1 codes. */
function mapNamesToCodes(): ReadonlyMap<string, string> {
  const names = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' })
  const letters = Array.from({ length: 26 }, (_, n) => String.fromCharCode(97 + n))
  const pairs = letters.flatMap((first) => letters.map((second) => first + second))
  return new Map(pairs.flatMap((code) => englishNames(names, code).map((name) => [name, code] as const)))
}

const englishNames = (names: Intl.DisplayNames, code: string): string[] => {
  // Skips deprecated codes: each has the same name as its replacement.
  if (Intl.getCanonicalLocales(code)[0] !== code) return []
  const name = names.of(code)
  return name === undefined ? [] : [name.toLowerCase()]
}

/** Returns the BCP 47 tag of a provider's language, given as a code or an English name (Whisper); null if unknown. */
export function findLanguageTag(language: string | null | undefined): string | null {
  const name = (language ?? '').trim().toLowerCase()
  codes ??= mapNamesToCodes()
  return WHISPER_NAMES[name] ?? codes.get(name) ?? parseLanguageTag(name.replaceAll('_', '-'))
}

/** Returns the code that providers expect for a BCP 47 tag: that of the language, without script and region. */
export function toProviderLanguage(tag: string): string {
  const { language } = new Intl.Locale(tag)
  return WHISPER_CODES[language] ?? language
}
