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

/** Removes what models put around JSON: words before it, and a code fence. */
export interface JsonFilter {
  /** Adds a piece of the answer; returns the text that is certainly JSON. */
  push(piece: string): string
}

export function createJsonFilter(): JsonFilter {
  let pending = ''
  let hasBegun = false
  return {
    push: (piece) => {
      pending += piece
      if (!hasBegun) {
        const start = pending.search(/[[{]/)
        if (start === -1) return ''
        hasBegun = true
        pending = pending.slice(start)
      }
      // White space and backticks may belong to a fence that ends the answer.
      const [tail = ''] = /[\s`]*$/.exec(pending) ?? []
      const ready = pending.slice(0, pending.length - tail.length)
      pending = tail
      return ready
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
