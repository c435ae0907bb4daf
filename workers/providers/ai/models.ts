/** Transcribes pages with vision models. */
import type { AiModel } from '../../../tasks/ai/settings.ts'
import { toDataUrl } from '../../../tasks/formats/data-url.ts'
import { recordCall } from '../call.ts'
import {
  createIdleTimeout,
  createStartOption,
  type ModelStarts,
  NO_STARTS,
  readJson,
  Unreadable,
} from './ai-calls.ts'
import { extractText } from './answers.ts'
import { createClient, type OpenAI } from './openai.ts'
import { sendAdapted } from './parameters.ts'
import { createReasoningFilter } from './reasoning.ts'

/** A model's answer to a request. */
export interface ModelAnswer {
  readonly text: string
  /** Model name for the page row, e.g. `openai/gpt-4o-mini`. */
  readonly model: string
}

interface TranscribeOptions {
  readonly signal: AbortSignal
  readonly timeoutMs: number
  readonly starts?: ModelStarts | undefined
}

const TRANSCRIBE_PROMPT =
  'Transcribe all text on this page exactly as it is written, in reading order, with its line breaks. ' +
  'Answer with the text alone: no comments, no markup. Answer with nothing if the page has no text.'

// Matches finish reasons of truncated answers: `length`, Mistral's `model_length`, `content_filter`.
const TRUNCATED_FINISH_REASON = /length|filter|error/

/**
 * Asks a model for the text in an image.
 * @throws if the request fails or times out, or if the answer is cut off.
 */
export async function transcribe(
  model: AiModel,
  png: Uint8Array,
  { starts = NO_STARTS, ...options }: TranscribeOptions,
): Promise<ModelAnswer> {
  // Allow one retry, for a broken connection: retries count against the time limit of the page.
  const client = await createClient(model, options.timeoutMs, 1)
  // The client's own timeout covers the answer only up to its headers.
  const timeout = createIdleTimeout((2 * options.timeoutMs) / 1000)
  const requestOptions = {
    signal: AbortSignal.any([options.signal, timeout.signal]),
    ...createStartOption(starts, model.provider, options.signal, timeout),
  }
  const request = {
    model: model.name,
    temperature: 0,
    messages: [
      {
        role: 'user' as const,
        content: [
          { type: 'text' as const, text: TRANSCRIBE_PROMPT },
          { type: 'image_url' as const, image_url: { url: toDataUrl('image/png', png) } },
        ],
      },
    ],
  }
  const adaptable = {
    key: `${model.provider} ${model.baseUrl} ${model.name}`,
    parameters: request,
    optional: ['temperature'],
  }
  const send = (parameters: object): Promise<Response> =>
    client.chat.completions.create(parameters as typeof request, requestOptions).asResponse()
  const completion = (await recordCall(
    { provider: model.provider, operation: 'transcribe', url: model.baseUrl },
    async () => readJson(await sendAdapted(adaptable, send)),
  ).finally(timeout.clear)) as OpenAI.ChatCompletion
  const [choice] = completion.choices
  if (TRUNCATED_FINISH_REASON.test(choice?.finish_reason ?? ''))
    throw new Unreadable('its answer was cut off')
  // Exclude `refusal`, which is not text of the page.
  const filter = createReasoningFilter()
  const text = filter.push(extractText({ content: choice?.message.content })) + filter.end()
  return { text, model: `${model.provider}/${model.name}` }
}
