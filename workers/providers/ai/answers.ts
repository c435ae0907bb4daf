import type { Completion, FinishReason, Tokens } from '../../../tasks/ai/ports.ts'
import {
  createTooLargeFailure,
  MAX_ANSWER_SIZE,
  ReportedError,
  UNREADABLE_REASON,
  Unreadable,
} from './ai-calls.ts'
import { type Content, isDone, parseEvent, readContent, type ServerEvent } from './events.ts'
import { createReasoningFilter } from './reasoning.ts'
import { findReport } from './reports.ts'
import { countTokens } from './token-counts.ts'
import { ToolCallCollector } from './tool-calls.ts'

/** Reads the answer to a chat, whole or in pieces, in the form that the provider sends. */

/** Receives the pieces of an answer. */
export interface AnswerSink {
  /** Receives text without reasoning. */
  onText(text: string): void
  /** Voids all text so far, which turned out to be reasoning. */
  onRestart(): void
  /** Called for each sign of life. */
  onSign(): void
}

export interface AnswerOptions {
  /** True if the provider counts reasoning in the total only. */
  readonly hidesReasoning: boolean
}

/** @throws {@link createTooLargeFailure}; Unreadable; ReportedError. */
export async function readAnswer(
  response: Response,
  sink: AnswerSink,
  options: AnswerOptions,
): Promise<Completion> {
  const answer = new Answer(sink, options)
  const content: Content = await readContent(response, sink.onSign)
  if (content.kind === 'json') {
    const report = findReport(content.value)
    if (report !== null) throw new ReportedError(report)
    if (!answer.add(content.value)) throw new Unreadable(UNREADABLE_REASON)
    return answer.finish(true)
  }
  return answer.finish(await readPieces(content.events, answer))
}

/** Reads the events of an answer. Returns true if the provider ended it with `[DONE]`. */
async function readPieces(events: AsyncIterable<ServerEvent>, answer: Answer): Promise<boolean> {
  try {
    for await (const event of events) {
      if (isDone(event)) return true
      answer.add(parseEvent(event))
    }
  } catch (error) {
    // With a finish reason the answer is complete; only its usage may be missing.
    if (answer.finishReason === null) throw error
  }
  return false
}

type Fields = Readonly<Record<string, unknown>>

class Answer {
  readonly #sink: AnswerSink
  readonly #options: AnswerOptions
  readonly #filter = createReasoningFilter()
  readonly #toolCalls = new ToolCallCollector()
  /** Text as sent, with its tags; it recognizes a message that repeats all pieces so far. */
  #sent = ''
  #text = ''
  #reasoning = ''
  #tokens: Tokens | null = null
  finishReason: string | null = null

  constructor(sink: AnswerSink, options: AnswerOptions) {
    this.#sink = sink
    this.#options = options
  }

  /** Adds a chunk or a whole answer. Returns false if it has neither a choice nor text. */
  add(value: unknown): boolean {
    const chunk = (typeof value === 'object' && value !== null ? value : {}) as Fields
    // Groq reports the usage of a stream in a field of its own.
    const usage = chunk.usage ?? (chunk.x_groq as Fields | undefined)?.usage
    this.#tokens = countTokens(usage, this.#options.hidesReasoning) ?? this.#tokens
    const choice = (Array.isArray(chunk.choices) ? chunk.choices[0] : undefined) as Fields | undefined | null
    if (choice === undefined || choice === null) return false
    const delta = (choice.delta ?? undefined) as Fields | undefined
    const message = (choice.message ?? undefined) as Fields | undefined
    const hasDelta = delta !== undefined && (message === undefined || extractText(delta) !== '')
    this.#toolCalls.add(delta ?? {}, false)
    this.#toolCalls.add(message ?? {}, true)
    if (hasDelta) this.#push(extractText(delta), extractReasoning(delta))
    else if (message !== undefined) this.#pushMessage(message)
    else this.#push(typeof choice.text === 'string' ? choice.text : '', '')
    const report = findReport(choice)
    if (report !== null) throw new ReportedError(report)
    if (typeof choice.finish_reason === 'string' && choice.finish_reason !== '')
      this.finishReason = choice.finish_reason
    return true
  }

  /** Ends the answer. `isEnded` is true if the provider has marked its end. */
  finish(isEnded: boolean): Completion {
    // A connection that closes midway looks like the end of the stream.
    if (this.finishReason === null && !isEnded) throw new Unreadable('the connection was closed')
    this.#show(this.#filter.end())
    const toolCalls = this.#toolCalls.finish()
    const given = toFinishReason(this.finishReason)
    // Google and local servers end an answer that calls tools with `stop`.
    const finishReason = given === 'stop' && toolCalls.length > 0 ? 'tool_calls' : given
    if (finishReason === 'error')
      throw new ReportedError({ ...NO_DETAIL, codes: [String(this.finishReason).toLowerCase()] })
    const parts = [this.#reasoning.trim(), this.#filter.reasoning].filter((part) => part !== '')
    const reasoning = parts.length === 0 ? {} : { reasoning: parts.join('\n\n') }
    return { text: this.#text, ...reasoning, toolCalls, tokens: this.#tokens, finishReason }
  }

  /** Adds a message in place of a delta. Some providers repeat all text so far in it. */
  #pushMessage(message: Fields): void {
    const text = extractText(message)
    const isRepetition = this.#sent !== '' && text.startsWith(this.#sent)
    this.#push(
      isRepetition ? text.slice(this.#sent.length) : text,
      this.#reasoning === '' ? extractReasoning(message) : '',
    )
  }

  #push(text: string, reasoning: string): void {
    this.#sent += text
    this.#reasoning += reasoning
    if (this.#sent.length + this.#reasoning.length > MAX_ANSWER_SIZE) throw createTooLargeFailure()
    if (text !== '') this.#show(this.#filter.push(text))
  }

  #show(text: string): void {
    if (this.#filter.takeRestart()) {
      this.#text = ''
      this.#sink.onRestart()
    }
    if (text === '') return
    this.#text += text
    this.#sink.onText(text)
  }
}

const NO_DETAIL = { message: '', parameter: null, status: null, retryAfter: null, isStructured: true }

// Finish reasons of OpenAI, Anthropic, Google, Mistral, Cohere, OpenRouter, DeepSeek and local servers.
const FINISH_FORMATS: readonly [RegExp, FinishReason | 'error'][] = [
  [/length|max.?tokens|max.?output|context.?window|token.?limit/, 'length'],
  [
    /filter|safety|refusal|recitation|blocklist|prohibited|spii|sensitive|toxic|guardrail|moderation/,
    'content_filter',
  ],
  [/error|abort|insufficient.?system.?resource|malformed|cancel/, 'error'],
  [/tool|function/, 'tool_calls'],
  [/stop|end.?turn|eos|complete|done|finish/, 'stop'],
]

function toFinishReason(given: string | null): FinishReason | 'error' {
  if (given === null) return 'stop'
  return FINISH_FORMATS.find(([format]) => format.test(given.toLowerCase()))?.[1] ?? 'other'
}

type Part = { readonly type?: unknown; readonly text?: unknown; readonly thinking?: unknown } | null

const partsOf = (content: unknown): readonly Part[] => (Array.isArray(content) ? content : [])

/**
 * Returns the text of an answer or of a chunk, without reasoning and tool calls. Those have their own fields, but
 * Mistral's reasoning models send a list of parts instead (docs.mistral.ai/capabilities/reasoning).
 */
export function extractText(
  message: { readonly content?: unknown; readonly refusal?: unknown } | undefined,
): string {
  const content = message?.content ?? message?.refusal
  if (typeof content === 'string') return content
  return partsOf(content)
    .map((part) => (part?.type === 'text' && typeof part.text === 'string' ? part.text : ''))
    .join('')
}

/** Returns the reasoning outside of the text: in a field of its own, or in parts. */
function extractReasoning({ reasoning_content, reasoning, content }: Fields): string {
  if (typeof reasoning_content === 'string') return reasoning_content
  if (typeof reasoning === 'string') return reasoning
  return partsOf(content)
    .map((part) => (part?.type === 'thinking' ? textOf(part.thinking) : ''))
    .join('')
}

const textOf = (thinking: unknown): string =>
  typeof thinking === 'string'
    ? thinking
    : partsOf(thinking)
        .map((part) => (typeof part?.text === 'string' ? part.text : ''))
        .join('')
