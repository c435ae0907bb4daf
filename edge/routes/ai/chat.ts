import type { ChatResult } from '../../../tasks/ai/chat.ts'
import type { EdgeRequest } from '../../http/server.ts'
import type { Caller } from '../../pipeline/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { type Follow, route } from '../../pipeline/route.ts'
import type { StreamSource } from '../../streams/sse.ts'
import { type Who, whoOf } from './callers.ts'
import { ByUser, ChatQuery, ChatRequest, ChatResponse, StreamParams } from './shapes.ts'
import { beginStream, beginTurn, turnFor } from './turn.ts'
import { exampleStream, followTurn, placeOf } from './turn-stream.ts'

const ERRORS = [
  'ai.not_yours',
  'ai.disabled',
  'ai.missing_key',
  'ai.refused',
  'ai.failed',
  'ai.interrupted',
  'agent.missing',
  'agent.inactive',
  'agent.none',
  'conversation.unknown',
  'conversation.denied',
  'rag.missing',
  'rag.busy',
] as const

const TURNS = `Without a conversation_id a conversation begins, titled with the first 50 characters. A signed-in caller is their own \
user_id, and only admins may name another; without a credential it is whoever is named, \`api-user\` by default. The question is \
stored before the model is asked. With \`rag_collection\` the best chunks of that collection (\`rag_top_k\`, 5 by default) are put \
before the model, and \`rag_sources\` of the answer lists them. Turns of one conversation come one after the other.`

const STREAM = `Server-sent events: \`connect\` with conversation_id, message_id and job_id; a \`chunk\` for each piece; \`final\` with \
the whole answer; \`complete\`; or \`error\` with detail. After a \`restart\` what came before it is void: the turn was begun anew. Every \
event has an id, and with it as \`Last-Event-ID\` the stream goes on here or at \`GET /ai/chat/stream/{message_id}\`, on any process, \
without another turn. Closing the stream does not stop the turn; \`DELETE /jobs/{job_id}\` does, and keeps what had come.`

const STREAM_EXAMPLE = exampleStream()

/** Asking and being answered. */
export const chatRoutes = [
  route({
    method: 'post',
    path: '/chat',
    summary: 'Ask, and wait for the answer',
    description: TURNS,
    body: ChatRequest,
    response: ChatResponse,
    errors: ERRORS,
    sideEffect: true,
    job: ({ body, ...input }) => beginTurn(input, body, false),
    answer: (result) => {
      const { message_id, content, conversation_id, response_time_ms, rag_sources } = result as ChatResult
      return {
        message_id,
        content,
        conversation_id,
        response_time_ms,
        ...(rag_sources === undefined ? {} : { rag_sources }),
      }
    },
  }),

  route({
    method: 'post',
    path: '/chat/stream',
    summary: 'Ask, and read the answer as it comes',
    description: `${TURNS} ${STREAM}`,
    body: ChatRequest,
    produces: 'text/event-stream',
    example: STREAM_EXAMPLE,
    errors: ERRORS,
    sideEffect: true,
    job: ({ body, ...input }) => beginStream(input, body),
    follow: following(({ body }: Asking & { body: ChatRequest }) => body.user_id),
  }),

  route({
    method: 'get',
    path: '/chat/stream',
    summary: 'The same with the question in the query, for EventSource',
    spends: true,
    description: `${TURNS} ${STREAM}`,
    query: ChatQuery,
    produces: 'text/event-stream',
    example: STREAM_EXAMPLE,
    errors: ERRORS,
    job: ({ query, ...input }) => beginStream(input, query),
    follow: following(({ query }: Asking & { query: ChatRequest }) => query.user_id),
  }),

  route({
    method: 'get',
    path: '/chat/stream/:message_id',
    summary: 'The stream of an answer, from its beginning or after `Last-Event-ID`',
    description: STREAM,
    params: StreamParams,
    query: ByUser,
    produces: 'text/event-stream',
    example: STREAM_EXAMPLE,
    errors: ['ai.not_yours', 'turn.missing', 'conversation.denied'],
    stream: async ({ params, query, request, caller, edge }) => {
      const { message_id: messageId } = params
      const place = placeOf(request.header('last-event-id'))
      const turn = await turnFor(edge, whoOf(caller, query.user_id), { messageId })
      return followTurn(edge.hub, turn, place?.messageId === messageId ? place.seq : null)
    },
  }),
]

interface Asking {
  readonly edge: Edge
  readonly caller: Caller
  readonly request: EdgeRequest
}

/** The stream of the turn that was begun; a reader who comes back with an id of ours begins none. */
function following<I extends Asking>(userIdOf: (input: I) => string | undefined): Follow<I> {
  const who = (input: I): Who => whoOf(input.caller, userIdOf(input))
  return {
    resume: async (input): Promise<StreamSource | null> => {
      const place = placeOf(input.request.header('last-event-id'))
      if (place === null) return null
      const turn = await turnFor(input.edge, who(input), { messageId: place.messageId })
      return followTurn(input.edge.hub, turn, place.seq)
    },
    open: async (input, jobId) =>
      followTurn(input.edge.hub, await turnFor(input.edge, who(input), { jobId }), null),
  }
}
