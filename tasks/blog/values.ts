import { findOversizedKey } from './bounds.ts'
import { isMapping, UnreadablePostError } from './front-matter.ts'

/** Looks up front matter by keys in any spelling, such as `publishDate`, `publish_date` or `Publish-Date`. */
export class FrontMatterKeys {
  private readonly values = new Map<string, unknown>()

  /** @throws UnreadablePostError if a value is too large or nested too deeply. */
  constructor(frontMatter: Readonly<Record<string, unknown>>) {
    const key = findOversizedKey(frontMatter)
    if (key !== null) throw new UnreadablePostError(`${key.slice(0, 100)}: is too long or nested too deeply`)
    for (const [key, value] of Object.entries(frontMatter))
      this.values.set(key.toLowerCase().replace(/[-_ ]/g, ''), value)
  }

  /**
   * Returns the value of a key; undefined if absent. `name` is in lower case without separators; a dot selects a nested
   * key.
   */
  get(name: string): unknown {
    const [key, inner] = name.split('.') as [string, string?]
    const value = this.values.get(key)
    if (inner === undefined) return value
    return isMapping(value) ? new FrontMatterKeys(value).get(inner) : undefined
  }

  /** Returns the first non-empty text among the values of these keys. */
  getFirstText(...names: readonly string[]): string | undefined {
    for (const name of names) {
      const text = toText(this.get(name))
      if (text !== undefined && text !== '') return text
    }
    return undefined
  }

  /** Returns the value of a flag; undefined if it is absent or not a flag. */
  getFlag(name: string): boolean | undefined {
    const value = String(this.get(name) ?? '')
      .trim()
      .toLowerCase()
    if (['true', 'yes', 'on', '1', 'y', 't'].includes(value)) return true
    return ['false', 'no', 'off', '0', 'n', 'f'].includes(value) ? false : undefined
  }
}

/** Converts a scalar to trimmed text; undefined for other values. */
export function toText(value: unknown): string | undefined {
  if (typeof value === 'string') return value.trim()
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}

/**
 * Collects the texts of a value. Flattens nested lists. Takes the first non-empty text among the `inner` keys of a
 * mapping.
 */
export function collectTexts(value: unknown, ...inner: readonly string[]): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => collectTexts(item, ...inner))
  const text = isMapping(value) ? new FrontMatterKeys(value).getFirstText(...inner) : toText(value)
  return text === undefined || text === '' ? [] : [text]
}

/**
 * Rejects NUL and lone surrogates, which JSON and YAML can express but PostgreSQL can't store.
 * @throws UnreadablePostError
 */
export function assertStorable(name: string, text: string): void {
  if (text.includes('\0')) throw new UnreadablePostError(`${name}: must not contain a NUL character`)
  if (!text.isWellFormed()) throw new UnreadablePostError(`${name}: must not contain a lone surrogate`)
}
