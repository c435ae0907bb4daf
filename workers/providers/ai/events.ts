/** Reads bodies that are JSON or server-sent events. The only importer of `eventsource-parser`. */
import { createParser } from 'eventsource-parser'
import {
  createTooLargeFailure,
  MAX_ANSWER_SIZE,
  parseJson,
  ReportedError,
  UNREADABLE_REASON,
  Unreadable,
} from './ai-calls.ts'
import { findReport, readReport } from './reports.ts'

/** The content of a body, in the form that the provider chose. */
export type Content =
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'events'; readonly events: AsyncIterable<ServerEvent> }

export interface ServerEvent {
  /** Name of the event; undefined if it has none. */
  readonly name: string | undefined
  readonly data: string
  /** True if the body ended within the event. */
  readonly isLast: boolean
}

/**
 * Reads a body by its first character, because some providers answer in one form whatever the request asks for. Calls
 * `onSign` for each sign of life: an event, a comment, or a part of a JSON text.
 * @throws {@link createTooLargeFailure}; Unreadable.
 */
export async function readContent(response: Response, onSign: () => void): Promise<Content> {
  const body = (response.body ?? []) as AsyncIterable<Uint8Array>
  const chunks = body[Symbol.asyncIterator]?.() ?? [][Symbol.iterator]()
  const read: Uint8Array[] = []
  let size = 0
  for (;;) {
    const next = await chunks.next()
    if (next.done === true) return { kind: 'json', value: parseJson(Buffer.concat(read).toString()) }
    read.push(next.value)
    size += next.value.length
    if (read.length === 1 || isBlank(read[0]!)) {
      const start = Buffer.concat(read).toString().trimStart()
      // Fields of events are `data`, `event`, `id` and `retry`; a colon begins a comment.
      if (/^[:deir]/.test(start))
        return { kind: 'events', events: readEvents(read, chunks as AsyncIterator<Uint8Array>, onSign) }
    }
    onSign()
    if (size > MAX_ANSWER_SIZE) {
      await (chunks as AsyncIterator<Uint8Array>).return?.()
      throw createTooLargeFailure()
    }
  }
}

const isBlank = (chunk: Uint8Array): boolean => Buffer.from(chunk).toString().trim() === ''

async function* readEvents(
  begun: readonly Uint8Array[],
  more: AsyncIterator<Uint8Array>,
  onSign: () => void,
): AsyncGenerator<ServerEvent> {
  const ready: { name: string | undefined; data: string }[] = []
  let size = 0
  const parser = createParser({
    onEvent: ({ event: name, data }) => {
      onSign()
      size = 0
      ready.push({ name, data })
    },
    onComment: () => {
      onSign()
      size = 0
    },
  })
  const decoder = new TextDecoder()
  const feed = (chunk: Uint8Array): void => {
    size += chunk.length
    parser.feed(decoder.decode(chunk, { stream: true }))
    if (size > MAX_ANSWER_SIZE) throw createTooLargeFailure()
  }
  const take = () => ready.splice(0).map((event) => ({ ...event, isLast: false }))
  try {
    for (const chunk of begun) feed(chunk)
    yield* take()
    for (let next = await more.next(); next.done !== true; next = await more.next()) {
      feed(next.value)
      yield* take()
    }
  } finally {
    // Cancels the download if the reader leaves early.
    await more.return?.()
  }
  parser.feed('\n\n')
  yield* ready.map((event) => ({ ...event, isLast: true }))
}

/** True for OpenAI's end of a stream. */
export const isDone = ({ data }: ServerEvent): boolean => data.trim() === '[DONE]'

/**
 * Returns the JSON of an event; null if the connection cut it.
 * @throws ReportedError for an error; Unreadable.
 */
export function parseEvent({ data, isLast, name }: ServerEvent): unknown {
  const value = parseData(data, isLast || name === 'error')
  const report = name === 'error' ? readReport(value ?? data, null) : findReport(value)
  if (report !== null) throw new ReportedError(report)
  return value
}

function parseData(data: string, mayBeBroken: boolean): unknown {
  try {
    return JSON.parse(data)
  } catch (error) {
    if (mayBeBroken) return null
    throw new Unreadable(UNREADABLE_REASON, { cause: error })
  }
}
