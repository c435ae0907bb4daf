import { firstOverLimit } from './bounds.ts'
import { isMapping, Unreadable } from './front-matter.ts'

/** Keys and values of front matter, however keys are spelled: `publishDate`, `publish_date`, `Publish-Date`. */
export class Keys {
  private readonly values = new Map<string, unknown>()

  /** @throws Unreadable when a value is too large or too deep. */
  constructor(matter: Readonly<Record<string, unknown>>) {
    const key = firstOverLimit(matter)
    if (key !== null) throw new Unreadable(`${key.slice(0, 100)}: is too long or nested too deeply`)
    for (const [key, value] of Object.entries(matter))
      this.values.set(key.toLowerCase().replace(/[-_ ]/g, ''), value)
  }

  /** The value of a key, given in lower case as one word; a dot leads into a mapping. Undefined when absent. */
  get(name: string): unknown {
    const [key, inner] = name.split('.') as [string, string?]
    const value = this.values.get(key)
    if (inner === undefined) return value
    return isMapping(value) ? new Keys(value).get(inner) : undefined
  }

  /** The first non-empty text among the values of these keys. */
  text(...names: readonly string[]): string | undefined {
    for (const name of names) {
      const text = textOf(this.get(name))
      if (text !== undefined && text !== '') return text
    }
    return undefined
  }

  /** The value of a flag; undefined when it is absent or not a flag. */
  flag(name: string): boolean | undefined {
    const value = String(this.get(name) ?? '')
      .trim()
      .toLowerCase()
    if (['true', 'yes', 'on', '1'].includes(value)) return true
    return ['false', 'no', 'off', '0'].includes(value) ? false : undefined
  }
}

/** A scalar as text, trimmed. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value.trim()
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}

/** The texts of a list of any depth; of a mapping, the first of its `inner` values: its name, slug and so on. */
export function textsOf(value: unknown, ...inner: readonly string[]): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => textsOf(item, ...inner))
  const text = isMapping(value) ? new Keys(value).text(...inner) : textOf(value)
  return text === undefined || text === '' ? [] : [text]
}
