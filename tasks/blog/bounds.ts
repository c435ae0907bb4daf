/** Limits that are checked before untrusted text is parsed or its values are used. */

// No real front matter is nested deeper, and recursive parsers take a stack frame, or a regular expression, for each
// level.
const DEEPEST = 64
// Characters of one value, and values in one post.
const LONGEST = 100_000
const MAX_VALUES = 10_000

/** Whether YAML or TOML nests brackets, or dashes of lists in lists, too deeply to be intended. */
export function isDeep(text: string): boolean {
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === OPEN_LIST || code === OPEN_MAP) {
      if (++depth > DEEPEST) return true
    } else if ((code === CLOSE_LIST || code === CLOSE_MAP) && depth > 0) depth--
  }
  return NESTED_DASHES.test(text)
}

/** The same for JSON, where brackets in quotes do not count. */
export function isDeepJson(text: string): boolean {
  let [depth, quoted] = [0, false]
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (quoted) {
      if (code === BACKSLASH) i++
      else if (code === QUOTE) quoted = false
    } else if (code === QUOTE) quoted = true
    else if (code === OPEN_LIST || code === OPEN_MAP) {
      if (++depth > DEEPEST) return true
    } else if (code === CLOSE_LIST || code === CLOSE_MAP) depth--
  }
  return false
}

const [OPEN_LIST, CLOSE_LIST, OPEN_MAP, CLOSE_MAP, QUOTE, BACKSLASH] = [0x5b, 0x5d, 0x7b, 0x7d, 0x22, 0x5c]
const NESTED_DASHES = new RegExp(`(?:[-?:] ){${DEEPEST}}`)

/** The key whose value is too large or too deep for a post, or null; the post's text is not checked. */
export function firstOverLimit(values: Readonly<Record<string, unknown>>): string | null {
  let count = 0
  for (const [key, value] of Object.entries(values)) {
    if (key === 'content') continue
    const left = [{ value, depth: 0 }]
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { value: inner, depth } = next
      if (++count > MAX_VALUES || depth > DEEPEST) return key
      if (typeof inner === 'string' && inner.length > LONGEST) return key
      if (typeof inner !== 'object' || inner === null) continue
      for (const one of Object.values(inner)) left.push({ value: one, depth: depth + 1 })
      if (left.length > MAX_VALUES) return key
    }
  }
  return null
}
