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
  /** True if the text begins with what may be front matter in an unknown form. Such a post must not become public. */
  readonly isDoubtful: boolean
}

type FoundBlock = Omit<SplitFile, 'isDoubtful'>

// More characters than any real front matter has. Bounds the time to parse untrusted text.
const MAX_CHARACTERS = 256 * 1024
// Matches a line on which the YAML parser could take too long: its time is quadratic in the number of quotes.
const LONG_LINE = /.{10001}/

const EOL = '(?:\\r\\n|\\n|$)'
const FENCE = /^([ \t]*)(-{3,}|\+{3,}|;{3,})[ \t]*([a-z]+)?[ \t]*(?:#[^\r\n]*)?(?:\r\n|\n|$)/i
// Only a line feed starts a line. `^` would also match after characters such as U+2028, which values may contain.
const buildClosing = (indent: string, fence: string): RegExp =>
  new RegExp(`(?<![^\\n])${indent === '' ? '' : '[ \\t]*'}${fence}[ \\t]*${EOL}`)
const CLOSINGS = { '-': '(?:-{3,}|\\.\\.\\.)', '+': '\\+{3,}', ';': ';{3,}' } as const
const LANGUAGES = { '-': 'yaml', '+': 'toml', ';': 'json' } as const
const END_OF_HEAD = buildClosing('', '-{3,}')
const END_OF_JSON_HEAD = buildClosing('', ';{3,}')
const KEY_LINE = /^[A-Za-z_][\w -]*:(?:[ \t]|\r?\n|$)/
const KNOWN_KEYS =
  'title|date|slug|tags|categories|category|author|permalink|layout|status|draft|publish|published|private|unlisted'
const KNOWN_KEY = new RegExp(`^(?:${KNOWN_KEYS})$`, 'i')

/** Splits a file into front matter and the post's text. @throws UnreadablePostError if the front matter is invalid. */
export function splitFrontMatter(file: string): SplitFile {
  const marked = file.startsWith('\uFEFF') ? file.slice(1) : file
  // Files of old Macs end their lines with a carriage return alone.
  const text = marked.includes('\n') ? marked : marked.replaceAll('\r', '\n')
  const start = findStart(text)
  const found = findBlock(text.slice(start))
  if (found === null) return { frontMatter: {}, body: text, isDoubtful: isDoubtful(text) }
  const isEmpty = Object.keys(found.frontMatter).length === 0
  return { ...found, isDoubtful: isDoubtful(isEmpty ? text : text.slice(0, start)) }
}

/** Finds the front matter at the start of a text; null if there is none. */
function findBlock(text: string): FoundBlock | null {
  const fence = FENCE.exec(text)
  if (fence !== null) return parseFencedBlock(text, fence)
  if (/^[ \t]*\{\s*["}]/.test(text)) return parseJsonHead(text)
  if (/^"\w+"\s*:/.test(text)) return parseHexoJsonHead(text)
  return KEY_LINE.test(text) ? (parseHexoPost(text) ?? parsePelicanPost(text)) : null
}

const SKIPPED = [
  /[\s\uFEFF\u200B]*\n/y,
  /[ \t\uFEFF\u200B]*(?:<!--[\s\S]*?-->|\{\/\*[\s\S]*?\*\/\})/y,
  /[\uFEFF\u200B]+/y,
]

/** Returns where front matter may start: after blank lines, comments and byte order marks, as in Hugo. */
function findStart(text: string): number {
  for (let at = 0; ; ) {
    const end = Math.max(...SKIPPED.map((skipped) => matchEnd(skipped, text, at)))
    if (end === at) return at
    at = end
  }
}

function matchEnd(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}

// Number of characters at the start of a text that are checked for unknown forms of front matter.
const CHECKED_CHARACTERS = 4000
const KEY_AFTER_FENCE = new RegExp(
  `^[ \\t>]*(?:[-+;~=*%]{3,}|\`{3}|<!--|/\\*)[^\\n]*\\n(?:[ \\t]*(?:#[^\\n]*)?\\r?\\n)*[ \\t.:"'%]*(?:${KNOWN_KEYS})["']?[ \\t]*[:=]`,
  'im',
)
const VISIBILITY_LINE =
  /^[ \t.:>,{"'#%+-]*(?:draft|publish|published|private|unlisted|hidden)["']?[ \t]*[:=][ \t]*["']?(?:true|false|yes|no|on|off|[yn01])["']?[ \t]*[,}]?[ \t]*\r?$/im
const STATUS_LINE =
  /^[ \t.:>,{"'#%+-]*(?:status|visibility)["']?[ \t]*[:=][ \t]*["']?(?:draft|private|pending|hidden|scheduled|future|unlisted)\b/im
const EXPORTED_METADATA = /^export const (?:front_?matter|meta|metadata)\b/im

/** True if the start of a text looks like front matter: a fence before a known key, or a line that hides the post. */
function isDoubtful(text: string): boolean {
  const start = text.slice(0, CHECKED_CHARACTERS)
  return [KEY_AFTER_FENCE, VISIBILITY_LINE, STATUS_LINE, EXPORTED_METADATA].some((form) => form.test(start))
}

/**
 * Parses a block between two fences. The fence `+++` means TOML and `;;;` means JSON. The fence `---` means YAML, unless
 * a language is named after it. Null if the fence is a thematic break.
 */
function parseFencedBlock(
  text: string,
  [opening, indent, fence, language]: RegExpExecArray,
): FoundBlock | null {
  const kind = fence![0] as keyof typeof CLOSINGS
  const from = opening.length
  const closing = buildClosing(indent!, CLOSINGS[kind]).exec(text.slice(from))
  if (closing === null) {
    if (kind !== '-' || KEY_LINE.test(text.slice(from)))
      throw new UnreadablePostError('The front matter is not closed')
    return null
  }
  const block = text.slice(from, from + closing.index)
  const value = parseBlock(block, (language ?? LANGUAGES[kind]).toLowerCase())
  const body = text.slice(from + closing.index + closing[0].length)
  if (value === null || value === undefined) return { frontMatter: {}, body }
  return isMapping(value) ? { frontMatter: value, body } : null
}

/** Parses an object, whose braces Hexo and Middleman leave out. */
const parseJson = (text: string): unknown => JSON.parse(/^\s*\{/.test(text) ? text : `{${text}}`)

const PARSERS = new Map<string, readonly [name: string, parse: (text: string) => unknown]>([
  ['yaml', ['YAML', parseYaml]],
  ['yml', ['YAML', parseYaml]],
  ['toml', ['TOML', parseToml]],
  ['json', ['JSON', parseJson]],
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
function parseJsonHead(text: string): FoundBlock {
  const end = findObjectEnd(text)
  if (end === -1) throw new UnreadablePostError('The front matter is not closed')
  const value = parseBlock(text.slice(0, end), 'json')
  const [gap] = new RegExp(`^[ \\t]*${EOL}`).exec(text.slice(end)) ?? ['']
  return { frontMatter: value as Record<string, unknown>, body: text.slice(end + gap.length) }
}

/** Parses Hexo's JSON format: an object without braces, closed by `;;;`. Null for other formats. */
function parseHexoJsonHead(text: string): FoundBlock | null {
  const end = END_OF_JSON_HEAD.exec(text.slice(0, MAX_CHARACTERS))
  if (end === null) return null
  const value = parseBlock(text.slice(0, end.index), 'json')
  return { frontMatter: value as Record<string, unknown>, body: text.slice(end.index + end[0].length) }
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
function parseHexoPost(text: string): FoundBlock | null {
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
function parsePelicanPost(text: string): FoundBlock | null {
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
