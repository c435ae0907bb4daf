import { immodest } from './bounds.ts'
import { isMapping, Unreadable } from './front-matter.ts'

/** Keys and values of front matter, whichever way they are spelled: `publishDate`, `publish_date`, `Publish-Date`. */
export class Keys {
  private readonly values = new Map<string, unknown>()

  /** @throws Unreadable when a key has too much to say. */
  constructor(matter: Readonly<Record<string, unknown>>) {
    const key = immodest(matter)
    if (key !== null) throw new Unreadable(`${key.slice(0, 100)}: is too long or nested too deeply`)
    for (const [key, value] of Object.entries(matter))
      this.values.set(key.toLowerCase().replace(/[-_ ]/g, ''), value)
  }

  /** The value of a key as written here, lower case and in one word; a dot leads into a mapping. Undefined when absent. */
  get(name: string): unknown {
    const [key, inner] = name.split('.') as [string, string?]
    const value = this.values.get(key)
    if (inner === undefined) return value
    return isMapping(value) ? new Keys(value).get(inner) : undefined
  }

  /** The first of the keys whose value is a text with something in it. */
  text(...names: readonly string[]): string | undefined {
    for (const name of names) {
      const text = textOf(this.get(name))
      if (text !== undefined && text !== '') return text
    }
    return undefined
  }

  /** What a flag says; undefined when there is none, or it is something else. */
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

/** The texts of a list of any depth, in which a mapping stands for one of its values: its name, slug and so on. */
export function textsOf(value: unknown, ...inner: readonly string[]): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => textsOf(item, ...inner))
  const text = isMapping(value) ? new Keys(value).text(...inner) : textOf(value)
  return text === undefined || text === '' ? [] : [text]
}
