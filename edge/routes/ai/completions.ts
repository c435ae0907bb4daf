import { z } from 'zod'
import { readAgentModels } from '../../../sql/ai/conversations.ts'
import { fail } from '../../../sql/errors.ts'
import { type CompletionResult, completeMessages } from '../../../tasks/ai/completion.task.ts'
import type { CompletionMessage } from '../../../tasks/ai/shapes.ts'
import { enqueue, type JobRef } from '../../../tasks/task.ts'
import { type Answer, answerJson, route } from '../../pipeline/route.ts'
import { resolveActingUser } from './callers.ts'
import {
  AgentModel,
  AgentModelList,
  CompletionRequest,
  CompletionResponse,
  listPassedParameters,
  splitMessages,
} from './completion-shapes.ts'
import { followCompletion, toCompletion } from './completion-stream.ts'
import { buildAnswerPayload, checkAgent, requireModel, reserveTurn, type TurnInput } from './turn.ts'

/** Routes of OpenAI's protocol, in which agents are the models. */

// Pictures come as data: URLs in the body.
const BODY_BYTES = 4 * 1024 * 1024

const DESCRIPTION = `Answers messages in OpenAI's protocol, so that its clients work with the base URL \`/v1\` and an API \
key. \`model\` is the slug of an agent. The agent's instructions come before those of the messages, and its max_tokens is \
the upper limit. Only the usage is stored, and the job until it is pruned. With \`stream\`, chunks end with \`[DONE]\`. Functions, \
\`response_format\`, pictures, top_p, seed, stop, penalties and reasoning_effort go to the model; other fields are ignored. \
A failure also has the \`error\` of OpenAI's protocol.`

export const completionRoutes = [
  route({
    method: 'post',
    path: '/chat/completions',
    summary: "Answer messages in OpenAI's protocol",
    description: DESCRIPTION,
    body: CompletionRequest,
    bodyBytes: BODY_BYTES,
    response: CompletionResponse,
    alsoAnswers: { 200: 'A completion, or with `stream` its chunks as text/event-stream' },
    errors: [
      'ai.disabled',
      'ai.missing_key',
      'ai.refused',
      'ai.failed',
      'ai.interrupted',
      'ai.unfinished',
      'agent.missing',
      'agent.inactive',
      'quota.ai_budget',
      'quota.ai_key_budget',
    ],
    sideEffect: true,
    alwaysWaits: true,
    job: ({ body, ...input }) => beginCompletion(input, body) as Promise<JobRef<never>>,
    answer: (result) => toCompletion(result as CompletionResult),
    follow: {
      applies: ({ body }) => body.stream === true,
      open: async ({ edge, body, request }, jobId) =>
        followCompletion(edge.hub, {
          onLeave: () => {
            // With a key, another request may read the same answer.
            if (request.header('idempotency-key') === '')
              edge.cancellations
                .run(jobId)
                .catch((error) => edge.log.warn({ err: error, job: jobId }, 'Failed to cancel a completion'))
          },
          jobId,
          model: body.model,
          hasUsage: body.stream_options?.include_usage === true,
        }),
    },
  }),

  route({
    method: 'get',
    path: '/models',
    summary: 'List agents as models',
    response: AgentModelList,
    handle: async ({ edge }): Promise<Answer<z.input<typeof AgentModelList>>> =>
      answerJson(`{"object":"list","data":${await edge.reader.text(readAgentModels, [null])}}`),
  }),

  route({
    method: 'get',
    path: '/models/:model',
    summary: 'Get an agent as a model',
    params: z.object({ model: z.string().max(63) }),
    response: AgentModel,
    errors: ['agent.missing'],
    handle: async ({ params, edge }) => {
      const [model] = JSON.parse((await edge.reader.text(readAgentModels, [params.model]))!) as z.input<
        typeof AgentModel
      >[]
      if (model === undefined) throw fail('agent.missing')
      return model
    },
  }),
]

/** Adds the job that answers. @throws every failure that can be found without a model call. */
async function beginCompletion(
  input: TurnInput,
  request: CompletionRequest,
): Promise<JobRef<CompletionResult>> {
  const { edge, tx, caller, requestId } = input
  const model = requireModel(edge, await checkAgent(input, request.model, null))
  const { userId, ownerId } = resolveActingUser(caller, undefined)
  const payload = {
    user_id: userId,
    owner_id: ownerId,
    ...(caller.key === null ? {} : { key_id: caller.key.id }),
    agent_slug: request.model,
    ...model,
    stream: request.stream === true,
    ...splitMessages(request.messages),
    temperature: request.temperature ?? null,
    max_tokens: request.max_completion_tokens ?? request.max_tokens ?? null,
    ...buildAnswerPayload(request),
    parameters: listPassedParameters(request),
  }
  const ref = await enqueue(tx, completeMessages, payload, { ownerId, requestId, settings: edge.settings })
  const inputBytes =
    countInputBytes(payload.messages) + Buffer.byteLength(payload.system + (payload.answer_options ?? ''))
  const turn = { jobId: ref.jobId, conversationId: null, ...model, inputBytes, hasDocuments: false }
  await reserveTurn(input, turn, payload)
  return ref
}

// Providers count 85 to 1,600 tokens for a picture, whatever its size. A token counts as four bytes.
const BYTES_PER_PICTURE = 4000

const countInputBytes = (messages: readonly CompletionMessage[]): number =>
  messages.reduce((sum, message) => {
    const pictures = message.role === 'user' ? (message.pictures?.length ?? 0) : 0
    const calls = message.role === 'assistant' ? JSON.stringify(message.toolCalls ?? []) : ''
    return sum + Buffer.byteLength(message.content + calls) + pictures * BYTES_PER_PICTURE
  }, 0)
