import { isJsonNestedTooDeeply, isNestedTooDeeply } from './bounds.ts'
import { parseToml } from './toml.ts'
import { parseYaml } from './yaml.ts'

/** Splits front matter from posts, in the formats of common site generators. */

/** Thrown for a file that is not a valid post. The uploader sees the message. */
export class UnreadablePostError extends Error {
  /** The post's slug; null if unknown. */
  slug: string | null = null
}

export interface SplitFile {
  /** Parsed keys and values. */
  readonly frontMatter: Readonly<Record<string, unknown>>
  /** The text after the front matter, unchanged. */
  readonly body: string
}

// More characters than any real front matter has. Bounds the time to parse untrusted text.
const MAX_CHARACTERS = 256 * 1024
// Matches a line on which the YAML parser could take too long: its time is quadratic in the number of quotes.
const LONG_LINE = /.{10001}/

const EOL = '(?:\\r\\n|\\n|$)'
const FENCE = /^(---|\+\+\+)[ \t]*([a-z]+)?[ \t]*(?:\r\n|\n|$)/i
// Only a line feed starts a line. `^` would also match after characters such as U+2028, which values may contain.
const END_OF_TOML = /(?<![^\n])\+\+\+[ \t]*(?:\r\n|\n|$)/
const END_OF_YAML = /(?<![^\n])(?:---|\.\.\.)[ \t]*(?:\r\n|\n|$)/
const END_OF_HEAD = /(?<![^\n])-{3,}[ \t]*(?:\r\n|\n|$)/
const KEY_LINE = /^[A-Za-z_][\w -]*:(?:[ \t]|\r?\n|$)/
const KNOWN_KEY =
  /^(title|date|slug|tags|categories|category|author|permalink|layout|status|draft|published)$/i

/** Splits a file into front matter and the post's text. @throws UnreadablePostError if the front matter is invalid. */
export function splitFrontMatter(file: string): SplitFile {
  const text = file.startsWith('\uFEFF') ? file.slice(1) : file
  const fence = FENCE.exec(text)
  if (fence !== null) return parseFencedBlock(text, fence)
  if (/^\{\s*["}]/.test(text)) return parseJsonHead(text)
  if (KEY_LINE.test(text))
    return parseHexoPost(text) ?? parsePelicanPost(text) ?? { frontMatter: {}, body: text }
  return { frontMatter: {}, body: text }
}

/**
 * Parses a block between two fences. The fence `+++` means TOML. The fence `---` means YAML, unless a language is named
 * after it.
 */
function parseFencedBlock(text: string, [opening, kind, language]: RegExpExecArray): SplitFile {
  const from = opening.length
  const end = kind === '+++' ? END_OF_TOML : END_OF_YAML
  const closing = end.exec(text.slice(from))
  if (closing === null) {
    if (kind === '+++' || KEY_LINE.test(text.slice(from)))
      throw new UnreadablePostError('The front matter is not closed')
    // The line is a thematic break, not a fence.
    return { frontMatter: {}, body: text }
  }
  const block = text.slice(from, from + closing.index)
  const value = parseBlock(block, (language ?? (kind === '+++' ? 'toml' : 'yaml')).toLowerCase())
  const body = text.slice(from + closing.index + closing[0].length)
  if (value === null || value === undefined) return { frontMatter: {}, body }
  return isMapping(value) ? { frontMatter: value, body } : { frontMatter: {}, body: text }
}

const PARSERS = new Map<string, readonly [name: string, parse: (text: string) => unknown]>([
  ['yaml', ['YAML', parseYaml]],
  ['yml', ['YAML', parseYaml]],
  ['toml', ['TOML', parseToml]],
  ['json', ['JSON', JSON.parse]],
])

function parseBlock(block: string, language: string): unknown {
  if (block.length > MAX_CHARACTERS) throw new UnreadablePostError('The front matter is too long')
  const [name, parse] = PARSERS.get(language) ?? []
  if (parse === undefined)
    throw new UnreadablePostError(`The front matter language is not supported: ${language}`)
  if (language === 'json' ? isJsonNestedTooDeeply(block) : isNestedTooDeeply(block))
    throw new UnreadablePostError('The front matter is nested too deeply')
  if (name === 'YAML' && LONG_LINE.test(block))
    throw new UnreadablePostError('A line of the front matter is longer than 10000 characters')
  try {
    return block.trim() === '' ? null : parse(block)
  } catch (error) {
    // The parser recurses once per level, which may overflow the stack.
    if (error instanceof RangeError) throw new UnreadablePostError('The front matter is nested too deeply')
    const [reason] = String((error as Error).message).split('\n')
    throw new UnreadablePostError(`The front matter is not valid ${name}: ${reason}`)
  }
}

/** Parses Hugo's JSON format: an object followed by the text. */
function parseJsonHead(text: string): SplitFile {
  const end = findObjectEnd(text)
  if (end === -1) throw new UnreadablePostError('The front matter is not closed')
  const value = parseBlock(text.slice(0, end), 'json')
  const [gap] = new RegExp(`^[ \\t]*${EOL}`).exec(text.slice(end)) ?? ['']
  return { frontMatter: value as Record<string, unknown>, body: text.slice(end + gap.length) }
}

function findObjectEnd(text: string): number {
  let [depth, quoted] = [0, false]
  for (let i = 0; i < text.length && i <= MAX_CHARACTERS; i++) {
    const character = text[i]
    if (character === '\\' && quoted) i++
    else if (character === '"') quoted = !quoted
    else if (quoted) continue
    else if (character === '{') depth++
    else if (character === '}' && --depth === 0) return i + 1
  }
  return -1
}

/** Parses Hexo's format: YAML without empty lines from the first line, closed by `---`. Null for other formats. */
function parseHexoPost(text: string): SplitFile | null {
  const end = END_OF_HEAD.exec(text.slice(0, MAX_CHARACTERS))
  if (end === null || /\n[ \t]*\r?\n/.test(text.slice(0, end.index))) return null
  // A Markdown heading underlined with `---` looks the same, so treat an unknown key as text, not as an error.
  if (!KNOWN_KEY.test(text.slice(0, text.indexOf(':')))) return null
  const value = parseBlock(text.slice(0, end.index), 'yaml')
  if (!isMapping(value)) return null
  return { frontMatter: value, body: text.slice(end.index + end[0].length) }
}

/**
 * Parses Pelican's format: lines `Key: value` up to an empty line; an indented line continues the previous one. Null
 * for other formats.
 */
function parsePelicanPost(text: string): SplitFile | null {
  const end = /(?:\r\n|\n)[ \t]*(?:\r\n|\n|$)/.exec(text)
  const block = text.slice(0, end?.index ?? text.length)
  const frontMatter: Record<string, unknown> = {}
  let lastKey = ''
  for (const line of block.split(/\r?\n/)) {
    const [, key, value] = /^([A-Za-z][\w-]*)[ \t]*:[ \t]*(.*)$/.exec(line) ?? []
    if (key !== undefined) {
      lastKey = key
      frontMatter[key] = value!.trim()
    } else if (/^\s+\S/.test(line) && lastKey !== '')
      frontMatter[lastKey] = `${frontMatter[lastKey]}\n${line.trim()}`
    else return null
  }
  if (!Object.keys(frontMatter).some((key) => KNOWN_KEY.test(key))) return null
  return { frontMatter, body: end === null ? '' : text.slice(end.index + end[0].length) }
}

export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
