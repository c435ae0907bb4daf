// What Whisper calls a language where that is not its English name in CLDR
// (github.com/openai/whisper, whisper/tokenizer.py).
const ITS_OWN: Readonly<Record<string, string>> = {
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

/** English names of the languages that ISO 639-1 has a code for. */
function codesByName(): ReadonlyMap<string, string> {
  const names = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' })
  const letters = Array.from({ length: 26 }, (_, n) => String.fromCharCode(97 + n))
  const pairs = letters.flatMap((first) => letters.map((second) => first + second))
  return new Map(pairs.flatMap((code) => nameOf(names, code).map((name) => [name, code] as const)))
}

const nameOf = (names: Intl.DisplayNames, code: string): string[] => {
  // A deprecated code has the name of the one that has replaced it, which is the one to be found.
  if (Intl.getCanonicalLocales(code)[0] !== code) return []
  const name = names.of(code)
  return name === undefined ? [] : [name.toLowerCase()]
}

/** The code (ISO 639) of a language that a provider names, by a code or in English as Whisper does; null: not known. */
export function languageCode(named: string | null | undefined): string | null {
  const name = (named ?? '').trim().toLowerCase()
  if (/^[a-z]{2,3}$/.test(name)) return name
  codes ??= codesByName()
  return ITS_OWN[name] ?? codes.get(name) ?? null
}
