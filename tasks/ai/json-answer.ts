import type { ResponseFormat } from './ports.ts'

/** Answers in JSON. Not every provider enforces the form, so the model gets instructions, too. */

/** Returns the instructions for the form of an answer. */
export function describeResponseFormat(format: ResponseFormat): string {
  const rule = 'Answer with one JSON value and nothing else: no comment, no code fence.'
  if (format.type === 'json_object') return `${rule} The value is an object.`
  const { description, schema } = format.json_schema
  const about = description === undefined ? '' : ` ${description}`
  return `${rule}${about} The value matches this JSON Schema:\n${JSON.stringify(schema)}`
}

/** Removes what models put around JSON: words and code fences before and after it. */
export interface JsonFilter {
  /** Adds a piece of the answer; returns the part of it that belongs to the JSON value. */
  push(piece: string): string
}

export function createJsonFilter(): JsonFilter {
  // Number of open brackets; null before the value, 0 after it.
  let depth: number | null = null
  let isInText = false
  let isEscaped = false
  /** Reads one character of the value. Returns true if it ends the value. */
  const read = (character: string): boolean => {
    if (isEscaped) isEscaped = false
    else if (isInText) {
      isEscaped = character === '\\'
      isInText = character !== '"'
    } else if (character === '"') isInText = true
    else if (character === '{' || character === '[') depth = (depth ?? 0) + 1
    else if (character === '}' || character === ']') depth = (depth ?? 0) - 1
    return depth === 0
  }
  return {
    push: (piece) => {
      if (depth === 0) return ''
      const start = depth === null ? piece.search(/[[{]/) : 0
      if (start === -1) return ''
      for (let at = start; at < piece.length; at++) if (read(piece[at]!)) return piece.slice(start, at + 1)
      return piece.slice(start)
    },
  }
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
