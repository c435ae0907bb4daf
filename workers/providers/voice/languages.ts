// Whisper's names of languages that differ from the English names in CLDR
// (github.com/openai/whisper, whisper/tokenizer.py).
const WHISPER_NAMES: Readonly<Record<string, string>> = {
  bengali: 'bn',
  'haitian creole': 'ht',
  maori: 'mi',
  myanmar: 'my',
  nynorsk: 'nn',
  pashto: 'ps',
  tagalog: 'tl',
  cantonese: 'yue',
}

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

/** Returns the ISO 639 code of a provider's language, given as a code or an English name (Whisper); null if unknown. */
export function findLanguageCode(language: string | null | undefined): string | null {
  const name = (language ?? '').trim().toLowerCase()
  if (/^[a-z]{2,3}$/.test(name)) return name
  codes ??= mapNamesToCodes()
  return WHISPER_NAMES[name] ?? codes.get(name) ?? null
}
