import { randomUUID } from 'node:crypto'
import type { ToolCall } from '../../../tasks/ai/ports.ts'
import { createTooLargeFailure, MAX_ANSWER_SIZE } from './ai-calls.ts'

/** Collects the calls of tools in an answer, which arrive whole or in pieces. */
export class ToolCallCollector {
  readonly #calls: CollectedCall[] = []
  #size = 0

  /** Adds the calls of a delta or message. `isWhole` is true for a message, which repeats all pieces before it. */
  add(message: Readonly<Record<string, unknown>>, isWhole: boolean): void {
    const given = listCalls(message)
    if (given.length === 0) return
    if (isWhole) this.#calls.length = 0
    for (const call of given) this.#addPiece(call)
  }

  /** The calls so far, in order. A call without an id gets one, because results refer to it. */
  finish(): readonly ToolCall[] {
    return this.#calls.map(({ id, name, arguments: text, extra }) => ({
      id: id === '' ? `call_${randomUUID().replaceAll('-', '')}` : id,
      name,
      arguments: text.trim() === '' ? '{}' : text,
      ...(extra === undefined ? {} : { extra_content: extra }),
    }))
  }

  #addPiece({ index, id, name, text, extra }: Piece): void {
    this.#size += text.length + name.length + id.length + (JSON.stringify(extra)?.length ?? 0)
    if (this.#size > MAX_ANSWER_SIZE || this.#calls.length > MAX_CALLS) throw createTooLargeFailure()
    const last = this.#calls.at(-1)
    // Google sends whole calls without an index. Some gateways send the index 0 for each of them.
    const existing =
      index === null
        ? id === '' && name === ''
          ? last
          : undefined
        : this.#calls.find((call) => call.index === index)
    const isOther = existing !== undefined && id !== '' && existing.id !== '' && id !== existing.id
    if (existing === undefined || isOther) {
      // The first call of an index ends its pieces.
      if (isOther) existing.index = null
      this.#calls.push({ id, name, arguments: text, index, extra })
      return
    }
    if (existing.id === '') existing.id = id
    if (existing.name === '') existing.name = name
    existing.arguments += text
    existing.extra ??= extra
  }
}

// OpenAI accepts 128 tools; no answer calls more of them.
const MAX_CALLS = 128

interface Piece {
  readonly index: number | null
  readonly id: string
  readonly name: string
  readonly text: string
  readonly extra: unknown
}

interface CollectedCall {
  id: string
  name: string
  arguments: string
  index: number | null
  extra: unknown
}

type Fields = Readonly<Record<string, unknown>>

function listCalls({ tool_calls, function_call }: Fields): Piece[] {
  if (Array.isArray(tool_calls)) return tool_calls.filter(isFields).map(toPiece)
  return isFields(function_call) ? [toPiece({ index: 0, function: function_call })] : []
}

function toPiece({ index, id, function: called, extra_content: extra }: Fields): Piece {
  const { name, arguments: given } = isFields(called) ? called : ({} as Fields)
  return {
    index: typeof index === 'number' ? index : null,
    // Mistral sends the text "null" as the id of later pieces.
    id: typeof id === 'string' && id !== 'null' ? id : '',
    name: typeof name === 'string' ? name : '',
    // Local servers send the arguments as an object.
    text: typeof given === 'string' ? given : isFields(given) ? JSON.stringify(given) : '',
    // PostgreSQL cannot store these characters.
    extra: /\\u(0000|d[89a-f])/i.test(JSON.stringify(extra) ?? '') ? undefined : extra,
  }
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
