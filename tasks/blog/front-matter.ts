import { isDeep, isDeepJson } from './bounds.ts'
import { parseToml } from './toml.ts'
import { parseYaml } from './yaml.ts'

/** The front matter of a post, in the formats of the common site generators. */

/** A file can't be read as a post; the message tells the uploader why. */
export class Unreadable extends Error {
  /** The post's slug, if known. */
  slug: string | null = null
}

export interface Split {
  /** Keys and values, as they are written. */
  readonly matter: Readonly<Record<string, unknown>>
  /** What follows, byte for byte. */
  readonly body: string
}

// Anything longer is not front matter, and untrusted text must not take long to parse.
const MAX_CHARACTERS = 256 * 1024
// The YAML parser takes time quadratic in the length of a line for quotes.
const LONGEST_LINE = /.{10001}/

const EOL = '(?:\\r\\n|\\n|$)'
const FENCE = /^(---|\+\+\+)[ \t]*([a-z]+)?[ \t]*(?:\r\n|\n|$)/i
// A line begins after a line feed: `^` also matches after others such as U+2028, which a value may contain.
const END_OF_TOML = /(?<![^\n])\+\+\+[ \t]*(?:\r\n|\n|$)/
const END_OF_YAML = /(?<![^\n])(?:---|\.\.\.)[ \t]*(?:\r\n|\n|$)/
const END_OF_HEAD = /(?<![^\n])-{3,}[ \t]*(?:\r\n|\n|$)/
const KEY_LINE = /^[A-Za-z_][\w -]*:(?:[ \t]|\r?\n|$)/
const KNOWN = /^(title|date|slug|tags|categories|category|author|permalink|layout|status|draft|published)$/i

/** Splits a file into front matter and the post's text. @throws Unreadable when the front matter can't be read. */
export function splitFrontMatter(file: string): Split {
  const text = file.startsWith('\uFEFF') ? file.slice(1) : file
  const fence = FENCE.exec(text)
  if (fence !== null) return fenced(text, fence)
  if (/^\{\s*["}]/.test(text)) return jsonFirst(text)
  if (KEY_LINE.test(text)) return headerless(text) ?? metadata(text) ?? { matter: {}, body: text }
  return { matter: {}, body: text }
}

/** Between two fences of the same kind: `---` for YAML or the language named after it, `+++` for TOML. */
function fenced(text: string, [opening, kind, language]: RegExpExecArray): Split {
  const from = opening.length
  const end = kind === '+++' ? END_OF_TOML : END_OF_YAML
  const closing = end.exec(text.slice(from))
  if (closing === null) {
    if (kind === '+++' || KEY_LINE.test(text.slice(from)))
      throw new Unreadable('The front matter is not closed')
    // A thematic break, not front matter.
    return { matter: {}, body: text }
  }
  const block = text.slice(from, from + closing.index)
  const value = parsed(block, (language ?? (kind === '+++' ? 'toml' : 'yaml')).toLowerCase())
  const body = text.slice(from + closing.index + closing[0].length)
  if (value === null || value === undefined) return { matter: {}, body }
  return isMapping(value) ? { matter: value, body } : { matter: {}, body: text }
}

const LANGUAGES = new Map<string, readonly [name: string, parse: (text: string) => unknown]>([
  ['yaml', ['YAML', parseYaml]],
  ['yml', ['YAML', parseYaml]],
  ['toml', ['TOML', parseToml]],
  ['json', ['JSON', JSON.parse]],
])

function parsed(block: string, language: string): unknown {
  if (block.length > MAX_CHARACTERS) throw new Unreadable('The front matter is too long')
  const [name, parse] = LANGUAGES.get(language) ?? []
  if (parse === undefined)
    throw new Unreadable(`The front matter is in a language that is not supported: ${language}`)
  if (language === 'json' ? isDeepJson(block) : isDeep(block))
    throw new Unreadable('The front matter is nested too deeply')
  if (name === 'YAML' && LONGEST_LINE.test(block))
    throw new Unreadable('A line of the front matter is longer than 10000 characters')
  try {
    return block.trim() === '' ? null : parse(block)
  } catch (error) {
    // The parser recurses once per level.
    if (error instanceof RangeError) throw new Unreadable('The front matter is nested too deeply')
    const [reason] = String((error as Error).message).split('\n')
    throw new Unreadable(`The front matter is not valid ${name}: ${reason}`)
  }
}

/** Hugo's JSON: an object, followed by the text. */
function jsonFirst(text: string): Split {
  const end = endOfObject(text)
  if (end === -1) throw new Unreadable('The front matter is not closed')
  const value = parsed(text.slice(0, end), 'json')
  const [gap] = new RegExp(`^[ \\t]*${EOL}`).exec(text.slice(end)) ?? ['']
  return { matter: value as Record<string, unknown>, body: text.slice(end + gap.length) }
}

function endOfObject(text: string): number {
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

/** Hexo's: YAML from the first line on, with `---` only at its end, and no empty line in it. */
function headerless(text: string): Split | null {
  const end = END_OF_HEAD.exec(text.slice(0, MAX_CHARACTERS))
  if (end === null || /\n[ \t]*\r?\n/.test(text.slice(0, end.index))) return null
  // An underlined heading has the same shape: that it is not YAML is no error.
  if (!KNOWN.test(text.slice(0, text.indexOf(':')))) return null
  const value = parsed(text.slice(0, end.index), 'yaml')
  if (!isMapping(value)) return null
  return { matter: value, body: text.slice(end.index + end[0].length) }
}

/** Pelican's: lines `Key: value` up to an empty one; an indented line continues the one before. */
function metadata(text: string): Split | null {
  const end = /(?:\r\n|\n)[ \t]*(?:\r\n|\n|$)/.exec(text)
  const block = text.slice(0, end?.index ?? text.length)
  const matter: Record<string, unknown> = {}
  let last = ''
  for (const line of block.split(/\r?\n/)) {
    const [, key, value] = /^([A-Za-z][\w-]*)[ \t]*:[ \t]*(.*)$/.exec(line) ?? []
    if (key !== undefined) {
      last = key
      matter[key] = value!.trim()
    } else if (/^\s+\S/.test(line) && last !== '') matter[last] = `${matter[last]}\n${line.trim()}`
    else return null
  }
  if (!Object.keys(matter).some((key) => KNOWN.test(key))) return null
  return { matter, body: end === null ? '' : text.slice(end.index + end[0].length) }
}

export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
