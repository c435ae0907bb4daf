/**
 * Reads the expected fields of a post from its file, independently of the importer. It parses line by line, without a
 * YAML or TOML parser. It interprets keys as CONTRACT describes and authors usually write them.
 */

export interface Expected {
  readonly title: string
  /**
   * The expected slug; '' if this checker does not transliterate the script. Even then, the importer's slug must be
   * ASCII.
   */
  readonly slug: string
  /** The expected date; null if it must be the time of the import. */
  readonly date: string | null
  readonly tags: readonly string[]
  readonly status: 'draft' | 'published' | 'archived'
  readonly body: string
}

export interface Found {
  readonly title: string
  readonly slug: string
  readonly content: string
  readonly status: string
  readonly date: string
  readonly is_new: boolean
  readonly tags: readonly string[]
}

/**
 * Maps keys, in lower case without separators, to unparsed values with their line breaks. A TOML string in three single
 * quotes becomes a JSON string.
 */
type Frontmatter = Map<string, string>

interface Parts {
  readonly head: Frontmatter
  readonly body: string
}

export function readExpected(path: string, raw: string): Expected {
  const { head, body } = splitParts(raw.replace(/^\uFEFF/, ''))
  const { stem, day } = parseName(path)
  const slug = readSlug(head) || transliterate(stem)
  return {
    title: readTitle(head, body, slug).trim(),
    slug,
    date: readDate(head, day),
    tags: readTags(head),
    status: readStatus(head, path),
    body,
  }
}

/** Returns a description of the differences from the expected post; '' if there are none. */
export function describeMistakes(expected: Expected, found: Found | undefined): string {
  if (found === undefined) return `no post with the slug ${expected.slug}`
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(found.slug)) return `an invalid slug: ${found.slug}`
  const wrong: string[] = []
  const compare = (what: string, is: string, ought: string): void => {
    if (is !== ought) wrong.push(`${what} is ${JSON.stringify(is)}, not ${JSON.stringify(ought)}`)
  }
  compare('title', found.title, expected.title)
  compare('status', found.status, expected.status)
  compare('tags', found.tags.join(), [...expected.tags].sort().join())
  if (expected.date === null) compare('date', found.is_new ? 'now' : found.date, 'now')
  else compare('date', found.date, expected.date)
  if (found.content !== expected.body) wrong.push('the content differs')
  return wrong.join('; ')
}

function splitParts(text: string): Parts {
  const lines = text.split('\n')
  const first = lines[0]!.trimEnd()
  const end = (mark: string, from: number): number =>
    lines.findIndex((line, i) => i >= from && line.trimEnd() === mark)
  const upTo = (from: number, close: number): Parts => ({
    head: parseHead(lines.slice(from, close)),
    body: lines.slice(close + 1).join('\n'),
  })
  if (first === '---' || first === '+++') {
    const close = end(first, 1)
    return close === -1 ? { head: new Map(), body: text } : upTo(1, close)
  }
  // If the first line contains a known key, the keys end at `---` or at the first empty line, whichever comes first.
  if (/^(title|date|slug|layout|tags): ?/i.test(first)) {
    const close = end('---', 0)
    const empty = lines.findIndex((line) => line.trim() === '')
    if (close !== -1 && (empty === -1 || close < empty)) return upTo(0, close)
    return upTo(0, empty === -1 ? lines.length : empty)
  }
  return { head: new Map(), body: text }
}

function parseHead(lines: readonly string[]): Frontmatter {
  const head: Frontmatter = new Map()
  let key = ''
  let table = ''
  for (const line of lines) {
    const section = /^\[([\w.]+)\]\s*$/.exec(line)
    const found = /^([A-Za-z][\w-]*) ?(:|=)(?: +|$|\t)(.*)$/.exec(line.trimEnd())
    if (section !== null) table = section[1]!
    else if (found !== null) {
      key = table + found[1]!.toLowerCase().replace(/[-_]/g, '')
      // In TOML, three single quotes delimit a string. In YAML, they are a quote and an escaped quote.
      head.set(
        key,
        found[2] === '=' ? found[3]!.replace(/^'''(.*)'''$/, (_, raw) => JSON.stringify(raw)) : found[3]!,
      )
    } else if (key !== '' && !line.startsWith('#')) head.set(key, `${head.get(key)}\n${line.trimEnd()}`)
  }
  return head
}

/** Returns a scalar without quotes, escapes and trailing comment. */
function parseScalar(written = ''): string {
  // In YAML, a leading `!` marks a string.
  const text = written.trim().replace(/^! +/, '')
  const double = /^"((?:[^"\\]|\\[\s\S])*)"/.exec(text)
  if (double !== null) return decodeEscapes(double[1]!).replace(/\s*\n\s*/g, ' ')
  const single = /^'((?:[^']|'')*)'/.exec(text)
  if (single !== null) return single[1]!.replaceAll("''", "'").replace(/\s*\n\s*/g, ' ')
  const block = /^[>|][+-]?\n([\s\S]*)$/.exec(text)
  if (block !== null)
    return block[1]!
      .split('\n')
      .map((line) => line.trim())
      .join(text.startsWith('>') ? ' ' : '\n')
      .trim()
  return text
    .replace(/\s+#.*$/gm, '')
    .replace(/\s*\n\s*/g, ' ')
    .trim()
}

const decodeEscapes = (text: string): string =>
  text.replace(
    /\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([\s\S]))/g,
    (_, four?: string, two?: string, one = '') => {
      if (four ?? two) return String.fromCharCode(Number.parseInt((four ?? two)!, 16))
      return ({ n: '\n', t: '\t' } as Record<string, string>)[one] ?? one
    },
  )

function parseName(path: string): { stem: string; day: string | null } {
  const parts = path.split('/')
  let stem = parts.pop()!.replace(/\.(md|markdown)$/i, '')
  if ((stem === 'index' || stem === '_index') && parts.length > 0) stem = parts.pop()!
  const dated = /^(\d{4}-\d\d?-\d\d?)(?:[-_]+|$)(.*)$/.exec(stem)
  return dated === null ? { stem, day: null } : { stem: dated[2]!, day: dated[1]! }
}

/** Removes the diacritics of Latin letters. Other scripts are not transliterated here. */
const transliterate = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/['’`]/g, '')
    .replace(/(?<=[a-z0-9+])\+/g, ' plus ')
    .replace(/(?<=[a-z0-9])#/g, ' sharp ')
    .replace(/&/g, ' and ')
    .replace(/ß/g, 'ss')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')

const readLastSegment = (address: string): string => {
  const parts = address
    .replace(/\.html?$/, '')
    .split('/')
    .filter((part) => part !== '')
  return parts.at(-1) === 'index' ? (parts.at(-2) ?? '') : (parts.at(-1) ?? '')
}

function readSlug(head: Frontmatter): string {
  const slug = parseScalar(head.get('slug'))
  if (slug !== '' && slug !== 'null') return transliterate(readLastSegment(slug))
  for (const key of ['permalink', 'path', 'url']) {
    const address = parseScalar(head.get(key))
    if (address === '' || /[{}:]/.test(address) || address === 'false') continue
    return transliterate(readLastSegment(address.replace(/\.md$/, '')))
  }
  return ''
}

function readTitle(head: Frontmatter, body: string, slug: string): string {
  const given = parseScalar(head.get('title'))
  if (given !== '') return given
  const heading = body
    .slice(0, 10_000)
    .split('\n')
    .find((line) => /^#[ \t]+\S/.test(line))
  if (heading !== undefined)
    return heading
      .replace(/^#[ \t]+/, '')
      .trim()
      .replace(/\s*#+$/, '')
  const words = slug.replaceAll('-', ' ')
  return words.slice(0, 1).toUpperCase() + words.slice(1)
}

function readDate(head: Frontmatter, day: string | null): string | null {
  const named = ['publishedat', 'date', 'publishdate', 'pubdate']
    .map((key) => parseScalar(head.get(key)))
    .find((text) => text !== '' && !/modified|created/i.test(text))
  const inPath = /(?:^|\/)(\d{4})\/(\d\d?)\/(\d\d?)\//.exec(
    parseScalar(head.get('permalink') ?? head.get('path') ?? head.get('url')),
  )
  const text = named ?? day ?? (inPath === null ? undefined : inPath.slice(1).join('-'))
  if (text === undefined) return null
  const iso =
    /^(\d{4})-(\d\d?)-(\d\d?)(?:[T ]+(\d\d?):(\d\d)(?::(\d\d(?:\.\d+)?))?\s*(Z|UTC|[+-]\d\d:?\d\d)?)?$/.exec(
      text,
    )
  if (iso === null) return parseInstant(text)
  const [, year, month, date, hour = '00', minute = '00', second = '00', zone = 'Z'] = iso
  const two = (part: string): string => part.padStart(2, '0')
  const at = zone === 'UTC' ? 'Z' : zone.replace(/^(.\d\d)(\d\d)$/, '$1:$2')
  return parseInstant(
    `${year}-${two(month!)}-${two(date!)}T${two(hour)}:${minute}:${second.includes('.') ? second : two(second)}${at}`,
  )
}

const parseInstant = (text: string): string => {
  // JavaScript does not parse the zones CEST and CET.
  const at = new Date(text.replace(/ CEST /, ' GMT+0200 ').replace(/ CET /, ' GMT+0100 '))
  return Number.isNaN(at.getTime()) ? `unreadable: ${text}` : at.toISOString()
}

function readTags(head: Frontmatter): string[] {
  const found = new Set<string>()
  for (const key of ['tags', 'tag', 'categories', 'category', 'taxonomiestags', 'taxonomiescategories'])
    for (const tag of parseItems(head.get(key) ?? '')) found.add(transliterate(tag))
  return [...found].filter(Boolean)
}

function parseItems(written: string): string[] {
  const text = written.replace(/\s+#.*$/gm, '').trim()
  if (text === '' || text === 'null' || text === '~') return []
  const flow = /^\[([\s\S]*)\]$/.exec(text)
  if (flow !== null)
    return [...flow[1]!.matchAll(/"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)'|([^,\n"']+)/g)]
      .map(([, a, b, c]) => (a ?? b ?? c)!.trim())
      .filter(Boolean)
  if (text.startsWith('- '))
    return text
      .split('\n')
      .flatMap((line) =>
        parseItems(
          line.replace(/^\s*-\s+/, '').includes('[')
            ? line.replace(/^\s*-\s+/, '')
            : JSON.stringify(parseScalar(line.replace(/^\s*-\s+/, ''))),
        ).map((item) => item),
      )
  if (/^"[^"]*"$/.test(text) && text.includes(' ') && !text.includes(',')) return parseQuotedItem(text)
  const bare = parseScalar(text)
  return bare
    .split(bare.includes(',') ? ',' : /\s+/)
    .map((item) => item.trim())
    .filter(Boolean)
}

/** A quoted value with spaces and without commas is a single item. */
const parseQuotedItem = (text: string): string[] => [JSON.parse(text) as string]

function readStatus(head: Frontmatter, path: string): Expected['status'] {
  if (parseScalar(head.get('draft')) === 'true' || parseScalar(head.get('published')) === 'false')
    return 'draft'
  const status = parseScalar(head.get('status')).toLowerCase()
  if (status === 'draft' || status === 'published' || status === 'archived') return status
  return /(^|\/)_drafts\//.test(path) ? 'draft' : 'published'
}
