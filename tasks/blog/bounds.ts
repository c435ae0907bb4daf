/** Limits for untrusted text, to check before parsing it or using its values. */

// More levels than any real front matter has. Recursive parsers need a stack frame or a regular expression per level.
const MAX_DEPTH = 64
// Maximum number of characters per value, and of values per post.
const MAX_VALUE_CHARACTERS = 100_000
const MAX_VALUES = 10_000

/** True if brackets in YAML or TOML, or the dashes of nested lists, are nested deeper than the limit. */
export function isNestedTooDeeply(text: string): boolean {
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === OPEN_LIST || code === OPEN_MAP) {
      if (++depth > MAX_DEPTH) return true
    } else if ((code === CLOSE_LIST || code === CLOSE_MAP) && depth > 0) depth--
  }
  return NESTED_DASHES.test(text)
}

/** True if brackets in JSON are nested deeper than the limit; ignores brackets in strings. */
export function isJsonNestedTooDeeply(text: string): boolean {
  let [depth, quoted] = [0, false]
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (quoted) {
      if (code === BACKSLASH) i++
      else if (code === QUOTE) quoted = false
    } else if (code === QUOTE) quoted = true
    else if (code === OPEN_LIST || code === OPEN_MAP) {
      if (++depth > MAX_DEPTH) return true
    } else if (code === CLOSE_LIST || code === CLOSE_MAP) depth--
  }
  return false
}

const [OPEN_LIST, CLOSE_LIST, OPEN_MAP, CLOSE_MAP, QUOTE, BACKSLASH] = [0x5b, 0x5d, 0x7b, 0x7d, 0x22, 0x5c]
const NESTED_DASHES = new RegExp(`(?:[-?:] ){${MAX_DEPTH}}`)

/** Returns the first key whose value is too large or nested too deeply; null if there is none. Ignores `content`. */
export function findOversizedKey(values: Readonly<Record<string, unknown>>): string | null {
  let count = 0
  for (const [key, value] of Object.entries(values)) {
    if (key === 'content') continue
    const stack = [{ value, depth: 0 }]
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      const { value: inner, depth } = next
      if (++count > MAX_VALUES || depth > MAX_DEPTH) return key
      if (typeof inner === 'string' && inner.length > MAX_VALUE_CHARACTERS) return key
      if (typeof inner !== 'object' || inner === null) continue
      for (const child of Object.values(inner)) stack.push({ value: child, depth: depth + 1 })
      if (stack.length > MAX_VALUES) return key
    }
  }
  return null
}
