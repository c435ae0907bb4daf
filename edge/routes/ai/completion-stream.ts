import { fail } from '../../../sql/errors.ts'
import type { CompletionResult } from '../../../tasks/ai/completion.task.ts'
import type { ModelAnswer } from '../../../tasks/ai/shapes.ts'
import { toOpenAiError } from '../../http/reply.ts'
import { toJobFailure } from '../../pipeline/answer/responders.ts'
import { statusOf } from '../../pipeline/answer/statuses.ts'
import type { Hub } from '../../streams/hub.ts'
import { isTerminal, type JobEvent } from '../../streams/job-event.ts'
import type { SseFrame, SseStream, StreamSource } from '../../streams/sse.ts'
import { type CompletionResponse, WIRE_FINISH_REASONS } from './completion-shapes.ts'

/** Answers in OpenAI's protocol, whole and as a stream of chunks that ends with `[DONE]`. */

type Usage = CompletionResponse['usage']
type WireFinishReason = (typeof WIRE_FINISH_REASONS)[number]

export function toCompletion(result: CompletionResult): CompletionResponse {
  const { content, reasoning, tool_calls: calls } = result
  const message = {
    role: 'assistant' as const,
    content: content === '' ? null : content,
    refusal: null,
    ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
    ...(calls === undefined ? {} : { tool_calls: calls.map(toWireCall) }),
  }
  const finish_reason = toWireFinishReason(result.finish_reason)
  return {
    id: `chatcmpl-${result.id}`,
    object: 'chat.completion',
    created: toSeconds(result.timestamp),
    model: result.agent_slug,
    choices: [{ index: 0, message, logprobs: null, finish_reason }],
    usage: toWireUsage(result.usage),
  }
}

const toSeconds = (timestamp: string): number => Math.floor(Date.parse(timestamp) / 1000)

const toWireFinishReason = (reason: ModelAnswer['finish_reason']): WireFinishReason =>
  WIRE_FINISH_REASONS.find((each) => each === reason) ?? 'stop'

type Call = NonNullable<ModelAnswer['tool_calls']>[number]
const toWireCall = ({ id, name, arguments: text, extra_content: extra }: Call) => ({
  id,
  type: 'function' as const,
  function: { name, arguments: text },
  ...(extra === undefined ? {} : { extra_content: extra }),
})

const toWireUsage = ({ input_tokens, output_tokens, ...rest }: ModelAnswer['usage']): Usage => ({
  prompt_tokens: input_tokens,
  completion_tokens: output_tokens,
  total_tokens: input_tokens + output_tokens,
  prompt_tokens_details: { cached_tokens: rest.cached_tokens },
  completion_tokens_details: { reasoning_tokens: rest.reasoning_tokens },
})

export interface StreamedCompletion {
  readonly jobId: string
  /** The agent, as the request names it. */
  readonly model: string
  /** True if the caller asks for the usage in a chunk of its own. */
  readonly hasUsage: boolean
  /** Called if the client leaves before the end, which stops an answer in OpenAI's protocol. */
  readonly onLeave: () => void
}

/** Streams the answer of a job. */
export function followCompletion(hub: Hub, completion: StreamedCompletion): StreamSource {
  return { isBare: true, open: (stream) => new CompletionStream(hub, completion, stream).open() }
}

/**
 * True if the events so far are void. After reasoning that its model did not mark, the answer just goes on, because a
 * client may show both.
 */
const isNewAttempt = ({ kind, frame }: JobEvent): boolean =>
  kind === 'restart' && (JSON.parse(frame) as { reason?: string }).reason !== 'reasoning'

class CompletionStream {
  readonly #hub: Hub
  readonly #completion: StreamedCompletion
  readonly #stream: SseStream
  readonly #created = Math.floor(Date.now() / 1000)
  #cursor = 0
  #calls = 0
  #hasText = false
  #hasEnded = false
  #stop = (): void => {}

  constructor(hub: Hub, completion: StreamedCompletion, stream: SseStream) {
    this.#hub = hub
    this.#completion = completion
    this.#stream = stream
  }

  open(): () => void {
    this.#stream.send([this.#chunk({ role: 'assistant', content: '' })])
    this.#watch()
    // A new watch first reads the events that backpressure has skipped.
    this.#stream.onWritable(() => {
      this.#stop()
      this.#watch()
    })
    return () => {
      this.#stop()
      if (!this.#hasEnded) this.#completion.onLeave()
      this.#hasEnded = true
    }
  }

  #watch(): void {
    this.#stop = this.#hub.watchJob(this.#completion.jobId, this.#cursor, (events) => this.#push(events))
  }

  #push(events: readonly JobEvent[]): void {
    if (this.#stream.closed) return
    const frames: SseFrame[] = []
    for (const event of events) {
      this.#cursor = event.seq
      const isEnd = isTerminal(event) || (this.#hasText && isNewAttempt(event))
      frames.push(...(isEnd ? this.#endWith(event) : this.#toFrames(event)))
      if (!isEnd) continue
      this.#stop()
      this.#hasEnded = true
      this.#stream.end(frames)
      return
    }
    if (frames.length > 0 && !this.#stream.send(frames)) this.#stop()
  }

  #toFrames({ kind, frame }: JobEvent): SseFrame[] {
    if (kind === 'chunk') {
      this.#hasText = true
      return [this.#chunk({ content: (JSON.parse(frame) as { content: string }).content })]
    }
    if (kind !== 'tool_call') return []
    this.#hasText = true
    return [this.#chunk({ tool_calls: [{ index: this.#calls++, ...toWireCall(JSON.parse(frame) as Call) }] })]
  }

  /** Ends the stream. Its protocol cannot void text, so a restart after some text is an error. */
  #endWith(event: JobEvent): SseFrame[] {
    const failure =
      event.kind === 'restart' ? fail('ai.restarted') : event.status === 'done' ? null : toJobFailure(event)
    if (failure !== null) return [this.#frame({ error: toOpenAiError(failure, statusOf(failure.code)) })]
    const { result } = JSON.parse(event.frame) as { result: CompletionResult }
    const { reasoning } = result
    return [
      ...(reasoning === undefined ? [] : [this.#chunk({ reasoning_content: reasoning })]),
      this.#chunk({}, toWireFinishReason(result.finish_reason)),
      ...(this.#completion.hasUsage ? [this.#usageChunk(toWireUsage(result.usage))] : []),
      { data: '[DONE]' },
    ]
  }

  #chunk(delta: object, finishReason: WireFinishReason | null = null): SseFrame {
    const choice = { index: 0, delta, logprobs: null, finish_reason: finishReason }
    return this.#frame({ ...this.#head(), choices: [choice] })
  }

  #usageChunk(usage: Usage): SseFrame {
    return this.#frame({ ...this.#head(), choices: [], usage })
  }

  #head() {
    const { jobId, model } = this.#completion
    return { id: `chatcmpl-${jobId}`, object: 'chat.completion.chunk', created: this.#created, model }
  }

  #frame(data: object): SseFrame {
    return { data: JSON.stringify(data) }
  }
}
